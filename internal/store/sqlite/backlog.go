package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// tenantsWaiting hops through the index from tenant to tenant: one seek for each, however many deliveries wait.
const tenantsWaiting = `WITH RECURSIVE waiting (tenant_id) AS (
		SELECT min(tenant_id) FROM deliveries INDEXED BY deliveries_waiting WHERE status = 'pending'
		UNION ALL
		SELECT (SELECT min(d.tenant_id) FROM deliveries d INDEXED BY deliveries_waiting WHERE d.status = 'pending' AND d.tenant_id > waiting.tenant_id)
		FROM waiting WHERE waiting.tenant_id IS NOT NULL
	)
	SELECT tenant_id FROM waiting WHERE tenant_id IS NOT NULL`

// CountBacklog counts what waits now. Its cost grows with the number of endpoints, and with the bound of waiting deliveries.
func (s *history) CountBacklog(ctx context.Context, f store.BacklogFilter) (*store.Backlog, error) {
	out := &store.Backlog{}
	err := s.read(ctx, "count backlog", func(c *conn) error {
		if err := endpointStates(ctx, c, &f, out); err != nil {
			return err
		}
		tenants, err := tenantsIn(ctx, c, &f)
		if err != nil {
			return err
		}
		var busy []godwit.TenantID
		if err := c.each(ctx, tenantsWaiting, nil, func(r *rows) error { busy = append(busy, r.id(0)); return nil }); err != nil {
			return err
		}
		for _, id := range busy {
			if !tenants[id] || out.Waiting >= f.UpTo {
				continue
			}
			n, err := countWaiting(ctx, c, id, f.UpTo-out.Waiting)
			if err != nil {
				return err
			}
			out.Waiting += n
		}
		fresh, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return tenants[d.TenantID] })
		for i := range fresh {
			out.Waiting++
			out.Due(fresh[i].CreatedAt)
		}
		return err
	})
	out.Waiting = min(out.Waiting, f.UpTo)
	return out, err
}

// endpointStates counts endpoints by their state, and finds the delivery that is due first.
func endpointStates(ctx context.Context, c *conn, f *store.BacklogFilter, out *store.Backlog) error {
	due := map[godwit.EndpointID]int64{}
	if err := c.each(ctx, waiting, nil, func(r *rows) error { due[r.id(0)] = r.int(1); return nil }); err != nil {
		return err
	}
	scope, args := "t.deleted_at = 0 AND e.status <> 'deleted'", []driver.Value{}
	switch {
	case !f.Tenant.IsZero():
		scope, args = scope+" AND e.tenant_id = ?", ids(f.Tenant[:])
	case !f.Environment.IsZero():
		scope, args = scope+" AND t.environment_id = ?", ids(f.Environment[:])
	}
	return c.each(ctx, `SELECT e.id, e.status, h.circuit_open_at, h.streak, h.degraded_at
		FROM endpoints e JOIN tenants t ON t.id = e.tenant_id LEFT JOIN health h ON h.endpoint_id = e.id WHERE `+scope, args, func(r *rows) error {
		out.Endpoint(godwit.EndpointStatus(r.text(1)), r.int(2) != 0, r.int(3) > 0 || r.int(4) != 0)
		if at := due[r.id(0)]; at != 0 {
			out.Due(fromMicros(at))
		}
		return nil
	})
}

// tenantsIn returns the tenants that a filter selects.
func tenantsIn(ctx context.Context, c *conn, f *store.BacklogFilter) (map[godwit.TenantID]bool, error) {
	scope, args := "", []driver.Value{}
	switch {
	case !f.Tenant.IsZero():
		scope, args = " AND id = ?", ids(f.Tenant[:])
	case !f.Environment.IsZero():
		scope, args = " AND environment_id = ?", ids(f.Environment[:])
	}
	tenants := map[godwit.TenantID]bool{}
	err := c.each(ctx, "SELECT id FROM tenants WHERE deleted_at = 0"+scope, args, func(r *rows) error { tenants[r.id(0)] = true; return nil })
	return tenants, err
}
