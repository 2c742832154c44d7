package management_test

import (
	"context"
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// impatient is a store whose client disconnects at the moment of a write.
type impatient struct {
	*watched
	leave func()
}

func (s *impatient) UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error {
	defer s.leave()
	return s.watched.UpdateEndpoint(ctx, e)
}

// disconnecting is a fixture with such a store.
type disconnecting struct {
	*fixture
	client *impatient
}

// The engine must learn of a stored change even if the client has disconnected: it would otherwise continue to send to an
// endpoint that is paused or deleted.
func TestEngineIsToldWhenTheClientIsGone(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, f *disconnecting, id godwit.EndpointID) error{
		"pause": func(ctx context.Context, f *disconnecting, id godwit.EndpointID) error {
			_, err := f.management.Endpoints.Pause(ctx, f.tenant.ID, id, "")
			return err
		},
		"delete": func(ctx context.Context, f *disconnecting, id godwit.EndpointID) error {
			next, err := f.management.Endpoints.PlanDelete(ctx, f.tenant.ID, id, godwit.Match{})
			if err == nil {
				err = f.client.UpdateEndpoint(ctx, next)
			}
			f.management.Endpoints.Deleted(ctx, next)
			return err
		},
		"rotate": func(ctx context.Context, f *disconnecting, id godwit.EndpointID) error {
			f.client.leave()
			f.management.Endpoints.Changed(ctx, id)
			return nil
		},
		"delete tenant": func(ctx context.Context, f *disconnecting, id godwit.EndpointID) error {
			f.client.leave()
			f.management.Tenants.Deleted(ctx, f.tenant.ID, []godwit.EndpointID{id})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &impatient{leave: func() {}}
			f := newFixture(t, func(c *management.Config) {
				store.watched = c.Store.(*watched)
				c.Store = store
			})
			e, _, err := f.management.Endpoints.Create(ctx, f.tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: "https://example.com/"}})
			must(t, err)
			f.engine.ids = nil
			ctx, cancel := context.WithCancel(ctx)
			store.leave = cancel
			if err := change(ctx, &disconnecting{f, store}, e.ID); err != nil {
				t.Error(err)
			}
			if ctx.Err() == nil || !slices.Contains(f.engine.ids, e.ID) {
				t.Errorf("the engine was told of %v", f.engine.ids)
			}
		})
	}
}
