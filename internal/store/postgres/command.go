package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/command"
)

var commandColumns = []string{
	"tenant text", "idempotency_key text", "command_id text", "status text", "substatus text", "outcome_ref text",
	"created_at timestamptz", "updated_at timestamptz", "ttl_expires_at timestamptz", "lease_until timestamptz", "version int8",
	"fingerprint text", "outcome bytea", "envelope bytea", "document json", "mac bytea",
}

var selectCommands = `SELECT ` + names(commandColumns) + ` FROM command_records`

var (
	// The lock keeps a sweep from removing a free record that a step has read.
	lockCommands = prepared("command_lock", `SELECT `+names(commandColumns)+` FROM `+rows(1, "of text", "under text")+` AS n
		JOIN command_records ON tenant = n.of AND idempotency_key = n.under FOR UPDATE OF command_records`)
	findCommandID = prepared("command_find_id", selectCommands+` WHERE tenant = $1 AND command_id = $2 ORDER BY created_at LIMIT 1`)
	storeCommands = prepared("command_store", insert("command_records", commandColumns...)+
		` ON CONFLICT (tenant, idempotency_key) `+replace(commandColumns))

	insertCommands = prepared("command_insert", insert("command_records", commandColumns...))
	updateCommands = prepared("command_update", `WITH moved AS (UPDATE command_records AS r
			SET (`+names(commandColumns[2:])+`) = ROW(`+prefixed("n.", commandColumns[2:])+`)
			FROM `+rows(1, append(slices.Clone(commandColumns), "was_version int8", "was_mac bytea")...)+` AS n
			WHERE r.tenant = n.tenant AND r.idempotency_key = n.idempotency_key AND r.version = n.was_version
				AND r.mac IS NOT DISTINCT FROM n.was_mac RETURNING 1)
		SELECT expect(count(*), $19, '`+stateRecordMoved+`') FROM moved`)
)

// addCommands stores records, whether the database has one under their key or not.
func addCommands(p *pipeline, list []command.RecordWrite) {
	if len(list) > 0 {
		addColumns(p.begin(), list)
		p.add(storeCommands, nil)
	}
}

// addAssumedCommands stores records in place of those that were under their keys, and fails the transaction if the database
// has others. A version is not enough to compare: a record that another node made anew has the same numbers.
func addAssumedCommands(p *pipeline, list []command.RecordWrite, were map[command.RecordID]*command.Record) {
	was := func(r command.RecordWrite) *command.Record {
		return were[command.RecordID{Tenant: r.Tenant, Key: r.Key}]
	}
	var added, changed []command.RecordWrite
	for _, r := range list {
		if was(r) == nil {
			added = append(added, r)
		} else {
			changed = append(changed, r)
		}
	}
	if len(added) > 0 {
		addColumns(p.begin(), added)
		p.add(insertCommands, nil)
	}
	if len(changed) > 0 {
		a := p.begin()
		addColumns(a, changed)
		column(a, typeInt8, changed, func(r command.RecordWrite) { a.int8(was(r).Version) })
		column(a, typeBytes, changed, func(r command.RecordWrite) { a.optionalBytes(was(r).MAC) })
		a.scalarInt8(int64(len(changed)))
		p.add(updateCommands, nil)
	}
}

// addColumns adds the columns of records, in the order of commandColumns.
func addColumns(a *parameters, list []command.RecordWrite) {
	column(a, typeText, list, func(r command.RecordWrite) { a.text(r.Tenant) })
	column(a, typeText, list, func(r command.RecordWrite) { a.text(r.Key) })
	column(a, typeText, list, func(r command.RecordWrite) { a.text(r.CommandID) })
	column(a, typeText, list, func(r command.RecordWrite) { a.text(string(r.Status)) })
	column(a, typeText, list, func(r command.RecordWrite) { a.text(string(r.Substatus)) })
	column(a, typeText, list, func(r command.RecordWrite) { a.optionalText(r.OutcomeRef) })
	column(a, typeTime, list, func(r command.RecordWrite) { a.time(r.CreatedAt) })
	column(a, typeTime, list, func(r command.RecordWrite) { a.time(r.UpdatedAt) })
	column(a, typeTime, list, func(r command.RecordWrite) { a.time(r.ExpiresAt) })
	column(a, typeTime, list, func(r command.RecordWrite) { a.time(r.LeaseUntil) })
	column(a, typeInt8, list, func(r command.RecordWrite) { a.int8(r.Version) })
	column(a, typeText, list, func(r command.RecordWrite) { a.text(r.Fingerprint) })
	column(a, typeBytes, list, func(r command.RecordWrite) { a.optionalBytes(r.Outcome) })
	column(a, typeBytes, list, func(r command.RecordWrite) { a.optionalBytes(r.Envelope) })
	column(a, typeJSON, list, func(r command.RecordWrite) { a.bytes(r.Document) })
	column(a, typeBytes, list, func(r command.RecordWrite) { a.optionalBytes(r.MAC) })
}

