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

// skew is how far a delivery's id may be from its creation; only deliveries added to an event later differ more.
const skew = time.Hour

// ListDeliveries reads a page of pending and a page of finished deliveries and returns the newest of both.
func (s *deliveries) ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error) {
	var w where
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	w.page(p)
	if !f.EventID.IsZero() {
		ids, err := s.deliveriesOf(ctx, f.TenantID, f.EventID)
		if err != nil || len(ids) == 0 {
			return nil, failed("list deliveries", err)
		}
		w.add("id = ANY (?)", ids)
	}
	if !f.EndpointID.IsZero() {
		w.add("endpoint_id = ?", [16]byte(f.EndpointID))
	}
	if f.EventType != "" {
		w.add("EXISTS (SELECT FROM events AS e WHERE e.tenant_id = d.tenant_id AND e.id = d.event_id AND e.type = ?)", clean(f.EventType))
	}
	if f.Tried != nil {
		w.add("(attempts > 0) = ?", *f.Tried)
	}
	w.between("created_at", f.Since, f.Until)
	if !f.Since.IsZero() {
		w.add("id >= ?", firstID(f.Since.Add(-skew)))
	}
	end := w.newestFirst(p.Limit)
	sql := `(SELECT ` + pendingFields + ` FROM pending_deliveries AS d` + w.sql() + end + `)`
	switch f.Status {
	case godwit.DeliveryPending:
	case "":
		sql += ` UNION ALL ` + listFinished(&w, f, end)
	default:
		sql = listFinished(&w, f, end)
	}
	r, err := s.pool.Query(ctx, `SELECT `+typed+` FROM (SELECT * FROM (`+sql+`) AS part`+end+`) AS d ORDER BY id DESC`, w.args...)
	if err != nil {
		return nil, failed("list deliveries", err)
	}
	list, err := pgx.CollectRows(r, scanDelivery)
	return values(list), failed("list deliveries", err)
}

// listFinished narrows a list that ends in the past by ids, so that it skips newer rows. Deliveries added to an event later
// have its time and a newer id: they are few, and have a separate index.
func listFinished(w *where, f store.DeliveryFilter, end string) string {
	const from = `(SELECT ` + deliveryFields + ` FROM deliveries AS d`
	if f.Status != "" {
		w.add("status = ?", string(f.Status))
	}
	if f.Tried != nil && !*f.Tried {
		w.add("status <> 'accepted'") // no delivery is accepted without an attempt; the other statuses have an index
	}
	if f.Until.IsZero() {
		return from + w.sql() + end + `)`
	}
	late := len(w.terms)
	w.add("id < ?", firstID(f.Until.Add(skew)))
	bound := fmt.Sprintf("$%d", len(w.args))
	sql := from + w.sql() + end + `) UNION ALL `
	w.terms[late] = "id >= " + bound + " AND run_trigger <> 'accept'"
	return sql + from + w.sql() + end + `)`
}

// firstID returns the smallest id of any kind minted at or after t.
func firstID(t time.Time) [16]byte {
	var first func(time.Time) godwit.EventID = godwit.FirstIDAt
	return first(t)
}

// deliveriesOf reads the ids of an event's deliveries from the event's row.
func (s *deliveries) deliveriesOf(ctx context.Context, tenant godwit.TenantID, event godwit.EventID) ([][16]byte, error) {
	var joined []byte
	err := s.pool.QueryRow(ctx, `SELECT deliveries FROM events WHERE tenant_id = $1 AND id = $2`,
		[16]byte(tenant), [16]byte(event)).Scan(&joined)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	return splitIDs(joined), nil
}

func splitIDs(joined []byte) [][16]byte {
	ids := make([][16]byte, 0, len(joined)/16)
	for ; len(joined) >= 16; joined = joined[16:] {
		ids = append(ids, [16]byte(joined))
	}
	return ids
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

// CountPending counts an endpoint's pending deliveries, claimed or not.
func (s *deliveries) CountPending(ctx context.Context, id godwit.EndpointID) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM pending_deliveries
		WHERE tenant_id = (SELECT tenant_id FROM endpoints WHERE id = $1) AND endpoint_id = $1`, [16]byte(id)).Scan(&n)
	return n, failed("count pending deliveries", err)
}
