package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const deliveryColumns = `d.tenant_id, d.id, d.event_id, d.endpoint_id, d.status, d.reason, d.attempts, d.last_status, d.due_at,
	d.created_at, d.updated_at, d.run_trigger, d.run_actor, d.run_attempts, d.run_first_at, d.run_refreshed`

const deliveryWidth = 16

// scanDelivery reads deliveryColumns, of a delivery or a dead letter, from position at.
func scanDelivery(r *rows, at int) godwit.Delivery {
	return godwit.Delivery{
		TenantID: r.id(at), ID: r.id(at + 1), EventID: r.id(at + 2), EndpointID: r.id(at + 3),
		Status: godwit.DeliveryStatus(r.text(at + 4)), Reason: godwit.Reason(r.text(at + 5)),
		Attempts: int(r.int(at + 6)), LastStatus: int(r.int(at + 7)),
		DueAt: r.time(at + 8), CreatedAt: r.time(at + 9), UpdatedAt: r.time(at + 10),
		Run: godwit.Run{
			Trigger: godwit.Trigger(r.text(at + 11)), Actor: r.text(at + 12), Attempts: int(r.int(at + 13)),
			FirstAt: r.time(at + 14), Refreshed: r.bool(at + 15),
		},
	}
}

var deliveryRows = newBulk(`deliveries (tenant_id, id, event_id, endpoint_id, status, claim_epoch, due_at, reason, attempts,
	last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed, first_attempt)`, 18, "")

// appendDelivery appends a row for deliveryRows.
func appendDelivery(args []driver.Value, d *godwit.Delivery, epoch int64, firstAttempt []byte) []driver.Value {
	return append(args,
		d.TenantID[:], d.ID[:], d.EventID[:], d.EndpointID[:], string(d.Status), epoch, micros(d.DueAt), string(d.Reason),
		int64(d.Attempts), int64(d.LastStatus), micros(d.CreatedAt), micros(d.UpdatedAt), string(d.Run.Trigger), d.Run.Actor,
		int64(d.Run.Attempts), micros(d.Run.FirstAt), flag(d.Run.Refreshed), firstAttempt)
}

func insertDelivery(c *conn, d *godwit.Delivery, epoch int64) error {
	_, _, err := deliveryRows.insert(c, appendDelivery(nil, d, epoch, nil))
	return err
}

// deliveries reads deliveries and changes them on behalf of callers.
type deliveries struct{ *database }

// Delivery returns a delivery, from its dead letter if it was swept.
func (s *deliveries) Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	var d *godwit.Delivery
	err := s.read(ctx, "read delivery", func(c *conn) (err error) {
		d, err = readDelivery(ctx, c, tenant, id)
		return err
	})
	return d, err
}

func readDelivery(ctx context.Context, c *conn, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	var d godwit.Delivery
	for _, from := range []string{
		"e.type FROM deliveries d LEFT JOIN events e ON e.tenant_id = d.tenant_id AND e.id = d.event_id WHERE d.tenant_id = ? AND d.id = ?",
		"d.type FROM dead_letters d WHERE d.tenant_id = ? AND d.id = ? AND d.replayed_at = 0",
	} {
		ok, err := c.one(ctx, "SELECT "+deliveryColumns+", "+from, ids(tenant[:], id[:]), func(r *rows) {
			d = scanDelivery(r, 0)
			d.EventType = r.text(deliveryWidth)
		})
		if err != nil {
			return nil, err
		}
		if ok {
			return &d, nil
		}
	}
	fresh, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return d.ID == id && d.TenantID == tenant })
	if err != nil {
		return nil, err
	}
	if len(fresh) == 0 {
		return nil, store.ErrNotFound
	}
	return &fresh[0], nil
}

// endPending sets the columns that change when a pending delivery ends; ending makes its arguments. They do not depend on the
// rest of the delivery, so one statement can end many.
const endPending = `UPDATE deliveries SET status = ?, reason = ?, updated_at = ?, due_at = ? `

func ending(d *godwit.Delivery) []driver.Value {
	return []driver.Value{string(d.Status), string(d.Reason), micros(d.UpdatedAt), micros(d.DueAt)}
}

// Cancel ends a pending unclaimed delivery.
func (s *deliveries) Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, now time.Time) (*godwit.Delivery, error) {
	var end godwit.Delivery
	end.Cancel(godwit.ReasonCancelled, now)
	var d *godwit.Delivery
	err := s.write(ctx, "cancel delivery", func(c *conn) error {
		n, err := c.exec(endPending+"WHERE tenant_id = ? AND id = ? AND status = 'pending' AND claim_epoch = 0",
			append(ending(&end), tenant[:], id[:])...)
		if err != nil {
			return err
		}
		if d, err = readDelivery(ctx, c, tenant, id); err != nil {
			return err
		}
		if n == 0 {
			return store.ErrConflict
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// CancelMany ends pending unclaimed deliveries.
func (s *deliveries) CancelMany(ctx context.Context, tenant godwit.TenantID, list []godwit.DeliveryID, now time.Time) ([]godwit.Delivery, error) {
	var end godwit.Delivery
	end.Cancel(godwit.ReasonCancelled, now)
	var ended []godwit.Delivery
	err := s.write(ctx, "cancel deliveries", func(c *conn) error {
		for _, id := range list {
			n, err := c.exec(endPending+"WHERE tenant_id = ? AND id = ? AND status = 'pending' AND claim_epoch = 0",
				append(ending(&end), tenant[:], id[:])...)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			d, err := readDelivery(ctx, c, tenant, id)
			if err != nil {
				return err
			}
			ended = append(ended, *d)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// CountWaiting counts a tenant's pending deliveries up to a bound.
func (s *deliveries) CountWaiting(ctx context.Context, tenant godwit.TenantID, upTo int) (n int, err error) {
	err = s.read(ctx, "count waiting deliveries", func(c *conn) error {
		if n, err = countWaiting(ctx, c, tenant, upTo); err != nil || n >= upTo {
			return err
		}
		fresh, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return d.TenantID == tenant })
		n += len(fresh)
		return err
	})
	return min(n, upTo), err
}

// countWaiting counts the pending deliveries of a tenant that have a row.
func countWaiting(ctx context.Context, c *conn, tenant godwit.TenantID, upTo int) (n int, err error) {
	_, err = c.one(ctx, "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE tenant_id = ? AND status = 'pending' LIMIT ?)",
		[]driver.Value{tenant[:], int64(upTo)}, func(r *rows) { n = int(r.int(0)) })
	return n, err
}

// CountPending counts waiting and claimed deliveries. All claims have the epoch of the endpoint's shard.
func (s *deliveries) CountPending(ctx context.Context, id godwit.EndpointID) (int64, error) {
	var total int64
	err := s.read(ctx, "count pending deliveries", func(c *conn) error {
		for _, query := range []string{
			`SELECT count(*) FROM deliveries INDEXED BY deliveries_due WHERE endpoint_id = ? AND status = 'pending' AND claim_epoch = 0`,
			`SELECT count(*) FROM deliveries INDEXED BY deliveries_claimed WHERE endpoint_id = ? AND status = 'pending' AND claim_epoch > 0`,
		} {
			if _, err := c.one(ctx, query, ids(id[:]), func(r *rows) { total += r.int(0) }); err != nil {
				return err
			}
		}
		fresh, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return d.EndpointID == id })
		total += int64(len(fresh))
		return err
	})
	return total, err
}
