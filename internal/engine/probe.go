package engine

import (
	"context"
	"net/http"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
)

// maxProbes is how many may be under way at once. They take no slot from deliveries, and no delivery keeps one waiting.
const maxProbes = 16

// Probed is what a probe saw.
type Probed struct {
	Event    godwit.Event // as it was sent; it is not stored
	Delivery godwit.DeliveryID
	Attempt  godwit.AttemptID
	Exchange godwit.Exchange
	Verdict  godwit.Verdict
}

// Probe sends one event to one endpoint and waits for the answer, whatever the endpoint's patterns and whether it is active
// or not. It looks like any attempt, but nothing is stored, counted or tried again, and neither the endpoint's health nor
// its limits take note (OJS-API-13, CCW-API-16). An endpoint of another tenant is store.ErrNotFound. An endpoint that cannot
// be reached is no error: the Exchange tells.
func (e *Engine) Probe(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Probed, error) {
	return e.probe(ctx, e.probes, tenant, id, p)
}

func (e *Engine) probe(ctx context.Context, places chan struct{}, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Probed, error) {
	l := e.index.lane(id)
	if l == nil || l.target.Load().endpoint.TenantID != tenant {
		return nil, store.ErrNotFound
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.base.Done():
		return nil, ErrStopping
	}
	it, ok := l.probe(&p)
	if !ok {
		return nil, ErrStopping
	}
	defer e.attempts.Done()
	// It ends with the engine, as attempts do, and with the caller.
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.base, func() { cancel(sender.ErrInterrupted) })()

	t := l.current(e.clock.Now())
	x, token := e.exchange(sending, t, it)
	if x.Status == http.StatusUnauthorized && token != "" {
		t.token.Invalidate(token)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case x.Failure != nil && x.Failure.Kind == godwit.FailureInterrupted:
		return nil, ErrStopping
	}
	return &Probed{
		Event: *it.work.Event, Delivery: it.work.Delivery.ID, Attempt: it.attempt, Exchange: x,
		Verdict: classify(t, &x, e.clock.Now()),
	}, nil
}

// probe makes the delivery for a probe, and has a stop wait for it; ok is false when the engine is stopping.
func (l *lane) probe(p *Publication) (it *item, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.engine.running() {
		return nil, false
	}
	l.engine.attempts.Add(1)
	now := l.engine.clock.Now()
	event := newEvent(p, l.target.Load().endpoint.TenantID, godwit.KeyID{}, now)
	it = &item{trigger: godwit.TriggerTest, work: godwit.Work{Event: &event,
		Delivery: godwit.NewDelivery(godwit.NewDeliveryID(now), &event, l.id, godwit.TriggerTest, now)}}
	if l.windows != nil {
		it.budget = l.windows.budget(l.engine.since(now), now)
	}
	return it, true
}
