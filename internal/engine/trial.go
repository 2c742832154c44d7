package engine

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// maxTests is how many tests of endpoints may be under way at once. They take no slot from deliveries, and no delivery keeps
	// one waiting.
	maxTests = 16
	// maxCalls is how many requests of commands may be on the wire at once.
	maxCalls = 256
)

// A Trial is one request outside of any delivery, and its answer.
type Trial struct {
	Event    godwit.Event // as it was sent; it is not stored
	Delivery godwit.DeliveryID
	Attempt  godwit.AttemptID
	Exchange godwit.Exchange
	Verdict  godwit.Verdict
}

// SendTest sends one event to one endpoint and waits for the answer, whatever the endpoint's patterns and whether it is
// active or not. It looks like any attempt, but nothing is stored, counted or tried again, and neither the endpoint's health
// nor its limits change (OJS-API-13, CCW-API-16). An endpoint of another tenant is store.ErrNotFound. An endpoint that cannot be
// reached is no error: the Exchange tells.
func (e *Engine) SendTest(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Trial, error) {
	return e.try(ctx, e.tests, tenant, id, p)
}

// Call sends one request to an endpoint and waits for the answer, as SendTest does: for commands that a tenant's own service
// executes.
func (e *Engine) Call(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Trial, error) {
	return e.try(ctx, e.calls, tenant, id, p)
}

func (e *Engine) try(ctx context.Context, limit chan struct{}, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Trial, error) {
	l := e.lanes.TenantLane(tenant, id)
	if l == nil {
		return nil, store.ErrNotFound
	}
	select {
	case limit <- struct{}{}:
		defer func() { <-limit }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.lanes.Base().Done():
		return nil, ErrStopping
	}
	var event godwit.Event
	trial, err := l.Try(ctx, func(now time.Time) *godwit.Event {
		event = newEvent(&p, tenant, godwit.KeyID{}, now)
		return &event
	})
	if errors.Is(err, dispatch.ErrStopped) {
		return nil, ErrStopping
	}
	if err != nil {
		return nil, err
	}
	return &Trial{Event: event, Delivery: trial.Delivery, Attempt: trial.Attempt, Exchange: trial.Exchange, Verdict: trial.Verdict}, nil
}
