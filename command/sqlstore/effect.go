package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/godwit-hq/godwit/command"
)

// A Func is an effect that changes tables of the application in the transaction of an outcome: together with the outcome
// and its evidence, or not at all. Outcome.After gets its result, an R. An error undoes all effects of the command and is
// passed to Outcome.Refused, unless it is Fatal or the database reports a temporary error (a deadlock, a lost connection):
// the store then begins a new transaction.
//
// The store may run the function more than once for the same outcome, until the transaction is committed. Other commands
// share the transaction, so an effect must be short and must use only the transaction: it calls no other system, changes
// no variable that it does not set each time, and neither commits nor rolls back. A function that uses the *sql.DB instead
// of the transaction waits for ever if the database has one connection.
type Func[R any] struct {
	command.EffectOf[R]
	run func(ctx context.Context, tx *sql.Tx) (R, error)
}

// Effect returns the effect that runs a function.
func Effect[R any](run func(ctx context.Context, tx *sql.Tx) (R, error)) Func[R] {
	return Func[R]{run: run}
}

func (f Func[R]) apply(ctx context.Context, tx *sql.Tx) (command.Returned, error) {
	r, err := f.run(ctx, tx)
	return f.Returns(r), err
}

// Exec returns the effect of one statement that must change a row. Its result is the number of changed rows; its error is
// sql.ErrNoRows if there are none.
func Exec(statement string, args ...any) Func[int64] {
	return Effect(func(ctx context.Context, tx *sql.Tx) (int64, error) {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		if err == nil && n == 0 {
			err = sql.ErrNoRows
		}
		return n, err
	})
}

// A FatalError is a failure of an effect that does not decide the command.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }
func (e *FatalError) Unwrap() error { return e.Err }

// Fatal marks an error of an effect as one of the whole transaction: nothing of it is stored, and the executor tries it
// again.
func Fatal(err error) error { return &FatalError{err} }

var errUnknownEffect = errors.New("sqlstore: make effects with Effect or Exec")

// run applies one effect. It turns a panic into an error, because other commands share the transaction.
func run(ctx context.Context, tx *sql.Tx, effect command.Effect) (r command.Returned, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("effect panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if f, ok := effect.(interface {
		apply(ctx context.Context, tx *sql.Tx) (command.Returned, error)
	}); ok {
		return f.apply(ctx, tx)
	}
	return r, fmt.Errorf("%w, not a %T", errUnknownEffect, effect)
}

// passing holds classes of SQLSTATE that may not occur again in a new transaction: connection, rollback (deadlock),
// resources, prerequisites (lock not available), operator, system, and read-only after a failover.
var passing = map[string]bool{"08": true, "40": true, "53": true, "55": true, "57": true, "58": true, "25": true}

// passingCodes holds the corresponding SQLite codes: BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN,
// PROTOCOL.
var passingCodes = map[int]bool{5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 13: true, 14: true, 15: true}

// violated reports whether the error is a violated constraint.
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

// passes reports whether an error concerns the transaction, so that a new transaction may succeed. Several drivers return
// their codes by methods of the same name.
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
