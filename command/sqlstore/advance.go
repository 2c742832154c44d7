package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// Advance applies steps in order, in one transaction.
func (s *Store) Advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	s.lock()
	defer s.unlock()
	results, err := s.advance(ctx, now, steps)
	var late *lateError
	if len(steps) == 1 && errors.As(err, &late) {
		refused := *steps[0]
		refused.Effects = []command.Effect{Effect(func(context.Context, *sql.Tx) (command.Nothing, error) { return command.Nothing{}, late.err })}
		results, err = s.advance(ctx, now, []*command.Step{&refused})
	}
	if err != nil {
		return nil, fmt.Errorf("advance commands: %w", err)
	}
	return results, nil
}

// A lateError reports that the database refused effects at the commit, by a deferred constraint. If the transaction has
// one step, the effects are those of that step. If it has more, the executor tries each step by itself.
type lateError struct{ err error }

func (e *lateError) Error() string { return e.err.Error() }
func (e *lateError) Unwrap() error { return e.err }

func (s *Store) advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	tx, err := s.db.BeginTx(ctx, s.isolation())
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	return command.Advance(ctx, &transaction{s, tx}, now, steps)
}

// isolation is a level at which each statement sees the commits that happened while it waited for its locks.
func (s *Store) isolation() *sql.TxOptions {
	if s.dialect == PostgreSQL {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// transaction implements command.Transaction.
type transaction struct {
	s  *Store
	tx *sql.Tx
}

func (t *transaction) Read(ctx context.Context, tenants []string, records []command.RecordID) (read command.Snapshot, err error) {
	if read.Heads, err = t.lockHeads(ctx, tenants); err != nil {
		return read, err
	}
	read.Records = make(map[command.RecordID]*command.Record, len(records))
	for _, id := range records {
		r, err := one(t.tx.QueryRowContext(ctx, t.s.lockKey, id.Tenant, id.Key))
		if err != nil {
			return read, err
		}
		if r != nil {
			read.Records[id] = r
		}
	}
	return read, nil
}

func (t *transaction) Bulk() bool { return true }

func (t *transaction) Savepoint(ctx context.Context) error {
	return t.run(ctx, "SAVEPOINT command_step")
}

func (t *transaction) Release(ctx context.Context) error {
	return t.run(ctx, "RELEASE SAVEPOINT command_step")
}

func (t *transaction) RollBack(ctx context.Context) error {
	if err := t.run(ctx, "ROLLBACK TO SAVEPOINT command_step"); err != nil {
		return err
	}
	return t.Release(ctx)
}

func (t *transaction) run(ctx context.Context, statement string, args ...any) error {
	_, err := t.tx.ExecContext(ctx, statement, args...)
	return err
}

func (t *transaction) Apply(ctx context.Context, effects []command.Effect) (results command.Results, refusal, err error) {
	for _, effect := range effects {
		r, err := run(ctx, t.tx, effect)
		switch {
		case err == nil:
			results = append(results, r)
		case passes(err):
			return nil, nil, err
		default:
			return nil, err, nil
		}
	}
	return results, nil, nil
}

func (t *transaction) Commit(ctx context.Context, w *command.Writes) error {
	for i := range w.Records {
		if err := t.run(ctx, t.s.put, values(&w.Records[i])...); err != nil {
			return err
		}
	}
	if err := t.appendEvidence(ctx, w.Items, w.Heads); err != nil {
		return err
	}
	err := t.tx.Commit()
	if w.Effects && violated(err) {
		return &lateError{err}
	}
	return err
}
