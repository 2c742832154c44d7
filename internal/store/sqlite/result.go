package sqlite

import (
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// updateClaimed uses unnumbered parameters, as do the other statements that run for every row: for each numbered one the
// driver asks SQLite for its name, every time.
const updateClaimed = `UPDATE deliveries SET status = ?, reason = ?, attempts = ?, last_status = ?, due_at = ?, updated_at = ?,
	claim_epoch = ?, run_trigger = ?, run_actor = ?, run_attempts = ?, run_first_at = ?, run_refreshed = ?,
	first_attempt = ifnull(?, first_attempt) WHERE tenant_id = ? AND id = ? AND status = 'pending' AND claim_epoch = ? AND attempts < ?`

// record applies the results in order. It returns the endpoints that other nodes own by now.
func (s *batches) record(c *conn, b *store.Batch, out *store.Committed, used *store.Tally) (lost map[godwit.EndpointID]bool, err error) {
	fresh := inserter{bulk: deliveryRows, c: c}
	for i := range b.Results {
		r := &b.Results[i]
		d := &r.Delivery
		claimed, again, err := s.recordState(c, r, &fresh)
		if err != nil {
			return nil, err
		}
		if !claimed {
			out.Fenced = append(out.Fenced, i)
			if s.epochs.shard[d.EndpointID.Shard()] != r.Epoch {
				if lost == nil {
					lost = map[godwit.EndpointID]bool{}
				}
				lost[d.EndpointID] = true
			}
			continue
		}
		if !again {
			used.Of(d.TenantID).Result(r)
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
	return lost, fresh.flush()
}

// recordState stores the new state of a delivery, with the attempt if it was the first, and reports whether the delivery was
// claimed under the result's epoch. again says that a commit whose answer was lost has stored it already. Claims always have the epoch of their shard's lease, so checking the claim is enough.
func (s *batches) recordState(c *conn, r *store.Result, fresh *inserter) (claimed, again bool, err error) {
	if r.Epoch <= 0 {
		return false, false, nil
	}
	d := &r.Delivery
	var kept int64
	fewer := d.Attempts // as many attempts mean that the result is stored, and that the claim is a later one
	if r.KeepClaim && d.Status == godwit.DeliveryPending {
		kept = r.Epoch
	}
	if r.Attempt == nil {
		fewer++
	}
	var first []byte
	if r.Attempt != nil && r.Attempt.N <= 1 {
		if first, err = packAttempt(r.Attempt); err != nil {
			return false, false, err
		}
	}
	if h, ok := s.handed.deliveries[d.ID]; ok && h.tenant == d.TenantID {
		if h.epoch != r.Epoch {
			return false, false, nil
		}
		s.handed.remove(&h)
		row := *d
		row.EventID, row.EndpointID, row.CreatedAt = h.event, h.endpoint, fromMicros(h.created)
		fresh.args = appendDelivery(fresh.args, &row, kept, first)
		return true, false, fresh.added()
	}
	if err := fresh.flush(); err != nil { // the delivery may be among the collected rows
		return false, false, err
	}
	update := func(fewer int) (bool, error) {
		n, err := c.exec(updateClaimed, string(d.Status), string(d.Reason), int64(d.Attempts), int64(d.LastStatus), micros(d.DueAt),
			micros(d.UpdatedAt), kept, string(d.Run.Trigger), d.Run.Actor, int64(d.Run.Attempts), micros(d.Run.FirstAt),
			flag(d.Run.Refreshed), first, d.TenantID[:], d.ID[:], r.Epoch, int64(fewer))
		return n == 1, err
	}
	if claimed, err = update(fewer); claimed || err != nil || kept == 0 || r.Attempt == nil {
		return claimed, false, err
	}
	claimed, err = update(fewer + 1) // a stored result that kept its claim ends no later one
	return claimed, claimed, err
}
