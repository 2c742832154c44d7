package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// CountBacklog counts what waits now. Its cost grows with the number of endpoints, and with the bound of waiting deliveries.
func (s *history) CountBacklog(ctx context.Context, f store.BacklogFilter) (*store.Backlog, error) {
	out := &store.Backlog{}
	scope, args := "t.deleted_at = 0 AND e.status <> 'deleted'", []driver.Value{}
	switch {
	case !f.Tenant.IsZero():
		scope, args = scope+" AND e.tenant_id = ?", ids(f.Tenant[:])
	case !f.Environment.IsZero():
		scope, args = scope+" AND t.environment_id = ?", ids(f.Environment[:])
	}
	err := s.read(ctx, "count backlog", func(c *conn) error {
		err := c.each(ctx, `SELECT e.status, ifnull(h.circuit_open_at, 0), ifnull(h.streak, 0), ifnull(h.degraded_at, 0),
			ifnull((SELECT min(d.due_at) FROM deliveries d INDEXED BY deliveries_due WHERE d.endpoint_id = e.id AND d.status = 'pending' AND d.claim_epoch = 0), 0)
			FROM endpoints e JOIN tenants t ON t.id = e.tenant_id LEFT JOIN health h ON h.endpoint_id = e.id WHERE `+scope, args, func(r *rows) error {
			out.Endpoint(godwit.EndpointStatus(r.text(0)), r.int(1) != 0, r.int(2) > 0 || r.int(3) != 0)
			if at := r.int(4); at != 0 {
				out.Due(fromMicros(at))
			}
			return nil
		})
		if err != nil {
			return err
		}
		upTo := int64(f.UpTo)
		_, err = c.one(ctx, `SELECT count(*) FROM (SELECT 1 FROM endpoints e CROSS JOIN tenants t ON t.id = e.tenant_id CROSS JOIN deliveries d INDEXED BY deliveries_due
			ON d.endpoint_id = e.id AND d.status = 'pending' AND d.claim_epoch = 0 WHERE `+scope+` LIMIT ?)`, append(args, upTo),
			func(r *rows) { out.Waiting += int(r.int(0)) })
		if err != nil || out.Waiting >= f.UpTo {
			return err
		}
		tenants := map[godwit.TenantID]bool{}
		err = c.each(ctx, "SELECT id, environment_id FROM tenants WHERE deleted_at = 0", nil, func(r *rows) error {
			id := godwit.TenantID(r.id(0))
			tenants[id] = (f.Tenant.IsZero() || f.Tenant == id) && (f.Environment.IsZero() || f.Environment == r.id(1))
			return nil
		})
		if err != nil {
			return err
		}
		err = c.each(ctx, "SELECT tenant_id, created_at FROM deliveries INDEXED BY deliveries_claimed WHERE status = 'pending' AND claim_epoch > 0 LIMIT ?",
			[]driver.Value{upTo}, func(r *rows) error {
				if tenants[r.id(0)] {
					out.Waiting++
				}
				return nil
			})
		if err != nil {
			return err
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
