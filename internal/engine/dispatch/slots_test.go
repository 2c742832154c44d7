package dispatch

import (
	"runtime"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A slot that becomes free during a lane's turn must not stay free while a lane waits in line.
func TestNobodyWaitsBesideAFreeSlot(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	d := newIdle(hands)
	l := d.bareLane(godwit.Policy{Concurrency: 8}, 3)
	d.cfg.Shards.Serve([]godwit.Lease{{Shard: l.id.Shard(), Epoch: 1}}, hands.Steady()+time.Hour)
	l.wake() // there is no slot, so the lane joins the line

	l.mu.Lock()
	given := make(chan struct{})
	go func() { d.slots.give(); close(given) }()
	for waiting := 1; waiting > 0; { // until the lane was called and is about to take its turn
		runtime.Gosched()
		d.slots.mu.Lock()
		waiting = len(d.slots.waiting)
		d.slots.mu.Unlock()
	}
	d.slots.give()
	l.mu.Unlock()
	<-given
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window.inFlight != 2 || d.slots.free != 0 || len(d.slots.waiting) != 1 {
		t.Errorf("%d in flight, %d slots free, %d lanes in line; want 2, 0, 1", l.window.inFlight, d.slots.free, len(d.slots.waiting))
	}
}

// The lag counts what waits for this node, not what waits for its endpoint.
func TestLagIsOfDeliveriesThatCouldBeSent(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	d := newIdle(hands)
	l := d.bareLane(godwit.Policy{Concurrency: 8}, 3)
	d.cfg.Shards.Serve([]godwit.Lease{{Shard: l.id.Shard(), Epoch: 1}}, hands.Steady()+time.Hour)
	for _, it := range l.window.queue {
		it.Work.Delivery.DueAt = hands.Now()
	}
	l.wake() // there is no slot, so the lane joins the line
	hands.Advance(7 * time.Second)
	if lag := l.lag(hands.Now()); lag != 7*time.Second {
		t.Errorf("deliveries wait for a slot: %s", lag)
	}
	l.window.inFlight = 8
	if lag := l.lag(hands.Now()); lag != 0 {
		t.Errorf("the endpoint has as many requests as it may have: %s", lag)
	}
	l.window.inFlight = 0
	l.target.Store(&attempt.Target{Endpoint: godwit.Endpoint{Status: godwit.EndpointPaused}, Policy: l.Target().Policy})
	if lag := l.lag(hands.Now()); lag != 0 {
		t.Errorf("the endpoint is paused: %s", lag)
	}
}
