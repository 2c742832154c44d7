package engine

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Lanes that their account calls while there is no slot go and stand in line for one. They must not send each other back to
// the account's line: it would call them round and round until a slot is free.
func TestCalledLanesWaitForASlot(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	e := &Engine{clock: hands, log: slog.New(slog.DiscardHandler), began: hands.Now(), cfg: Config{Window: 16, MaxHeldBytes: 1 << 20}}
	e.workers = workers{jobs: make(chan job), run: func(job) { runtime.Goexit() }} // requests that never end
	e.commits = newCommitter(e)
	e.phase.Store(phaseRunning)
	a := &account{engine: e, span: time.Minute}
	a.log.add(0, 1, time.Minute) // the minute is used up
	var leases []godwit.Lease
	var lanes []*lane
	for range 3 {
		l := &lane{engine: e, id: godwit.NewEndpointID(hands.Now()), account: a, held: map[godwit.DeliveryID]holding{}}
		l.target.Store(&target{
			endpoint: godwit.Endpoint{Status: godwit.EndpointActive}, policy: godwit.Policy{Concurrency: 8, AccountPerMinute: 1},
		})
		leases = append(leases, godwit.Lease{Shard: l.id.Shard(), Epoch: 1})
		for range 2 {
			it := &item{epoch: 1, work: godwit.Work{Event: &godwit.Event{}, Delivery: godwit.Delivery{ID: godwit.NewDeliveryID(hands.Now())}}}
			l.holdItem(it, heldQueued)
			l.queue = append(l.queue, it)
		}
		lanes = append(lanes, l)
	}
	e.leases.set(leases, hands.Now().Add(time.Hour), hands)
	for _, l := range lanes {
		l.wake()
	}
	if len(a.waiting) != 3 {
		t.Fatalf("%d lanes in the account's line", len(a.waiting))
	}
	a.timer.Stop() // served by hand
	hands.Advance(time.Minute)
	served := make(chan struct{})
	go func() { a.serve(); close(served) }()
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-served:
	case <-patience.C:
		e.phase.Store(phaseStopping) // ends the circle
		<-served
		t.Fatal("the account calls the same lanes again and again")
	}
	if len(a.waiting) != 0 || len(e.slots.waiting) != 3 {
		t.Errorf("%d lanes in the account's line, %d in line for a slot; want 0 and 3", len(a.waiting), len(e.slots.waiting))
	}
	e.slots.give()
	if n := lanes[0].inFlight + lanes[1].inFlight + lanes[2].inFlight; n != 1 || lanes[0].inFlight != 1 {
		t.Errorf("%d in flight, %d of the first lane", n, lanes[0].inFlight)
	}
}
