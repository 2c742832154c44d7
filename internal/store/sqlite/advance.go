package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/store"
)

// Advance applies steps in order, in one synced transaction.
func (s *Store) Advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	results := make([]command.Result, len(steps))
	if len(steps) == 0 {
		return results, nil
	}
	err := s.write(ctx, "advance commands", func(c *conn) error {
		chains := newChains(c)
		for i, step := range steps {
			var err error
			if results[i], err = s.advance(c, now, step, chains); err != nil {
				return err
			}
		}
		return chains.flush()
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// advance applies one step. What it returns as an error is the transaction's.
//
// Until the step is settled only its effects write, and they can be undone.
func (s *Store) advance(c *conn, now time.Time, step *command.Step, chains *chains) (command.Result, error) {
	there, ok, err := expected(c, now, step)
	if err != nil || !ok {
		return command.Result{Refused: true, Stored: there}, err
	}
	applied := command.Applied{Previous: there}
	if len(step.Effects) > 0 {
		if err := s.applyAll(c, step.Effects, &applied); err != nil {
			return command.Result{}, err
		}
	}
	change, refusal := settle(step, applied)
	var links links
	if refusal == nil && len(change.Evidence) > 0 {
		head, err := chains.head(step.Tenant)
		if err != nil {
			return command.Result{}, err
		}
		links, refusal = link(head, step.Tenant, change.Evidence)
	}
	if len(step.Effects) > 0 && applied.Err == nil {
		if err := endEffects(c, refusal == nil); err != nil {
			return command.Result{}, err
		}
	}
	if refusal != nil {
		return command.Result{Stored: there, Err: refusal}, nil
	}
	if change.Record != nil {
		if err := putCommand(c, change.Record, there != nil); err != nil {
			return command.Result{}, err
		}
		there = change.Record
	}
	return command.Result{Stored: there, Applied: applied.Results}, chains.append(links)
}

// expected returns the record under the step's key, and whether that is what the step expects.
func expected(c *conn, now time.Time, step *command.Step) (there *command.Record, ok bool, err error) {
	if step.Key == "" {
		return nil, true, nil
	}
	there, err = readCommand(context.Background(), c, underKey, step.Tenant, step.Key)
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

// settle asks what is to be stored.
func settle(step *command.Step, applied command.Applied) (change command.Change, err error) {
	if step.Settle != nil {
		if change, err = step.Settle(applied); err != nil {
			return change, err
		}
	}
	r := change.Record
	switch {
	case r == nil && len(change.Evidence) == 0:
		return change, applied.Err
	case r != nil && (step.Key == "" || r.Key != step.Key || r.Tenant != step.Tenant):
		return change, errStrayRecord
	}
	return change, nil
}

// applyAll applies the effects of a step behind a savepoint. When one fails that is told, and they are undone at once; else
// endEffects has to follow.
func (s *Store) applyAll(c *conn, list []command.Effect, applied *command.Applied) error {
	if _, err := c.exec("SAVEPOINT step"); err != nil {
		return err
	}
	results, err := store.Apply(context.Background(), effects{s, c}, list)
	if err == nil {
		applied.Results = results
		return nil
	}
	if !store.Refused(err) {
		return err
	}
	applied.Err = err
	return endEffects(c, false)
}

// endEffects keeps effects or undoes them.
func endEffects(c *conn, keep bool) error {
	if !keep {
		if _, err := c.exec("ROLLBACK TO step"); err != nil {
			return err
		}
	}
	_, err := c.exec("RELEASE step")
	return err
}
