package sender

import (
	"net"
	"net/url"
	"sync"
)

// A place is the destination of a request: a checked URL and values derived from it. It never changes.
type place struct {
	url    *url.URL
	origin string // scheme, host and port: connections to it may be shared
	addr   string // host and port to dial
	uri    string // of the request line
	secure bool
}

func newPlace(u *url.URL) *place {
	p := &place{url: u, uri: u.RequestURI(), secure: u.Scheme == "https"}
	port := u.Port()
	switch {
	case port != "":
	case p.secure:
		port = "443"
	default:
		port = "80"
	}
	p.addr = net.JoinHostPort(u.Hostname(), port)
	p.origin = u.Scheme + "://" + p.addr
	return p
}

// maxPlaces is the number of places in a generation of the placeCache.
const maxPlaces = 4096

// A placeCache remembers places by the text of their URL. The checks depend only on the text and the sender's configuration,
// which does not change; addresses are checked on every connection all the same. Places that were not used during a whole
// generation are forgotten.
type placeCache struct {
	mu        sync.RWMutex
	now, past map[string]*place
}

func (a *placeCache) find(raw string) *place {
	a.mu.RLock()
	p, recent := a.now[raw]
	if p == nil {
		p = a.past[raw]
	}
	a.mu.RUnlock()
	if p != nil && !recent {
		a.keep(raw, p)
	}
	return p
}

func (a *placeCache) keep(raw string, p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil || len(a.now) >= maxPlaces {
		a.now, a.past = make(map[string]*place), a.now
	}
	a.now[raw] = p
}

// place checks a URL, or returns the cached result.
func (s *Sender) place(raw string) (*place, *URLError) {
	if p := s.places.find(raw); p != nil {
		return p, nil
	}
	u, problem := s.parseURL(raw)
	if problem != nil {
		return nil, problem
	}
	p := newPlace(u)
	s.places.keep(raw, p)
	return p, nil
}
