package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A shardLoad counts the deliveries of a shard in memory and the claims under way.
type shardLoad struct {
	n       atomic.Int64
	suspect atomic.Bool // an answer of the store was lost: it may hold claims that memory does not know
	drained func()      // called when nothing is left
}

func (s *shardLoad) add(n int64) {
	if s.n.Add(n) == 0 && s.drained != nil {
		s.drained()
	}
}

// Relearn loads the endpoints of shards again. While another node held the shards, that node got the outcomes, and an endpoint
// that this one does not know would get none of the events posted here.
func (d *Dispatcher) Relearn(ctx context.Context, shards []int) error {
	known, err := d.relearn(ctx, shards)
	if err != nil {
		return fmt.Errorf("load endpoints anew: %w", err)
	}
	var gone []godwit.EndpointID
	d.eachIn(shards, func(l *Lane) {
		if !known[l.id] {
			gone = append(gone, l.id)
		}
	})
	for _, id := range gone {
		if err := d.Changed(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// relearn loads the endpoints of shards again and returns which there are. Changed must not make a lane of an endpoint meanwhile:
// one of the two would have deliveries in memory and be in no index.
func (d *Dispatcher) relearn(ctx context.Context, shards []int) (known map[godwit.EndpointID]bool, err error) {
	defer d.lockReadingOf(shards)()
	known = map[godwit.EndpointID]bool{}
	var lanes []*Lane
	err = d.cfg.Store.LoadShards(ctx, shards, func(loaded *store.LoadedEndpoint) error {
		l := d.index.lane(loaded.Endpoint.ID)
		if l == nil {
			l = d.newLane(loaded)
		} else {
			l.reload(loaded)
			l.inherit(&loaded.Health)
		}
		known[l.id] = true
		lanes = append(lanes, l)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.recall(lanes)
	d.index.put(lanes...)
	return known, nil
}

// Inherit makes the lanes of shards count the requests that former owners may have begun, so that a change of owner or a restart
// cannot exceed an endpoint's rate.
func (d *Dispatcher) Inherit(former []shard.Former) {
	by := map[int]shard.Former{}
	var shards []int
	for _, f := range former {
		by[f.Shard] = f
		shards = append(shards, f.Shard)
	}
	d.eachIn(shards, func(l *Lane) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f := by[l.id.Shard()]
		switch last := l.condition.UpdatedAt; {
		case !f.Recorded:
			l.pace.inherit(f.Until, l.Target().Policy.Concurrency)
		case last.Before(f.Until):
			l.pace.inherit(last, 0)
		default:
			l.pace.inherit(f.Until, 0)
		}
	})
}

// eachIn calls fn with the lanes of some shards.
func (d *Dispatcher) eachIn(shards []int, fn func(*Lane)) {
	var in [godwit.Shards]bool
	for _, shard := range shards {
		in[shard] = true
	}
	d.index.each(func(l *Lane) {
		if in[l.id.Shard()] {
			fn(l)
		}
	})
}

// Yield returns the queued deliveries of shards to the store. A lane that saw the shard as this node's has taken up its delivery
// by now, since it did so with its lock held.
func (d *Dispatcher) Yield(shards []int) {
	d.eachIn(shards, func(l *Lane) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.backlog.settle()
	})
}

// Drained reports whether no delivery of the shard is in memory or being claimed. clean says that the store knows of no claim
// either.
func (d *Dispatcher) Drained(shard int) (drained, clean bool) {
	s := &d.busy[shard]
	return s.n.Load() == 0, !s.suspect.Load()
}

// InFlight counts the requests in flight by shard.
func (d *Dispatcher) InFlight() (n [godwit.Shards]int) {
	d.index.each(func(l *Lane) {
		l.mu.Lock()
		defer l.mu.Unlock()
		n[l.id.Shard()] += l.window.inFlight
	})
	return n
}

// Busy returns how much this node has to do.
func (d *Dispatcher) Busy() godwit.NodeLoad {
	s := d.Stats()
	return godwit.NodeLoad{Held: s.Held, InFlight: s.InFlight, Lag: s.Lag}
}

// Gained takes up waiting deliveries in shards that belonged to another node, or to this node before a restart.
func (d *Dispatcher) Gained(ctx context.Context, shards []int) {
	d.bringBack(ctx, shards, false)
	d.learnDue(ctx, shards)
}

// learnDue asks the store which endpoints of the shards have waiting deliveries.
func (d *Dispatcher) learnDue(ctx context.Context, shards []int) {
	if len(shards) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	due, err := d.cfg.Store.EndpointsDue(limited, shards)
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Log.Error("list endpoints with due work", "error", err)
		}
		return
	}
	for _, e := range due {
		if ctx.Err() != nil {
			return
		}
		if d.index.lane(e.EndpointID) == nil {
			// Another process created it.
			if err := d.Changed(ctx, e.EndpointID); err != nil {
				d.cfg.Log.Error("load endpoint with due work", "endpoint", e.EndpointID.String(), "error", err)
			}
		}
		if l := d.index.lane(e.EndpointID); l != nil {
			l.NoteDue(e.NextDue)
		}
	}
}

// Work takes up deliveries that another node has stored for endpoints of this one.
func (d *Dispatcher) Work(endpoints []godwit.EndpointID) {
	now := d.cfg.Clock.Now()
	for _, id := range endpoints {
		if !d.cfg.Shards.Serves(id.Shard()) {
			continue // another node's, or the node finds it when it has taken up the shard
		}
		if l := d.index.lane(id); l != nil {
			l.Told(now)
			continue
		}
		d.Go(func() { // another node created it
			if err := d.Changed(d.base, id); err != nil {
				d.cfg.Log.Error("load endpoint with due work", "endpoint", id.String(), "error", err)
			} else if l := d.index.lane(id); l != nil {
				l.Told(now)
			}
		})
	}
}

// WorkIn takes up deliveries that another node has stored for endpoints of many shards.
func (d *Dispatcher) WorkIn(shards []int) {
	var own []int
	for _, shard := range shards {
		if d.cfg.Shards.Serves(shard) {
			own = append(own, shard)
		}
	}
	d.Go(func() { d.learnDue(d.base, own) })
}

// Leases makes the node look at nodes and leases.
func (d *Dispatcher) Leases() { d.cfg.Shards.Look() }

// Lost looks for everything that a lost signal may have told of.
func (d *Dispatcher) Lost() {
	d.cfg.Shards.Look()
	d.Go(func() { d.learnDue(d.base, d.cfg.Shards.Shards()) })
}

// DropForeign empties the lanes of lost shards: their deliveries belong to another node now.
func (d *Dispatcher) DropForeign() { d.index.each((*Lane).dropForeign) }

// sharedPoll is the longest interval between polls while there are other nodes, whose signals may be lost.
const sharedPoll = 2 * time.Second

func (d *Dispatcher) pollInterval() time.Duration {
	if d.cfg.Shards.Alone() {
		return d.cfg.PollInterval
	}
	return min(d.cfg.PollInterval, sharedPoll)
}

// Poll looks for work that other processes stored, reads endpoints that could not be read before, and checks whether the clock
// was set back. It returns when ctx ends.
func (d *Dispatcher) Poll(ctx context.Context) {
	stepped := false
	for clock.Wait(ctx, d.cfg.Clock, d.pollInterval()) {
		shards := d.cfg.Shards.Shards()
		d.cfg.Maker.Jumps().Look()
		if stepped = d.wall.stepped(d.cfg.Clock.Now()) || stepped; stepped {
			stepped = !d.bringBack(ctx, shards, true)
		}
		d.learnDue(ctx, shards)
		d.readStale(ctx)
		d.cfg.Maker.ReadKeysAgain(ctx)
	}
}
