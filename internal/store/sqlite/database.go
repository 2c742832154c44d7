package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/godwit-hq/godwit/internal/store"
)

// A database is the open file: the connections, the turn to write, and what the writer remembers between transactions. All
// parts of the store share it.
type database struct {
	path string
	log  *slog.Logger
	lock *lockFile // nil unless exclusive
	// file is the database file, for what the checkpointer does beside SQLite; nil unless exclusive. It must be closed after all
	// connections: closing any descriptor of a file ends the locks that the process has on it.
	file File
	// keeper is the checkpointer's connection; nil unless exclusive. It stays open to the end, since closing the last connection
	// copies the WAL, without a word if that fails.
	keeper *conn
	doubt  doubt

	syncDir  func(dir string) error
	openFile func(path string) (File, error)

	turn chan struct{} // holds a token during a write
	// sharing holds the changes that wait for the turn and share it.
	sharing sharing
	writer  *conn  // nil: the next write opens it
	epochs  epochs // guarded by turn
	handed  handed // guarded by turn

	readers chan *conn // a nil one is opened when it is taken

	checkpointer checkpointer
	beat         beat

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

func newDatabase(path string, o Options) *database {
	db := &database{
		path: path, log: o.Log, syncDir: o.SyncDir, openFile: o.OpenFile,
		turn: make(chan struct{}, 1), closing: make(chan struct{}), readers: make(chan *conn, o.Readers),
	}
	for range o.Readers {
		db.readers <- nil
	}
	return db
}

func (db *database) lockPath() string { return filepath.Join(filepath.Dir(db.path), lockName) }

func (db *database) openWriter(ctx context.Context) (*conn, error) {
	// The page size is SQLite's default of 4 KiB: larger pages gain nothing, because a burst to many endpoints touches many
	// index pages, and each goes to the WAL whole. A cache of 16 MiB holds the pages of a batch; SQLite scans all of a larger
	// cache at the end of most commits.
	c, err := connect(ctx, db.path, "journal_mode(WAL)", "cache_size(-16384)", "journal_size_limit(268435456)")
	if err != nil {
		return nil, err
	}
	if err := db.keepWAL(ctx, c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// keepWAL makes the WAL's entry in the directory durable. A commit syncs the WAL itself; SQLite syncs the directory only when the
// connection that created the WAL is also the first to sync it, but a reader or another process may have created it. The WAL stays
// while this connection is open.
func (db *database) keepWAL(ctx context.Context, c *conn) error {
	if _, err := c.one(ctx, "PRAGMA schema_version", nil, nil); err != nil { // the first read creates the WAL
		return fmt.Errorf("open WAL of %s: %w", db.path, fault(err))
	}
	dir := filepath.Dir(db.path)
	if err := db.syncDir(dir); err != nil {
		return fmt.Errorf("sync data directory %s: %w: %w", dir, store.ErrUnavailable, err)
	}
	return nil
}

// openKeeper opens the checkpointer's connection and lets it read, which opens the WAL.
func (db *database) openKeeper(ctx context.Context) (*conn, error) {
	c, err := connect(ctx, db.path, "cache_size(-1024)")
	if err != nil {
		return nil, err
	}
	if _, err := c.one(ctx, "PRAGMA schema_version", nil, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("open WAL of %s: %w", db.path, fault(err)), c.close())
	}
	return c, nil
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
		errs = append(errs, db.writer.close())
	}
	if db.keeper != nil {
		errs = append(errs, db.closeKeeper())
	}
	if db.file != nil && !db.inDoubt() {
		errs = append(errs, db.file.Close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.release())
	}
	return errors.Join(errs...)
}

// closeKeeper copies the WAL and closes the last connection. Closing alone would also copy it, but not report a failure, and trust
// files that are in doubt: then the connection stays open until the process ends, and the next one starts with the WAL.
func (db *database) closeKeeper() error {
	err := db.settleWAL(db.keeper)
	if err == nil {
		err = db.settleFile(db.keeper)
	}
	if err == nil {
		if _, err = db.keeper.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			db.doubt.file = db.noteFailure(err) || db.doubt.file
			err = fmt.Errorf("checkpoint: %w", fault(err))
		}
	}
	if db.inDoubt() {
		return err
	}
	return errors.Join(err, db.keeper.close())
}
