package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	sqlite "modernc.org/sqlite"

	"github.com/godwit-hq/godwit/internal/store"
)

// backupPages is how many pages one step of a backup copies; progress is reported after each.
const backupPages = 4096

// Backup copies the database file at path into a new file, while a server may be using it. The copy holds everything that was
// committed when Backup began, and nothing later. The server's commits do not wait for it; the WAL grows until it ends. progress, if not
// nil, gets the copied pages and all pages.
func Backup(ctx context.Context, path, into string, progress func(done, total int)) (err error) {
	if err := createEmpty(into); err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	src, err := connect(ctx, path, "query_only(ON)")
	if err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	defer func() { err = errors.Join(err, src.close()) }()
	// The open transaction keeps its snapshot over all steps. Without it the backup would begin anew after each commit of the
	// server, and never end under load.
	if _, err := src.exec("BEGIN"); err != nil {
		return fmt.Errorf("back up database: %w", fault(err))
	}
	if _, err := src.one(ctx, "SELECT count(*) FROM sqlite_schema", nil, nil); err != nil {
		return fmt.Errorf("back up database: %w", fault(err))
	}
	if err := copyPages(ctx, src, into, progress); err != nil {
		return fmt.Errorf("back up database: %w", fault(err))
	}
	return nil
}

// createEmpty creates the file with a mode that keeps other users out; SQLite keeps the mode.
func createEmpty(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func copyPages(ctx context.Context, src *conn, into string, progress func(done, total int)) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return err
	}
	source, ok := src.raw.(interface {
		NewBackup(name string) (*sqlite.Backup, error)
	})
	if !ok {
		return errors.New("the SQLite driver has no backups")
	}
	b, err := source.NewBackup((&url.URL{Scheme: "file", Opaque: escapePath(into)}).String())
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = b.Step(backupPages)
		}
		if err == nil && progress != nil {
			progress(b.PageCount()-b.Remaining(), b.PageCount())
		}
	}
	return errors.Join(err, b.Finish())
}

// CheckIntegrity runs SQLite's integrity_check on a database file, which finds malformed pages and rows, and indexes that do not
// agree with their tables.
func CheckIntegrity(ctx context.Context, path string) (err error) {
	c, err := connect(ctx, path, "query_only(ON)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return fault(c.each(ctx, "PRAGMA integrity_check(1)", nil, func(r *rows) error {
		if text := r.text(0); text != "ok" {
			return fmt.Errorf("%w: %s", store.ErrDamaged, text)
		}
		return nil
	}))
}

// Lock makes this process the only one that may serve a data directory, until release. It fails with ErrInUse while a server runs.
func Lock(dir string) (release func() error, err error) {
	l, err := acquireLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
