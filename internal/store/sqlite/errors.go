package sqlite

import (
	"context"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/godwit-hq/godwit/internal/store"
)

// errClosed reports use after Close.
var errClosed = errors.New("store is closed")

// primary returns the primary result code of a driver error, or 0.
func primary(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// fault maps an error to the errors of package store.
func fault(err error) error {
	if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch primary(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY,
		lib.SQLITE_NOMEM, lib.SQLITE_PROTOCOL, lib.SQLITE_INTERRUPT, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// taken reports whether a row was refused because its key exists.
func taken(err error) bool { return primary(err) == lib.SQLITE_CONSTRAINT }

// doubtful reports whether a connection should not be used again after the error.
func doubtful(err error) bool {
	switch primary(err) {
	case lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT, lib.SQLITE_MISUSE,
		lib.SQLITE_NOMEM, lib.SQLITE_PROTOCOL:
		return true
	}
	return false
}
