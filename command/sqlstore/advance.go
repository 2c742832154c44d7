package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
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
		refused.Effects = []command.Effect{Effect(func(context.Context, *sql.Tx) (any, error) { return nil, late.err })}
		results, err = s.advance(ctx, now, []*command.Step{&refused})
	}
	if err != nil {
		return nil, fmt.Errorf("advance commands: %w", err)
	}
	return results, nil
}

// A lateError is of effects that the database refused only when they were to be committed, by a deferred constraint. It is known which
// effects these are where there is but one step; one that stands with others is tried by itself.
type lateError struct{ err error }

func (e *lateError) Error() string { return e.err.Error() }
func (e *lateError) Unwrap() error { return e.err }

func (s *Store) advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	tx, err := s.db.BeginTx(ctx, s.isolation())
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var tenants []string
	effects := false
	for _, step := range steps {
		effects = effects || len(step.Effects) > 0
		if storable(step.Tenant) {
			tenants = append(tenants, step.Tenant)
		}
	}
	chains, err := s.lockHeads(ctx, tx, tenants)
	if err != nil {
		return nil, err
	}
	results := make([]command.Result, len(steps))
	for i, step := range steps {
		if results[i], err = s.step(ctx, tx, now, step, chains); err != nil {
			return nil, err
		}
	}
	if err := chains.move(ctx); err != nil {
		return nil, err
	}
	err = tx.Commit()
	if effects && violated(err) {
		err = &lateError{err}
	}
	return results, err
}

// isolation is one in which each statement sees what was committed while it waited for its locks.
func (s *Store) isolation() *sql.TxOptions {
	if s.dialect == PostgreSQL {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// step applies one. The error is the transaction's; the step's own is in the result. Until the step is settled only its effects write, and
// they can be undone.
func (s *Store) step(ctx context.Context, tx *sql.Tx, now time.Time, step *command.Step, chains *chains) (command.Result, error) {
	if !storable(step.Tenant) || !storable(step.Key) {
		return command.Result{Err: fmt.Errorf("tenant %q or key %q is not text", step.Tenant, step.Key)}, nil
	}
	there, expected, err := s.expected(ctx, tx, now, step)
	if err != nil || !expected {
		return command.Result{Refused: true, Stored: there}, err
	}
	applied := command.Applied{Previous: there}
	if len(step.Effects) > 0 {
		if applied.Results, applied.Err, err = s.apply(ctx, tx, step.Effects); err != nil {
			return command.Result{}, err
		}
	}
	settled, refusal := settle(step, applied, chains)
	if len(step.Effects) > 0 && applied.Err == nil {
		end := keep
		if refusal != nil {
			end = undo
		}
		if err := end(ctx, tx); err != nil {
			return command.Result{}, err
		}
	}
	if refusal != nil {
		return command.Result{Stored: there, Err: refusal}, nil
	}
	if settled.record != nil {
		if _, err := tx.ExecContext(ctx, s.put, settled.values...); err != nil {
			return command.Result{}, err
		}
		stored := *settled.record
		there = &stored
	}
	return command.Result{Stored: there, Applied: applied.Results}, chains.append(ctx, settled.items)
}

// expected returns the record under the step's key, and whether that is what the step expects.
func (s *Store) expected(ctx context.Context, tx *sql.Tx, now time.Time, step *command.Step) (*command.Record, bool, error) {
	if step.Key == "" {
		return nil, true, nil
	}
	there, err := one(tx.QueryRowContext(ctx, s.lockKey, step.Tenant, step.Key))
	switch {
	case err != nil:
		return nil, false, err
	case step.Expect == 0:
		return there, there == nil || there.FreeAt(now), nil
	}
	return there, there != nil && there.Version == step.Expect, nil
}

// errStrayRecord is of a step that would store a record under another key than its own.
var errStrayRecord = errors.New("a step stores the record of its own key alone")

// settlement is what a step stores, ready to be.
type settlement struct {
	record *command.Record
	values []any
	items  []evidence.Item
}

// settle asks what is to be stored, and refuses what cannot be.
func settle(step *command.Step, applied command.Applied, chains *chains) (n settlement, err error) {
	change, err := step.Settle(applied)
	r := change.Record
	switch {
	case err != nil:
		return n, err
	case r == nil && len(change.Evidence) == 0:
		return n, applied.Err
	case r != nil && (step.Key == "" || r.Key != step.Key || r.Tenant != step.Tenant):
		return n, errStrayRecord
	}
	if r != nil {
		n.record = r
		if n.values, err = values(r); err != nil {
			return n, err
		}
	}
	n.items, err = chains.link(step.Tenant, change.Evidence)
	return n, err
}
