package intake

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// counter answers with a number of waiting deliveries, grants events, and counts the questions.
type counter struct {
	Store
	waiting, asked int
	uses           []store.Use
	taken          int
}

func (c *counter) TakeAllowance(_ context.Context, a store.Allowance) (store.Allowed, error) {
	var before []store.Use
	for _, u := range c.uses {
		if u.At.After(a.Now.Add(-a.Per)) {
			before = append(before, u)
		}
	}
	out := a.Grant(before)
	c.uses = append(before, store.Use{At: a.Now, N: out.Granted})
	c.taken++
	return out, nil
}

func (c *counter) ReturnAllowance(_ context.Context, _ godwit.TenantID, _ string, _ time.Time, n int) error {
	c.uses[len(c.uses)-1].N -= n
	return nil
}

func (c *counter) CountWaiting(context.Context, godwit.TenantID, int) (int, error) {
	c.asked++
	return c.waiting, nil
}

// A rig has meters with a clock that is set by hand.
type rig struct {
	*meters
	t      *testing.T
	clock  time.Time
	store  *counter
	tenant godwit.Tenant
}

func newRig(t *testing.T, l godwit.TenantLimits) *rig {
	r := &rig{t: t, store: &counter{}, clock: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), tenant: godwit.Tenant{ID: godwit.TenantID{1}, Limits: l}}
	r.meters = r.node()
	r.alone = func() bool { return true }
	return r
}

// node returns the meters of a node beside others.
func (r *rig) node() *meters {
	return &meters{now: func() time.Time { return r.clock }, store: r.store, alone: func() bool { return false }, tenants: map[godwit.TenantID]*meter{}}
}

// bring brings events, which are accepted if retryAfter is empty.
func (r *rig) bring(events int, retryAfter string) {
	r.t.Helper()
	err := r.enter(r.t.Context(), &r.tenant, events)
	switch {
	case retryAfter == "" && err != nil:
		r.t.Errorf("%d events were refused: %v", events, err)
	case retryAfter != "" && !errors.Is(err, problem.TooManyRequests):
		r.t.Errorf("%d events: %v", events, err)
	case retryAfter != "" && problem.From(err).GetHeaders().Get("Retry-After") != retryAfter:
		r.t.Errorf("Retry-After is %q, want %q", problem.From(err).GetHeaders().Get("Retry-After"), retryAfter)
	}
}

func TestRate(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{EventsPerSecond: 10, Burst: 20})
	r.bring(15, "")
	r.bring(5, "")
	r.bring(1, "1")
	r.clock = r.clock.Add(500 * time.Millisecond)
	r.bring(6, "1")
	r.bring(5, "")
	r.clock = r.clock.Add(time.Hour)
	r.bring(50, "") // larger than the burst: taken from a full bucket, which is in debt then
	r.bring(1, "4")
	r.clock = r.clock.Add(3100 * time.Millisecond)
	r.bring(1, "")
	r.clock = r.clock.Add(-time.Hour) // the clock was set back
	r.bring(1, "1")

	r = newRig(t, godwit.TenantLimits{EventsPerSecond: 10}) // a burst of a second
	r.bring(10, "")
	r.bring(1, "1")
}

// Several nodes share the rate, and ask the store once for what they grant.
func TestRateOfSeveralNodes(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{EventsPerSecond: 10, Burst: 20})
	a, b := r.node(), r.node()
	bring := func(at *meters, events int, retryAfter string) {
		t.Helper()
		r.meters = at
		r.bring(events, retryAfter)
	}
	bring(a, 8, "")
	bring(b, 8, "")
	bring(a, 8, "3") // what it got of them went back
	bring(b, 4, "")
	bring(a, 1, "3")
	r.clock = r.clock.Add(1900 * time.Millisecond)
	bring(a, 1, "1")
	r.clock = r.clock.Add(200 * time.Millisecond) // a period of burst / rate has passed
	bring(a, 20, "")
	bring(b, 1, "3")
	r.clock = r.clock.Add(time.Hour)
	bring(a, 50, "") // larger than the burst: the rest is paid afterwards
	r.clock = r.clock.Add(2500 * time.Millisecond)
	bring(a, 1, "1")
	bring(b, 1, "")
	if len(a.tenants) != 1 || r.store.taken != 10 {
		t.Errorf("the store was asked %d times", r.store.taken)
	}
}

// Requests that wait for a grant share the next one.
func TestGrantIsShared(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{EventsPerSecond: 10, Burst: 20})
	r.meters = r.node()
	m := r.of(r.tenant.ID, r.clock)
	m.wanted.Add(5) // of requests that wait
	r.bring(1, "")
	m.wanted.Add(-5)
	r.bring(5, "")
	if r.store.taken != 1 {
		t.Errorf("the store was asked %d times", r.store.taken)
	}
	r.clock = r.clock.Add(2 * grantLife)
	m.wanted.Add(9)
	r.bring(1, "")
	m.wanted.Add(-9)
	r.clock = r.clock.Add(2 * grantLife) // too late for the rest
	r.bring(1, "")
	if r.store.taken != 3 {
		t.Errorf("the store was asked %d times", r.store.taken)
	}
}

