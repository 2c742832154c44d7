package engine

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
)

const (
	// maxTests is the largest number of concurrent tests of endpoints. Tests use no delivery slots and do not wait for them.
	maxTests = 16
	// maxCalls is the largest number of concurrent requests of commands.
	maxCalls = 256
)

// A Trial is one request outside any delivery, and its answer.
type Trial struct {
	Event    godwit.Event // as sent; it is not stored
	Delivery godwit.DeliveryID
	Attempt  godwit.AttemptID
	Exchange godwit.Exchange
	Verdict  godwit.Verdict
}

// trials send single requests outside any delivery.
type trials struct {
	lanes finder
	tests chan struct{} // limits concurrent tests of endpoints
	calls chan struct{} // limits concurrent requests of commands
}

// SendTest sends one event to one endpoint and waits for the answer. The endpoint's patterns and status do not matter. The
// request looks like any attempt, but nothing is stored, counted or retried, and the endpoint's health and limits do not
// change (OJS-API-13, CCW-API-16). SendTest fails with store.ErrNotFound for an endpoint of another tenant. An unreachable
// endpoint is not an error: the Exchange reports it.
func (t *trials) SendTest(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Trial, error) {
	return t.try(ctx, t.tests, tenant, id, p)
}

// Call sends one request to an endpoint and waits for the answer, as SendTest does. It serves commands that a tenant's own
// service executes.
func (t *trials) Call(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Trial, error) {
	return t.try(ctx, t.calls, tenant, id, p)
}

func (t *trials) try(ctx context.Context, limit chan struct{}, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Trial, error) {
	l, err := t.lanes.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	select {
	case limit <- struct{}{}:
		defer func() { <-limit }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.lanes.Base().Done():
		return nil, ErrStopping
	}
	var event godwit.Event
	trial, err := l.Try(ctx, func(now time.Time) *godwit.Event {
		if event = newEvent(&p, tenant, godwit.KeyID{}, now); event.Key == "" {
			event.Key = NewKey()
		}
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
