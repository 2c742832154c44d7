package management

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Pause holds an endpoint's deliveries until Resume.
func (es *Endpoints) Pause(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error) {
	return es.stop(ctx, tenant, id, godwit.EndpointPaused, reason)
}

// Disable holds an endpoint's deliveries until an operator resumes it; the engine does not enable it again.
func (es *Endpoints) Disable(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error) {
	return es.stop(ctx, tenant, id, godwit.EndpointDisabled, reason)
}

// stop sets a status that holds deliveries. Repeating it without a reason keeps the first reason.
func (es *Endpoints) stop(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, status godwit.EndpointStatus, reason string) (*godwit.Endpoint, error) {
	if err := checkText("reason", reason, MaxDescription); err != nil {
		return nil, err
	}
	return es.change(ctx, tenant, id, godwit.Match{}, func(e *godwit.Endpoint) error {
		why := reason // the function runs again after a concurrent change
		if e.Status == status && why == "" {
			why = e.StatusReason
		}
		es.setStatus(e, status, why)
		return nil
	})
}

// Resume delivers to a paused or disabled endpoint again, and clears its failure counts, because an operator has checked
// it.
func (es *Endpoints) Resume(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	if _, err := es.store.Endpoint(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	if err := es.store.ResetHealth(ctx, id, es.now()); err != nil {
		return nil, fmt.Errorf("reset health: %w", err)
	}
	return es.change(ctx, tenant, id, godwit.Match{}, func(e *godwit.Endpoint) error {
		es.setStatus(e, godwit.EndpointActive, "")
		return nil
	})
}

// setStatus sets the time even if the status does not change, because the engine closes the circuit of an endpoint that an
// operator enables again.
func (es *Endpoints) setStatus(e *godwit.Endpoint, s godwit.EndpointStatus, reason string) {
	e.Status, e.StatusReason, e.StatusAt, e.ReenableAt = s, reason, es.now(), time.Time{}
}
