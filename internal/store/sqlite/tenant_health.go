package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// TenantsHealth reads the endpoints of each tenant with their health, and counts what waits for them.
func (s *tenants) TenantsHealth(ctx context.Context, list []godwit.TenantID, upTo int) ([]store.TenantHealth, error) {
	out := make([]store.TenantHealth, len(list))
	at := make(map[godwit.TenantID]*store.TenantHealth, len(list))
	err := s.read(ctx, "read health of tenants", func(c *conn) error {
		for i, id := range list {
			h := &out[i]
			h.TenantID, at[id] = id, h
			err := c.each(ctx, `SELECT e.status, ifnull(h.circuit_open_at, 0), ifnull(h.streak, 0), ifnull(h.degraded_at, 0), ifnull(h.last_accepted_at, 0)
				FROM endpoints e INDEXED BY endpoints_tenant LEFT JOIN health h ON h.endpoint_id = e.id WHERE e.tenant_id = ? AND e.status <> 'deleted'`, ids(id[:]), func(r *rows) error {
				h.Endpoint(godwit.EndpointStatus(r.text(0)), r.int(1) != 0, r.int(2) > 0 || r.int(3) != 0)
				if t := r.time(4); t.After(h.LastAcceptedAt) {
					h.LastAcceptedAt = t
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = c.one(ctx, `SELECT count(*) FROM (SELECT 1 FROM endpoints e INDEXED BY endpoints_tenant CROSS JOIN deliveries d INDEXED BY deliveries_due
				ON d.endpoint_id = e.id AND d.status = 'pending' AND d.claim_epoch = 0 WHERE e.tenant_id = ? LIMIT ?)`, []driver.Value{id[:], int64(upTo)},
				func(r *rows) { h.Waiting = int(r.int(0)) })
			if err != nil {
				return err
			}
		}
		return addHeld(ctx, c, at)
	})
	for i := range out {
		out[i].Waiting = min(out[i].Waiting, upTo)
	}
	return out, err
}

// addHeld counts deliveries that are in memory.
func addHeld(ctx context.Context, c *conn, at map[godwit.TenantID]*store.TenantHealth) error {
	err := c.each(ctx, "SELECT tenant_id FROM deliveries INDEXED BY deliveries_claimed WHERE status = 'pending' AND claim_epoch > 0", nil, func(r *rows) error {
		if h := at[r.id(0)]; h != nil {
			h.Waiting++
		}
		return nil
	})
	if err != nil {
		return err
	}
	fresh, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return at[d.TenantID] != nil })
	for i := range fresh {
		at[fresh[i].TenantID].Waiting++
	}
	return err
}
