package engine

import (
	"context"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A finder finds the lane of an endpoint that a caller names.
type finder struct {
	*dispatch.Dispatcher
	changes Changes
}

// find returns the lane of a tenant's endpoint, or store.ErrNotFound. Another node may have created the endpoint just now.
func (f finder) find(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*dispatch.Lane, error) {
	if l := f.TenantLane(tenant, id); l != nil {
		return l, nil
	}
	if err := f.changes.CatchUp(ctx); err != nil {
		return nil, err
	}
	if l := f.TenantLane(tenant, id); l != nil {
		return l, nil
	}
	return nil, store.ErrNotFound
}
