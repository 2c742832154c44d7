package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Changed takes note that an endpoint was created, changed or deleted. The change is stored, so the caller's patience is
// not asked; when the endpoint cannot be read now, it is read again later.
func (e *Engine) Changed(ctx context.Context, id godwit.EndpointID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	// Of two that read the same endpoint, the one that reads later must also be the one that is believed.
	reading := &e.reading[id.Shard()]
	reading.Lock()
	defer reading.Unlock()
	loaded, err := e.store.LoadEndpoint(ctx, id)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			e.stale.Store(id, struct{}{})
		}
		return fmt.Errorf("reload endpoint: %w", err)
	}
	e.stale.Delete(id)
	l := e.index.lane(id)
	switch {
	case l != nil:
		l.reload(loaded)
	case loaded.Endpoint.Status == godwit.EndpointDeleted:
		return nil
	default:
		l = e.newLane(loaded)
	}
	e.index.put(l)
	return nil
}

// readStale reads endpoints again that could not be read when they changed.
func (e *Engine) readStale(ctx context.Context) {
	e.stale.Range(func(id, _ any) bool {
		if err := e.Changed(ctx, id.(godwit.EndpointID)); err != nil {
			e.log.Error("read changed endpoint again", "endpoint", id.(godwit.EndpointID).String(), "error", err)
		}
		return ctx.Err() == nil
	})
}

// reload replaces what the lane knows of its endpoint. Health is the lane's own, save that an operator who enables an
// endpoint clears it, also one that was active but cut off by its circuit.
func (l *lane) reload(loaded *store.LoadedEndpoint) {
	t := l.engine.newTarget(loaded)
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.target.Load()
	if t.endpoint.Version < old.endpoint.Version {
		return // read before a change that was loaded since
	}
	l.target.Store(t)
	if t.endpoint.URL != old.endpoint.URL {
		l.health.SunsetAt = time.Time{} // it was announced for another place
	}
	enabled := old.endpoint.Status != godwit.EndpointActive || t.endpoint.StatusAt.After(old.endpoint.StatusAt)
	if enabled && t.endpoint.Status == godwit.EndpointActive {
		l.forgive()
		l.nextDue = earliest(l.nextDue, l.engine.clock.Now())
	}
	if old.policy.Rate != t.policy.Rate || old.policy.Burst != t.policy.Burst {
		l.limiter = newLimiter(&t.policy)
	}
	if !slices.Equal(old.policy.Windows, t.policy.Windows) {
		l.windows = newRateWindows(&t.policy, l.engine.cfg.TimeScale, l.windows)
	}
	l.account = l.engine.account(t)
	if t.endpoint.Status != godwit.EndpointActive {
		l.shed()
		l.cancelIfDeleted()
	}
	l.pump()
}

// forgive is what store.ResetHealth does, in memory: results that were under way may have come after it.
func (l *lane) forgive() {
	h := &l.health
	h.ConsecutiveFailures, h.ConsecutiveTerminal, h.Streak = 0, 0, 0
	h.HoldUntil, h.CircuitOpenAt, h.ProbeAt = time.Time{}, time.Time{}, time.Time{}
	l.strikes = godwit.EventID{}
}

