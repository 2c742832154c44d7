package dispatch

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A distant store grants everything, and answers after a time.
type distant struct {
	Store
	hands *clock.Manual
	takes time.Duration
	per   []time.Duration // periods that were asked for
}

func (s *distant) TakeAllowance(_ context.Context, a store.Allowance) (store.Allowed, error) {
	if s.per = append(s.per, a.Per); len(s.per) > 20 {
		return store.Allowed{}, store.ErrUnavailable // ends the test
	}
	s.hands.Advance(s.takes)
	return store.Allowed{Granted: a.Want, Used: a.Want, Next: a.Now}, nil
}

func (s *distant) ReturnAllowance(context.Context, godwit.TenantID, string, time.Time, int) error {
	return nil
}

// A store that takes longer to answer than granted starts last must not keep an account's lanes from starting for ever.
func TestStartsOfADistantStoreAreUsed(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	d := newIdle(hands)
	s := &distant{hands: hands, takes: 2 * grantLife}
	d.cfg.Store = s
	d.slots.free = 1
	a := &account{d: d}
	l := d.bareLane(godwit.Policy{Concurrency: 8, AccountPerMinute: 100}, 1)
	l.account = a
	d.cfg.Shards.Serve([]godwit.Lease{{Shard: l.id.Shard(), Epoch: 1}}, hands.Steady()+time.Hour)
	l.wake()
	d.tasks.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window.inFlight != 1 {
		t.Errorf("after %d requests to the store nothing was started", len(s.per))
	}
	if last := s.per[len(s.per)-1]; last < time.Minute+s.takes {
		t.Errorf("the store counted starts for %v, although they may be used %v later", last, s.takes)
	}
}

// Lanes that their account calls while no slot is free wait for a slot. They must not return to the account's line: it would
// call them in a loop until a slot is free.
func TestCalledLanesWaitForASlot(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	d := newIdle(hands)
	a := &account{d: d, blocked: hands.Now().Add(2 * time.Minute), blockedLimit: 1} // the minute is used up
	var leases []godwit.Lease
	var lanes []*Lane
	for range 3 {
		l := d.bareLane(godwit.Policy{Concurrency: 8, AccountPerMinute: 1}, 2)
		l.account = a
		leases = append(leases, godwit.Lease{Shard: l.id.Shard(), Epoch: 1})
		lanes = append(lanes, l)
	}
	d.cfg.Shards.Serve(leases, hands.Steady()+time.Hour)
	for _, l := range lanes {
		l.wake()
	}
	if len(a.waiting) != 3 {
		t.Fatalf("%d lanes in the account's line", len(a.waiting))
	}
	a.timer.Stop() // the test calls serve itself
	a.grant = grant{at: hands.Now(), life: grantLife, left: 3}
	served := make(chan struct{})
	go func() { a.serve(); close(served) }()
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	select {
	case <-served:
	case <-limit.C:
		d.phase.Store(phaseStopping) // ends the loop
		<-served
		t.Fatal("the account calls the same lanes again and again")
	}
	if len(a.waiting) != 0 || len(d.slots.waiting) != 3 {
		t.Errorf("%d lanes in the account's line, %d in line for a slot; want 0 and 3", len(a.waiting), len(d.slots.waiting))
	}
	d.slots.give()
	if n := lanes[0].window.inFlight + lanes[1].window.inFlight + lanes[2].window.inFlight; n != 1 || lanes[0].window.inFlight != 1 {
		t.Errorf("%d in flight, %d of the first lane", n, lanes[0].window.inFlight)
	}
}

// The endpoints of a tenant share an account as long as one of them has it; then nothing of it is kept.
func TestAccountsAreForgotten(t *testing.T) {
	d := newIdle(clock.NewManual(time.Unix(1000, 0)))
	target := func(tenant byte) *attempt.Target {
		target := &attempt.Target{Policy: &godwit.Policy{AccountPerMinute: 10}}
		target.Endpoint.TenantID = godwit.TenantID{tenant}
		return target
	}
	used := d.accounts.of(target(1))
	for tenant := range byte(100) {
		d.accounts.of(target(tenant))
	}
	left := func() int {
		d.accounts.mu.Lock()
		defer d.accounts.mu.Unlock()
		return len(d.accounts.tenants)
	}
	for left() != 1 {
		runtime.GC()
	}
	if d.accounts.of(target(1)) != used {
		t.Error("the account changed while it was used")
	}
}

// A tenant whose last endpoint is deleted takes no memory in the index.
func TestEmptyTenantLeavesTheIndex(t *testing.T) {
	d := newIdle(clock.NewManual(time.Unix(1000, 0)))
	l := d.bareLane(godwit.Policy{Concurrency: 1}, 0)
	d.index.put(l)
	deleted := *l.Target()
	deleted.Endpoint.Status = godwit.EndpointDeleted
	l.target.Store(&deleted)
	d.index.put(l)
	d.index.tenants.Range(func(id, _ any) bool {
		t.Errorf("tenant %v is still there", id)
		return true
	})
}
