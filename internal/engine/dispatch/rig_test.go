package dispatch

import (
	"log/slog"
	"runtime"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// newIdle makes a running dispatcher without slots, whose requests never end.
func newIdle(hands clock.Clock) *Dispatcher {
	log := slog.New(slog.DiscardHandler)
	d := New(Config{
		Clock: hands, Pace: hands, Log: log, Window: 16, MaxHeldBytes: 1 << 20, MaxHeld: 1 << 20, TimeScale: 1,
		Maker:   attempt.NewMaker(attempt.Config{Clock: hands, Log: log, TimeScale: 1}),
		Commits: commit.New(commit.Config{Clock: hands, Pace: hands, Log: log}),
		Shards:  shard.NewKeeper(shard.Config{Clock: hands, Log: log}),
	})
	d.workers.run = func(*item) { runtime.Goexit() }
	d.phase.Store(phaseRunning)
	return d
}

// bareLane makes a lane of an active endpoint with the given number of deliveries queued under epoch 1.
func (d *Dispatcher) bareLane(policy godwit.Policy, queued int) *Lane {
	now := d.cfg.Clock.Now()
	l := &Lane{d: d, id: godwit.NewEndpointID(now), window: window{total: &d.held}}
	l.window.shard = &d.busy[l.id.Shard()]
	l.maker, l.backlog.lane, l.reenabler.lane = d.cfg.Maker, l, l
	l.target.Store(&attempt.Target{Endpoint: godwit.Endpoint{Status: godwit.EndpointActive}, Policy: &policy})
	l.pace.follow(l.Target().Policy, &d.times)
	for range queued {
		l.window.push(&item{lane: l, Job: attempt.Job{Epoch: 1, Work: godwit.Work{
			Event: &godwit.Event{}, Delivery: godwit.Delivery{ID: godwit.NewDeliveryID(now)},
		}}})
	}
	return l
}