// changed applies to memory what the engine itself has changed about the endpoint; a disabling was applied before. Then the
// endpoint is read again: someone else may have changed it between, or the store may have refused our change.
func (l *lane) changed(c *store.EndpointChange, stored bool) {
	if stored && c.MoveTo != "" {
		l.move(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.engine.running() {
		return
	}
	l.engine.task(func() {
		if err := l.engine.Changed(context.Background(), l.id); err != nil {
			l.engine.log.Error("read changed endpoint", "endpoint", l.id.String(), "error", err)
		}
	})
}

func (l *lane) move(c *store.EndpointChange) {
	for {
		old := l.target.Load()
		if old.endpoint.URL != c.MoveFrom {
			return
		}
		next := *old
		next.endpoint.URL = c.MoveTo
		next.endpoint.Version++
		if l.target.CompareAndSwap(old, &next) {
			// Where to is told by the notice: URLs often hold a secret, and have no place in a log.
			l.engine.log.Info("endpoint moved", "endpoint", l.id.String())
			l.mu.Lock()
			l.health.SunsetAt = time.Time{}
			l.mu.Unlock()
			return
		}
	}
}

// Retry makes a delivery due at once. One that is in memory is about to be sent anyway.
func (e *Engine) Retry(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, actor string) (*godwit.Delivery, error) {
	return e.requeueOne(ctx, store.Requeue{TenantID: tenant, Deliveries: []godwit.DeliveryID{id},
		Trigger: godwit.TriggerManual, Actor: actor, Now: e.clock.Now()})
}

func (e *Engine) requeueOne(ctx context.Context, r store.Requeue) (*godwit.Delivery, error) {
	if _, err := e.requeue(ctx, r); err != nil {
		return nil, err
	}
	return e.store.Delivery(ctx, r.TenantID, r.Deliveries[0])
}

// Replay sends finished deliveries and dead letters again, under the same key. It returns those it made due.
func (e *Engine) Replay(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, actor string) ([]godwit.Delivery, error) {
	return e.requeue(ctx, store.Requeue{TenantID: tenant, Deliveries: ids, Trigger: godwit.TriggerReplay, Actor: actor, Now: e.clock.Now()})
}

func (e *Engine) requeue(ctx context.Context, r store.Requeue) ([]godwit.Delivery, error) {
	made, err := e.store.Requeue(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("requeue deliveries: %w", err)
	}
	e.Requeued(made)
	return made, nil
}

// ReplayEvent sends an event again: to the endpoints named, or to all that it went to and all that want it now.
func (e *Engine) ReplayEvent(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, endpoints []godwit.EndpointID, actor string) ([]godwit.Delivery, error) {
	event, err := e.store.Event(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	existing, err := e.deliveriesOf(ctx, tenant, id)
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
	lanes := e.receivers(tenant, &Publication{Type: event.Type, Attributes: event.Attributes, Endpoints: endpoints})
	fresh := slices.DeleteFunc(lanes, func(l *lane) bool {
		had := have[l.id]
		have[l.id] = true // an endpoint may be named twice
		return had
	})
	made, err := e.Replay(ctx, tenant, again, actor)
	if err != nil {
		return nil, err
	}
	added, err := e.addDeliveries(ctx, event, fresh)
	return append(made, added...), err
}

func (e *Engine) deliveriesOf(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) ([]godwit.Delivery, error) {
	var all []godwit.Delivery
	page := store.Page{Limit: 200}
	for {
		part, err := e.store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: id}, page)
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

// addDeliveries gives a stored event to endpoints it did not go to before. They wait in the store and are claimed from
// there.
func (e *Engine) addDeliveries(ctx context.Context, event *godwit.Event, lanes []*lane) ([]godwit.Delivery, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	now := e.clock.Now()
	accept := store.Accept{Events: []store.NewEvent{{Event: event}}}
	for _, l := range lanes {
		accept.Events[0].Deliveries = append(accept.Events[0].Deliveries,
			store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: l.id, Trigger: godwit.TriggerReplay})
	}
	if done := e.commits.accept([]store.Accept{accept}); done.err != nil {
		return nil, done.err
	}
	var made []godwit.Delivery
	for i, l := range lanes {
		l.overflowed(now)
		d, err := e.store.Delivery(ctx, event.TenantID, accept.Events[0].Deliveries[i].ID)
		if err != nil {
			return made, err
		}
		made = append(made, *d)
	}
	return made, nil
}

// ErrInFlight reports that a request for the delivery is on the wire.
var ErrInFlight = errors.New("an attempt is in flight")

// Cancel ends a pending delivery. One whose request is on the wire cannot be called back: ErrInFlight.
func (e *Engine) Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	d, err := e.store.Delivery(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if l := e.index.lane(d.EndpointID); l != nil {
		if err := l.evict(id); err != nil {
			return nil, err
		}
	}
	if d, err = e.store.Cancel(ctx, tenant, id, e.clock.Now()); err == nil {
		e.waiting.tell(d)
	}
	return d, err
}

// evict gives a queued delivery back to the store and waits until it is there.
func (l *lane) evict(id godwit.DeliveryID) error {
	l.mu.Lock()
	held, ok := l.held[id]
	if !ok {
		l.mu.Unlock()
		return nil
	}
	if held.state != heldQueued {
		l.mu.Unlock()
		return ErrInFlight
	}
	stored := make(chan error, 1)
	it := held.item
	l.queue = slices.DeleteFunc(l.queue, func(queued *item) bool { return queued == it })
	l.holdItem(it, heldRecording)
	it.work.Delivery.DueAt = l.engine.clock.Now().Add(evictionGrace)
	l.engine.commits.release(l, it, stored)
	l.mu.Unlock()
	return <-stored
}
