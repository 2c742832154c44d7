package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
)

// Options configure a store.
type Options struct {
	// Exclusive makes this process the only one that serves the data directory. The server sets it. Administration commands do
	// not, and may run beside a server for a short time. Defaults to false.
	Exclusive bool
	// NoMigrate prevents migration; Open fails if the schema is not the current one. Defaults to false.
	NoMigrate bool
	// Readers bounds the concurrent reads. Defaults to 4.
	Readers int
	// WALPages is the length at which the WAL is copied into the database file. Defaults to 16000, which is 64 MiB.
	WALPages int64
	// SyncDir makes the entries of a directory durable. Tests that cut the power replace it. Defaults to fsync.
	SyncDir func(dir string) error
	// OpenFile opens a file of the database for writing beside SQLite. Tests with a simulated disk replace it. Defaults to os.OpenFile.
	OpenFile func(path string) (File, error)
	// Time is the clock of leases. Defaults to the machine's.
	Time func() time.Time
	// Log receives background failures that have no caller. Defaults to none.
	Log *slog.Logger
}

const (
	fileName       = "godwit.db"
	lockName       = "godwit.lock"
	defaultReaders = 4
)

// Open opens the database in a data directory, or the database file itself when the path ends in ".db". It creates both if
// necessary.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	file, err := locate(path)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
	if o.SyncDir == nil {
		o.SyncDir = SyncDirectory
	}
	if o.OpenFile == nil {
		o.OpenFile = openFile
	}
	if o.WALPages <= 0 {
		o.WALPages = walFrames
	}
	s := newStore(newDatabase(file, o), newMembers(o.Time))
	if o.Exclusive {
		if s.lock, err = acquireLock(s.lockPath()); err != nil {
			return nil, err
		}
	}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context, o Options) error {
	var err error
	if s.writer, err = s.openWriter(ctx); err != nil {
		return err
	}
	if err := checkVersion(ctx, s.writer); err != nil {
		return err
	}
	if o.Exclusive {
		if err := s.startServing(ctx); err != nil {
			return err
		}
	}
	if err := s.prepareSchema(ctx, o.NoMigrate); err != nil {
		return err
	}
	if o.Exclusive { // otherwise the server does it
		s.checkpointer.start(s.database, o.WALPages)
	}
	return nil
}

// startServing opens what only the server needs, and writes again what the process before this one may have left unsynced.
func (s *Store) startServing(ctx context.Context) (err error) {
	if s.keeper, err = s.openKeeper(ctx); err != nil {
		return err
	}
	f, err := s.openFile(s.path)
	if err != nil {
		return fmt.Errorf("open database: %w: %w", store.ErrUnavailable, err)
	}
	s.file = f
	s.doubt.file = true
	s.doubt.failures.Add(1)
	return s.settle(s.keeper)
}

// locate finds the database file and creates its directory. The directory contains payloads and sealed secrets, so other users
// of the machine must not read it; SQLite gives its other files the same mode.
func locate(path string) (string, error) {
	if filepath.Ext(path) != ".db" {
		path = filepath.Join(path, fileName)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find data directory: %w", err)
	}
	if err := makeDirectory(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("make data directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return "", fmt.Errorf("open database: %w: give this user the right to write there, or use another --data", err)
		}
		return "", fmt.Errorf("open database: %w", err)
	}
	return path, f.Close()
}

// makeDirectory creates a directory and those above it that are missing, so that they survive a power failure. The directory's own
// entries are synced with the WAL.
func makeDirectory(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := makeDirectory(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDirectory(above)
}

// leastVersion is the first release of SQLite that fixes a bug which could damage a database when the WAL restarts during a
// checkpoint.
var leastVersion = [3]int{3, 51, 3}

func checkVersion(ctx context.Context, c *conn) error {
	text, err := libraryVersion(ctx, c)
	if err != nil {
		return err
	}
	var v [3]int
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("check SQLite version %q: %w", text, err)
	}
	for i := range v {
		if v[i] != leastVersion[i] {
			if v[i] < leastVersion[i] {
				return fmt.Errorf("this program was built with SQLite %s; it needs %d.%d.%d or later, which does not damage a database when the WAL starts over",
					text, leastVersion[0], leastVersion[1], leastVersion[2])
			}
			break
		}
	}
	return nil
}

func libraryVersion(ctx context.Context, c *conn) (string, error) {
	var text string
	if _, err := c.one(ctx, "SELECT sqlite_version()", nil, func(r *rows) { text = r.text(0) }); err != nil {
		return "", fmt.Errorf("check SQLite version: %w", fault(err))
	}
	return text, nil
}
