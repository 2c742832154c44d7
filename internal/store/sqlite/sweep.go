package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// sweepCursors keep the position of each pass. A row that must stay because a delivery is held does not block later rows; the
// next pass checks it again.
type sweepCursors struct {
	events      int64
	deadLetters int64
	attempt     [16]byte
	attemptN    int64
	firsts      int64     // rows of deliveries
	firstsFrom  time.Time // start time of that pass
}

// sweeps removes expired rows.
type sweeps struct {
	*database
	cursors sweepCursors // guarded by turn
	keys    *eventKeys
}

// Sweep does one bounded step of every kind, each in a short transaction.
func (s *sweeps) Sweep(ctx context.Context, sw store.Sweep) (*store.Swept, error) {
	limit := max(sw.Limit, 1)
	out := &store.Swept{}
	gone, err := s.waitingForDeleted(ctx)
	if err != nil {
		return nil, err
	}
	steps := []struct {
		what string
		skip bool
		step func(*conn) (more bool, err error)
	}{
		{"cancel deliveries of deleted endpoints", len(gone) == 0, func(c *conn) (bool, error) { return cancel(c, gone, sw.Now, limit, out) }},
		{"sweep events", sw.EventsBefore.IsZero(), func(c *conn) (bool, error) { return s.sweepEvents(ctx, c, &sw, limit, out) }},
		{"sweep keys of events", sw.EventsBefore.IsZero(), func(c *conn) (bool, error) { return false, sweepKeys(c) }},
		{"sweep broadcasts", sw.EventsBefore.IsZero(), func(c *conn) (bool, error) { return sweepBroadcasts(ctx, c, sw.EventsBefore, limit, out) }},
		{"sweep attempts", sw.AttemptsBefore.IsZero(), func(c *conn) (bool, error) { return s.sweepAttempts(ctx, c, &sw, limit, out) }},
		{"sweep first attempts", sw.AttemptsBefore.IsZero(), func(c *conn) (bool, error) { return s.sweepFirstAttempts(ctx, c, &sw, limit, out) }},
		{"sweep dead letters", sw.DeadLettersBefore.IsZero(), func(c *conn) (bool, error) {
			return sweepOrdered(ctx, c, "dead_letters", "dead_at < ?", micros(sw.DeadLettersBefore), limit, &s.cursors.deadLetters, &out.DeadLetters)
		}},
		{"sweep idempotency records", false, func(c *conn) (more bool, err error) {
			out.Records, err = c.exec(sweepRecords, micros(sw.Now), micros(sw.UnansweredBefore), int64(limit))
			return out.Records == int64(limit), err
		}},
		{"sweep notices", sw.NoticesBefore.IsZero(), func(c *conn) (more bool, err error) {
			out.Notices, err = c.exec(`DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
				micros(sw.NoticesBefore), int64(limit))
			return out.Notices == int64(limit), err
		}},
		{"sweep allowances", false, func(c *conn) (more bool, err error) {
			out.Allowances, err = c.exec(`DELETE FROM allowances WHERE (tenant_id, name, at) IN (
				SELECT tenant_id, name, at FROM allowances WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, micros(sw.Now), int64(limit))
			return out.Allowances == int64(limit), err
		}},
		{"sweep sessions", false, func(c *conn) (bool, error) { return sweepSessions(c, sw.Now, limit, out) }},
		{"sweep receipts of sources", false, func(c *conn) (more bool, err error) {
			out.Receipts, err = c.exec(`DELETE FROM source_receipts WHERE source_id IN (
				SELECT r.source_id FROM source_receipts r JOIN sources s ON s.id = r.source_id WHERE s.status = 'deleted' LIMIT ?)`, int64(limit))
			return out.Receipts == int64(limit), err
		}},
		{"sweep usage", sw.UsageBefore.IsZero(), func(c *conn) (more bool, err error) {
			out.Usage, err = c.exec(`DELETE FROM usage WHERE (tenant_id, day) IN (SELECT tenant_id, day FROM usage WHERE day < ? ORDER BY day LIMIT ?)`,
				dayNumber(sw.UsageBefore), int64(limit))
			return out.Usage == int64(limit), err
		}},
		{"sweep rejections", sw.RejectionsBefore.IsZero(), func(c *conn) (more bool, err error) {
			out.Rejections, err = c.exec(`DELETE FROM rejections WHERE id IN (SELECT id FROM rejections WHERE at < ? ORDER BY at LIMIT ?)`,
				micros(sw.RejectionsBefore), int64(limit))
			return out.Rejections == int64(limit), err
		}},
	}
	for _, step := range steps {
		if step.skip {
			continue
		}
		err := s.write(ctx, step.what, func(c *conn) error {
			more, err := step.step(c)
			out.More = out.More || more
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	more, err := s.keys.extend(ctx)
	out.More = out.More || more
	return out, err
}

const sweepRecords = `DELETE FROM idempotency_records WHERE n IN (
	SELECT n FROM idempotency_records INDEXED BY idempotency_records_expiry WHERE expires_at <= ? AND (status <> 0 OR expires_at < ?)
	ORDER BY expires_at LIMIT ?)`

// waitingForDeleted finds deleted endpoints with waiting deliveries. It uses a reader, since it examines every endpoint.
func (s *sweeps) waitingForDeleted(ctx context.Context) (gone [][16]byte, err error) {
	err = s.read(ctx, "find deliveries of deleted endpoints", func(c *conn) error {
		return c.each(ctx, waiting+" AND EXISTS (SELECT 1 FROM endpoints WHERE id = waiting.endpoint_id AND status = 'deleted')", nil,
			func(r *rows) error { gone = append(gone, r.id(0)); return nil })
	})
	return gone, err
}

// cancel cancels deliveries that wait for deleted endpoints.
func cancel(c *conn, gone [][16]byte, now time.Time, limit int, out *store.Swept) (bool, error) {
	var end godwit.Delivery
	end.Cancel(godwit.ReasonEndpointDeleted, now)
	for _, id := range gone {
		n, err := c.exec(endPending+`WHERE n IN (
			SELECT n FROM deliveries INDEXED BY deliveries_due WHERE endpoint_id = ? AND status = 'pending' AND claim_epoch = 0 LIMIT ?)`,
			append(ending(&end), id[:], int64(limit))...)
		if err != nil {
			return false, err
		}
		out.Cancelled += n
		if limit -= int(n); limit <= 0 {
			return true, nil
		}
	}
	return false, nil
}

type oldEvent struct {
	n          int64
	tenant     godwit.TenantID
	id         godwit.EventID
	recipients []byte
	old        bool
	ended      bool // it goes only if all its deliveries have ended
}

// sweepEvents goes through events in the order of storage, which is the order of age. A pass ends when a whole step finds no
// expired event.
func (s *sweeps) sweepEvents(ctx context.Context, c *conn, sw *store.Sweep, limit int, out *store.Swept) (more bool, err error) {
	var found []oldEvent
	err = c.each(ctx, "SELECT n, tenant_id, id, kept_since, deliveries FROM events WHERE n > ? ORDER BY n LIMIT ?",
		[]driver.Value{s.cursors.events, int64(limit)}, func(r *rows) error {
			found = append(found, oldEvent{n: r.int(0), tenant: r.id(1), id: r.id(2), recipients: r.blob(4), old: r.int(3) < micros(sw.EventsBefore)})
			return nil
		})
	if err != nil {
		return false, err
	}
	fanningOut, err := eventsFanningOut(ctx, c)
	if err != nil {
		return false, err
	}
	cursor, rowsLeft, anyOld := s.cursors.events, limit, false
	for _, e := range found {
		if rowsLeft <= 0 {
			s.cursors.events = cursor
			return true, nil
		}
		cursor = e.n
		if !e.old {
			continue
		}
		anyOld = true
		if fanningOut[e.id] {
			continue // the deliveries that its fan-out has not stored yet would be lost
		}
		n, err := s.sweepEvent(ctx, c, &e, sw.Now, out)
		if err != nil {
			return false, err
		}
		rowsLeft -= n
	}
	if more = anyOld && len(found) == limit; !more {
		cursor = 0
	}
	s.cursors.events = cursor
	return more, nil
}

// sweepEvent removes an event with its deliveries, unless one of them is held, and returns the number of affected rows.
func (s *sweeps) sweepEvent(ctx context.Context, c *conn, e *oldEvent, now time.Time, out *store.Swept) (int, error) {
	recipients, err := recipientsOf(ctx, c, e.n, e.recipients)
	if err != nil {
		return 0, err
	}
	type row struct {
		godwit.Delivery
		first []byte
	}
	ds := make([]row, 0, len(recipients))
	for i := range recipients {
		id := recipients[i].id
		_, held := s.handed.deliveries[id]
		_, err := c.one(ctx, "SELECT "+deliveryColumns+", d.claim_epoch, d.first_attempt FROM deliveries d WHERE d.tenant_id = ? AND d.id = ?",
			ids(e.tenant[:], id[:]), func(r *rows) {
				d := scanDelivery(r, 0)
				held = held || r.int(deliveryWidth) != 0 || e.ended && d.Status == godwit.DeliveryPending
				ds = append(ds, row{d, r.blob(deliveryWidth + 1)})
			})
		if err != nil || held {
			return 1, err
		}
	}
	for i := range ds {
		if err := sweepDelivery(ctx, c, &ds[i].Delivery, ds[i].first, now, out); err != nil {
			return 0, err
		}
	}
	for _, query := range []string{"DELETE FROM event_parts WHERE event = ?", "DELETE FROM events WHERE n = ?"} {
		if _, err := c.exec(query, e.n); err != nil {
			return 0, err
		}
	}
	if err := unlistKeys(ctx, c, e.n); err != nil {
		return 0, err
	}
	out.Events++
	out.Deliveries += int64(len(ds))
	return 1 + len(ds), nil
}

// sweepDelivery removes a delivery. A pending one ends as exhausted and leaves a dead letter.
func sweepDelivery(ctx context.Context, c *conn, d *godwit.Delivery, first []byte, now time.Time, out *store.Swept) error {
	if d.Status == godwit.DeliveryPending {
		d.Expire(now)
		if err := bury(c, d, nil, micros(now), ""); err != nil {
			return err
		}
		out.Expired++
	}
	if err := sweepAttemptsOf(ctx, c, d, first, out); err != nil {
		return err
	}
	_, err := c.exec("DELETE FROM deliveries WHERE tenant_id = ? AND id = ?", d.TenantID[:], d.ID[:])
	return err
}

// sweepAttemptsOf removes the attempts of a swept delivery, unless it has a dead letter, open or replayed.
func sweepAttemptsOf(ctx context.Context, c *conn, d *godwit.Delivery, first []byte, out *store.Swept) error {
	kept, err := c.one(ctx, "SELECT 1 FROM dead_letters WHERE tenant_id = ? AND id = ?", ids(d.TenantID[:], d.ID[:]), nil)
	if err != nil {
		return err
	}
	switch {
	case kept && first == nil:
		return nil
	case kept:
		a, err := unpackAttempt(first, d)
		if err != nil {
			return err
		}
		return insertAttempt(c, &a)
	case first != nil:
		out.Attempts++
	}
	n, err := c.exec("DELETE FROM attempts WHERE delivery_id = ?", d.ID[:])
	out.Attempts += n
	return err
}

const oldAttempts = `SELECT delivery_id, n, started_at FROM attempts WHERE (delivery_id, n) > (?, ?) AND delivery_id < ?
	ORDER BY delivery_id, n LIMIT ?`

// sweepAttempts goes through the attempts of deliveries that are old enough to have expired ones.
func (s *sweeps) sweepAttempts(ctx context.Context, c *conn, sw *store.Sweep, limit int, out *store.Swept) (bool, error) {
	type key struct {
		delivery [16]byte
		n        int64
		old      bool
	}
	var firstAt func(time.Time) godwit.DeliveryID = godwit.FirstIDAt
	end := firstAt(sw.AttemptsBefore.Add(slack))
	var found []key
	err := c.each(ctx, oldAttempts, []driver.Value{s.cursors.attempt[:], s.cursors.attemptN, end[:], int64(limit)},
		func(r *rows) error {
			found = append(found, key{r.id(0), r.int(1), r.int(2) < micros(sw.AttemptsBefore)})
			return nil
		})
	if err != nil {
		return false, err
	}
	s.cursors.attempt, s.cursors.attemptN = [16]byte{}, 0
	for _, k := range found {
		if k.old {
			n, err := c.exec("DELETE FROM attempts WHERE delivery_id = ? AND n = ?", k.delivery[:], k.n)
			if err != nil {
				return false, err
			}
			out.Attempts += n
		}
		if len(found) == limit {
			s.cursors.attempt, s.cursors.attemptN = k.delivery, k.n
		}
	}
	return len(found) == limit, nil
}

// firstsAgain is how often all deliveries are searched for expired first attempts. In between only deliveries that have become
// old enough are searched; the next full search finds deliveries that waited longer for their first attempt.
const firstsAgain = 24 * time.Hour

// sweepFirstAttempts goes through the rows of deliveries that are old enough to have an expired attempt.
func (s *sweeps) sweepFirstAttempts(ctx context.Context, c *conn, sw *store.Sweep, limit int, out *store.Swept) (bool, error) {
	cursors := &s.cursors
	if since := sw.Now.Sub(cursors.firstsFrom); since < 0 || since >= firstsAgain {
		cursors.firsts, cursors.firstsFrom = 0, sw.Now
	}
	var old []int64
	bound := micros(sw.AttemptsBefore)
	found, last, young := 0, cursors.firsts, false
	err := c.each(ctx, "SELECT n, created_at, substr(first_attempt, 1, 10) FROM deliveries WHERE n > ? ORDER BY n LIMIT ?",
		[]driver.Value{cursors.firsts, int64(limit)}, func(r *rows) error {
			found++
			if young = young || r.int(1) >= bound; !young {
				last = r.int(0)
			}
			if first := r.blob(2); first != nil {
				if u := (unpacker{rest: first}); u.number() < bound {
					old = append(old, r.int(0))
				}
			}
			return nil
		})
	if err != nil {
		return false, err
	}
	for _, n := range old {
		if _, err := c.exec("UPDATE deliveries SET first_attempt = NULL WHERE n = ?", n); err != nil {
			return false, err
		}
	}
	out.Attempts += int64(len(old))
	more := found == limit && last > cursors.firsts
	cursors.firsts = last
	return more, nil
}

// sweepOrdered removes expired rows of a table whose rows are in the order of age.
func sweepOrdered(ctx context.Context, c *conn, table, old string, bound int64, limit int, cursor, removed *int64) (bool, error) {
	var first, last, count, anyOld int64
	_, err := c.one(ctx, "SELECT min(n), max(n), count(*), max(old) FROM (SELECT n, "+old+" AS old FROM "+table+" WHERE n > ? ORDER BY n LIMIT ?)",
		[]driver.Value{bound, *cursor, int64(limit)}, func(r *rows) { first, last, count, anyOld = r.int(0), r.int(1), r.int(2), r.int(3) })
	if err != nil {
		return false, err
	}
	if anyOld == 0 {
		*cursor = 0
		return false, nil
	}
	n, err := c.exec("DELETE FROM "+table+" WHERE n BETWEEN ? AND ? AND "+old, first, last, bound)
	if err != nil {
		return false, err
	}
	*removed += n
	if *cursor = last; count < int64(limit) {
		*cursor = 0
		return false, nil
	}
	return true, nil
}
