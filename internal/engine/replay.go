package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// MaxReplay is how many events one ReplayTo takes (CCW-API-22).
const MaxReplay = 1000

// ErrTooMany reports more events than MaxReplay.
var ErrTooMany = errors.New("too many events to replay at once")

// ReplayTo sends stored events again to one endpoint, whatever its patterns: those it had before in a new run of their
// delivery, the others in a delivery of their own, the oldest first. It returns how many of them are on their way; one that was
// pending anyway is. An endpoint of another tenant is store.ErrNotFound. What is sent to one that is paused or disabled waits.
func (e *Engine) ReplayTo(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (int, error) {
	if len(events) > MaxReplay {
		return 0, ErrTooMany
	}
	plan, err := e.PlanReplay(ctx, tenant, endpoint, events, actor)
	if err != nil {
		return 0, err
	}
	// New deliveries are due since its event was accepted, so that it comes in that order and before what was sent already.
	if len(plan.Fresh) > 0 {
		if answer := e.commits.Do(commit.Request{Tenant: tenant, Accepts: []store.Accept{{Events: plan.Fresh}}}); answer.Err != nil {
			return 0, fmt.Errorf("add deliveries to replay: %w", answer.Err)
		}
		plan.lane.Waiting(e.cfg.Clock.Now())
	}
	if len(plan.Again.Deliveries) > 0 {
		if _, err := e.requeue(ctx, plan.Again); err != nil {
			return len(plan.Fresh), err
		}
	}
	return plan.Len(), nil
}

// A Redelivery is what ReplayTo stores, for a caller that stores it together with something else and then calls Stored.
type Redelivery struct {
	Fresh []store.NewEvent // stored events, each with a delivery of its own
	Again store.Requeue    // what the endpoint had before
	lane  *dispatch.Lane
	now   func() time.Time
}

// Len is how many events are on their way.
func (r *Redelivery) Len() int { return len(r.Fresh) + len(r.Again.Deliveries) }

// Stored takes note that a redelivery is stored.
func (r *Redelivery) Stored() {
	now := r.now()
	if len(r.Fresh) > 0 {
		r.lane.Waiting(now)
	}
	r.lane.NoteDue(now)
}

// PlanReplay says what ReplayTo would store.
func (e *Engine) PlanReplay(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (*Redelivery, error) {
	l := e.lanes.TenantLane(tenant, endpoint)
	if l == nil {
		return nil, store.ErrNotFound
	}
	if !e.lanes.Running() {
		return nil, ErrStopping
	}
	again, fresh, err := e.splitReplay(ctx, tenant, endpoint, inOrder(events))
	if err != nil {
		return nil, err
	}
	now := e.cfg.Clock.Now()
	plan := &Redelivery{lane: l, now: e.cfg.Clock.Now, Again: store.Requeue{TenantID: tenant, Deliveries: again, Trigger: godwit.TriggerReplay, Actor: actor, Now: now}}
	for _, event := range fresh {
		plan.Fresh = append(plan.Fresh, store.NewEvent{Event: event, Deliveries: []store.NewDelivery{
			{ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerReplay},
		}})
	}
	return plan, nil
}

// inOrder names each event once, the oldest first.
func inOrder(events []godwit.Event) []*godwit.Event {
	list := make([]*godwit.Event, len(events))
	for i := range events {
		list[i] = &events[i]
	}
	slices.SortStableFunc(list, func(a, b *godwit.Event) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return slices.CompactFunc(list, func(a, b *godwit.Event) bool { return a.ID == b.ID })
}

// split tells events that went to the endpoint before, by their deliveries, from those that did not.
func (e *Engine) splitReplay(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []*godwit.Event) (again []godwit.DeliveryID, fresh []*godwit.Event, err error) {
	for _, event := range events {
		if event.TenantID != tenant {
			return nil, nil, fmt.Errorf("replay event %s: %w", event.ID, store.ErrNotFound)
		}
		if err := e.fanouts.Wait(ctx, event.ID); err != nil {
			return nil, nil, err
		}
		found, err := e.cfg.Store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: event.ID, EndpointID: endpoint}, store.Page{Limit: 1})
		if err != nil {
			return nil, nil, fmt.Errorf("find deliveries to replay: %w", err)
		}
		if len(found) > 0 {
			again = append(again, found[0].ID)
		} else {
			fresh = append(fresh, event)
		}
	}
	return again, fresh, nil
}
