package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const attemptFields = `delivery_id, id, started_at, next_at, duration, n, status, trigger, outcome, reason, url, verdict, trace`

// scanAttempt reads the stored columns of an attempt; belong fills in the rest.
func scanAttempt(r pgx.CollectableRow) (a godwit.Attempt, err error) {
	var micros int64
	var verdict, trace []byte
	err = r.Scan(scanID(&a.DeliveryID), scanID(&a.ID), scanTime(&a.StartedAt), scanTime(&a.NextAt), &micros, &a.N, &a.Status,
		&a.Trigger, &a.Verdict.Outcome, &a.Verdict.Reason, &a.URL, &verdict, &trace)
	if err != nil {
		return a, err
	}
	a.Duration = time.Duration(micros) * time.Microsecond
	if trace != nil {
		if err := json.Unmarshal(trace, &a.Trace); err != nil {
			return a, err
		}
	}
	return a, decodeVerdict(verdict, &a.Verdict)
}

// belong fills in the members that an attempt shares with its delivery.
func belong(a *godwit.Attempt, d *godwit.Delivery) {
	a.TenantID, a.EventID, a.EndpointID = d.TenantID, d.EventID, d.EndpointID
}

// attempts reads the attempts of deliveries.
type attempts struct{ *database }

// Attempts lists a delivery's attempts, first to last.
func (s *attempts) Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error) {
	d, err := readDelivery(ctx, s.pool, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		d, err = s.replayedDelivery(ctx, tenant, id)
	}
	if err != nil {
		return nil, failed("list attempts", err)
	}
	r, err := s.pool.Query(ctx, `SELECT `+attemptFields+` FROM attempts WHERE delivery_id = $1 ORDER BY n, id`, [16]byte(id))
	if err != nil {
		return nil, failed("list attempts", err)
	}
	list, err := pgx.CollectRows(r, scanAttempt)
	for i := range list {
		belong(&list[i], d)
	}
	return list, failed("list attempts", err)
}

// replayedDelivery reads a swept delivery from its replayed dead letter. Its state is not the final one, but the attempts
// belong to it.
func (s *attempts) replayedDelivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	r, err := s.pool.Query(ctx, `SELECT `+deliveryFields+`, event_type FROM dead_letters WHERE tenant_id = $1 AND id = $2 LIMIT 1`,
		[16]byte(tenant), [16]byte(id))
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(r, scanDelivery)
}
