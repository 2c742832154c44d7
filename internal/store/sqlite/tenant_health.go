package sqlite

import (
	"context"

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
			if h.Waiting, err = countWaiting(ctx, c, id, upTo); err != nil {
				return err
			}
		}
		fresh, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return at[d.TenantID] != nil })
		for i := range fresh {
			at[fresh[i].TenantID].Waiting++
		}
		return err
	})
	for i := range out {
		out[i].Waiting = min(out[i].Waiting, upTo)
	}
	return out, err
}
