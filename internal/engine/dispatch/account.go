package dispatch

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An account bounds the attempts that all of a tenant's endpoints start together, where their policies say so (CCW-LIM-2). At
// the bound, lanes wait in line and start one attempt at each turn, so that one busy endpoint does not starve the others.
//
// The store counts the starts, because other nodes deliver for other endpoints of the tenant. An account takes a few starts at
// a time and returns those that its lanes do not use.
//
// Locks are taken in the order lane, account, slots.
type account struct {
	d      *Dispatcher
	tenant godwit.TenantID

	mu      sync.Mutex
	waiting []*Lane
	grant   grant
	life    time.Duration // how long the starts that are taken next may be used
	want    int           // how many starts to take next
	asking  bool          // starts are being taken
	// No start is free before blocked for lanes with limits up to blockedLimit.
	blocked      time.Time
	blockedLimit int
	timer        clock.Timer
	timerAt      time.Time
}

// A grant is starts that the store granted.
type grant struct {
	at   time.Time
	life time.Duration // how long after at they may be used
	left int
	used int // starts of the account in the last minute, without those left
}

const (
	// grantLife is how long granted starts may be used. The store counts them at the time when they were asked for, so the period
	// is longer by as much. A store that answers slowly makes it longer, up to maxGrantLife: otherwise the answer would always
	// come too late, and the account would get nothing.
	grantLife    = 250 * time.Millisecond
	maxGrantLife = claimTimeout + grantLife
	maxGrant     = 64
	// startsAllowance is the name of the allowance in the store.
	startsAllowance = "starts"
)

// accounts finds the accounts of tenants that have such a bound. Lanes hold them; an account that no lane has any more goes.
type accounts struct {
	d       *Dispatcher
	mu      sync.Mutex
	tenants map[godwit.TenantID]weak.Pointer[account]
}

// of returns the account of an endpoint, or nil if its policy has no account limit.
func (as *accounts) of(t *attempt.Target) *account {
	if t.Policy.AccountPerMinute == 0 {
		return nil
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	tenant := t.Endpoint.TenantID
	a := as.tenants[tenant].Value()
	if a == nil {
		a = &account{d: as.d, tenant: tenant}
		as.tenants[tenant] = weak.Make(a)
		runtime.AddCleanup(a, as.forget, tenant)
	}
	return a
}

// forget removes the entry of an account that is gone, unless the tenant has another one by now.
func (as *accounts) forget(tenant godwit.TenantID) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.tenants[tenant].Value() == nil {
		delete(as.tenants, tenant)
	}
}

// giveBack returns the starts that no lane will use because the node stops.
func (as *accounts) giveBack() {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, p := range as.tenants {
		if a := p.Value(); a != nil {
			a.mu.Lock()
			a.giveBack()
			a.mu.Unlock()
		}
	}
}

// take uses a granted start for the lane, unless a lane in line could use it; turn says that the lane was called from the line.
// Otherwise the lane joins the line. slot, when not nil, takes a slot for the request; if there is none, take uses nothing.
// Called with the lane locked.
func (a *account) take(l *Lane, now time.Time, turn bool, slot func() bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	if !a.mayStart(l) || !turn && a.first(l) {
		if !l.inAccountLine {
			l.inAccountLine = true
			a.waiting = append(a.waiting, l)
		}
		a.ask(now)
		return false
	}
	if slot != nil && !slot() {
		return false
	}
	a.grant.left--
	a.grant.used++
	return true
}

func limitOf(l *Lane) int { return l.Target().Policy.AccountPerMinute }

// mayStart checks the lane's own limit, which may be smaller than that of other endpoints. A lane whose limit was removed is
// called too, so that it leaves the line.
func (a *account) mayStart(l *Lane) bool {
	limit := limitOf(l)
	return limit == 0 || a.grant.left > 0 && a.grant.used < limit
}

// first reports whether another lane in line could start now.
func (a *account) first(l *Lane) bool {
	return slices.ContainsFunc(a.waiting, func(other *Lane) bool { return other != l && a.mayStart(other) })
}

