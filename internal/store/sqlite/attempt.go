package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// verdictDocument holds the members of a verdict that are rarely set.
type verdictDocument struct {
	ReceiverUnknown bool            `json:"receiver_unknown,omitempty"`
	RetryAfter      time.Duration   `json:"retry_after_ns,omitempty"`
	SunsetAt        int64           `json:"sunset_at,omitempty"`
	DisableEndpoint bool            `json:"disable_endpoint,omitempty"`
	MoveTo          string          `json:"move_to,omitempty"`
	RefreshAndRetry bool            `json:"refresh_and_retry,omitempty"`
	Review          bool            `json:"review,omitempty"`
	Problem         *godwit.Problem `json:"problem,omitempty"`
}

func rareIn(v *godwit.Verdict) verdictDocument {
	return verdictDocument{
		v.ReceiverUnknown, v.RetryAfter, micros(v.SunsetAt), v.DisableEndpoint, v.MoveTo, v.RefreshAndRetry, v.Review, v.Problem,
	}
}

func (rare *verdictDocument) addTo(v *godwit.Verdict) {
	v.ReceiverUnknown, v.RetryAfter, v.SunsetAt = rare.ReceiverUnknown, rare.RetryAfter, fromMicros(rare.SunsetAt)
	v.DisableEndpoint, v.MoveTo, v.RefreshAndRetry, v.Review = rare.DisableEndpoint, rare.MoveTo, rare.RefreshAndRetry, rare.Review
	v.Problem = rare.Problem
}

func attemptOf(d *godwit.Delivery) godwit.Attempt {
	return godwit.Attempt{DeliveryID: d.ID, TenantID: d.TenantID, EventID: d.EventID, EndpointID: d.EndpointID}
}

// insertAttempt stores an attempt that is not the first, or whose delivery's row is removed.
func insertAttempt(c *conn, a *godwit.Attempt) error {
	v := &a.Verdict
	doc, err := documents(rareIn(v), a.Trace)
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT INTO attempts (delivery_id, n, id, run_trigger, started_at, duration_ns, url, status, outcome, reason,
		class, next_at, verdict, trace) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		a.DeliveryID[:], int64(a.N), a.ID[:], string(a.Trigger), micros(a.StartedAt), int64(a.Duration), a.URL, int64(a.Status),
		string(v.Outcome), string(v.Reason), string(v.Class), micros(a.NextAt), doc[0], doc[1])
	return err
}

// attempts reads the attempts of deliveries.
type attempts struct{ *database }

// Attempts lists a delivery's attempts, first to last.
func (s *attempts) Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error) {
	var as []godwit.Attempt
	err := s.read(ctx, "list attempts", func(c *conn) error {
		d, err := readDelivery(ctx, c, tenant, id)
		if errors.Is(err, store.ErrNotFound) {
			d, err = readReplayed(ctx, c, tenant, id)
		}
		if err != nil {
			return err
		}
		as, err = listAttempts(ctx, c, d)
		return err
	})
	return as, err
}

// readReplayed reads a swept delivery from its replayed dead letter. Its state is not the final one, but the attempts belong
// to it.
func readReplayed(ctx context.Context, c *conn, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	var d godwit.Delivery
	err := c.first(ctx, "SELECT "+deliveryColumns+" FROM dead_letters d WHERE d.tenant_id = ? AND d.id = ? LIMIT 1",
		ids(tenant[:], id[:]), func(r *rows) error {
			d = scanDelivery(r, 0)
			return nil
		})
	return &d, err
}

func listAttempts(ctx context.Context, c *conn, d *godwit.Delivery) (as []godwit.Attempt, err error) {
	var first []byte
	_, err = c.one(ctx, "SELECT first_attempt FROM deliveries WHERE tenant_id = ? AND id = ?", ids(d.TenantID[:], d.ID[:]),
		func(r *rows) { first = r.blob(0) })
	if err != nil {
		return nil, err
	}
	if first != nil {
		a, err := unpackAttempt(first, d)
		if err != nil {
			return nil, err
		}
		as = append(as, a)
	}
	err = c.each(ctx, `SELECT n, id, run_trigger, started_at, duration_ns, url, status, outcome, reason, class, next_at, verdict, trace
		FROM attempts WHERE delivery_id = ? ORDER BY n`, ids(d.ID[:]), func(r *rows) error {
		a, err := scanAttempt(r, d)
		as = append(as, a)
		return err
	})
	return as, err
}

func scanAttempt(r *rows, d *godwit.Delivery) (godwit.Attempt, error) {
	a := attemptOf(d)
	a.N, a.ID, a.Trigger, a.StartedAt, a.Duration = int(r.int(0)), r.id(1), godwit.Trigger(r.text(2)), r.time(3), time.Duration(r.int(4))
	a.URL, a.Status, a.NextAt = r.text(5), int(r.int(6)), r.time(10)
	a.Verdict = godwit.Verdict{
		Outcome: godwit.Outcome(r.text(7)), Reason: godwit.Reason(r.text(8)), Class: godwit.FailureClass(r.text(9)),
	}
	var rare verdictDocument
	if err := r.parse(11, &rare); err != nil {
		return a, err
	}
	rare.addTo(&a.Verdict)
	return a, r.parse(12, &a.Trace)
}