func TestLimitsOfTheServer(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{})
	r.server = godwit.TenantLimits{EventsPerSecond: 1, Burst: 3, WaitingDeliveries: 7}
	r.bring(3, "")
	r.bring(1, "1")
	r.tenant.ID, r.tenant.Limits.EventsPerSecond = godwit.TenantID{2}, 5 // its burst is its own, too
	r.bring(5, "")
	r.store.waiting = 7
	r.clock = r.clock.Add(time.Minute)
	r.bring(1, "5")
}

func TestNoLimitsCostNoMeter(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{PayloadBytes: 1, Endpoints: 1})
	r.bring(1_000_000, "")
	if len(r.tenants) != 0 || r.store.asked != 0 {
		t.Errorf("%d meters, %d reads of the store", len(r.tenants), r.store.asked)
	}
}

func TestWaitingDeliveries(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{WaitingDeliveries: 100})
	r.store.waiting = 90
	r.bring(1, "")
	r.accepted(&r.tenant, &engine.Receipt{Fanout: []int{4, 5}})
	r.accepted(&r.tenant, &engine.Receipt{Fanout: []int{100}, Err: engine.ErrInProgress})
	r.accepted(&r.tenant, &engine.Receipt{Fanout: []int{100}, Replayed: &godwit.StoredResponse{}})
	r.bring(1, "")
	r.accepted(&r.tenant, &engine.Receipt{Fanout: []int{1}})
	r.bring(1, "5")
	if r.store.asked != 1 {
		t.Errorf("the store was asked %d times within a second", r.store.asked)
	}
	r.clock = r.clock.Add(time.Second)
	r.store.waiting = 20
	r.bring(1, "")
}

func TestIdleMetersGo(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{EventsPerSecond: 10})
	r.bring(1, "")
	r.clock = r.clock.Add(2 * meterIdle)
	r.tenant.ID = godwit.TenantID{2}
	r.bring(1, "")
	if len(r.tenants) != 1 {
		t.Errorf("%d meters", len(r.tenants))
	}
}

// A debt is owed however long it takes, also if the tenant is not seen for longer than meters are kept.
func TestDebtOutlivesIdleMeters(t *testing.T) {
	r := newRig(t, godwit.TenantLimits{EventsPerSecond: 1, Burst: 10})
	if err := r.enter(t.Context(), &r.tenant, 2000); err != nil { // owed for more than half an hour
		t.Fatal(err)
	}
	r.clock = r.clock.Add(meterIdle + time.Minute)
	other := godwit.Tenant{ID: godwit.TenantID{2}, Limits: r.tenant.Limits}
	if err := r.enter(t.Context(), &other, 1); err != nil { // sweeps
		t.Fatal(err)
	}
	if err := r.enter(t.Context(), &r.tenant, 1); !errors.Is(err, problem.TooManyRequests) {
		t.Errorf("the debt is forgotten: %v", err)
	}
	r.clock = r.clock.Add(time.Hour)
	if err := r.enter(t.Context(), &other, 1); err != nil || len(r.tenants) != 1 {
		t.Errorf("%d meters are kept: %v", len(r.tenants), err)
	}
}

// A clock that is set back makes a tenant wait no longer than it had to before.
func TestDebtAfterTheClockWasSetBack(t *testing.T) {
	for _, alone := range []bool{true, false} {
		r := newRig(t, godwit.TenantLimits{EventsPerSecond: 1, Burst: 10})
		r.alone = func() bool { return alone }
		if err := r.enter(t.Context(), &r.tenant, 20); err != nil {
			t.Fatal(err)
		}
		r.clock = r.clock.Add(-time.Hour)
		if err := r.enter(t.Context(), &r.tenant, 1); !errors.Is(err, problem.TooManyRequests) {
			t.Errorf("alone %t: the debt is forgotten: %v", alone, err)
		}
		r.store.uses = nil // dated an hour ahead, which the store does not count
		r.clock = r.clock.Add(30 * time.Second)
		if err := r.enter(t.Context(), &r.tenant, 1); err != nil {
			t.Errorf("alone %t: refused after the debt was paid: %v", alone, err)
		}
	}
}

// What a request took that was refused afterwards is given back.
func TestLeaveGivesBack(t *testing.T) {
	for _, alone := range []bool{true, false} {
		r := newRig(t, godwit.TenantLimits{EventsPerSecond: 1, Burst: 2})
		r.alone = func() bool { return alone }
		for range 20 {
			if err := r.enter(t.Context(), &r.tenant, 1); err != nil {
				t.Fatalf("alone %t: %v", alone, err)
			}
			if err := r.leave(t.Context(), &r.tenant, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
}
