package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/store"
)

var _ store.Commands = (*Store)(nil)

const commandColumns = `command_id, status, substatus, outcome_ref, created_at, updated_at, ttl_expires_at, lease_until, version,
	fingerprint, mac, document, outcome, envelope, tenant, idempotency_key`

// commandRest is what a record has beside its columns.
type commandRest struct {
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

// commandValues are the arguments for commandColumns.
func commandValues(r *command.Record) ([]driver.Value, error) {
	rest := commandRest{
		KeyVersion: r.KeyVersion, Intent: r.Intent, Class: r.Class, Actor: r.Actor, Principal: r.Principal, Owner: r.Owner, Try: r.Try,
		Previous: r.Previous, Confirmation: r.Confirmation,
	}
	for i := range r.Ledger {
		rest.Ledger = append(rest.Ledger, ledgerEntry{r.Ledger[i], r.Ledger[i].Result})
	}
	document, err := json.Marshal(&rest)
	if err != nil {
		return nil, fmt.Errorf("encode command record: %w", err)
	}
	return []driver.Value{
		r.CommandID, string(r.Status), string(r.Substatus), r.OutcomeRef, micros(r.CreatedAt), micros(r.UpdatedAt), micros(r.ExpiresAt),
		micros(r.LeaseUntil), r.Version, r.Fingerprint, r.MAC, string(document), r.Outcome, r.Envelope, r.Tenant, r.Key,
	}, nil
}

func scanCommand(r *rows) *command.Record {
	var rest commandRest
	if r.parse(11, &rest) != nil {
		// Somebody else has been at it, which the record's MAC tells whoever goes by it. An error here would hit everybody in the
		// same batch or list.
		rest = commandRest{}
	}
	record := &command.Record{
		Tenant: r.text(14), Key: r.text(15), KeyVersion: rest.KeyVersion, CommandID: r.text(0), Intent: rest.Intent, Class: rest.Class,
		Actor: rest.Actor, Principal: rest.Principal, Fingerprint: r.text(9), Status: command.Status(r.text(1)),
		Substatus: command.Substatus(r.text(2)), OutcomeRef: r.text(3), Outcome: r.blob(12), CreatedAt: r.time(4), UpdatedAt: r.time(5),
		ExpiresAt: r.time(6), Owner: rest.Owner, LeaseUntil: r.time(7), Try: rest.Try, Envelope: r.blob(13),
		Confirmation: rest.Confirmation, Previous: rest.Previous, Version: r.int(8), MAC: r.blob(10),
	}
	for i := range rest.Ledger {
		rest.Ledger[i].LedgerEntry.Result = rest.Ledger[i].Result
		record.Ledger = append(record.Ledger, rest.Ledger[i].LedgerEntry)
	}
	return record
}

const (
	insertCommand = "INSERT INTO command_records (" + commandColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	updateCommand = `UPDATE command_records SET command_id = ?, status = ?, substatus = ?, outcome_ref = ?, created_at = ?, updated_at = ?,
		ttl_expires_at = ?, lease_until = ?, version = ?, fingerprint = ?, mac = ?, document = ?, outcome = ?, envelope = ?
		WHERE tenant = ? AND idempotency_key = ?`
	underKey     = "SELECT " + commandColumns + " FROM command_records WHERE tenant = ? AND idempotency_key = ?"
	underCommand = "SELECT " + commandColumns + " FROM command_records WHERE tenant = ? AND command_id = ? ORDER BY created_at LIMIT 1"
	lostCommands = "SELECT " + commandColumns + ` FROM command_records
		WHERE status = 'in_progress' AND substatus <> 'awaiting_confirmation' AND lease_until <= ? ORDER BY lease_until LIMIT ?`
	allCommands  = "SELECT " + commandColumns + " FROM command_records WHERE (tenant, idempotency_key) > (?, ?) ORDER BY tenant, idempotency_key LIMIT ?"
	sweepExpired = `DELETE FROM command_records WHERE rowid IN (SELECT rowid FROM command_records
		WHERE status <> 'in_progress' AND ttl_expires_at > 0 AND ttl_expires_at <= ? ORDER BY ttl_expires_at LIMIT ?)`
	sweepUnconfirmed = `DELETE FROM command_records WHERE rowid IN (SELECT rowid FROM command_records
		WHERE status = 'in_progress' AND substatus = 'awaiting_confirmation' AND lease_until <= ? ORDER BY lease_until LIMIT ?)`
)

// putCommand stores a record, in place of the one that is there.
func putCommand(c *conn, r *command.Record, there bool) error {
	query := insertCommand
	if there {
		query = updateCommand
	}
	args, err := commandValues(r)
	if err != nil {
		return err
	}
	_, err = c.exec(query, args...)
	return err
}

// readCommand returns nil where there is none.
func readCommand(ctx context.Context, c *conn, query, tenant, id string) (record *command.Record, err error) {
	_, err = c.one(ctx, query, []driver.Value{tenant, id}, func(r *rows) { record = scanCommand(r) })
	return record, err
}

// Find returns the record under a key.
func (s *Store) Find(ctx context.Context, tenant, key string) (*command.Record, error) {
	return s.findCommand(ctx, underKey, tenant, key)
}

// FindCommand returns the record of a command. Where several have its id it is the earliest.
func (s *Store) FindCommand(ctx context.Context, tenant, commandID string) (*command.Record, error) {
	return s.findCommand(ctx, underCommand, tenant, commandID)
}

func (s *Store) findCommand(ctx context.Context, query, tenant, id string) (record *command.Record, err error) {
	err = s.read(ctx, "find command", func(c *conn) error {
		record, err = readCommand(ctx, c, query, tenant, id)
		return err
	})
	return record, err
}

// Lost lists records whose holder's lease is over, earliest first.
func (s *Store) Lost(ctx context.Context, now time.Time, limit int) ([]command.Record, error) {
	return s.listCommands(ctx, "list lost commands", lostCommands, micros(now), int64(max(limit, 0)))
}

// Records lists records by tenant and key, after the given ones.
func (s *Store) Records(ctx context.Context, tenant, key string, limit int) ([]command.Record, error) {
	return s.listCommands(ctx, "list commands", allCommands, tenant, key, int64(max(limit, 0)))
}

func (s *Store) listCommands(ctx context.Context, what, query string, args ...driver.Value) (list []command.Record, err error) {
	err = s.read(ctx, what, func(c *conn) error {
		return c.each(ctx, query, args, func(r *rows) error {
			list = append(list, *scanCommand(r))
			return nil
		})
	})
	return list, err
}

// SweepRecords removes records that are free: see command.Record.FreeAt.
func (s *Store) SweepRecords(ctx context.Context, now time.Time, limit int) (int, error) {
	var removed int64
	err := s.write(ctx, "sweep command records", func(c *conn) error {
		removed = 0
		for _, query := range []string{sweepExpired, sweepUnconfirmed} {
			n, err := c.exec(query, micros(now), max(int64(limit)-removed, 0))
			if err != nil {
				return err
			}
			removed += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int(removed), nil
}
