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
		in := &handover{}
		for i := range b.Accepts {
			existing, err := s.accept(c, &b.Accepts[i], b, in)
			if err != nil {
				return err
			}
			out.Existing[i] = existing
		}
		if err := s.handed.store(c, in); err != nil {
			return err
		}
		lost, err := s.record(c, b, out)
		if err != nil {
			return err
		}
		if err := s.handed.settle(c); err != nil {
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
func (s *Store) accept(c *conn, a *store.Accept, b *store.Batch, in *handover) (*godwit.IdempotencyRecord, error) {
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
		if err := s.acceptEvent(c, &a.Events[i], in); err != nil {
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

// acceptEvent stores an event with its deliveries: rows for those that wait, a handover for those that the engine has.
func (s *Store) acceptEvent(c *conn, n *store.NewEvent, in *handover) error {
	e, all := n.Event, s.recipients(n)
	number, err := insertEvent(c, e, micros(e.CreatedAt), all)
	if err != nil {
		return err
	}
	if number == 0 {
		return acceptAgain(c, e, all)
	}
	for i := range all {
		r := &all[i]
		if r.epoch == 0 {
			if err := insertDelivery(c, newDelivery(e, r), 0, nil); err != nil {
				return err
			}
			continue
		}
		if in.open == 0 {
			in.first = number
		}
		in.last = number
		s.handed.add(in, handedDelivery{recipient: *r, tenant: e.TenantID, event: e.ID, created: micros(e.CreatedAt)})
	}
	return nil
}

// acceptAgain gives an event that is stored already the deliveries it does not have.
func acceptAgain(c *conn, e *godwit.Event, all []recipient) error {
	added, err := addRecipients(c, e, all)
	if err != nil {
		return err
	}
	for i := range added {
		if err := insertDelivery(c, newDelivery(e, &added[i]), added[i].epoch, nil); err != nil {
			return err
		}
	}
	return nil
}

// updateClaimed has unnumbered parameters, as have the other statements that run for every row: the driver asks SQLite
// for the name of each numbered one, every time.
const updateClaimed = `UPDATE deliveries SET status = ?, reason = ?, attempts = ?, last_status = ?, due_at = ?, updated_at = ?,
	claim_epoch = ?, run_trigger = ?, run_actor = ?, run_attempts = ?, run_first_at = ?, run_refreshed = ?,
	first_attempt = ifnull(?, first_attempt) WHERE tenant_id = ? AND id = ? AND status = 'pending' AND claim_epoch = ?`

// record applies the results in order. It tells which endpoints belong to somebody else by now.
func (s *Store) record(c *conn, b *store.Batch, out *store.Committed) (lost map[godwit.EndpointID]bool, err error) {
	for i := range b.Results {
		r := &b.Results[i]
		d := &r.Delivery
		known, err := s.recordState(c, r)
		if err != nil {
			return nil, err
		}
		if !known {
			out.Fenced = append(out.Fenced, i)
			if s.epochs.shard[d.EndpointID.Shard()] != r.Epoch {
				if lost == nil {
					lost = map[godwit.EndpointID]bool{}
				}
				lost[d.EndpointID] = true
			}
			continue
		}
		if r.Attempt != nil && r.Attempt.N > 1 {
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

// recordState stores the new state of a delivery with its first attempt, if that is it, and reports false when the
// delivery is not claimed under the result's epoch. No claim is under another epoch than its shard's lease, so that the
// claim alone has to be asked.
func (s *Store) recordState(c *conn, r *store.Result) (bool, error) {
	if r.Epoch <= 0 {
		return false, nil
	}
	d := &r.Delivery
	var kept int64
	if r.KeepClaim && d.Status == godwit.DeliveryPending {
		kept = r.Epoch
	}
	var first []byte
	if r.Attempt != nil && r.Attempt.N <= 1 {
		var err error
		if first, err = packAttempt(r.Attempt); err != nil {
			return false, err
		}
	}
	if h, ok := s.handed.deliveries[d.ID]; ok && h.tenant == d.TenantID {
		if h.epoch != r.Epoch {
			return false, nil
		}
		s.handed.remove(&h)
		row := *d
		row.EventID, row.EndpointID, row.CreatedAt = h.event, h.endpoint, fromMicros(h.created)
		return true, insertDelivery(c, &row, kept, first)
	}
	n, err := c.exec(updateClaimed, string(d.Status), string(d.Reason), int64(d.Attempts), int64(d.LastStatus), micros(d.DueAt),
		micros(d.UpdatedAt), kept, string(d.Run.Trigger), d.Run.Actor, int64(d.Run.Attempts), micros(d.Run.FirstAt),
		flag(d.Run.Refreshed), first, d.TenantID[:], d.ID[:], r.Epoch)
	return n == 1, err
}
