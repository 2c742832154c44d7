package postgresstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/internal/record"
)

// DB is a connection pool; *pgxpool.Pool is one.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options configure a store.
type Options struct {
	// NoMigrate creates no tables: they exist already, made from [Schema]. Defaults to false.
	NoMigrate bool
}

// Schema makes the tables.
//
//go:embed schema.sql
var Schema string

// migration is the advisory lock for creating tables: two processes that create them at once would conflict. The number is
// "godwitrx" in ASCII.
const migration = 0x676f647769747278

// Store is a store and an inbox in PostgreSQL. It may be used concurrently.
type Store struct{ db DB }

var (
	_ receiver.Transactor    = (*Store)(nil)
	_ receiver.JobTransactor = (*Store)(nil)
)

// New makes a store in a database.
func New(ctx context.Context, db DB, o Options) (*Store, error) {
	s := &Store{db}
	if o.NoMigrate {
		return s, nil
	}
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migration)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, Schema)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make tables: %w", err)
	}
	return s, nil
}

// Reserve implements [receiver.Store].
func (s *Store) Reserve(ctx context.Context, r receiver.Reserve) (receiver.Reservation, error) {
	scope := r.Scope.String()
	for {
		tag, err := s.db.Exec(ctx, `INSERT INTO webhook_receipts AS held (scope, fingerprint, token, until) VALUES ($1, $2, $3, $4)
ON CONFLICT (scope) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token, until = excluded.until,
  status = NULL, headers = NULL, body = NULL
WHERE held.until <= $5`, scope, record.Digest(r.Fingerprint), r.Token, record.Millis(r.LeaseUntil), record.Millis(r.Now))
		if err != nil {
			return receiver.Reservation{}, fmt.Errorf("take key: %w", err)
		}
		if tag.RowsAffected() == 1 {
			return receiver.Reservation{State: receiver.Reserved}, nil
		}
		var row record.Row
		err = s.db.QueryRow(ctx, `SELECT fingerprint, status, headers, body, until FROM webhook_receipts WHERE scope = $1`, scope).
			Scan(&row.Fingerprint, &row.Status, &row.Headers, &row.Body, &row.Until)
		switch {
		case err == nil:
			return row.Reservation()
		case !errors.Is(err, pgx.ErrNoRows):
			return receiver.Reservation{}, fmt.Errorf("look up key: %w", err)
		}
		// Released between the two statements: try again.
	}
}

const completeKey = `UPDATE webhook_receipts SET status = $1, headers = $2, body = $3, until = $4
WHERE scope = $5 AND token = $6 AND status IS NULL`

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
	tag, err := s.db.Exec(ctx, completeKey, args...)
	if err != nil {
		return false, fmt.Errorf("complete key: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Release implements [receiver.Store].
func (s *Store) Release(ctx context.Context, h receiver.Hold) error {
	_, err := s.db.Exec(ctx, `DELETE FROM webhook_receipts WHERE scope = $1 AND token = $2 AND status IS NULL`, h.Scope.String(), h.Token)
	if err != nil {
		return fmt.Errorf("release key: %w", err)
	}
	return nil
}

// Remember implements [receiver.Store].
func (s *Store) Remember(ctx context.Context, value receiver.Digest, until, now time.Time) (bool, error) {
	tag, err := s.db.Exec(ctx, `INSERT INTO webhook_nonces AS known (value, until) VALUES ($1, $2)
ON CONFLICT (value) DO UPDATE SET until = excluded.until WHERE known.until <= $3`, value.String(), record.Millis(until), record.Millis(now))
	if err != nil {
		return false, fmt.Errorf("remember value: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Purge implements [receiver.Store].
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	total := 0
	for _, statement := range []string{
		`DELETE FROM webhook_receipts WHERE scope IN (SELECT scope FROM webhook_receipts WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`,
		`DELETE FROM webhook_nonces WHERE value IN (SELECT value FROM webhook_nonces WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`,
	} {
		tag, err := s.db.Exec(ctx, statement, record.Millis(now), limit-total)
		if err != nil {
			return total, fmt.Errorf("purge: %w", err)
		}
		total += int(tag.RowsAffected())
	}
	return total, nil
}
