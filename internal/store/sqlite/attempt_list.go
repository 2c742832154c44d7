package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// lookedAt bounds how many deliveries of each kind ListAttempts examines.
const lookedAt = 1000

// Attempts have no index by endpoint and time, since every attempt would pay for it. Recent attempts belong to the newest
// deliveries, or to deliveries tried more than once, which have a small index.
const (
	newestDeliveries = "SELECT " + deliveryColumns + ` FROM deliveries d INDEXED BY deliveries_endpoint
		WHERE d.endpoint_id = ? AND d.tenant_id = ? AND d.id < ? ORDER BY d.id DESC LIMIT ?`
	latestRetried = "SELECT " + deliveryColumns + ` FROM deliveries d INDEXED BY deliveries_tried
		WHERE d.endpoint_id = ? AND d.tenant_id = ? AND d.attempts > 1 AND d.updated_at >= ? ORDER BY d.updated_at DESC LIMIT ?`
)

// ListAttempts lists an endpoint's attempts, latest first.
func (s *attempts) ListAttempts(ctx context.Context, f store.AttemptFilter, limit int) ([]store.LoggedAttempt, error) {
	if limit <= 0 {
		return nil, nil
	}
	var found []store.LoggedAttempt
	err := s.read(ctx, "list attempts of endpoint", func(c *conn) error {
		tried, err := latelyTried(ctx, c, &f)
		if err != nil {
			return err
		}
		for i := range tried {
			d := &tried[i]
			// No attempt starts after the last change of its delivery.
			if len(found) == limit && found[limit-1].Attempt.StartedAt.After(d.UpdatedAt) {
				break
			}
			logged, err := loggedAttempts(ctx, c, d)
			if err != nil {
				return err
			}
			found = append(found, slices.DeleteFunc(logged, func(l store.LoggedAttempt) bool { return !wanted(&f, &l.Attempt) })...)
			slices.SortStableFunc(found, func(a, b store.LoggedAttempt) int { return latestFirst(&a.Attempt, &b.Attempt) })
			found = found[:min(len(found), limit)]
		}
		return fillEventTypes(ctx, c, found)
	})
	return found, err
}

// latelyTried finds deliveries with attempts, last changed first.
func latelyTried(ctx context.Context, c *conn, f *store.AttemptFilter) ([]godwit.Delivery, error) {
	var idAt func(time.Time) godwit.DeliveryID = godwit.FirstIDAt
	end := godwit.DeliveryID{0xff}
	if !f.Until.IsZero() {
		end = idAt(f.Until.Add(slack)) // later deliveries have no attempt before Until
	}
	var tried []godwit.Delivery
	seen := map[godwit.DeliveryID]bool{}
	look := func(query string, bound driver.Value) error {
		args := []driver.Value{f.EndpointID[:], f.TenantID[:], bound, int64(lookedAt)}
		return c.each(ctx, query, args, func(r *rows) error {
			d := scanDelivery(r, 0)
			if d.Attempts > 0 && within(d.UpdatedAt, f.Since, time.Time{}) && !seen[d.ID] {
				seen[d.ID] = true
				tried = append(tried, d)
			}
			return nil
		})
	}
	if err := look(newestDeliveries, end[:]); err != nil {
		return nil, err
	}
	if err := look(latestRetried, micros(f.Since)); err != nil {
		return nil, err
	}
	slices.SortFunc(tried, func(a, b godwit.Delivery) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return tried, nil
}

// loggedAttempts lists a delivery's attempts, first to last, with their numbers within their runs.
func loggedAttempts(ctx context.Context, c *conn, d *godwit.Delivery) ([]store.LoggedAttempt, error) {
	as, err := listAttempts(ctx, c, d)
	if err != nil {
		return nil, err
	}
	logged := make([]store.LoggedAttempt, len(as))
	for i, a := range as {
		l := store.LoggedAttempt{Attempt: a, Final: godwit.DeliveryPending}
		switch a.Trigger {
		case godwit.TriggerAccept, godwit.TriggerManual, godwit.TriggerReplay, godwit.TriggerTest:
			l.Run = 1
		default:
			l.Run = a.N // earlier attempts may have been swept
			if i > 0 {
				l.Run = logged[i-1].Run + a.N - as[i-1].N
			}
		}
		if a.N == d.Attempts {
			l.Final = d.Status
		}
		logged[i] = l
	}
	return logged, nil
}

func wanted(f *store.AttemptFilter, a *godwit.Attempt) bool {
	return within(a.StartedAt, f.Since, f.Until) && (len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, a.Verdict.Outcome)) &&
		(!f.Exhausted || a.Exhausted())
}

func latestFirst(a, b *godwit.Attempt) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), slices.Compare(b.ID[:], a.ID[:]))
}

func fillEventTypes(ctx context.Context, c *conn, found []store.LoggedAttempt) error {
	for i := range found {
		a := &found[i].Attempt
		_, err := c.one(ctx, "SELECT type FROM events WHERE tenant_id = ? AND id = ?", ids(a.TenantID[:], a.EventID[:]),
			func(r *rows) { found[i].EventType = r.text(0) })
		if err != nil {
			return err
		}
	}
	return nil
}
