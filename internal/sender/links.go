package sender

import (
	"slices"
	"sync"
	"time"
)

const (
	// sweepEvery is how often idle links are checked: whether their time is over, and whether the peer has closed them.
	sweepEvery = time.Second
	// maxHTTP2Origins limits the origins that are remembered to speak HTTP/2.
	maxHTTP2Origins = 4096
)

// links holds the idle links of a clientID, and the origins that have none because they speak HTTP/2.
//
// No goroutine waits on an idle link. take checks, before a byte is written, whether the peer has closed the link or sent
// unsolicited bytes. The sweep checks it once a second, so that closed links are not kept.
type links struct {
	max, maxHost int
	timeout      time.Duration

	mu             sync.Mutex // guards what follows
	at             map[string]*stack
	oldest, newest *link // all idle links, by the time at which they became idle
	n              int
	http2          map[string]struct{}
	sweeper        *time.Timer // nil if no link is idle
	closed         bool
}

// A stack holds the idle links to one origin. The last one is used first, so that links that are not needed expire.
type stack struct{ idle []*link }

// take returns a link that can take a request, or nil.
func (ls *links) take(origin string) *link {
	for {
		l := ls.pop(origin)
		if l == nil || l.quiet() {
			return l
		}
		l.close()
	}
}

func (ls *links) pop(origin string) *link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	st := ls.at[origin]
	if st == nil || len(st.idle) == 0 {
		return nil
	}
	last := len(st.idle) - 1
	l := st.idle[last]
	if time.Since(l.since) >= ls.timeout {
		return nil // it is the youngest: the sweep will close them all
	}
	ls.removeLocked(st, last)
	return l
}

// give keeps a link for later. If there is no room, the oldest is closed.
func (ls *links) give(l *link) {
	surplus := ls.push(l)
	if surplus != nil {
		surplus.close()
	}
}

func (ls *links) push(l *link) (surplus *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	st := ls.at[l.origin]
	switch {
	case ls.closed:
		return l
	case st == nil:
		if ls.at == nil {
			ls.at = map[string]*stack{}
		}
		st = &stack{}
		ls.at[l.origin] = st
	case len(st.idle) >= ls.maxHost:
		return l
	}
	if ls.n >= ls.max {
		surplus = ls.oldest
		ls.dropLocked(surplus)
	}
	l.since, l.idle = time.Now(), true
	st.idle = append(st.idle, l)
	l.older, l.newer = ls.newest, nil
	if ls.newest != nil {
		ls.newest.newer = l
	} else {
		ls.oldest = l
	}
	ls.newest = l
	ls.n++
	if ls.sweeper == nil {
		ls.sweeper = time.AfterFunc(sweepEvery, ls.sweep)
	}
	return surplus
}

// dropLocked removes an idle link.
func (ls *links) dropLocked(l *link) {
	st := ls.at[l.origin]
	ls.removeLocked(st, slices.Index(st.idle, l))
}

func (ls *links) removeLocked(st *stack, i int) {
	l := st.idle[i]
	st.idle = slices.Delete(st.idle, i, i+1)
	if l.older != nil {
		l.older.newer = l.newer
	} else {
		ls.oldest = l.newer
	}
	if l.newer != nil {
		l.newer.older = l.older
	} else {
		ls.newest = l.older
	}
	l.idle, l.older, l.newer = false, nil, nil
	ls.n--
}

// sweep closes links that have expired or cannot be used any more. It runs again while any link is idle.
func (ls *links) sweep() {
	ls.mu.Lock()
	now := time.Now()
	var rested []*link
	for l := ls.oldest; l != nil && now.Sub(l.since) >= sweepEvery; l = l.newer {
		rested = append(rested, l)
	}
	ls.mu.Unlock()
	for _, l := range rested {
		if ls.dropIfDead(l, now) {
			l.close()
		}
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for origin, st := range ls.at {
		if len(st.idle) == 0 {
			delete(ls.at, origin)
		}
	}
	if ls.n == 0 || ls.closed {
		ls.sweeper = nil
		return
	}
	ls.sweeper.Reset(sweepEvery)
}

// dropIfDead checks a link under the lock, so that no request takes it meanwhile.
func (ls *links) dropIfDead(l *link, now time.Time) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !l.idle || now.Sub(l.since) < sweepEvery { // it was used since
		return false
	}
	if now.Sub(l.since) < ls.timeout && l.quiet() {
		return false
	}
	ls.dropLocked(l)
	return true
}

// clear closes all idle links. With last, links given later are closed as well.
func (ls *links) clear(last bool) {
	ls.mu.Lock()
	ls.closed = ls.closed || last
	var all []*link
	for l := ls.oldest; l != nil; l = l.newer {
		all = append(all, l)
	}
	for _, l := range all {
		l.idle, l.older, l.newer = false, nil, nil
	}
	ls.at, ls.oldest, ls.newest, ls.n = nil, nil, nil, 0
	if ls.sweeper != nil && ls.sweeper.Stop() {
		ls.sweeper = nil
	}
	ls.mu.Unlock()
	for _, l := range all {
		l.close()
	}
}

// speakHTTP2 remembers the version that an origin chose. It saves a handshake; net/http handles either version.
func (ls *links) speakHTTP2(origin string, yes bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case !yes:
		delete(ls.http2, origin)
		return
	case ls.http2 == nil || len(ls.http2) >= maxHTTP2Origins:
		ls.http2 = map[string]struct{}{}
	}
	ls.http2[origin] = struct{}{}
}

func (ls *links) speaksHTTP2(origin string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, yes := ls.http2[origin]
	return yes
}
