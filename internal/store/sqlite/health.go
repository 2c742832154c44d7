package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// health keeps the health of endpoints.
type health struct{ *database }

// Health returns an endpoint's health.
func (s *health) Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error) {
	var h godwit.Health
	err := s.read(ctx, "read health", func(c *conn) (err error) {
		var there bool
		if h, there, err = readHealth(ctx, c, id); err != nil || there {
			return err
		}
		return c.first(ctx, "SELECT 1 FROM endpoints WHERE id = ?", ids(id[:]), func(*rows) error { return nil })
	})
	if err != nil {
		return nil, err
	}
	return &h, nil
}

const healthColumns = `consecutive_failures, consecutive_terminal, accepted, transient, terminal, last_accepted_at,
	last_failure_at, last_reason, avg_duration_ms, hold_until, sunset_at, circuit_open_at, probe_at, updated_at,
	streak, degraded_at, recent`

func scanHealth(r *rows, h *godwit.Health) error {
	h.ConsecutiveFailures, h.ConsecutiveTerminal = int(r.int(0)), int(r.int(1))
	h.Accepted, h.Transient, h.Terminal = r.int(2), r.int(3), r.int(4)
	h.LastAcceptedAt, h.LastFailureAt, h.LastReason = r.time(5), r.time(6), godwit.Reason(r.text(7))
	h.AvgDurationMS, h.HoldUntil, h.SunsetAt = r.float(8), r.time(9), r.time(10)
	h.CircuitOpenAt, h.ProbeAt, h.UpdatedAt = r.time(11), r.time(12), r.time(13)
	h.Streak, h.DegradedAt = int(r.int(14)), r.time(15)
	return h.Recent.UnmarshalBinary(r.blob(16))
}

func readHealth(ctx context.Context, c *conn, id godwit.EndpointID) (godwit.Health, bool, error) {
	h := godwit.Health{EndpointID: id}
	var parseErr error
	there, err := c.one(ctx, "SELECT "+healthColumns+" FROM health WHERE endpoint_id = ?", ids(id[:]), func(r *rows) { parseErr = scanHealth(r, &h) })
	return h, there, errors.Join(err, parseErr)
}

func putHealth(c *conn, h *godwit.Health) error {
	recent, err := h.Recent.MarshalBinary()
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT OR REPLACE INTO health (endpoint_id, consecutive_failures, consecutive_terminal, accepted, transient,
		terminal, last_accepted_at, last_failure_at, last_reason, avg_duration_ms, hold_until, sunset_at, circuit_open_at, probe_at,
		updated_at, streak, degraded_at, recent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		h.EndpointID[:], int64(h.ConsecutiveFailures), int64(h.ConsecutiveTerminal), h.Accepted, h.Transient, h.Terminal,
		micros(h.LastAcceptedAt), micros(h.LastFailureAt), string(h.LastReason), h.AvgDurationMS, micros(h.HoldUntil),
		micros(h.SunsetAt), micros(h.CircuitOpenAt), micros(h.ProbeAt), micros(h.UpdatedAt),
		int64(h.Streak), micros(h.DegradedAt), recent)
	return err
}

// ResetHealth clears failure counts, hold and circuit.
func (s *health) ResetHealth(ctx context.Context, id godwit.EndpointID, now time.Time) error {
	return s.write(ctx, "reset health", func(c *conn) error { return resetHealth(c, id, micros(now)) })
}

// resetHealth keeps the counts of the last hour: the endpoint stays degraded until failures leave the hour.
func resetHealth(c *conn, id godwit.EndpointID, now int64) error {
	_, err := c.exec(`UPDATE health SET consecutive_failures = 0, consecutive_terminal = 0, streak = 0, hold_until = 0,
		circuit_open_at = 0, probe_at = 0, updated_at = ? WHERE endpoint_id = ?`, now, id[:])
	return err
}
