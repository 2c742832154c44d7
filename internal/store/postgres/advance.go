package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

// Advance applies steps in one transaction. If they have other effects than new events, or need heads and records that this
// node did not store last, it takes two round trips:
//
//	BEGIN ─ lock the heads of the tenants ─ read the records ─► steps, in memory ─► events ─ records ─ evidence ─ heads ─ COMMIT
//
// The lock on the heads makes the transactions of a tenant take turns, so that the records cannot change until the end.
//
// Otherwise Advance assumes that heads and records are as this node stored them, and that keys it does not know are free. It
// then takes one round trip. The database checks the assumption while it holds the same locks:
//
//	steps, in memory ─► lock the heads ─ heads as assumed? ─ events ─ records as assumed? ─ evidence
//
// In both cases Advance assumes that events are new. If the database reports that an assumption is wrong, Advance rolls back
// and repeats the transaction without it.
func (s *commands) Advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("advance commands", err)
	}
	defer conn.Release()
	t := &transaction{conn: conn.Conn(), now: now, known: s.recent.assume(now, steps)}
	results, err := t.advance(ctx, steps)
	if t.known != nil && (outdated(err) || errors.Is(err, errUnchecked)) {
		if outdated(err) {
			s.recent.wrong(steps)
		}
		t = &transaction{conn: conn.Conn(), now: now}
		results, err = t.advance(ctx, steps)
	}
	if t.deferred && sqlState(err) == stateUniqueViolation {
		t = &transaction{conn: conn.Conn(), now: now, careful: true}
		results, err = t.advance(ctx, steps)
	}
	if err == nil {
		err = s.awaitReplicas(ctx, conn.Conn())
	}
	if err != nil {
		s.recent.forget(steps)
		return nil, hotFailed("advance commands", err)
	}
	s.recent.stored(t)
	return results, nil
}

// errUnchecked reports a step that stored nothing under its key, so that the database did not check what was assumed of it.
var errUnchecked = errors.New("an assumption was not checked")

// outdated reports whether a transaction was rolled back because heads or records were not as assumed.
func outdated(err error) bool {
	switch sqlState(err) {
	case stateUniqueViolation, stateRecordMoved, stateSerialization:
		return true
	}
	return false
}

// begin names the isolation level: each statement must see rows that were committed while it waited for its locks.
const begin = `BEGIN ISOLATION LEVEL READ COMMITTED`

// abandonTimeout bounds a rollback. A connection that did not roll back is closed.
const abandonTimeout = 5 * time.Second

// abandon rolls back an open transaction that failed, even if the caller's context has ended.
func abandon(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	conn.Exec(ctx, `ROLLBACK`)
}

// transaction is a transaction of commands on a hot connection.
type transaction struct {
	conn *pgx.Conn
	now  time.Time

	// known holds assumed heads and records. The transaction then neither reads nor writes before its commit.
	known *command.Snapshot
	named int // keys that the steps name
	read  command.Snapshot
	wrote *command.Writes

	// careful makes Publish check for stored events before it inserts. Other transactions defer the insert to the commit.
	careful  bool
	deferred bool       // events were deferred
	outbox   []newEvent // deferred events

	marked int  // length of outbox at the savepoint
	wanted bool // the database has no savepoint yet, because nothing was written since
	set    bool // the database has a savepoint
	dirty  bool // the database has writes after the savepoint
}

func (t *transaction) advance(ctx context.Context, steps []*command.Step) ([]command.Result, error) {
	results, err := command.Advance(ctx, t, t.now, steps)
	if err != nil {
		abandon(ctx, t.conn)
	}
	return results, err
}

func (t *transaction) Read(ctx context.Context, tenants []string, records []command.RecordID) (command.Snapshot, error) {
	if t.known != nil {
		t.named = len(records)
		return *t.known, nil
	}
	t.read = command.Snapshot{Heads: map[string]evidence.Head{}, Records: make(map[command.RecordID]*command.Record, len(records))}
	p := newPipeline(ctx, t.conn.PgConn())
	p.command(begin)
	addLock(p, sorted(tenants), t.read.Heads)
	if len(records) > 0 {
		addRecordIDs(p.begin(), records)
		p.add(lockCommands, func(r *row) {
			record := readCommand(r)
			t.read.Records[command.RecordID{Tenant: record.Tenant, Key: record.Key}] = record
		})
	}
	return t.read, p.run()
}

// Commit stores everything in one round trip. With nothing to store, it ends the transaction without waiting for the disk.
func (t *transaction) Commit(ctx context.Context, w *command.Writes) error {
	t.wrote = w
	if t.known != nil {
		return t.commitAssumed(ctx, w)
	}
	p := newPipeline(ctx, t.conn.PgConn())
	addOutbox(p, t.outbox, t.now)
	addCommands(p, w.Records)
	addEvidence(p, w.Items)
	addHeads(p, w.Heads)
	if w.Empty() {
		p.command(`ROLLBACK`)
	} else {
		p.command(`COMMIT`)
	}
	return p.run()
}

// commitAssumed stores everything in a transaction of its own, unless heads or records are not as assumed.
func (t *transaction) commitAssumed(ctx context.Context, w *command.Writes) error {
	if len(w.Records) != t.named {
		return errUnchecked
	}
	if w.Empty() {
		return nil
	}
	tenants := make([]string, 0, len(t.known.Heads))
	for tenant := range t.known.Heads {
		tenants = append(tenants, tenant)
	}
	p := newPipeline(ctx, t.conn.PgConn())
	if len(tenants) > 1 || len(w.Heads) == 0 { // else moving the head locks it
		addHeadLock(p, sorted(tenants))
	}
	addAssumedHeads(p, w.Heads, t.known.Heads)
	addOutbox(p, t.outbox, t.now)
	addAssumedCommands(p, w.Records, t.known.Records)
	addEvidence(p, w.Items)
	return p.run()
}

func (t *transaction) Bulk() bool { return true }

// Savepoint defers the savepoint until an effect writes to the database.
func (t *transaction) Savepoint(context.Context) error {
	t.marked, t.wanted, t.dirty = len(t.outbox), true, false
	return nil
}

// Release keeps the savepoint in the database until the next one or the commit.
func (t *transaction) Release(context.Context) error { return nil }

func (t *transaction) RollBack(ctx context.Context) error {
	t.outbox = t.outbox[:t.marked]
	if !t.dirty {
		return nil
	}
	t.wanted, t.dirty = true, false
	return t.run(ctx, `ROLLBACK TO SAVEPOINT effects`)
}

func (t *transaction) run(ctx context.Context, sql string) error {
	_, err := t.conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}
