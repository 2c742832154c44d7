package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
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
	// lostAt and freeAt say of a record what command.Record.FreeAt and Store.Lost do; $1 is now.
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
	// The condition stands in both: a record may have been given to a new command since it was selected.
	s.sweep = s.in(`DELETE FROM ~command_records WHERE ` + freeAt + ` AND (tenant, idempotency_key) IN
		(SELECT tenant, idempotency_key FROM ~command_records WHERE ` + freeAt + ` LIMIT $2)`)
}

// document is what a record has beside its columns.
type document struct {
	KeyVersion   int                   `json:"key_version,omitempty"`
	Intent       command.Intent        `json:"intent,omitzero"`
	Class        command.Class         `json:"class,omitempty"`
	Actor        string                `json:"actor,omitempty"`
	Principal    string                `json:"principal,omitempty"`
	Owner        string                `json:"owner,omitempty"`
	Try          int                   `json:"try,omitempty"`
	Previous     string                `json:"previous,omitempty"`
	Confirmation *command.Confirmation `json:"confirmation,omitempty"`
	Ledger       []ledgerEntry         `json:"ledger,omitempty"`
}

// A ledgerEntry keeps a provider's answer to the byte, where JSON within JSON would be compacted.
type ledgerEntry struct {
	command.LedgerEntry
	Result []byte `json:"result,omitempty"` // in place of the entry's
}

// values are the arguments for columns.
func values(r *command.Record) ([]any, error) {
	for _, text := range []string{r.Tenant, r.Key, r.CommandID, r.OutcomeRef, r.Fingerprint} {
		if !storable(text) {
			return nil, fmt.Errorf("encode command record: %q is not text", text)
		}
	}
	d := document{
		KeyVersion: r.KeyVersion, Intent: r.Intent, Class: r.Class, Actor: r.Actor, Principal: r.Principal, Owner: r.Owner, Try: r.Try,
		Previous: r.Previous, Confirmation: r.Confirmation,
	}
	for i := range r.Ledger {
		d.Ledger = append(d.Ledger, ledgerEntry{r.Ledger[i], r.Ledger[i].Result})
	}
	text, err := json.Marshal(&d)
	if err != nil {
		return nil, fmt.Errorf("encode command record: %w", err)
	}
	return []any{
		r.Tenant, r.Key, r.CommandID, string(r.Status), string(r.Substatus), r.OutcomeRef, micros(r.CreatedAt), micros(r.UpdatedAt),
		micros(r.ExpiresAt), micros(r.LeaseUntil), r.Version, r.Fingerprint, r.MAC, string(text), r.Outcome, r.Envelope,
	}, nil
}

// storable reports whether every database takes a text as it is.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

func scanRecord(scan func(...any) error) (*command.Record, error) {
	var (
		r                                command.Record
		created, updated, expires, lease int64
		text                             string
		d                                document
	)
	err := scan(&r.Tenant, &r.Key, &r.CommandID, &r.Status, &r.Substatus, &r.OutcomeRef, &created, &updated, &expires, &lease, &r.Version,
		&r.Fingerprint, &r.MAC, &text, &r.Outcome, &r.Envelope)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal([]byte(text), &d) != nil {
		// Somebody else has been at it, which the record's MAC tells whoever goes by it. An error here would hit everybody in the
		// same batch or list.
		d = document{}
	}
	r.CreatedAt, r.UpdatedAt, r.ExpiresAt, r.LeaseUntil = fromMicros(created), fromMicros(updated), fromMicros(expires), fromMicros(lease)
	r.KeyVersion, r.Intent, r.Class, r.Actor, r.Principal = d.KeyVersion, d.Intent, d.Class, d.Actor, d.Principal
	r.Owner, r.Try, r.Previous, r.Confirmation = d.Owner, d.Try, d.Previous, d.Confirmation
	for i := range d.Ledger {
		d.Ledger[i].LedgerEntry.Result = d.Ledger[i].Result
		r.Ledger = append(r.Ledger, d.Ledger[i].LedgerEntry)
	}
	return &r, nil
}

// one reads a record, nil where there is none.
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

// FindCommand returns the record of a command. Where several have its id it is the earliest.
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

// Lost lists records whose holder's lease is over, earliest first.
func (s *Store) Lost(ctx context.Context, now time.Time, limit int) ([]command.Record, error) {
	return s.list(ctx, s.lost, micros(now), max(limit, 0))
}

// Records lists records by key and tenant, as their index has them, after the given ones.
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

// SweepRecords removes records that are free: see command.Record.FreeAt.
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
