package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// deliveryFields are the columns that pending, finished and dead deliveries share.
const (
	deliveryFields = `tenant_id, id, event_id, endpoint_id, created_at, updated_at, due_at, run_first_at, attempts,
		last_status, run_attempts, run_refreshed, status, reason, run_trigger, run_actor`
	pendingFields = `tenant_id, id, event_id, endpoint_id, created_at, updated_at, due_at, run_first_at, attempts,
		last_status, run_attempts, run_refreshed, 'pending' AS status, reason, run_trigger, run_actor`
	// typed lists the columns of deliveries d with the type of their event, which is not stored with them.
	typed = `d.*, coalesce((SELECT e.type FROM events AS e WHERE e.tenant_id = d.tenant_id AND e.id = d.event_id),
		(SELECT l.event_type FROM dead_letters AS l WHERE l.tenant_id = d.tenant_id AND l.id = d.id LIMIT 1), '')`
)

func deliveryTargets(d *godwit.Delivery) []any {
	return []any{
		scanID(&d.TenantID), scanID(&d.ID), scanID(&d.EventID), scanID(&d.EndpointID), scanTime(&d.CreatedAt),
		scanTime(&d.UpdatedAt), scanTime(&d.DueAt), scanTime(&d.Run.FirstAt), &d.Attempts, &d.LastStatus, &d.Run.Attempts,
		&d.Run.Refreshed, &d.Status, &d.Reason, &d.Run.Trigger, &d.Run.Actor, &d.EventType,
	}
}

func scanDelivery(r pgx.CollectableRow) (*godwit.Delivery, error) {
	d := &godwit.Delivery{}
	return d, r.Scan(deliveryTargets(d)...)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func readDelivery(ctx context.Context, q querier, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	r, err := q.Query(ctx, `SELECT `+typed+` FROM (SELECT `+pendingFields+` FROM pending_deliveries WHERE tenant_id = $1 AND id = $2
		UNION ALL SELECT `+deliveryFields+` FROM deliveries WHERE tenant_id = $1 AND id = $2
		UNION ALL SELECT `+deliveryFields+` FROM dead_letters WHERE tenant_id = $1 AND id = $2 AND replayed_at IS NULL LIMIT 1) AS d`,
		[16]byte(tenant), [16]byte(id))
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(r, scanDelivery)
}

// deliveries reads deliveries and changes them on behalf of callers.
type deliveries struct{ *database }

// Delivery returns a delivery, or the fields that its dead letter keeps.
func (s *deliveries) Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	d, err := readDelivery(ctx, s.pool, tenant, id)
	return d, failed("read delivery", err)
}

// endPending moves pending deliveries to the finished ones; %s selects them. $1 to $4 are the columns that change when a
// delivery ends; ending makes them. They do not depend on the rest of the delivery, so one statement can end many.
const endPending = `WITH gone AS (DELETE FROM pending_deliveries AS p USING (%s) AS n
		WHERE p.tenant_id = n.tenant_id AND p.id = n.id AND p.claim_epoch = 0 RETURNING p.*),
	d AS (INSERT INTO deliveries (` + deliveryFields + `)
		SELECT tenant_id, id, event_id, endpoint_id, created_at, $3, $4, run_first_at, attempts, last_status, run_attempts,
			run_refreshed, $1, $2, run_trigger, run_actor FROM gone
		RETURNING ` + deliveryFields + `)
	SELECT ` + typed + ` FROM d`

func ending(d *godwit.Delivery, more ...any) []any {
	return append([]any{string(d.Status), string(d.Reason), d.UpdatedAt, optionalTime(d.DueAt)}, more...)
}

// Cancel ends a pending unclaimed delivery.
func (s *deliveries) Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, now time.Time) (*godwit.Delivery, error) {
	var end godwit.Delivery
	end.Cancel(godwit.ReasonCancelled, now)
	r, err := s.pool.Query(ctx, fmt.Sprintf(endPending, `SELECT $5::uuid AS tenant_id, $6::uuid AS id`),
		ending(&end, [16]byte(tenant), [16]byte(id))...)
	if err != nil {
		return nil, failed("cancel delivery", err)
	}
	d, err := pgx.CollectExactlyOneRow(r, scanDelivery)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := s.Delivery(ctx, tenant, id); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("cancel delivery: %w: it is finished or being attempted", store.ErrConflict)
	}
	return d, failed("cancel delivery", err)
}

// CancelMany ends pending unclaimed deliveries.
func (s *deliveries) CancelMany(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, now time.Time) ([]godwit.Delivery, error) {
	var end godwit.Delivery
	end.Cancel(godwit.ReasonCancelled, now)
	r, err := s.pool.Query(ctx, fmt.Sprintf(endPending, `SELECT tenant_id, id FROM pending_deliveries
			WHERE tenant_id = $5 AND id = ANY ($6::uuid[]) AND claim_epoch = 0 ORDER BY id FOR UPDATE`),
		ending(&end, [16]byte(tenant), rawIDs(ids))...)
	if err != nil {
		return nil, failed("cancel deliveries", err)
	}
	list, err := pgx.CollectRows(r, scanDelivery)
	return values(list), failed("cancel deliveries", err)
}

// CountWaiting counts a tenant's pending deliveries up to a bound, in the primary key alone.
func (s *deliveries) CountWaiting(ctx context.Context, tenant godwit.TenantID, upTo int) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM pending_deliveries WHERE tenant_id = $1 LIMIT $2) AS p`, [16]byte(tenant), upTo).Scan(&n)
	return n, failed("count waiting deliveries", err)
}

// CountPending counts an endpoint's pending deliveries, claimed or not.
func (s *deliveries) CountPending(ctx context.Context, id godwit.EndpointID) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM pending_deliveries
		WHERE tenant_id = (SELECT tenant_id FROM endpoints WHERE id = $1) AND endpoint_id = $1`, [16]byte(id)).Scan(&n)
	return n, failed("count pending deliveries", err)
}
