package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// An account bounds the attempts that all of a tenant's endpoints start together, where their policies say so (CCW-LIM-2). At
// the bound, lanes wait in line and start one attempt at each turn, so that one busy endpoint does not starve the others.
//
// Locks are taken in the order lane, account, slots.
type account struct {
	d    *Dispatcher
	span time.Duration // a minute

	mu      sync.Mutex
	log     startLog
	keep    int
	waiting []*Lane
	timer   clock.Timer
	timerAt time.Duration
}

// accounts holds the tenants that have such a bound.
type accounts struct {
	d       *Dispatcher
	mu      sync.Mutex
	tenants map[godwit.TenantID]*account
}

// of returns the account of an endpoint, or nil if its policy has no account limit.
func (as *accounts) of(t *attempt.Target) *account {
	if t.Policy.AccountPerMinute == 0 {
		return nil
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.tenants[t.Endpoint.TenantID]
	if a == nil {
		a = &account{d: as.d, span: as.d.times.minute()}
		as.tenants[t.Endpoint.TenantID] = a
	}
	return a
}

// take counts a start of the lane if the account has one free and no lane in line could use it; turn says that the lane was
// called from the line. Otherwise the lane joins the line. slot, when not nil, takes a slot for the request; if there is none,
// take counts nothing. Called with the lane locked.
func (a *account) take(l *Lane, now time.Time, turn bool, slot func() bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.d.times.since(now)
	limit := limitOf(l)
	free := a.log.free(limit, a.span)
	if free > at || !turn && a.first(at, l) {
		if !l.inAccountLine {
			l.inAccountLine = true
			a.waiting = append(a.waiting, l)
		}
		a.wakeAt(max(free, at))
		return false
	}
	if slot != nil && !slot() {
		return false
	}
	a.keep = max(a.keep, limit)
	a.log.add(at, a.keep, a.span)
	return true
}

// allow sizes the log for limit starts.
func (a *account) allow(limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keep = max(a.keep, limit)
}

func limitOf(l *Lane) int { return l.Target().Policy.AccountPerMinute }

// now returns the current time on the timeline of the log.
func (a *account) now() time.Duration { return a.d.times.since(a.d.cfg.Clock.Now()) }

// first reports whether another lane in line could start now.
func (a *account) first(at time.Duration, l *Lane) bool {
	for _, other := range a.waiting {
		if other != l && a.mayStart(other, at) {
			return true
		}
	}
	return false
}

// mayStart checks the lane's own limit, which may be smaller than that of other endpoints. A lane whose limit was removed is
// called too, so that it leaves the line.
func (a *account) mayStart(l *Lane, at time.Duration) bool {
	limit := limitOf(l)
	return limit == 0 || a.log.free(limit, a.span) <= at
}

func (a *account) wakeAt(at time.Duration) {
	if a.timer != nil {
		if a.timerAt <= at {
			return
		}
		a.timer.Stop()
	}
	a.timerAt = at
	var timer clock.Timer
	timer = a.d.cfg.Clock.AfterFunc(max(at-a.now(), 0), func() {
		a.mu.Lock()
		if a.timer == timer {
			a.timer = nil
		}
		a.mu.Unlock()
		a.serve()
	})
	a.timer = timer
}

// serve calls lanes from the line as long as starts are free.
func (a *account) serve() {
	for {
		l := a.next()
		if l == nil {
			return
		}
		l.called()
	}
}

// next removes the first lane that may start from the line. If there is none, it sets a timer for when the next start leaves
// the minute.
func (a *account) next() *Lane {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return nil
	}
	at := a.now()
	for i, l := range a.waiting {
		if a.mayStart(l, at) {
			a.waiting = slices.Delete(a.waiting, i, i+1)
			l.inAccountLine = false
			return l
		}
	}
	soonest := a.log.free(limitOf(a.waiting[0]), a.span)
	for _, l := range a.waiting[1:] {
		soonest = min(soonest, a.log.free(limitOf(l), a.span))
	}
	a.wakeAt(soonest)
	return nil
}

// called uses the lane's turn in the line of its account. Without a free slot the lane waits for a slot. It must not ask the
// account again: the account would put it back in line, behind other lanes that return in the same way.
func (l *Lane) called() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.d.cfg.Clock.Now()
	if l.account != nil && l.d.Running() && l.mayStart(now) {
		if !l.take(now, true) {
			l.backlog.refill(now)
			return
		}
		l.start(now)
	}
	l.pump()
}
