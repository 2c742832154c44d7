package sqlstore

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"strings"
)

// Dialect is the SQL dialect of the database.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgresql"
)

// schemaVersion is the version of the files in schema.
const schemaVersion = 1

//go:embed schema/*.sql
var schemas embed.FS

var numbered = regexp.MustCompile(`\$(\d+)`)

// in adapts a statement to the store: it replaces "~" before table names with the prefix, and parameters with the
// dialect's form.
func (s *Store) in(statement string) string {
	statement = strings.ReplaceAll(statement, "~", s.prefix)
	if s.dialect == SQLite {
		return numbered.ReplaceAllString(statement, "?$1")
	}
	return statement
}

// Migrate creates the missing tables. Call it at every start; several processes may call it at once. It refuses tables of
// a later version of this package.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("migrate command tables: %w", err)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) error {
	s.lock()
	defer s.unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if s.dialect == PostgreSQL {
		// CREATE TABLE IF NOT EXISTS fails when two transactions run it at once.
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", s.prefix+"command_schema"); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, s.in("CREATE TABLE IF NOT EXISTS ~command_schema (version bigint NOT NULL)")); err != nil {
		return err
	}
	var version int64
	if err := tx.QueryRowContext(ctx, s.in("SELECT coalesce(max(version), 0) FROM ~command_schema")).Scan(&version); err != nil {
		return err
	}
	switch {
	case version > schemaVersion:
		return fmt.Errorf("the tables are of version %d, this program knows up to %d: use a newer one", version, schemaVersion)
	case version == schemaVersion:
		return nil
	}
	text, err := schemas.ReadFile("schema/" + string(s.dialect) + ".sql")
	if err != nil {
		return err
	}
	for _, statement := range strings.Split(string(text), "\n\n") {
		if _, err := tx.ExecContext(ctx, s.in(statement)); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, s.in("INSERT INTO ~command_schema (version) VALUES ($1)"), schemaVersion); err != nil {
		return err
	}
	return tx.Commit()
}
