package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
)

// A database is the open file: the connections, the turn to write, and what the writer remembers between transactions. All
// parts of the store share it.
type database struct {
	path string
	log  *slog.Logger
	lock *lockFile // nil unless exclusive

	turn   chan struct{} // holds a token during a write
	writer *conn         // nil: the next write opens it
	epochs epochs        // guarded by turn
	handed handed        // guarded by turn

	readers chan *conn // a nil one is opened when it is taken

	checkpointer checkpointer
	beat         beat

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

func newDatabase(path string, readers int, log *slog.Logger) *database {
	db := &database{
		path: path, log: log, turn: make(chan struct{}, 1), closing: make(chan struct{}), readers: make(chan *conn, readers),
	}
	for range readers {
		db.readers <- nil
	}
	return db
}

func (db *database) lockPath() string { return filepath.Join(filepath.Dir(db.path), lockName) }

func (db *database) openWriter(ctx context.Context) (*conn, error) {
	// The page size is SQLite's default of 4 KiB: larger pages gain nothing, because a burst to many endpoints touches many
	// index pages, and each goes to the WAL whole. A cache of 16 MiB holds the pages of a batch; SQLite scans all of a larger
	// cache at the end of most commits.
	return connect(ctx, db.path, "journal_mode(WAL)", "cache_size(-16384)", "journal_size_limit(268435456)")
}

func (db *database) openReader(ctx context.Context) (*conn, error) {
	return connect(ctx, db.path, "query_only(ON)", "cache_size(-16384)")
}

// Close waits for the current write, copies the WAL into the database file and closes it.
func (db *database) Close() error {
	db.closeOnce.Do(func() { db.closeErr = db.close() })
	return db.closeErr
}

func (db *database) close() error {
	close(db.closing)
	db.checkpointer.stop()
	var errs []error
	for range cap(db.readers) {
		if c := <-db.readers; c != nil {
			errs = append(errs, c.close())
		}
	}
	db.turn <- struct{}{} // never returned: no write follows
	if db.writer != nil {
		// Closing the last connection also copies the WAL, but does not report a failure. Beside a server the copy would delay
		// the server's commits.
		if db.lock != nil {
			if _, err := db.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
				errs = append(errs, fmt.Errorf("checkpoint: %w", fault(err)))
			}
		}
		errs = append(errs, db.writer.close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.release())
	}
	return errors.Join(errs...)
}
