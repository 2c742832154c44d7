package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/engine/follow"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A redeliverer changes the course of deliveries for a caller: it sends finished ones
// again, makes waiting ones due at once, and cancels them.
type redeliverer struct {
	cfg      *Config
	accept   *acceptor
	commits  *commit.Group
	lanes    *dispatch.Dispatcher
	fanouts  *fanout.Expander
	finder   finder
	outcomes *follow.Outcomes
	owns     func(godwit.EndpointID) bool
	tell     func(topic, body string) // sends a signal to the other nodes
}

// Retry makes a delivery due at once. A delivery in memory is left alone: the lane is about to send it.
func (r *redeliverer) Retry(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, actor string) (*godwit.Delivery, error) {
	again := store.Requeue{TenantID: tenant, Deliveries: []godwit.DeliveryID{id}, Trigger: godwit.TriggerManual, Actor: actor, Now: r.cfg.Clock.Now()}
	if _, err := r.requeue(ctx, again); err != nil {
		return nil, err
	}
	return r.cfg.Store.Delivery(ctx, tenant, id)
}

// RetryMany does the same for several deliveries, in transactions of bounded size. Only those in one of the statuses are taken; without statuses, all. It returns how many became due. After
// an error, those of earlier transactions are due.
func (r *redeliverer) RetryMany(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, only []godwit.DeliveryStatus, actor string) (int, error) {
	n := 0
	for part := range slices.Chunk(ids, fanout.PartRows) {
		again := store.Requeue{TenantID: tenant, Deliveries: part, Trigger: godwit.TriggerManual, Actor: actor, Now: r.cfg.Clock.Now(), Only: only}
		made, err := r.requeue(ctx, again)
		if n += len(made); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Replay sends finished deliveries and dead letters again, under the same key. It returns the deliveries that became due.
func (r *redeliverer) Replay(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, actor string) ([]godwit.Delivery, error) {
	return r.requeue(ctx, store.Requeue{TenantID: tenant, Deliveries: ids, Trigger: godwit.TriggerReplay, Actor: actor, Now: r.cfg.Clock.Now()})
}

func (r *redeliverer) requeue(ctx context.Context, again store.Requeue) ([]godwit.Delivery, error) {
	made, err := r.cfg.Store.Requeue(ctx, again)
	if err != nil {
		return nil, fmt.Errorf("requeue deliveries: %w", err)
	}
	r.Requeued(made)
	return made, nil
}

// ReplayEvent sends an event again: to the named endpoints, or to all its previous receivers and all endpoints that match it
// now.
func (r *redeliverer) ReplayEvent(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, endpoints []godwit.EndpointID, actor string) ([]godwit.Delivery, error) {
	event, err := r.cfg.Store.Event(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	existing, err := r.deliveriesOf(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	var again []godwit.DeliveryID
	have := map[godwit.EndpointID]bool{}
	for i := range existing {
		have[existing[i].EndpointID] = true
		if endpoints == nil || slices.Contains(endpoints, existing[i].EndpointID) {
			again = append(again, existing[i].ID)
		}
	}
	if err := r.cfg.Changes.CatchUp(ctx); err != nil {
		return nil, err
	}
	lanes := r.accept.receivers(event, &Publication{Endpoints: endpoints})
	fresh := slices.DeleteFunc(lanes, func(l *dispatch.Lane) bool {
		had := have[l.ID()]
		have[l.ID()] = true // the caller may name an endpoint twice
		return had
	})
	made, err := r.Replay(ctx, tenant, again, actor)
	if err != nil {
		return nil, err
	}
	// Transactions of bounded size do not delay other tenants. If a later one fails, a repeated call finds what is stored.
	for part := range slices.Chunk(fresh, fanout.PartRows) {
		added, err := r.addDeliveries(ctx, event, part)
		if made = append(made, added...); err != nil {
			return made, err
		}
	}
	return made, nil
}

// deliveriesOf waits until all deliveries of an event are stored, and lists them.
func (r *redeliverer) deliveriesOf(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) ([]godwit.Delivery, error) {
	if err := r.fanouts.Wait(ctx, id); err != nil {
		return nil, err
	}
	var all []godwit.Delivery
	page := store.Page{Limit: 5000} // each page costs SQLite a pass over the event's list
	for {
		part, err := r.cfg.Store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: id}, page)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if len(part) < page.Limit {
			return all, nil
		}
		page.After = part[len(part)-1].ID
	}
}

// addDeliveries adds deliveries of a stored event to further endpoints, in one transaction. They wait in the store until their
// lanes claim them.
func (r *redeliverer) addDeliveries(ctx context.Context, event *godwit.Event, lanes []*dispatch.Lane) ([]godwit.Delivery, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	now := r.cfg.Clock.Now()
	accept := store.Accept{Events: []store.NewEvent{{Event: event}}}
	for _, l := range lanes {
		accept.Events[0].Deliveries = append(accept.Events[0].Deliveries,
			store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerReplay})
	}
	if answer := r.commits.Do(commit.Request{Tenant: event.TenantID, Accepts: []store.Accept{accept}}); answer.Err != nil {
		return nil, answer.Err
	}
	r.lanes.Waiting(lanes)
	var made []godwit.Delivery
	for i := range lanes {
		d, err := r.cfg.Store.Delivery(ctx, event.TenantID, accept.Events[0].Deliveries[i].ID)
		if err != nil {
			return made, err
		}
		made = append(made, *d)
	}
	return made, nil
}

// Requeued tells the lanes that deliveries became due in the store.
func (r *redeliverer) Requeued(deliveries []godwit.Delivery) {
	now := r.cfg.Clock.Now()
	woken := map[godwit.EndpointID]bool{}
	for i := range deliveries {
		id := deliveries[i].EndpointID
		if woken[id] {
			continue
		}
		woken[id] = true
		if l := r.lanes.Lane(id); l != nil {
			l.NoteDue(now)
		}
	}
}
