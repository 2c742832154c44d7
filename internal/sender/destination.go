package sender

import (
	"net"
	"net/url"
	"sync"
)

// A destination is where a request goes: a checked URL and values derived from it. It never changes.
type destination struct {
	url    *url.URL
	origin string // scheme, host and port: connections to it may be shared
	addr   string // host and port to dial
	uri    string // of the request line
	secure bool
}

func newDestination(u *url.URL) *destination {
	p := &destination{url: u, uri: u.RequestURI(), secure: u.Scheme == "https"}
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

// maxDestinations is the number of destinations in a generation of the destinationCache.
const maxDestinations = 4096

// A destinationCache remembers destinations by the text of their URL. The checks depend only on the text and the sender's configuration,
// which does not change; addresses are checked on every connection all the same. Places that were not used during a whole
// generation are forgotten.
type destinationCache struct {
	mu        sync.RWMutex
	now, past map[string]*destination
}

func (a *destinationCache) find(raw string) *destination {
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

func (a *destinationCache) keep(raw string, p *destination) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil || len(a.now) >= maxDestinations {
		a.now, a.past = make(map[string]*destination), a.now
	}
	a.now[raw] = p
}

// destination checks a URL, or returns the cached result.
func (s *Sender) destination(raw string) (*destination, *URLError) {
	if p := s.destinations.find(raw); p != nil {
		return p, nil
	}
	u, problem := s.parseURL(raw)
	if problem != nil {
		return nil, problem
	}
	p := newDestination(u)
	s.destinations.keep(raw, p)
	return p, nil
}
