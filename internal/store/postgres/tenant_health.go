package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// TenantsHealth reads the endpoints of all the tenants with their health, and counts what waits for each tenant in the primary key.
func (s *tenants) TenantsHealth(ctx context.Context, list []godwit.TenantID, upTo int) ([]store.TenantHealth, error) {
	out := make([]store.TenantHealth, len(list))
	at := make(map[godwit.TenantID]*store.TenantHealth, len(list))
	for i, id := range list {
		out[i].TenantID, at[id] = id, &out[i]
	}
	r, err := s.pool.Query(ctx, `SELECT e.tenant_id, e.status, h.circuit_open_at IS NOT NULL, coalesce(h.streak, 0) > 0 OR h.degraded_at IS NOT NULL, h.last_accepted_at
		FROM endpoints AS e LEFT JOIN endpoint_health AS h ON h.endpoint_id = e.id WHERE e.tenant_id = ANY ($1) AND e.status <> 'deleted'`, rawIDs(list))
	if err != nil {
		return nil, failed("read health of tenants", err)
	}
	var (
		tenant        godwit.TenantID
		status        string
		open, failing bool
		accepted      time.Time
	)
	_, err = pgx.ForEachRow(r, []any{scanID(&tenant), &status, &open, &failing, scanTime(&accepted)}, func() error {
		h := at[tenant]
		h.Endpoint(godwit.EndpointStatus(status), open, failing)
		if accepted.After(h.LastAcceptedAt) {
			h.LastAcceptedAt = accepted
		}
		return nil
	})
	if err != nil {
		return nil, failed("read health of tenants", err)
	}
	err = s.indexed(ctx, func(tx pgx.Tx) error {
		r, err := tx.Query(ctx, fmt.Sprintf(`SELECT t.id, (SELECT count(*) FROM (SELECT FROM pending_deliveries AS p WHERE p.tenant_id = t.id LIMIT %d) AS p)
			FROM unnest($1::uuid[]) AS t (id)`, max(upTo, 0)), rawIDs(list))
		if err != nil {
			return err
		}
		var waiting int
		_, err = pgx.ForEachRow(r, []any{scanID(&tenant), &waiting}, func() error { at[tenant].Waiting = waiting; return nil })
		return err
	})
	return out, failed("read health of tenants", err)
}
