package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// accept stores the events of requests whose key was not used before.
func (s *batches) accept(c *conn, b *store.Batch, out *store.Committed, used *store.Tally) error {
	events := make([]*store.NewEvent, 0, len(b.Accepts))
	for i := range b.Accepts {
		a := &b.Accepts[i]
		if a.Part != nil {
			if err := s.acceptPart(c, i, a, out, used); err != nil {
				return err
			}
			continue
		}
		if a.Broadcast != nil {
			ok, err := acceptBroadcast(c, a, b.Now)
			if err != nil {
				return err
			}
			if !ok {
				out.Moved = append(out.Moved, i)
				continue
			}
		}
		known, existing, err := answered(c, a, micros(b.Now))
		if err != nil {
			return err
		}
		out.Existing[i] = existing
		for k := range a.Events {
			if !known {
				events = append(events, &a.Events[k])
			}
		}
	}
	for i := range b.Fanouts {
		if err := insertFanout(c, &b.Fanouts[i]); err != nil {
			return err
		}
	}
	return s.acceptAll(c, events, used)
}

// acceptPart stores the deliveries of a fan-out's part, if the part starts at the fan-out's cursor.
func (s *batches) acceptPart(c *conn, i int, a *store.Accept, out *store.Committed, used *store.Tally) error {
	ok, err := advanceFanout(c, a.Part)
	if err != nil {
		return err
	}
	if !ok {
		out.Moved = append(out.Moved, i)
		return nil
	}
	for k := range a.Events {
		added := s.recipients(&a.Events[k])
		if err := addPart(c, a.Events[k].Event, a.Part.From, added); err != nil {
			return err
		}
		if err := insertDeliveries(c, a.Events[k].Event, added); err != nil {
			return err
		}
		countDeliveries(used, a.Events[k].Event, added)
	}
	return nil
}

// publish stores events with unclaimed deliveries.
func (s *batches) publish(c *conn, now time.Time, list []store.NewEvent) error {
	events := make([]*store.NewEvent, len(list))
	for i := range list {
		e := list[i]
		if len(e.Later) > 0 {
			f := e.Fanout()
			if err := insertFanout(c, &f); err != nil {
				return err
			}
		}
		e.Deliveries = slices.Clone(e.Deliveries)
		for k := range e.Deliveries {
			e.Deliveries[k].ClaimEpoch = 0
		}
		events[i] = &e
	}
	used := store.NewTally(now)
	if err := s.acceptAll(c, events, used); err != nil {
		return err
	}
	return count(c, now, used)
}

// acceptAll stores events with their deliveries.
func (s *batches) acceptAll(c *conn, events []*store.NewEvent, used *store.Tally) error {
	in := &handover{}
	for len(events) > 0 {
		n := 1
		if len(events) >= bulkRows {
			n = bulkRows
		}
		if err := s.acceptEvents(c, events[:n], in, used); err != nil {
			return err
		}
		events = events[n:]
	}
	return s.handed.store(c, in)
}

// answered reserves the key of a request, if it has one. known reports that the key was taken. existing is then the record of
// another request, or nil if this same request was committed before and its answer was lost.
func answered(c *conn, a *store.Accept, now int64) (known bool, existing *godwit.IdempotencyRecord, err error) {
	if a.Record == nil {
		return false, nil, nil
	}
	existing, err = reserve(c, a.Record, now)
	if err != nil || existing == nil {
		return false, nil, err
	}
	if len(a.Events) > 0 {
		if n, err := eventNumber(c, a.Events[0].Event); err != nil || n != 0 {
			return true, nil, err
		}
	}
	return true, existing, nil
}

// eventNumber returns the number of a stored event, or 0.
func eventNumber(c *conn, e *godwit.Event) (n int64, err error) {
	_, err = c.one(context.Background(), "SELECT n FROM events WHERE tenant_id = ? AND id = ?", ids(e.TenantID[:], e.ID[:]),
		func(r *rows) { n = r.int(0) })
	return n, err
}

// acceptEvents stores one event or bulkRows events, with their deliveries.
func (s *batches) acceptEvents(c *conn, events []*store.NewEvent, in *handover, used *store.Tally) error {
	recipients := make([][]recipient, len(events))
	args := make([]driver.Value, 0, len(events)*eventRows.width)
	for i, n := range events {
		recipients[i] = s.recipients(n)
		var err error
		if args, err = appendEvent(args, n.Event, micros(n.Event.CreatedAt), recipients[i]); err != nil {
			return err
		}
	}
	last, changed, err := eventRows.insert(c, args)
	if err != nil {
		return err
	}
	next := last - changed + 1 // their numbers are consecutive
	for i, n := range events {
		number := next
		if changed < int64(len(events)) { // some were already stored
			if number, err = eventNumber(c, n.Event); err != nil {
				return err
			}
		}
		if changed == 0 || number != next {
			if err := acceptAgain(c, n.Event, recipients[i], used); err != nil {
				return err
			}
			continue
		}
		next++
		used.Of(n.Event.TenantID).Event(n.Event)
		countDeliveries(used, n.Event, recipients[i])
		if err := s.acceptNew(c, n.Event, number, recipients[i], in); err != nil {
			return err
		}
	}
	return nil
}

// acceptNew stores the deliveries of a new event: a row for each waiting one, a handover for those that the engine holds.
func (s *batches) acceptNew(c *conn, e *godwit.Event, number int64, all []recipient, in *handover) error {
	for i := range all {
		r := &all[i]
		if r.epoch == 0 {
			if err := insertDelivery(c, newDelivery(e, r), 0); err != nil {
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

// acceptAgain adds missing deliveries to a stored event.
func acceptAgain(c *conn, e *godwit.Event, all []recipient, used *store.Tally) error {
	added, err := addRecipients(c, e, all)
	if err != nil {
		return err
	}
	countDeliveries(used, e, added)
	return insertDeliveries(c, e, added)
}

// insertDeliveries stores a row for each delivery.
func insertDeliveries(c *conn, e *godwit.Event, added []recipient) error {
	fresh := inserter{bulk: deliveryRows, c: c}
	for i := range added {
		fresh.args = appendDelivery(fresh.args, newDelivery(e, &added[i]), added[i].epoch, nil)
		if err := fresh.added(); err != nil {
			return err
		}
	}
	return fresh.flush()
}

func countDeliveries(used *store.Tally, e *godwit.Event, added []recipient) {
	if len(added) == 0 {
		return
	}
	of := used.Of(e.TenantID)
	for i := range added {
		of.Delivery(added[i].endpoint)
	}
}
