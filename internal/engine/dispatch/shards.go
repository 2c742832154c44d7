package dispatch

import (
	"context"
	"fmt"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Relearn loads all endpoints anew. While the shards were another node's, that one was told of changes and saw the outcomes:
// what this node remembers is old, and an endpoint it does not know would get none of the events posted here.
func (d *Dispatcher) Relearn(ctx context.Context) error {
	known := map[godwit.EndpointID]bool{}
	var lanes []*Lane
	err := d.cfg.Store.LoadEndpoints(ctx, func(loaded *store.LoadedEndpoint) error {
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
		return fmt.Errorf("load endpoints anew: %w", err)
	}
	d.recall(lanes)
	d.index.put(lanes...)
	var gone []godwit.EndpointID
	d.index.each(func(l *Lane) {
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

// Gained takes up what waits in shards that were another node's, or this node's before it was started again.
func (d *Dispatcher) Gained(ctx context.Context, shards []int) {
	d.bringBack(ctx, shards, false)
	d.learnDue(ctx, shards)
}

// learnDue asks the store which endpoints of the shards have work waiting.
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
			// It was created by another process.
			if err := d.Changed(ctx, e.EndpointID); err != nil {
				d.cfg.Log.Error("load endpoint with due work", "endpoint", e.EndpointID.String(), "error", err)
			}
		}
		if l := d.index.lane(e.EndpointID); l != nil {
			l.NoteDue(e.NextDue)
		}
	}
}

// DropForeign empties the lanes of shards that are no longer ours: their deliveries belong to another node now.
func (d *Dispatcher) DropForeign() { d.index.each((*Lane).dropForeign) }

// Poll finds work that another process put into the store, reads endpoints that could not be read before, and looks whether
// the clock was set back. It returns when ctx ends.
func (d *Dispatcher) Poll(ctx context.Context) {
	stepped := false
	for clock.Wait(ctx, d.cfg.Clock, d.cfg.PollInterval) {
		shards := d.cfg.Shards.Shards()
		if stepped = d.wall.stepped(d.cfg.Clock.Now()) || stepped; stepped {
			stepped = !d.bringBack(ctx, shards, true)
		}
		d.learnDue(ctx, shards)
		d.readStale(ctx)
	}
}
