package sqlitestore

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/internal/record"
)

// Options configure a store.
type Options struct {
	// BusyTimeout is how long a writer waits for another process. Defaults to 10 seconds.
	BusyTimeout time.Duration
	// NoMigrate creates no tables: they exist already, made from [Schema]. Defaults to false.
	NoMigrate bool
}

// connections of a database that Open opens: one that writes, and some that read beside it.
const connections = 8

// Schema makes the tables.
//
//go:embed schema.sql
var Schema string

// Store is a store and an inbox in SQLite. It may be used concurrently.
type Store struct {
	db   *sql.DB
	own  bool
	turn chan struct{} // holds a token while a goroutine of this process writes: waiting here is fair, waiting in SQLite is not
}

var (
	_ receiver.Transactor    = (*Store)(nil)
	_ receiver.JobTransactor = (*Store)(nil)
)

// Open opens a database file, and creates it if needed. Every commit is on disk before it is reported.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 10 * time.Second
	}
	query := url.Values{
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)"},
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections) // opening one costs more than most statements
	s, err := New(ctx, db, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.own = true
	return s, nil
}

// New keeps the store in the application's own database, opened with the driver "sqlite". It should be in WAL mode, with a busy
// timeout; BusyTimeout does not apply.
func New(ctx context.Context, db *sql.DB, o Options) (*Store, error) {
	s := &Store{db: db, turn: make(chan struct{}, 1)}
	if o.NoMigrate {
		return s, nil
	}
	if _, err := db.ExecContext(ctx, Schema); err != nil {
		return nil, fmt.Errorf("make tables: %w", err)
	}
	return s, nil
}

// DB is the database.
func (s *Store) DB() *sql.DB { return s.db }

// Close closes the database, if Open has opened it.
func (s *Store) Close() error {
	if !s.own {
		return nil
	}
	return s.db.Close()
}

func (s *Store) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait to write: %w", context.Cause(ctx))
	}
}

func (s *Store) unlock() { <-s.turn }

// write runs one statement and returns how many rows it changed.
func (s *Store) write(ctx context.Context, statement string, args ...any) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.unlock()
	return changed(s.db.ExecContext(ctx, statement, args...))
}

func changed(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Reserve implements [receiver.Store]. It reads before it writes: a repeat does not wait for the writer.
func (s *Store) Reserve(ctx context.Context, r receiver.Reserve) (receiver.Reservation, error) {
	scope := r.Scope.String()
	for {
		var row record.Row
		err := s.db.QueryRowContext(ctx, `SELECT fingerprint, status, headers, body, until FROM webhook_receipts WHERE scope = ?`, scope).
			Scan(&row.Fingerprint, &row.Status, &row.Headers, &row.Body, &row.Until)
		switch {
		case err == nil && row.Live(r.Now):
			return row.Reservation()
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return receiver.Reservation{}, fmt.Errorf("look up key: %w", err)
		}
		n, err := s.write(ctx, `INSERT INTO webhook_receipts AS held (scope, fingerprint, token, until) VALUES (?, ?, ?, ?)
ON CONFLICT (scope) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token, until = excluded.until,
  status = NULL, headers = NULL, body = NULL
WHERE held.until <= ?`, scope, record.Digest(r.Fingerprint), r.Token, record.Millis(r.LeaseUntil), record.Millis(r.Now))
		if err != nil {
			return receiver.Reservation{}, fmt.Errorf("take key: %w", err)
		}
		if n == 1 {
			return receiver.Reservation{State: receiver.Reserved}, nil
		}
		// Another caller was faster: look again.
	}
}

const completeKey = `UPDATE webhook_receipts SET status = ?, headers = ?, body = ?, until = ?
WHERE scope = ? AND token = ? AND status IS NULL`

func completeArgs(h receiver.Hold, c receiver.Completion) ([]any, error) {
	headers, err := record.Header(c.Header)
	return []any{c.Status, headers, record.Body(c.Body), record.Millis(c.Until), h.Scope.String(), h.Token}, err
}

// Complete implements [receiver.Store].
func (s *Store) Complete(ctx context.Context, h receiver.Hold, c receiver.Completion) (bool, error) {
	args, err := completeArgs(h, c)
	if err != nil {
		return false, fmt.Errorf("complete key: %w", err)
	}
	n, err := s.write(ctx, completeKey, args...)
	if err != nil {
		return false, fmt.Errorf("complete key: %w", err)
	}
	return n == 1, nil
}

// Release implements [receiver.Store].
func (s *Store) Release(ctx context.Context, h receiver.Hold) error {
	_, err := s.write(ctx, `DELETE FROM webhook_receipts WHERE scope = ? AND token = ? AND status IS NULL`, h.Scope.String(), h.Token)
	if err != nil {
		return fmt.Errorf("release key: %w", err)
	}
	return nil
}

// Remember implements [receiver.Store].
func (s *Store) Remember(ctx context.Context, value receiver.Digest, until, now time.Time) (bool, error) {
	n, err := s.write(ctx, `INSERT INTO webhook_nonces AS known (value, until) VALUES (?, ?)
ON CONFLICT (value) DO UPDATE SET until = excluded.until WHERE known.until <= ?`, value.String(), record.Millis(until), record.Millis(now))
	if err != nil {
		return false, fmt.Errorf("remember value: %w", err)
	}
	return n == 1, nil
}

// Purge implements [receiver.Store].
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	total := 0
	for _, statement := range []string{
		`DELETE FROM webhook_receipts WHERE scope IN (SELECT scope FROM webhook_receipts WHERE until <= ? LIMIT ?)`,
		`DELETE FROM webhook_nonces WHERE value IN (SELECT value FROM webhook_nonces WHERE until <= ? LIMIT ?)`,
	} {
		n, err := s.write(ctx, statement, record.Millis(now), limit-total)
		if err != nil {
			return total, fmt.Errorf("purge: %w", err)
		}
		total += int(n)
	}
	return total, nil
}
