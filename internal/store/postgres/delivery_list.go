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
		if f.Endpoints != nil {
			w.add("endpoint_id = ANY (?)", rawIDs(f.Endpoints))
		}
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

// CountDeliveries counts deliveries up to a bound.
func (s *deliveries) CountDeliveries(ctx context.Context, f store.DeliveryFilter, upTo int) (n int, err error) {
	var w where
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	if !f.EndpointID.IsZero() {
		w.add("endpoint_id = ?", [16]byte(f.EndpointID))
	}
	if f.Tried != nil {
		w.add("(attempts > 0) = ?", *f.Tried)
	}
	w.between("created_at", f.Since, f.Until)
	if !f.Since.IsZero() {
		w.add("id >= ?", firstID(f.Since.Add(-skew)))
	}
	limit := fmt.Sprintf(" LIMIT %d", max(upTo, 0))
	sql := `(SELECT FROM pending_deliveries AS d` + w.sql() + limit + `)`
	if f.Status != godwit.DeliveryPending {
		if f.Status != "" {
			w.add("status = ?", string(f.Status))
		}
		finished := `(SELECT FROM deliveries AS d` + w.sql() + limit + `)`
		if f.Status == "" {
			sql += ` UNION ALL ` + finished
		} else {
			sql = finished
		}
	}
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM (`+sql+`) AS d`, w.args...).Scan(&n)
	return min(n, upTo), failed("count deliveries", err)
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
