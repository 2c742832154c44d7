package engine

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A slot that comes free while a lane is having its turn must not lie idle beside a lane that stands in line.
func TestNobodyWaitsBesideAFreeSlot(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	e := &Engine{clock: hands, log: slog.New(slog.DiscardHandler), cfg: Config{Window: 16, MaxHeldBytes: 1 << 20}}
	e.workers = workers{jobs: make(chan job), run: func(job) { runtime.Goexit() }} // requests that never end
	e.commits = newCommitter(e)
	e.phase.Store(phaseRunning)
	l := &lane{engine: e, id: godwit.NewEndpointID(hands.Now()), held: map[godwit.DeliveryID]holding{}}
	l.target.Store(&target{endpoint: godwit.Endpoint{Status: godwit.EndpointActive}, policy: godwit.Policy{Concurrency: 8}})
	e.leases.set([]godwit.Lease{{Shard: l.id.Shard(), Epoch: 1}}, hands.Now().Add(time.Hour), hands)
	for range 3 {
		it := &item{epoch: 1, work: godwit.Work{Event: &godwit.Event{}, Delivery: godwit.Delivery{ID: godwit.NewDeliveryID(hands.Now())}}}
		l.holdItem(it, heldQueued)
		l.queue = append(l.queue, it)
	}
	l.wake() // there is no slot: it stands in line

	l.mu.Lock()
	given := make(chan struct{})
	go func() { e.slots.give(); close(given) }()
	for waiting := 1; waiting > 0; { // until the lane was called, and is about to take its turn
		runtime.Gosched()
		e.slots.mu.Lock()
		waiting = len(e.slots.waiting)
		e.slots.mu.Unlock()
	}
	e.slots.give()
	l.mu.Unlock()
	<-given
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight != 2 || e.slots.free != 0 || len(e.slots.waiting) != 1 {
		t.Errorf("%d in flight, %d slots free, %d lanes in line; want 2, 0, 1", l.inFlight, e.slots.free, len(e.slots.waiting))
	}
}
