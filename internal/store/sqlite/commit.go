package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Commit stores a batch in one synced transaction.
func (s *Store) Commit(ctx context.Context, b *store.Batch) (*store.Committed, error) {
	out := &store.Committed{Existing: make([]*godwit.IdempotencyRecord, len(b.Accepts))}
	err := s.write(ctx, "commit batch", func(c *conn) error {
		for i := range b.Accepts {
			existing, err := s.accept(c, &b.Accepts[i], b)
			if err != nil {
				return err
			}
			out.Existing[i] = existing
		}
		lost, err := s.record(c, b, out)
		if err != nil {
			return err
		}
		for i := range b.Health {
			if lost[b.Health[i].EndpointID] {
				continue
			}
			if err := putHealth(c, &b.Health[i]); err != nil {
				return err
			}
		}
		for i := range b.Changes {
			if err := changeEndpoint(c, &b.Changes[i], micros(b.Now)); err != nil {
				return err
			}
		}
		for i := range b.Notices {
			if err := insertNotice(c, &b.Notices[i]); err != nil {
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

// accept stores one request's events, or finds the record of an earlier one under the same key.
func (s *Store) accept(c *conn, a *store.Accept, b *store.Batch) (*godwit.IdempotencyRecord, error) {
	if a.Record != nil {
		existing, err := reserve(c, a.Record, micros(b.Now))
		if err != nil {
			return nil, err
		}
		if existing != nil {
			// It may be this very request, committed before with an outcome that nobody learnt.
			own, err := hasEvent(c, a)
			if err != nil || own {
				return nil, err
			}
			return existing, nil
		}
	}
	for i := range a.Events {
		if err := s.acceptEvent(c, &a.Events[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func hasEvent(c *conn, a *store.Accept) (bool, error) {
	if len(a.Events) == 0 {
		return false, nil
	}
	e := a.Events[0].Event
	return c.one(context.Background(), "SELECT 1 FROM events WHERE tenant_id = ? AND id = ?", ids(e.TenantID[:], e.ID[:]), nil)
}

func (s *Store) acceptEvent(c *conn, n *store.NewEvent) error {
	e := n.Event
	if _, err := insertEvent(c, e, micros(e.CreatedAt)); err != nil {
		return err
	}
	insert, err := c.stmt(`INSERT INTO deliveries (tenant_id, id, event_id, endpoint_id, status, claim_epoch, due_at, reason,
		attempts, last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed)
		VALUES (?, ?, ?, ?, 'pending', ?, ?, '', 0, 0, ?, ?, ?, '', 0, 0, 0) ON CONFLICT DO NOTHING`)
	if err != nil {
		return err
	}
	at := micros(e.CreatedAt)
	for i := range n.Deliveries {
		d := &n.Deliveries[i]
		epoch := d.ClaimEpoch
		if epoch != s.epochs.shard[d.EndpointID.Shard()] {
			epoch = 0
		}
		if _, err := insert.exec(e.TenantID[:], d.ID[:], e.ID[:], d.EndpointID[:], epoch, at, at, at, string(d.Trigger)); err != nil {
			return err
		}
	}
	return nil
}

// updateClaimed has unnumbered parameters, as have the other statements that run for every row: the driver asks SQLite
// for the name of each numbered one, every time.
const updateClaimed = `UPDATE deliveries SET status = ?, reason = ?, attempts = ?, last_status = ?, due_at = ?, updated_at = ?,
	claim_epoch = ?, run_trigger = ?, run_actor = ?, run_attempts = ?, run_first_at = ?, run_refreshed = ?
	WHERE tenant_id = ? AND id = ? AND status = 'pending' AND claim_epoch = ?`

// record applies the results in order. It tells which endpoints belong to somebody else by now.
func (s *Store) record(c *conn, b *store.Batch, out *store.Committed) (lost map[godwit.EndpointID]bool, err error) {
	if len(b.Results) == 0 {
		return nil, nil
	}
	update, err := c.stmt(updateClaimed)
	if err != nil {
		return nil, err
	}
	for i := range b.Results {
		r := &b.Results[i]
		d := &r.Delivery
		var kept, changed int64
		if r.KeepClaim && d.Status == godwit.DeliveryPending {
			kept = r.Epoch
		}
		// No claim is under another epoch than its shard's lease, so that the claim alone has to be asked.
		if r.Epoch > 0 {
			changed, err = update.exec(string(d.Status), string(d.Reason), int64(d.Attempts), int64(d.LastStatus), micros(d.DueAt),
				micros(d.UpdatedAt), kept, string(d.Run.Trigger), d.Run.Actor, int64(d.Run.Attempts), micros(d.Run.FirstAt),
				flag(d.Run.Refreshed), d.TenantID[:], d.ID[:], r.Epoch)
			if err != nil {
				return nil, err
			}
		}
		if changed == 0 {
			out.Fenced = append(out.Fenced, i)
			if s.epochs.shard[d.EndpointID.Shard()] != r.Epoch {
				if lost == nil {
					lost = map[godwit.EndpointID]bool{}
				}
				lost[d.EndpointID] = true
			}
			continue
		}
		if r.Attempt != nil {
			if err := insertAttempt(c, r.Attempt); err != nil {
				return nil, err
			}
		}
		if d.Status.Dead() {
			if err := bury(c, d, r.Event, micros(b.Now), r.LastDetail); err != nil {
				return nil, err
			}
		}
	}
	return lost, nil
}
