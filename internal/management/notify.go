package management

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// A notifier tells the engine and the tenant's subscribers about changed endpoints.
type notifier struct {
	engine Engine
	log    *slog.Logger
	now    func() time.Time
}

// announce publishes an event about a subscription if its policy asks for it (OJS-OBS-4, OJS-OBS-5).
func (n *notifier) announce(ctx context.Context, e *godwit.Endpoint, what string) error {
	policy, err := EffectivePolicy(e)
	if err != nil || !policy.Announce {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	return n.engine.Announce(ctx, profile.Announcement{Type: what, TenantID: e.TenantID, EndpointID: e.ID, At: n.now()})
}

// tellTimeout is how long the engine may take to reload an endpoint.
const tellTimeout = 10 * time.Second

// tell makes the engine reload the endpoint. It ignores the client's cancellation, because the change is stored: the
// engine would otherwise continue to send to an endpoint that is paused or deleted.
func (n *notifier) tell(ctx context.Context, id godwit.EndpointID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	if err := n.engine.Changed(ctx, id); err != nil {
		return fmt.Errorf("tell engine: %w", err)
	}
	return nil
}

// tellIfStored tells the engine of a failed write whose result is not known: it may be stored.
func (n *notifier) tellIfStored(ctx context.Context, id godwit.EndpointID, err error) error {
	if ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
		return nil
	}
	return n.tell(ctx, id)
}

// changed tells the engine of a stored change. The change cannot be undone here, so a failure is only logged.
func (n *notifier) changed(ctx context.Context, id godwit.EndpointID) {
	if err := n.tell(ctx, id); err != nil {
		n.log.Error("read changed endpoint", "endpoint", id.String(), "error", err)
	}
}
