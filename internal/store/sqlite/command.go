package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/godwit-hq/godwit/command"
)

const commandColumns = `command_id, status, substatus, outcome_ref, created_at, updated_at, ttl_expires_at, lease_until, version,
	fingerprint, mac, document, outcome, envelope, tenant, idempotency_key`

// commandValues are the arguments for commandColumns.
func commandValues(r *command.RecordWrite) []driver.Value {
	return []driver.Value{
		r.CommandID, string(r.Status), string(r.Substatus), r.OutcomeRef, micros(r.CreatedAt), micros(r.UpdatedAt), micros(r.ExpiresAt),
		micros(r.LeaseUntil), r.Version, r.Fingerprint, r.MAC, string(r.Document), r.Outcome, r.Envelope, r.Tenant, r.Key,
	}
}

func scanCommand(r *rows) *command.Record {
	record := &command.Record{
		Tenant: r.text(14), Key: r.text(15), CommandID: r.text(0), Fingerprint: r.text(9), Status: command.Status(r.text(1)),
		Substatus: command.Substatus(r.text(2)), OutcomeRef: r.text(3), Outcome: r.blob(12), CreatedAt: r.time(4), UpdatedAt: r.time(5),
		ExpiresAt: r.time(6), LeaseUntil: r.time(7), Envelope: r.blob(13), Version: r.int(8), MAC: r.blob(10),
	}
	record.SetDocument([]byte(r.text(11)))
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

// putCommand stores a record and replaces the one with the same key.
func putCommand(c *conn, r *command.RecordWrite) error {
	query := insertCommand
	if r.Exists {
		query = updateCommand
	}
	_, err := c.exec(query, commandValues(r)...)
	return err
}

// readCommand returns nil if there is no record.
func readCommand(ctx context.Context, c *conn, query, tenant, id string) (record *command.Record, err error) {
	_, err = c.one(ctx, query, []driver.Value{tenant, id}, func(r *rows) { record = scanCommand(r) })
	return record, err
}

// commands keeps the records of commands and applies their effects.
type commands struct {
	*database
	batches     *batches     // publishes events
	deliveries  *deliveries  // requeues deliveries
	deadLetters *deadLetters // requeues dead letters
}

// Find returns the record under a key.
func (s *commands) Find(ctx context.Context, tenant, key string) (*command.Record, error) {
	return s.findCommand(ctx, underKey, tenant, key)
}

// FindCommand returns the record of a command. If several have its id, it returns the earliest.
func (s *commands) FindCommand(ctx context.Context, tenant, commandID string) (*command.Record, error) {
	return s.findCommand(ctx, underCommand, tenant, commandID)
}

func (s *commands) findCommand(ctx context.Context, query, tenant, id string) (record *command.Record, err error) {
	err = s.read(ctx, "find command", func(c *conn) error {
		record, err = readCommand(ctx, c, query, tenant, id)
		return err
	})
	return record, err
}

// Lost lists records in progress whose lease has expired, earliest first.
func (s *commands) Lost(ctx context.Context, now time.Time, limit int) ([]command.Record, error) {
	return s.listCommands(ctx, "list lost commands", lostCommands, micros(now), int64(max(limit, 0)))
}

// Records lists records by tenant and key, after the given ones.
func (s *commands) Records(ctx context.Context, tenant, key string, limit int) ([]command.Record, error) {
	return s.listCommands(ctx, "list commands", allCommands, tenant, key, int64(max(limit, 0)))
}

func (s *commands) listCommands(ctx context.Context, what, query string, args ...driver.Value) (list []command.Record, err error) {
	err = s.read(ctx, what, func(c *conn) error {
		return c.each(ctx, query, args, func(r *rows) error {
			list = append(list, *scanCommand(r))
			return nil
		})
	})
	return list, err
}

// SweepRecords removes free records: see command.Record.FreeAt.
func (s *commands) SweepRecords(ctx context.Context, now time.Time, limit int) (int, error) {
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
