package sqlite

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/store"
)

// Advance applies steps in order, in one synced transaction.
func (s *commands) Advance(ctx context.Context, now time.Time, steps []*command.Step) (results []command.Result, err error) {
	if len(steps) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "advance commands", func(c *conn) error {
		results, err = command.Advance(ctx, &transaction{commands: s, c: c, now: now}, now, steps)
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// transaction is a write transaction of commands. It has the database to itself, and write commits it.
type transaction struct {
	commands *commands
	c        *conn
	now      time.Time
}

func (t *transaction) Read(_ context.Context, tenants []string, records []command.RecordID) (command.Snapshot, error) {
	ctx := context.Background() // a cancellable context costs a goroutine for each statement
	read := command.Snapshot{Records: make(map[command.RecordID]*command.Record, len(records))}
	for _, id := range records {
		r, err := readCommand(ctx, t.c, underKey, id.Tenant, id.Key)
		if err != nil {
			return read, err
		}
		if r != nil {
			read.Records[id] = r
		}
	}
	var err error
	read.Heads, err = readHeads(t.c, tenants)
	return read, err
}

func (t *transaction) Bulk() bool { return true }

func (t *transaction) Savepoint(context.Context) error { return t.run("SAVEPOINT step") }
func (t *transaction) Release(context.Context) error   { return t.run("RELEASE step") }

func (t *transaction) RollBack(ctx context.Context) error {
	if err := t.run("ROLLBACK TO step"); err != nil {
		return err
	}
	return t.Release(ctx)
}

func (t *transaction) run(statement string) error {
	_, err := t.c.exec(statement)
	return err
}

func (t *transaction) Apply(_ context.Context, list []command.Effect) (results command.Results, refusal, err error) {
	results, err = store.Apply(context.Background(), effects{t.commands, t.c, t.now}, list)
	if store.Refused(err) {
		return nil, err, nil
	}
	return results, nil, err
}

func (t *transaction) Commit(_ context.Context, w *command.Writes) error {
	for i := range w.Records {
		if err := putCommand(t.c, &w.Records[i]); err != nil {
			return err
		}
	}
	return appendEvidence(t.c, w.Items, w.Heads)
}

// readHeads returns the head of each tenant's chain.
func readHeads(c *conn, tenants []string) (map[string]evidence.Head, error) {
	heads := make(map[string]evidence.Head, len(tenants))
	for _, tenant := range tenants {
		head, err := readHead(context.Background(), c, tenant)
		if err != nil {
			return nil, err
		}
		heads[tenant] = head
	}
	return heads, nil
}
