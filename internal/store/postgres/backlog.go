package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// CountBacklog counts what waits now. Its cost grows with the number of endpoints and tenants, and with the bound of waiting deliveries.
func (s *history) CountBacklog(ctx context.Context, f store.BacklogFilter) (*store.Backlog, error) {
	var w where
	w.add(`t.deleted_at IS NULL AND e.status <> 'deleted'`)
	switch {
	case !f.Tenant.IsZero():
		w.add(`e.tenant_id = ?`, [16]byte(f.Tenant))
	case !f.Environment.IsZero():
		w.add(`t.environment_id = ?`, [16]byte(f.Environment))
	}
	out := &store.Backlog{}
	r, err := s.pool.Query(ctx, `SELECT e.id, e.status, h.circuit_open_at IS NOT NULL, coalesce(h.streak, 0) > 0 OR h.degraded_at IS NOT NULL
		FROM endpoints AS e JOIN tenants AS t ON t.id = e.tenant_id LEFT JOIN endpoint_health AS h ON h.endpoint_id = e.id`+w.sql(), w.args...)
	if err != nil {
		return nil, failed("count backlog", err)
	}
	var id [16]byte
	var status string
	var open, failing bool
	var shards []int16
	var endpoints [][16]byte
	_, err = pgx.ForEachRow(r, []any{&id, &status, &open, &failing}, func() error {
		out.Endpoint(godwit.EndpointStatus(status), open, failing)
		shards, endpoints = append(shards, int16(godwit.EndpointID(id).Shard())), append(endpoints, id)
		return nil
	})
	if err != nil {
		return nil, failed("count backlog", err)
	}
	err = s.indexed(ctx, func(tx pgx.Tx) error {
		var oldest *time.Time
		err := tx.QueryRow(ctx, `SELECT min(p.due_at) FROM unnest($1::int2[], $2::uuid[]) AS n (shard, id)
			CROSS JOIN LATERAL (SELECT due_at FROM pending_deliveries AS p WHERE p.shard = n.shard AND p.endpoint_id = n.id AND p.claim_epoch = 0
				ORDER BY p.due_at LIMIT 1) AS p`, shards, endpoints).Scan(&oldest)
		if err != nil {
			return err
		}
		if oldest != nil {
			out.Due(*oldest)
		}
		out.Waiting, err = countTenants(ctx, tx, &f)
		return err
	})
	return out, failed("count backlog", err)
}

// countTenants counts the pending deliveries of the tenants that a filter selects. It hops through the primary key from tenant to tenant: most have none.
func countTenants(ctx context.Context, tx pgx.Tx, f *store.BacklogFilter) (n int, err error) {
	var w where
	w.add(`t.deleted_at IS NULL`)
	switch {
	case !f.Tenant.IsZero():
		w.add(`t.id = ?`, [16]byte(f.Tenant))
	case !f.Environment.IsZero():
		w.add(`t.environment_id = ?`, [16]byte(f.Environment))
	}
	limit := fmt.Sprintf(" LIMIT %d", max(f.UpTo, 0))
	err = tx.QueryRow(ctx, `WITH RECURSIVE busy (tenant_id) AS (
			(SELECT tenant_id FROM pending_deliveries ORDER BY tenant_id LIMIT 1)
			UNION ALL
			SELECT (SELECT p.tenant_id FROM pending_deliveries AS p WHERE p.tenant_id > busy.tenant_id ORDER BY p.tenant_id LIMIT 1)
			FROM busy WHERE busy.tenant_id IS NOT NULL)
		SELECT count(*) FROM (SELECT FROM busy JOIN tenants AS t ON t.id = busy.tenant_id CROSS JOIN LATERAL (
			SELECT FROM pending_deliveries AS p WHERE p.tenant_id = t.id`+limit+`) AS p`+w.sql()+limit+`) AS p`, w.args...).Scan(&n)
	return n, err
}