// expire gives back starts that were not used in time.
func (a *account) expire(now time.Time) {
	if a.grant.left > 0 && now.Sub(a.grant.at).Abs() > a.grant.life {
		a.want = max(a.want/2, 1)
		a.giveBack()
	}
}

// giveBack returns unused starts to the store.
func (a *account) giveBack() {
	if a.grant.left == 0 {
		return
	}
	unused := a.grant
	a.grant.left = 0
	a.d.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.d.base), claimTimeout) // also while the node stops
		defer cancel()
		// If it fails, the starts count as made.
		if err := a.d.cfg.Store.ReturnAllowance(ctx, a.tenant, startsAllowance, unused.at, unused.left); err != nil {
			a.d.cfg.Log.Error("give back starts of an account", "tenant", a.tenant.String(), "starts", unused.left, "error", err)
		}
	})
}

// ask takes starts from the store for the lanes in line, in the background, or waits until some are free. A lane in line that
// may start is being called.
func (a *account) ask(now time.Time) {
	limit := a.largestLimit()
	switch {
	case a.asking || len(a.waiting) == 0 || slices.ContainsFunc(a.waiting, a.mayStart):
		return
	case limit <= a.blockedLimit && now.Before(a.blocked):
		a.wakeAt(a.blocked, now)
		return
	}
	a.asking = true
	a.want = min(max(a.want, len(a.waiting)), maxGrant)
	life := max(a.life, grantLife)
	taken := store.Allowance{
		TenantID: a.tenant, Name: startsAllowance, Limit: limit, Per: a.d.times.minute() + life, Want: a.want, Now: now,
	}
	a.d.Go(func() { a.takeStarts(taken, life) })
}

func (a *account) largestLimit() (limit int) {
	for _, l := range a.waiting {
		limit = max(limit, limitOf(l))
	}
	return limit
}

// takeStarts takes starts from the store and passes them to the lanes in line.
func (a *account) takeStarts(asked store.Allowance, life time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.d.base), claimTimeout) // what a stop cut off would count as made
	defer cancel()
	allowed, err := a.d.cfg.Store.TakeAllowance(ctx, asked)
	now := a.d.cfg.Clock.Now()
	a.mu.Lock()
	a.asking = false
	a.life = min(max(grantLife, 4*now.Sub(asked.Now)), maxGrantLife)
	a.blocked, a.blockedLimit = time.Time{}, 0
	switch {
	case err != nil:
		a.d.cfg.Log.Error("take starts of an account", "tenant", a.tenant.String(), "error", err)
		a.blocked, a.blockedLimit = now.Add(storeRetry), asked.Limit
	case allowed.Granted < asked.Want:
		a.blocked, a.blockedLimit = allowed.Next, asked.Limit
	default:
		a.want = min(2*a.want, maxGrant) // there was demand for all of the last ones
	}
	a.giveBack()
	a.grant = grant{at: asked.Now, life: life, left: allowed.Granted, used: allowed.Used - allowed.Granted}
	if !a.d.Running() {
		a.giveBack()
	} else if allowed.Granted > 0 {
		a.wakeAt(asked.Now.Add(life+1), now) // to give back what is left
	}
	a.mu.Unlock()
	a.serve()
}

func (a *account) wakeAt(at, now time.Time) {
	if a.timer != nil {
		if !a.timerAt.After(at) {
			return
		}
		a.timer.Stop()
	}
	a.timerAt = at
	var timer clock.Timer
	timer = a.d.cfg.Clock.AfterFunc(max(at.Sub(now), 0), func() {
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

// next removes the first lane that may start from the line. If there is none, it asks for further starts.
func (a *account) next() *Lane {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.d.cfg.Clock.Now()
	a.expire(now)
	for i, l := range a.waiting {
		if a.mayStart(l) {
			a.waiting = slices.Delete(a.waiting, i, i+1)
			l.inAccountLine = false
			return l
		}
	}
	a.ask(now)
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
