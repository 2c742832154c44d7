package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/store"
)

// Guarded runs the submission of an event with a producer's id under the request's Idempotency-Key too. The guard reserves
// the key first, then the submission checks the id. After a crash between the two, the key is free again and the id is
// known.
func (a *API) Guarded(c *Call, serve func(*Call) error) {
	a.guard(c, ScopeOf(c.Caller, intake.EventScope), serve)
}

// Event finds an event by any form of its id: evt_ with a UUID, evt_ with 26 characters, or its producer's id. It looks for
// a producer's id in each of the origins.
func (s *Services) Event(ctx context.Context, tenant godwit.TenantID, text string, origins ...string) (*godwit.Event, error) {
	id, err := godwit.ParseEventID(text)
	if rest, ok := strings.CutPrefix(text, "evt_"); err != nil && ok {
		id, err = godwit.ParseEventBase32(rest)
	}
	if err == nil {
		event, err := s.Store.Event(ctx, tenant, id)
		if !errors.Is(err, store.ErrNotFound) {
			return event, err
		}
	}
	for _, origin := range origins {
		id, err := s.Intake.Find(ctx, tenant, origin, text)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return s.Store.Event(ctx, tenant, id)
	}
	return nil, fmt.Errorf("find event: %w", store.ErrNotFound)
}

// HealthOf returns the live health of an endpoint if this node delivers to it, otherwise the stored health.
func HealthOf(ctx context.Context, e interface {
	Health(id godwit.EndpointID) (godwit.Health, bool)
}, s interface {
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
}, id godwit.EndpointID) (*godwit.Health, error) {
	if live, ok := e.Health(id); ok {
		return &live, nil
	}
	return s.Health(ctx, id)
}
