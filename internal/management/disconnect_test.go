package management_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// impatient is a store whose client goes away the moment something is written.
type impatient struct {
	*watched
	leave func()
}

func (s *impatient) UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error {
	defer s.leave()
	return s.watched.UpdateEndpoint(ctx, e)
}

func (s *impatient) AddSecret(ctx context.Context, secret *godwit.Secret, others store.Expiry) error {
	defer s.leave()
	return s.watched.AddSecret(ctx, secret, others)
}

func (s *impatient) DeleteTenant(ctx context.Context, id godwit.TenantID, now time.Time) ([]godwit.EndpointID, error) {
	defer s.leave()
	return s.watched.DeleteTenant(ctx, id, now)
}

// A client that disconnects after its change is stored must not keep the engine from hearing of it: it would go on sending
// to an endpoint that is paused or deleted.
func TestEngineIsToldWhenTheClientIsGone(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, f *fixture, id godwit.EndpointID) error{
		"pause": func(ctx context.Context, f *fixture, id godwit.EndpointID) error {
			_, err := f.registry.Pause(ctx, f.tenant.ID, id, "")
			return err
		},
		"delete": func(ctx context.Context, f *fixture, id godwit.EndpointID) error {
			return f.registry.DeleteEndpoint(ctx, f.tenant.ID, id)
		},
		"rotate": func(ctx context.Context, f *fixture, id godwit.EndpointID) error {
			_, err := f.registry.RotateSecret(ctx, f.tenant.ID, id, management.Rotation{})
			return err
		},
		"delete tenant": func(ctx context.Context, f *fixture, _ godwit.EndpointID) error {
			return f.registry.DeleteTenant(ctx, f.tenant.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &impatient{leave: func() {}}
			f := newFixture(t, func(c *management.Config) {
				store.watched = c.Store.(*watched)
				c.Store = store
			})
			e, _, err := f.registry.CreateEndpoint(ctx, f.tenant.ID, management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: "https://example.com/"}})
			must(t, err)
			f.engine.ids = nil
			ctx, cancel := context.WithCancel(ctx)
			store.leave = cancel
			if err := change(ctx, f, e.ID); err != nil {
				t.Error(err)
			}
			if ctx.Err() == nil || !slices.Contains(f.engine.ids, e.ID) {
				t.Errorf("the engine was told of %v", f.engine.ids)
			}
		})
	}
}
