package dispatch

import (
	"context"
	"fmt"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Relearn loads all endpoints again. While another node held the shards, that node got the changes and outcomes. This node's
// endpoints are out of date, and an endpoint that it does not know would get none of the events posted here.
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

// DropForeign empties the lanes of lost shards: their deliveries belong to another node now.
func (d *Dispatcher) DropForeign() { d.index.each((*Lane).dropForeign) }

// Poll looks for work that other processes stored, reads endpoints that could not be read before, and checks whether the clock
// was set back. It returns when ctx ends.
func (d *Dispatcher) Poll(ctx context.Context) {
	stepped := false
	for clock.Wait(ctx, d.cfg.Clock, d.cfg.PollInterval) {
		shards := d.cfg.Shards.Shards()
		d.cfg.Maker.Jumps().Look()
		if stepped = d.wall.stepped(d.cfg.Clock.Now()) || stepped; stepped {
			stepped = !d.bringBack(ctx, shards, true)
		}
		d.learnDue(ctx, shards)
		d.readStale(ctx)
	}
}