func readCommand(r *row) *command.Record {
	record := &command.Record{
		Tenant: r.text(), Key: r.text(), CommandID: r.text(), Status: command.Status(r.text()), Substatus: command.Substatus(r.text()),
		OutcomeRef: r.text(), CreatedAt: r.time(), UpdatedAt: r.time(), ExpiresAt: r.time(), LeaseUntil: r.time(), Version: r.int8(),
		Fingerprint: r.text(), Outcome: r.bytes(), Envelope: r.bytes(),
	}
	record.SetDocument(r.raw())
	record.MAC = r.bytes()
	return record
}

// commands keeps the records of commands and applies their effects.
type commands struct {
	*database
	lookups lookups // of records by their keys
	recent  *recent // records and heads that this node stored last
}

// Find returns the record under a key, or nil.
func (s *commands) Find(ctx context.Context, tenant, key string) (*command.Record, error) {
	r, err := s.lookups.find(ctx, command.RecordID{Tenant: clean(tenant), Key: clean(key)})
	return r, failed("find command", err)
}

// FindCommand returns the record whose first command has the id, or nil. If several have it, it returns the earliest.
func (s *commands) FindCommand(ctx context.Context, tenant, commandID string) (*command.Record, error) {
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, failed("find command by its id", err)
	}
	defer conn.Release()
	var found *command.Record
	p := newPipeline(ctx, conn.Conn().PgConn())
	a := p.begin()
	a.scalarText(tenant)
	a.scalarText(commandID)
	p.add(findCommandID, func(r *row) { found = readCommand(r) })
	if err := p.run(); err != nil {
		return nil, failed("find command by its id", err)
	}
	return found, nil
}

// Lost lists records in progress whose lease has expired, earliest first.
func (s *commands) Lost(ctx context.Context, now time.Time, limit int) ([]command.Record, error) {
	return s.listCommands(ctx, "list lost commands", ` WHERE lost_at <= $1 ORDER BY lost_at LIMIT $2`, now, max(limit, 0))
}

// Records lists records by key and tenant, the order of their index, after the given ones.
func (s *commands) Records(ctx context.Context, tenant, key string, limit int) ([]command.Record, error) {
	return s.listCommands(ctx, "list commands", ` WHERE (idempotency_key, tenant) > ($1, $2) ORDER BY idempotency_key, tenant LIMIT $3`,
		key, tenant, max(limit, 0))
}

func (s *commands) listCommands(ctx context.Context, what, where string, args ...any) ([]command.Record, error) {
	r, err := s.pool.Query(ctx, selectCommands+where, args...)
	if err != nil {
		return nil, failed(what, err)
	}
	list, err := pgx.CollectRows(r, scanCommand)
	return list, failed(what, err)
}

func scanCommand(r pgx.CollectableRow) (command.Record, error) {
	var record command.Record
	var ref *string
	var document []byte
	err := r.Scan(&record.Tenant, &record.Key, &record.CommandID, &record.Status, &record.Substatus, &ref, scanTime(&record.CreatedAt),
		scanTime(&record.UpdatedAt), scanTime(&record.ExpiresAt), scanTime(&record.LeaseUntil), &record.Version, &record.Fingerprint,
		&record.Outcome, &record.Envelope, &document, &record.MAC)
	if err != nil {
		return record, err
	}
	if ref != nil {
		record.OutcomeRef = *ref
	}
	record.SetDocument(document)
	return record, nil
}

// SweepRecords removes free records, except those that another transaction has locked to replace them.
func (s *commands) SweepRecords(ctx context.Context, now time.Time, limit int) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM command_records WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM command_records WHERE free_at <= $1 ORDER BY free_at LIMIT $2 FOR UPDATE SKIP LOCKED))`, now, max(limit, 0))
	return int(tag.RowsAffected()), failed("sweep commands", err)
}
