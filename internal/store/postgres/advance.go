package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/store"
)

var _ store.Commands = (*Store)(nil)

// Advance applies steps in one transaction and, unless they carry effects, in two round trips:
//
//	BEGIN ─ lock the heads of the tenants ─ read the records ─► steps, in memory ─► records ─ evidence ─ heads ─ COMMIT
//
// The heads make the transactions of a tenant take turns, so that what was read stays true until the end.
func (s *Store) Advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("advance commands", err)
	}
	defer conn.Release()
	a := &advance{conn: conn.Conn(), now: now, steps: steps, records: map[recordID]*command.Record{}, places: map[recordID]int{}}
	results, err := a.run(ctx)
	if err != nil {
		abandon(ctx, a.conn)
		return nil, hotFailed("advance commands", err)
	}
	return results, nil
}

// begin names the isolation level: each statement has to see what was committed while it waited for its locks.
const begin = `BEGIN ISOLATION LEVEL READ COMMITTED`

// abandonTimeout bounds the wait for a rollback. A connection that did not roll back is not used again.
const abandonTimeout = 5 * time.Second

// abandon rolls back what a failed transaction has left open, whether its caller still waits or not.
func abandon(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	conn.Exec(ctx, `ROLLBACK`)
}

type recordID struct{ tenant, key string }

// advance is a batch of steps on its way.
type advance struct {
	conn    *pgx.Conn
	now     time.Time
	steps   []*command.Step
	chains  chains
	records map[recordID]*command.Record // as the steps so far have left them
	written []writtenRecord              // those that changed
	places  map[recordID]int             // of these
	effects bool                         // some were applied: there is a savepoint, and something to commit
}

func (a *advance) run(ctx context.Context) ([]command.Result, error) {
	if err := a.read(ctx); err != nil {
		return nil, err
	}
	results := make([]command.Result, len(a.steps))
	for i, st := range a.steps {
		var err error
		if results[i], err = a.step(ctx, st); err != nil {
			return nil, err
		}
	}
	return results, a.write(ctx)
}

// read locks and reads all that the steps go by.
func (a *advance) read(ctx context.Context) error {
	tenants := make([]string, 0, len(a.steps))
	var ids []recordID
	for _, st := range a.steps {
		tenants = append(tenants, st.Tenant)
		id := recordID{st.Tenant, st.Key}
		if _, double := a.records[id]; !double && st.Key != "" {
			a.records[id] = nil
			ids = append(ids, id)
		}
	}
	p := newPipeline(ctx, a.conn.PgConn())
	p.command(begin)
	a.chains.addLock(p, sorted(tenants))
	if len(ids) > 0 {
		params := p.begin()
		column(params, typeText, ids, func(id recordID) { params.text(id.tenant) })
		column(params, typeText, ids, func(id recordID) { params.text(id.key) })
		p.add(lockCommands, func(r *row) {
			record := readCommand(r)
			a.records[recordID{record.Tenant, record.Key}] = record
		})
	}
	return p.run()
}

// write stores what the steps have come to. Where they have come to nothing, nobody has to wait for the disk.
func (a *advance) write(ctx context.Context) error {
	p := newPipeline(ctx, a.conn.PgConn())
	addCommands(p, a.written)
	a.chains.addItems(p)
	if len(a.written) > 0 || len(a.chains.items) > 0 || a.effects {
		p.command(`COMMIT`)
	} else {
		p.command(`ROLLBACK`)
	}
	return p.run()
}

// step applies one. The error is the transaction's; the step's own is in the result.
func (a *advance) step(ctx context.Context, st *command.Step) (command.Result, error) {
	id := recordID{st.Tenant, st.Key}
	if clean(st.Tenant) != st.Tenant || clean(st.Key) != st.Key {
		return command.Result{Err: fmt.Errorf("advance command: tenant %q or key %q is not text", st.Tenant, st.Key)}, nil
	}
	there := a.records[id]
	if st.Key != "" && !expected(there, st.Expect, a.now) {
		return command.Result{Refused: true, Stored: copied(there)}, nil
	}
	applied := command.Applied{Previous: copied(there)}
	if len(st.Effects) > 0 {
		var err error
		if applied.Results, err = a.apply(ctx, st.Effects); err != nil {
			if !store.Refused(err) {
				return command.Result{}, err
			}
			applied.Err = err
		}
	}
	change, err := st.Settle(applied)
	if applied.Err != nil && change.Record == nil && len(change.Evidence) == 0 {
		err = cmp.Or(err, applied.Err) // settle has made nothing of it
	}
	if err == nil {
		err = a.keep(id, change)
	}
	if err != nil {
		if applied.Results != nil {
			return command.Result{Err: err}, a.undo(ctx)
		}
		return command.Result{Err: err}, nil
	}
	return command.Result{Stored: copied(a.records[id]), Applied: applied.Results}, nil
}

// expected reports whether a step may go on: the record has the version it expects, or the key is free.
func expected(r *command.Record, version int64, now time.Time) bool {
	if version == 0 {
		return r == nil || r.FreeAt(now)
	}
	return r != nil && r.Version == version
}

// copied keeps the steps of a batch, and those who get their results, from changing each other's record.
func copied(r *command.Record) *command.Record {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}

// keep notes what a step stores, all of it or nothing.
func (a *advance) keep(id recordID, change command.Change) error {
	var w writtenRecord
	if r := change.Record; r != nil {
		if (recordID{r.Tenant, r.Key}) != id || id.key == "" {
			return fmt.Errorf("advance command: the step is about key %q of tenant %q, its record is not", id.key, id.tenant)
		}
		var err error
		if w, err = writeRecord(copied(r)); err != nil {
			return fmt.Errorf("advance command: encode its record: %w", err)
		}
	}
	if err := a.chains.link(id.tenant, change.Evidence); err != nil {
		return err
	}
	if w.Record == nil {
		return nil
	}
	place, again := a.places[id]
	if !again {
		place = len(a.written)
		a.written = append(a.written, w)
	}
	a.places[id], a.written[place], a.records[id] = place, w, w.Record
	return nil
}
