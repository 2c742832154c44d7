package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// An account bounds the attempts that a tenant's endpoints start together, where their policies say so (CCW-LIM-2). When the
// bound is reached, lanes stand in line, and each that is called starts one attempt at a turn, so that an endpoint with much to
// send does not leave the others with nothing.
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

// accounts are the tenants that have such a bound.
type accounts struct {
	d       *Dispatcher
	mu      sync.Mutex
	tenants map[godwit.TenantID]*account
}

// of returns the account of an endpoint, nil when its policy has no limit for the account.
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

// take counts a start of the lane if one is free and no lane in line could use it; turn says that the lane was called from
// there. Else the lane stands in line. Slot, when not nil, gets a slot for the request: without one nothing is counted. Called
// with the lane locked.
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

// allow makes room for so many starts in the log.
func (a *account) allow(limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keep = max(a.keep, limit)
}

func limitOf(l *Lane) int { return l.Target().Policy.AccountPerMinute }

// now is the time as the log counts it.
func (a *account) now() time.Duration { return a.d.times.since(a.d.cfg.Clock.Now()) }

// first reports whether another lane stands in line that could start now.
func (a *account) first(at time.Duration, l *Lane) bool {
	for _, other := range a.waiting {
		if other != l && a.mayStart(other, at) {
			return true
		}
	}
	return false
}

// mayStart goes by the lane's own limit: an endpoint may have a smaller one than the others. One whose limit was lifted is
// called to find out.
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

// serve calls lanes from the line as long as there is something for them.
func (a *account) serve() {
	for {
		l := a.next()
		if l == nil {
			return
		}
		l.called()
	}
}

// next takes the first lane that may start out of the line; if there is none, it sees to it that they are served when the
// next start falls out of the minute.
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

// called uses the lane's turn in the line of its account. If there is no slot, the lane stands in line for one: were it to
// ask the account again, it would be sent back here, behind another lane that comes back in the same way.
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
