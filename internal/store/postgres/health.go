package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const selectHealth = `SELECT endpoint_id, consecutive_failures, consecutive_terminal, accepted, transient, terminal,
	avg_duration_ms, last_reason, last_accepted_at, last_failure_at, hold_until, sunset_at, circuit_open_at, probe_at,
	updated_at, streak, degraded_at, recent FROM endpoint_health`

func scanHealth(r pgx.CollectableRow) (*godwit.Health, error) {
	h := &godwit.Health{}
	var recent []byte
	err := r.Scan(scanID(&h.EndpointID), &h.ConsecutiveFailures, &h.ConsecutiveTerminal, &h.Accepted, &h.Transient,
		&h.Terminal, &h.AvgDurationMS, &h.LastReason, scanTime(&h.LastAcceptedAt), scanTime(&h.LastFailureAt),
		scanTime(&h.HoldUntil), scanTime(&h.SunsetAt), scanTime(&h.CircuitOpenAt), scanTime(&h.ProbeAt), scanTime(&h.UpdatedAt),
		&h.Streak, scanTime(&h.DegradedAt), &recent)
	if err != nil {
		return nil, err
	}
	return h, h.Recent.UnmarshalBinary(recent)
}

// encodeRecent returns nil if there are no counts.
func encodeRecent(r godwit.Recent) []byte {
	b, err := r.MarshalBinary()
	if err != nil {
		return nil // encoding never fails
	}
	return b
}

// clearedHealth resets an endpoint that is enabled again. Totals, times of the last outcomes and an announced sunset do not
// change. Neither do the counts of the last hour: the endpoint stays degraded until failures leave the hour.
const clearedHealth = `consecutive_failures = 0, consecutive_terminal = 0, streak = 0, hold_until = NULL,
	circuit_open_at = NULL, probe_at = NULL`

// health keeps the health of endpoints.
type health struct{ *database }

// Health returns an endpoint's health. It holds only the id if the endpoint has no outcomes yet.
func (s *health) Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error) {
	r, err := s.pool.Query(ctx, selectHealth+` WHERE endpoint_id = $1`, [16]byte(id))
	if err != nil {
		return nil, failed("read health", err)
	}
	h, err := pgx.CollectExactlyOneRow(r, scanHealth)
	if !errors.Is(err, pgx.ErrNoRows) {
		return h, failed("read health", err)
	}
	var there bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM endpoints WHERE id = $1)`, [16]byte(id)).Scan(&there); err != nil {
		return nil, failed("read health", err)
	}
	if !there {
		return nil, fmt.Errorf("read health: %w", store.ErrNotFound)
	}
	return &godwit.Health{EndpointID: id}, nil
}

// ResetHealth clears failure counts, hold and circuit.
func (s *health) ResetHealth(ctx context.Context, id godwit.EndpointID, now time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE endpoint_health SET `+clearedHealth+`, updated_at = $2 WHERE endpoint_id = $1`, [16]byte(id), now)
	return failed("reset health", err)
}
