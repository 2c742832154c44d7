package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/internal/store"
)

// SQLSTATEs that this package distinguishes.
const (
	stateUniqueViolation = "23505"
	stateCheckViolation  = "23514" // a new partition whose rows are in the default one
	stateLockTimeout     = "55P03"
	stateUndefinedTable  = "42P01"
	stateDataCorrupted   = "XX001"
	stateIndexCorrupted  = "XX002"
	stateLeaseLost       = "GW001" // raised by expect
	stateClaimLost       = "GW002" // raised by expect
	stateFanoutMoved     = "GW003" // raised by expect
	stateRecordMoved     = "GW004" // raised by expect: a head or a record of a command
	stateConfigBehind    = "GW005" // raised by expect
	stateSerialization   = "40001"
	stateDeadlock        = "40P01"
	stateNoDatabase      = "3D000"
	stateNoPrivilege     = "42501"
	stateReadOnly        = "25006" // the server is a standby
	stateAdminShutdown   = "57P01"
	stateCrashShutdown   = "57P02"
	stateCannotConnect   = "57P03" // the server starts up or shuts down
)

// passing lists the classes of SQLSTATE that may be temporary.
var passing = map[string]bool{
	"08": true, // connection exception
	"40": true, // transaction rollback: serialization, deadlock
	"53": true, // insufficient resources: disk full, out of memory, too many connections
	"55": true, // not in prerequisite state: lock not available, object in use
	"57": true, // operator intervention: shutdown, cannot connect now, cancelled
	"58": true, // system error: I/O
	"25": true, // invalid transaction state: read-only after a failover
}

// sqlState returns the SQLSTATE of an error, or "".
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// unavailable reports whether err is a temporary failure of the backend. An error without a SQLSTATE did not come from the
// server: the connection is broken, or the caller's context has ended with the effect unknown.
func unavailable(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if state := sqlState(err); state != "" {
		return passing[state[:2]]
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, cause := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, pgx.ErrTxClosed, context.Canceled, context.DeadlineExceeded,
		errWaiting, errUnreplicated,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}

// rowsAtFault lists the classes of SQLSTATE that blame the rows: data exception, integrity violation, limit exceeded.
var rowsAtFault = map[string]bool{"22": true, "23": true, "54": true}

// hotFailed is failed for the engine's writes. The engine drops a batch that can never be stored, and with it completed
// deliveries. So only an error that blames the rows counts as permanent; all others count as failures of the store.
func hotFailed(doing string, err error) error {
	state := sqlState(err)
	if err == nil || state == stateLeaseLost || state != "" && rowsAtFault[state[:2]] {
		return failed(doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
}

// failed wraps an error with the operation and with the matching error of package store.
func failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	case sqlState(err) == stateUniqueViolation:
		return fmt.Errorf("%s: %w: %w", doing, store.ErrConflict, err)
	case sqlState(err) == stateLeaseLost:
		return fmt.Errorf("%s: %w", doing, store.ErrFenced)
	case unavailable(err):
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
