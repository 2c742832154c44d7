package sender

import (
	"slices"
	"sync"
	"time"
)

const (
	// sweepEvery is how often idle links are looked at: whether their time is over, and whether the peer has closed them.
	sweepEvery = time.Second
	// maxHTTP2Origins is how many origins are remembered to speak HTTP/2.
	maxHTTP2Origins = 4096
)

// links are the idle links of a clientID, and what it knows of origins that have none because they speak HTTP/2.
//
// No goroutine waits on an idle link. Whether the peer has closed it, or spoken out of turn, is found out when the link is
// taken, before a byte is written; and once a second, so that a closed one does not lie about.
type links struct {
	max, maxHost int
	timeout      time.Duration

	mu             sync.Mutex // guards what follows
	at             map[string]*stack
	oldest, newest *link // all that are idle, by when they became so
	n              int
	http2          map[string]struct{}
	sweeper        *time.Timer // nil when none is idle
	closed         bool
}

// A stack is the idle links to one origin. The last one is taken first, so that those not needed grow old.
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

// give keeps a link for later. Where there is no room for it, the oldest gives way.
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

// sweep closes links whose time is over and those that cannot be used any more, and comes again while any is idle.
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

// dropIfDead looks at a link under the lock, so that nobody takes it meanwhile.
func (ls *links) dropIfDead(l *link, now time.Time) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !l.idle || now.Sub(l.since) < sweepEvery { // it has been in use since
		return false
	}
	if now.Sub(l.since) < ls.timeout && l.quiet() {
		return false
	}
	ls.dropLocked(l)
	return true
}

// clear closes all idle links. The last time, those given later are closed as well.
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

// speakHTTP2 remembers what an origin chose. It saves a handshake, and is no promise: net/http copes with either.
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
