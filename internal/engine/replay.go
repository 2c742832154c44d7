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

// MaxReplay is the largest number of events in one call to ReplayTo (CCW-API-22).
const MaxReplay = 1000

// ErrTooMany reports more events than MaxReplay.
var ErrTooMany = errors.New("too many events to replay at once")

// ReplayTo sends stored events again to one endpoint, oldest first, regardless of its patterns. Events it received before get
// a new run of their delivery; the others get a new delivery. It returns how many events are being delivered, including those
// that were already pending. It fails with store.ErrNotFound for an endpoint of another tenant. Deliveries to a paused or
// disabled endpoint wait.
func (r *redeliverer) ReplayTo(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (int, error) {
	if len(events) > MaxReplay {
		return 0, ErrTooMany
	}
	plan, err := r.PlanReplay(ctx, tenant, endpoint, events, actor)
	if err != nil {
		return 0, err
	}
	// A new delivery is due since its event was accepted. So new deliveries go out in that order, and before requeued ones.
	if len(plan.Fresh) > 0 {
		if answer := r.commits.Do(commit.Request{Tenant: tenant, Accepts: []store.Accept{{Events: plan.Fresh}}}); answer.Err != nil {
			return 0, fmt.Errorf("add deliveries to replay: %w", answer.Err)
		}
		plan.lane.Waiting(r.cfg.Clock.Now())
	}
	if len(plan.Again.Deliveries) > 0 {
		if _, err := r.requeue(ctx, plan.Again); err != nil {
			return len(plan.Fresh), err
		}
	}
	return plan.Len(), nil
}

// A Redelivery is the plan of ReplayTo, for callers that store it together with other changes and then call Stored.
type Redelivery struct {
	Fresh []store.NewEvent // stored events, each with a new delivery
	Again store.Requeue    // deliveries that the endpoint received before
	lane  *dispatch.Lane
	now   func() time.Time
}

// Len returns the number of events to deliver.
func (r *Redelivery) Len() int { return len(r.Fresh) + len(r.Again.Deliveries) }

// Stored tells the lane that the redelivery is stored.
func (r *Redelivery) Stored() {
	now := r.now()
	if len(r.Fresh) > 0 {
		r.lane.Waiting(now)
	}
	r.lane.NoteDue(now)
}

// PlanReplay plans what ReplayTo stores, and stores nothing.
func (r *redeliverer) PlanReplay(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (*Redelivery, error) {
	l, err := r.finder.find(ctx, tenant, endpoint)
	if err != nil {
		return nil, err
	}
	if !r.lanes.Running() {
		return nil, ErrStopping
	}
	again, fresh, err := r.splitReplay(ctx, tenant, endpoint, inOrder(events))
	if err != nil {
		return nil, err
	}
	now := r.cfg.Clock.Now()
	plan := &Redelivery{lane: l, now: r.cfg.Clock.Now, Again: store.Requeue{TenantID: tenant, Deliveries: again, Trigger: godwit.TriggerReplay, Actor: actor, Now: now}}
	for _, event := range fresh {
		plan.Fresh = append(plan.Fresh, store.NewEvent{Event: event, Deliveries: []store.NewDelivery{
			{ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerReplay},
		}})
	}
	return plan, nil
}

// inOrder lists each event once, oldest first.
func inOrder(events []godwit.Event) []*godwit.Event {
	list := make([]*godwit.Event, len(events))
	for i := range events {
		list[i] = &events[i]
	}
	slices.SortStableFunc(list, func(a, b *godwit.Event) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return slices.CompactFunc(list, func(a, b *godwit.Event) bool { return a.ID == b.ID })
}

// splitReplay separates events that the endpoint received before, by their deliveries, from the others.
func (r *redeliverer) splitReplay(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []*godwit.Event) (again []godwit.DeliveryID, fresh []*godwit.Event, err error) {
	for _, event := range events {
		if event.TenantID != tenant {
			return nil, nil, fmt.Errorf("replay event %s: %w", event.ID, store.ErrNotFound)
		}
		if err := r.fanouts.Wait(ctx, event.ID); err != nil {
			return nil, nil, err
		}
		found, err := r.cfg.Store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: event.ID, EndpointID: endpoint}, store.Page{Limit: 1})
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
