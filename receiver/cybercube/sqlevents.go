package cybercube

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Dialect is a kind of database.
type Dialect int

// The kinds. SQLite needs 3.35 or newer.
const (
	SQLite Dialect = iota + 1
	Postgres
)

// SQLEvents remembers events in the standard's table processed_webhook_events (CCW-IDM-8). A pending row is the lock, and its
// time of receipt is the holder's token: another holder takes a row over only when that time is old enough, and sets a new one.
// It may be used concurrently.
type SQLEvents struct {
	db      *sql.DB
	dialect Dialect
}

// Schema makes the standard's table (CCW-IDM-8).
func Schema(d Dialect) string {
	now := "now()"
	if d == SQLite {
		now = "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))"
	}
	return `CREATE TABLE IF NOT EXISTS processed_webhook_events (
  event_id VARCHAR(30) PRIMARY KEY,
  event_type VARCHAR(100) NOT NULL,
  received_at TIMESTAMPTZ NOT NULL DEFAULT ` + now + `,
  processed_at TIMESTAMPTZ,
  processing_status VARCHAR(20) NOT NULL DEFAULT 'pending',
  result TEXT
);
CREATE INDEX IF NOT EXISTS idx_received_at ON processed_webhook_events (received_at);`
}

// migration is the advisory lock for creating the table: "cybercub" in ASCII.
const migration = 0x6379626572637562

// NewSQLEvents creates the table, if needed, in a database opened with database/sql.
func NewSQLEvents(ctx context.Context, db *sql.DB, d Dialect) (*SQLEvents, error) {
	if d != SQLite && d != Postgres {
		return nil, errors.New("make table of events: unknown dialect")
	}
	s := &SQLEvents{db, d}
	schema := Schema(d)
	if d == Postgres { // processes that start together would conflict; without arguments it is one transaction
		schema = fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);\n", migration) + schema
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("make table of events: %w", err)
	}
	return s, nil
}

// stampLayout has a fixed width, so that its texts sort as the times do.
const stampLayout = "2006-01-02T15:04:05.000000Z"

// stamp is a time in the form and precision of the database.
func (s *SQLEvents) stamp(t time.Time) any {
	t = t.UTC().Truncate(time.Microsecond)
	if s.dialect == SQLite {
		return t.Format(stampLayout)
	}
	return t
}

// query replaces ?1, ?2 by the dialect's placeholders.
func (s *SQLEvents) query(text string) string {
	if s.dialect == SQLite {
		return text
	}
	return strings.ReplaceAll(text, "?", "$")
}

func (s *SQLEvents) change(ctx context.Context, text string, args ...any) (int, error) {
	result, err := s.db.ExecContext(ctx, s.query(text), args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Get implements [Events].
func (s *SQLEvents) Get(ctx context.Context, eventID string) (*ProcessedEvent, error) {
	var at any
	var result sql.NullString
	err := s.db.QueryRowContext(ctx, s.query(`SELECT processed_at, result FROM processed_webhook_events
WHERE event_id = ?1 AND processing_status = 'processed'`), eventID).Scan(&at, &result)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	processedAt, err := readStamp(at)
	return &ProcessedEvent{eventID, processedAt, result.String}, err
}

func readStamp(v any) (time.Time, error) {
	switch v := v.(type) {
	case time.Time:
		return v, nil
	case string:
		return time.Parse(time.RFC3339, v)
	}
	return time.Time{}, fmt.Errorf("read time: %T", v)
}

// Lock implements [Events].
func (s *SQLEvents) Lock(ctx context.Context, e *Event, now, expired time.Time) (string, bool, error) {
	n, err := s.change(ctx, `INSERT INTO processed_webhook_events AS held (event_id, event_type, received_at) VALUES (?1, ?2, ?3)
ON CONFLICT (event_id) DO UPDATE SET received_at = excluded.received_at
WHERE held.processing_status = 'pending' AND held.received_at <= ?4`, e.ID, e.Type, s.stamp(now), s.stamp(expired))
	return now.UTC().Format(stampLayout), n == 1, err
}

// token reads the time in a token.
func (s *SQLEvents) token(token string) (any, error) {
	t, err := time.Parse(stampLayout, token)
	return s.stamp(t), err
}

// MarkProcessed implements [Events].
func (s *SQLEvents) MarkProcessed(ctx context.Context, eventID, token, result string, now time.Time) (bool, error) {
	held, err := s.token(token)
	if err != nil {
		return false, err
	}
	n, err := s.change(ctx, `UPDATE processed_webhook_events SET processing_status = 'processed', processed_at = ?1, result = ?2
WHERE event_id = ?3 AND processing_status = 'pending' AND received_at = ?4`, s.stamp(now), result, eventID, held)
	return n == 1, err
}

// ReleaseLock implements [Events].
func (s *SQLEvents) ReleaseLock(ctx context.Context, eventID, token string) error {
	held, err := s.token(token)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, `DELETE FROM processed_webhook_events WHERE event_id = ?1 AND processing_status = 'pending' AND received_at = ?2`,
		eventID, held)
	return err
}

// Cleanup implements [Events].
func (s *SQLEvents) Cleanup(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.change(ctx, `DELETE FROM processed_webhook_events WHERE event_id IN
  (SELECT event_id FROM processed_webhook_events WHERE received_at < ?1 LIMIT ?2)`, s.stamp(before), limit)
}
