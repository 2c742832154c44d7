package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const dueNow = `SELECT d.n, ` + deliveryColumns + `, ` + eventColumns + `, e.body
	FROM deliveries d INDEXED BY deliveries_due CROSS JOIN events e ON e.tenant_id = d.tenant_id AND e.id = d.event_id
	WHERE d.endpoint_id = ? AND d.status = 'pending' AND d.claim_epoch = 0 AND d.due_at <= ? ORDER BY d.due_at LIMIT ?`

const dueNext = `SELECT due_at FROM deliveries INDEXED BY deliveries_due
	WHERE endpoint_id = ? AND status = 'pending' AND claim_epoch = 0 ORDER BY due_at LIMIT 1`

// claims hands due deliveries to the engine.
type claims struct{ *database }

// ClaimDue claims due deliveries of endpoints. The claims are not synced: see writeSoft.
func (s *claims) ClaimDue(ctx context.Context, list []store.Claim) ([]store.Claimed, error) {
	var out []store.Claimed
	err := s.writeSoft(ctx, "claim due deliveries", func(c *conn) error {
		out = make([]store.Claimed, len(list))
		for i := range list {
			if cl := &list[i]; cl.Epoch <= 0 || s.epochs.shard[cl.EndpointID.Shard()] != cl.Epoch {
				out[i].Err = store.ErrFenced
			} else if err := claimOne(ctx, c, cl, &out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func claimOne(ctx context.Context, c *conn, cl *store.Claim, out *store.Claimed) error {
	rowids, err := findDue(ctx, c, cl, out)
	if err != nil {
		return err
	}
	for _, n := range rowids {
		if _, err := c.exec("UPDATE deliveries SET claim_epoch = ? WHERE n = ?", cl.Epoch, n); err != nil {
			return err
		}
	}
	_, err = c.one(ctx, dueNext, ids(cl.EndpointID[:]), func(r *rows) { out.NextDue = r.time(0) })
	return err
}

func findDue(ctx context.Context, c *conn, cl *store.Claim, out *store.Claimed) (rowids []int64, err error) {
	r, err := c.query(ctx, dueNow, cl.EndpointID[:], micros(cl.Now), int64(max(cl.Limit, 0)))
	if err != nil {
		return nil, err
	}
	defer r.close()
	const eventAt = 1 + deliveryWidth
	for size := 0; r.next(); {
		body := r.blob(eventAt + eventWidth)
		if size += len(body); cl.MaxBytes > 0 && size > cl.MaxBytes && len(out.Work) > 0 {
			break
		}
		e, err := scanEvent(r, eventAt)
		if err != nil {
			return nil, err
		}
		e.Body = body
		rowids = append(rowids, r.int(0))
		d := scanDelivery(r, 1)
		d.EventType = e.Type
		out.Work = append(out.Work, godwit.Work{Delivery: d, Event: e})
	}
	return rowids, r.err
}

// Reclaim makes deliveries due that are claimed under the epoch and not among held. It reads all claimed deliveries, which is
// acceptable because it runs only after an answer was lost.
func (s *claims) Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error) {
	known := make(map[godwit.DeliveryID]bool, len(held))
	for _, id := range held {
		known[id] = true
	}
	var lost []int64
	var n int
	err := s.writeSoft(ctx, "reclaim deliveries", func(c *conn) error {
		lost = nil
		fresh, err := s.reclaimHanded(c, endpoint, epoch, known, micros(now))
		if err != nil {
			return err
		}
		n = fresh
		err = c.each(ctx, `SELECT n, id FROM deliveries INDEXED BY deliveries_claimed
			WHERE claim_epoch = ?1 AND claim_epoch > 0 AND status = 'pending' AND endpoint_id = ?2`,
			[]driver.Value{epoch, endpoint[:]}, func(r *rows) error {
				if !known[r.id(1)] {
					lost = append(lost, r.int(0))
				}
				return nil
			})
		if err != nil {
			return err
		}
		for _, n := range lost {
			if _, err := c.exec("UPDATE deliveries SET claim_epoch = 0, due_at = ? WHERE n = ?", micros(now), n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n + len(lost), nil
}

// reclaimHanded does the same for deliveries that have no row yet.
func (s *claims) reclaimHanded(c *conn, endpoint godwit.EndpointID, epoch int64, known map[godwit.DeliveryID]bool, now int64) (n int, err error) {
	for id, d := range s.handed.deliveries {
		if d.endpoint == endpoint && d.epoch == epoch && !known[id] {
			if err := s.handed.writeOut(c, &d, 0, now); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, s.handed.settle(c)
}

// waiting hops through the index from endpoint to endpoint: one seek for each, however many deliveries wait.
const waiting = `WITH RECURSIVE waiting (endpoint_id) AS (
		SELECT min(endpoint_id) FROM deliveries INDEXED BY deliveries_due WHERE status = 'pending' AND claim_epoch = 0
		UNION ALL
		SELECT (SELECT min(d.endpoint_id) FROM deliveries d INDEXED BY deliveries_due
			WHERE d.status = 'pending' AND d.claim_epoch = 0 AND d.endpoint_id > waiting.endpoint_id)
		FROM waiting WHERE waiting.endpoint_id IS NOT NULL
	)
	SELECT endpoint_id, (SELECT min(d.due_at) FROM deliveries d INDEXED BY deliveries_due
		WHERE d.status = 'pending' AND d.claim_epoch = 0 AND d.endpoint_id = waiting.endpoint_id)
	FROM waiting WHERE endpoint_id IS NOT NULL`

// EndpointsDue lists the endpoints of the shards that have waiting deliveries.
func (s *claims) EndpointsDue(ctx context.Context, shards []int) ([]store.EndpointDue, error) {
	var due []store.EndpointDue
	err := s.read(ctx, "list endpoints due", func(c *conn) error {
		return c.each(ctx, waiting, []driver.Value{}, func(r *rows) error {
			if id := godwit.EndpointID(r.id(0)); slices.Contains(shards, id.Shard()) {
				due = append(due, store.EndpointDue{EndpointID: id, NextDue: r.time(1)})
			}
			return nil
		})
	})
	return due, err
}

// BringBack corrects due times that were set while the clock was ahead.
func (s *claims) BringBack(ctx context.Context, now time.Time, endpoints []store.Lateness) (int, error) {
	var n int64
	err := s.write(ctx, "bring due times back", func(c *conn) error {
		n = 0
		for _, e := range endpoints {
			changed, err := c.exec(`UPDATE deliveries INDEXED BY deliveries_due SET
					due_at = CASE WHEN updated_at > ?1 THEN ?1 + min(max(due_at - updated_at, 0), ?2 - ?1) ELSE ?1 END,
					run_first_at = min(run_first_at, ?1), updated_at = min(updated_at, ?1)
				WHERE endpoint_id = ?3 AND status = 'pending' AND claim_epoch = 0 AND due_at > ?4 AND (updated_at > ?1 OR due_at > ?2)`,
				micros(now), micros(e.Latest), e.EndpointID[:], micros(e.After))
			if err != nil {
				return err
			}
			n += changed
		}
		return nil
	})
	return int(n), err
}
