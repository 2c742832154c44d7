package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/godwit-hq/godwit/internal/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// A migration is one step of the schema; its file name starts with its number and an underscore.
type migration struct {
	version int
	name    string
	script  string
}

// Status is the state of the schema.
type Status struct {
	Version int      // of the database
	Current int      // of this program
	Pending []string // names of the steps that Migrate would apply
}

func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(all)+1 {
			return nil, fmt.Errorf("migration %s is not number %d", name, len(all)+1)
		}
		script, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, migration{version: version, name: strings.TrimSuffix(path.Base(name), ".sql"), script: string(script)})
	}
	return all, nil
}

// schema brings the schema of the database up to date.
type schema struct{ *database }

// prepareSchema runs when the store is opened.
func (s *schema) prepareSchema(ctx context.Context, noMigrate bool) error {
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	switch {
	case st.Version > st.Current:
		return fmt.Errorf("%w: %s has version %d, this program knows up to %d; use the release that wrote it, or a later one",
			store.ErrNewerSchema, s.path, st.Version, st.Current)
	case len(st.Pending) == 0:
		return nil
	case noMigrate:
		return fmt.Errorf("database schema has version %d, this program needs %d: run `godwit migrate`", st.Version, st.Current)
	}
	return s.Migrate(ctx)
}

// Status returns the state of the schema, even if it is newer than this program.
func (s *schema) Status(ctx context.Context) (Status, error) {
	all, err := migrations()
	if err != nil {
		return Status{}, err
	}
	st := Status{Current: len(all)}
	err = s.read(ctx, "read schema version", func(c *conn) error {
		st.Version, err = schemaVersion(ctx, c)
		return err
	})
	for _, m := range all {
		if m.version > st.Version {
			st.Pending = append(st.Pending, m.name)
		}
	}
	return st, err
}

func schemaVersion(ctx context.Context, c *conn) (int, error) {
	there, err := c.one(ctx, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'", nil, nil)
	if err != nil || !there {
		return 0, err
	}
	var version int
	_, err = c.one(ctx, "SELECT max(version) FROM schema_version", nil, func(r *rows) { version = int(r.int(0)) })
	return version, err
}

// Migrate brings the schema up to date, step by step. No server of another release may run meanwhile, so a store that is not
// exclusive takes the lock during the migration.
func (s *schema) Migrate(ctx context.Context) (err error) {
	if s.lock == nil {
		lock, err := acquireLock(s.lockPath())
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		defer func() { err = errors.Join(err, lock.release()) }()
	}
	all, err := migrations()
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := s.write(ctx, "migrate to "+m.name, func(c *conn) error { return apply(ctx, c, m) }); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, c *conn, m migration) error {
	version, err := schemaVersion(ctx, c)
	if err != nil || version >= m.version {
		return err
	}
	const table = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
	if _, err := c.exec(table); err != nil {
		return err
	}
	if err := c.script(m.script); err != nil {
		return err
	}
	_, err = c.exec("INSERT INTO schema_version (version, name) VALUES (?, ?)", int64(m.version), m.name)
	return err
}
