package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/command"
)

const (
	columns = `tenant, idempotency_key, command_id, status, substatus, outcome_ref, created_at, updated_at, ttl_expires_at,
		lease_until, version, fingerprint, mac, document, outcome, envelope`
	// lostAt and freeAt are the conditions of Store.Lost and command.Record.FreeAt; $1 is now.
	lostAt = `status = 'in_progress' AND substatus <> 'awaiting_confirmation' AND lease_until <= $1`
	freeAt = `(status <> 'in_progress' AND ttl_expires_at > 0 AND ttl_expires_at <= $1
		OR status = 'in_progress' AND substatus = 'awaiting_confirmation' AND lease_until <= $1)`
)

func (s *Store) recordStatements() {
	underKey := `SELECT ` + columns + ` FROM ~command_records WHERE tenant = $1 AND idempotency_key = $2`
	s.findKey = s.in(underKey)
	s.lockKey = s.in(underKey + s.forUpdate())
	s.findCommand = s.in(`SELECT ` + columns + ` FROM ~command_records WHERE tenant = $1 AND command_id = $2 ORDER BY created_at LIMIT 1`)
	s.put = s.in(`INSERT INTO ~command_records (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
		ON CONFLICT (idempotency_key, tenant) DO UPDATE SET command_id = excluded.command_id, status = excluded.status,
		substatus = excluded.substatus, outcome_ref = excluded.outcome_ref, created_at = excluded.created_at, updated_at = excluded.updated_at,
		ttl_expires_at = excluded.ttl_expires_at, lease_until = excluded.lease_until, version = excluded.version,
		fingerprint = excluded.fingerprint, mac = excluded.mac, document = excluded.document, outcome = excluded.outcome,
		envelope = excluded.envelope`)
	s.lost = s.in(`SELECT ` + columns + ` FROM ~command_records WHERE ` + lostAt + ` ORDER BY lease_until LIMIT $2`)
	s.all = s.in(`SELECT ` + columns + ` FROM ~command_records WHERE (idempotency_key, tenant) > ($1, $2) ORDER BY idempotency_key, tenant LIMIT $3`)
	// The condition is in both statements: a new command may have taken the key since the record was selected.
	s.sweep = s.in(`DELETE FROM ~command_records WHERE ` + freeAt + ` AND (tenant, idempotency_key) IN
		(SELECT tenant, idempotency_key FROM ~command_records WHERE ` + freeAt + ` LIMIT $2)`)
}

// values are the arguments for columns.
func values(r *command.RecordWrite) []any {
	return []any{
		r.Tenant, r.Key, r.CommandID, string(r.Status), string(r.Substatus), r.OutcomeRef, micros(r.CreatedAt), micros(r.UpdatedAt),
		micros(r.ExpiresAt), micros(r.LeaseUntil), r.Version, r.Fingerprint, r.MAC, string(r.Document), r.Outcome, r.Envelope,
	}
}

// storable reports whether every database stores a text unchanged.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

func scanRecord(scan func(...any) error) (*command.Record, error) {
	var (
		r                                command.Record
		created, updated, expires, lease int64
		text                             string
	)
	err := scan(&r.Tenant, &r.Key, &r.CommandID, &r.Status, &r.Substatus, &r.OutcomeRef, &created, &updated, &expires, &lease, &r.Version,
		&r.Fingerprint, &r.MAC, &text, &r.Outcome, &r.Envelope)
	if err != nil {
		return nil, err
	}
	r.CreatedAt, r.UpdatedAt, r.ExpiresAt, r.LeaseUntil = fromMicros(created), fromMicros(updated), fromMicros(expires), fromMicros(lease)
	r.SetDocument([]byte(text))
	return &r, nil
}

// one reads a record; nil if there is none.
func one(row *sql.Row) (*command.Record, error) {
	r, err := scanRecord(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return r, err
}

// Find returns the record under a key.
func (s *Store) Find(ctx context.Context, tenant, key string) (*command.Record, error) {
	return s.find(ctx, s.findKey, tenant, key)
}

// FindCommand returns the record of a command: the earliest one, if several have its id.
func (s *Store) FindCommand(ctx context.Context, tenant, commandID string) (*command.Record, error) {
	return s.find(ctx, s.findCommand, tenant, commandID)
}

func (s *Store) find(ctx context.Context, query, tenant, id string) (*command.Record, error) {
	if !storable(tenant) || !storable(id) {
		return nil, nil
	}
	r, err := one(s.db.QueryRowContext(ctx, query, tenant, id))
	if err != nil {
		return nil, fmt.Errorf("find command: %w", err)
	}
	return r, nil
}

// Lost lists records in progress whose lease is over, earliest first.
func (s *Store) Lost(ctx context.Context, now time.Time, limit int) ([]command.Record, error) {
	return s.list(ctx, s.lost, micros(now), max(limit, 0))
}

// Records lists records by key and tenant, the order of their index, after the given ones.
func (s *Store) Records(ctx context.Context, tenant, key string, limit int) ([]command.Record, error) {
	return s.list(ctx, s.all, key, tenant, max(limit, 0))
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]command.Record, error) {
	var list []command.Record
	err := s.rows(ctx, query, args, func(rows *sql.Rows) error {
		r, err := scanRecord(rows.Scan)
		if err == nil {
			list = append(list, *r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list commands: %w", err)
	}
	return list, nil
}

// SweepRecords removes free records: see command.Record.FreeAt.
func (s *Store) SweepRecords(ctx context.Context, now time.Time, limit int) (int, error) {
	s.lock()
	defer s.unlock()
	result, err := s.db.ExecContext(ctx, s.sweep, micros(now), max(limit, 0))
	if err != nil {
		return 0, fmt.Errorf("sweep command records: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}
