package sqlite

import (
	"context"
	"errors"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Requeue makes deliveries due.
func (s *deliveries) Requeue(ctx context.Context, q store.Requeue) ([]godwit.Delivery, error) {
	var due []godwit.Delivery
	err := s.write(ctx, "requeue deliveries", func(c *conn) (err error) {
		due, err = s.requeue(ctx, c, &q)
		return err
	})
	if err != nil {
		return nil, err
	}
	return due, nil
}

func (s *deliveries) requeue(ctx context.Context, c *conn, q *store.Requeue) (due []godwit.Delivery, err error) {
	seen := make(map[godwit.DeliveryID]bool, len(q.Deliveries))
	for _, id := range q.Deliveries {
		if seen[id] {
			continue
		}
		seen[id] = true
		if _, held := s.handed.deliveries[id]; held {
			continue
		}
		d, err := requeueOne(ctx, c, q, id)
		if err != nil {
			return nil, err
		}
		if d != nil {
			due = append(due, *d)
		}
	}
	return due, nil
}

// requeueOne returns nil for a delivery that is claimed, has a status that q.Only excludes, or does not exist.
func requeueOne(ctx context.Context, c *conn, q *store.Requeue, id godwit.DeliveryID) (*godwit.Delivery, error) {
	var d godwit.Delivery
	var n, epoch int64
	there, err := c.one(ctx, "SELECT d.n, d.claim_epoch, "+deliveryColumns+`, e.type FROM deliveries d
		LEFT JOIN events e ON e.tenant_id = d.tenant_id AND e.id = d.event_id WHERE d.tenant_id = ? AND d.id = ?`,
		ids(q.TenantID[:], id[:]), func(r *rows) {
			n, epoch, d = r.int(0), r.int(1), scanDelivery(r, 2)
			d.EventType = r.text(2 + deliveryWidth)
		})
	if err != nil || epoch != 0 || there && !q.Takes(d.Status) {
		return nil, err
	}
	if !there {
		letter, err := restore(ctx, c, q, id)
		if err != nil {
			if errors.Is(err, store.ErrNotFound) {
				return nil, nil
			}
			return nil, err
		}
		d = letter.Delivery
	}
	if d.Status.Dead() {
		_, err := c.exec("UPDATE dead_letters SET replayed_at = ? WHERE tenant_id = ? AND id = ? AND replayed_at = 0",
			micros(q.Now), d.TenantID[:], d.ID[:])
		if err != nil {
			return nil, err
		}
	}
	d.Requeue(q.Trigger, q.Actor, fromMicros(micros(q.Now)))
	if !there {
		return &d, insertDelivery(c, &d, 0)
	}
	_, err = c.exec(`UPDATE deliveries SET status = ?, reason = ?, due_at = ?, updated_at = ?, run_trigger = ?, run_actor = ?,
		run_attempts = ?, run_first_at = ?, run_refreshed = ? WHERE n = ?`,
		string(d.Status), string(d.Reason), micros(d.DueAt), micros(d.UpdatedAt), string(d.Run.Trigger), d.Run.Actor,
		int64(d.Run.Attempts), micros(d.Run.FirstAt), flag(d.Run.Refreshed), n)
	return &d, err
}

// restore restores the event of a swept delivery from its dead letter. Its retention starts now; otherwise the sweep would end
// the new run at once.
func restore(ctx context.Context, c *conn, q *store.Requeue, id godwit.DeliveryID) (*godwit.DeadLetter, error) {
	letter, err := readDeadLetter(ctx, c, q.TenantID, id)
	if err != nil {
		return nil, err
	}
	if !q.Takes(letter.Delivery.Status) {
		return nil, store.ErrNotFound
	}
	own := []recipient{{id: id, endpoint: letter.Delivery.EndpointID}}
	row, err := appendEvent(nil, letter.Event, micros(q.Now), own)
	if err != nil {
		return nil, err
	}
	_, n, err := eventRows.insert(c, row)
	if err == nil && n == 0 { // it was restored with another of its deliveries
		_, err = addRecipients(c, letter.Event, own)
	}
	return letter, err
}
