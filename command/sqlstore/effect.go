package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/godwit-hq/godwit/command"
)

// An Effect changes tables of the application in the transaction of an outcome: with the outcome and its evidence, or not at all. What it
// returns is told to Outcome.After; an error undoes all effects of the command and is told to Outcome.Refused, unless it is Fatal or the
// database says that it will pass (a deadlock, a connection that is gone): the transaction is then taken anew.
//
// It may run more than once, for the same outcome, until the transaction is stored. That transaction is other commands', too: an effect is
// short. So it works on the transaction alone: it calls
// nobody, changes no variable that it does not set each time, and neither commits nor rolls back. Using the *sql.DB in its place waits for
// ever where that has one connection.
type Effect func(ctx context.Context, tx *sql.Tx) (any, error)

// Exec is the effect of one statement that has to change a row. Its error is sql.ErrNoRows when it changes none.
func Exec(statement string, args ...any) Effect {
	return func(ctx context.Context, tx *sql.Tx) (any, error) {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return nil, err
		}
		n, err := result.RowsAffected()
		if err == nil && n == 0 {
			err = sql.ErrNoRows
		}
		return n, err
	}
}

// A FatalError is the failure of an effect that is no answer to the command.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }
func (e *FatalError) Unwrap() error { return e.Err }

// Fatal marks an error of an effect as one of the transaction: nothing of it is stored, and it is tried again.
func Fatal(err error) error { return &FatalError{err} }

var errUnknownEffect = errors.New("sqlstore: an effect has to be an Effect")

// apply applies the effects of a step behind a savepoint. The error is the transaction's; that of an effect, which has then been undone
// with those before it, is in what was applied.
func (s *Store) apply(ctx context.Context, tx *sql.Tx, effects []command.Effect) (results []any, refusal, err error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT command_step"); err != nil {
		return nil, nil, err
	}
	results = make([]any, len(effects))
	for i, effect := range effects {
		if results[i], err = run(ctx, tx, effect); err == nil {
			continue
		}
		if passes(err) {
			return nil, nil, err
		}
		return nil, err, undo(ctx, tx)
	}
	return results, nil, nil
}

// undo takes back what was done since the savepoint.
func undo(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT command_step"); err != nil {
		return err
	}
	return keep(ctx, tx)
}

func keep(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT command_step")
	return err
}

// run keeps an effect's panic from taking other commands along.
func run(ctx context.Context, tx *sql.Tx, effect command.Effect) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("effect panicked: %v\n%s", p, debug.Stack())
		}
	}()
	switch f := effect.(type) {
	case Effect:
		return f(ctx, tx)
	case func(ctx context.Context, tx *sql.Tx) (any, error):
		return f(ctx, tx)
	}
	return nil, fmt.Errorf("%w, not a %T", errUnknownEffect, effect)
}

// passing holds classes of SQLSTATE that may be gone when the transaction is taken anew: connection, rollback (deadlock), resources,
// prerequisites (lock not available), operator, system, and read-only after a failover.
var passing = map[string]bool{"08": true, "40": true, "53": true, "55": true, "57": true, "58": true, "25": true}

// Of SQLite's codes those: BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL.
var passingCodes = map[int]bool{5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 13: true, 14: true, 15: true}

// violated reports whether a constraint of the database is the reason.
func violated(err error) bool {
	var (
		state interface{ SQLState() string }
		code  interface{ Code() int }
	)
	if errors.As(err, &state) {
		return len(state.SQLState()) == 5 && state.SQLState()[:2] == "23"
	}
	return errors.As(err, &code) && code.Code()&0xff == 19
}

// passes reports whether an error is the transaction's. Drivers tell by their codes, which several name alike.
func passes(err error) bool {
	var (
		fatal *FatalError
		state interface{ SQLState() string }
		code  interface{ Code() int }
	)
	switch {
	case errors.As(err, &fatal), errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &state) && len(state.SQLState()) == 5:
		return passing[state.SQLState()[:2]]
	case errors.As(err, &code):
		return passingCodes[code.Code()&0xff]
	}
	return false
}
