package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/command"
)

var _ command.Lister = (*Store)(nil)

// Options configures a store.
type Options struct {
	// Dialect is the SQL dialect of the database. Required.
	Dialect Dialect
	// Prefix is put before the names of the tables: lower-case letters, digits and underscores. Defaults to none:
	// command_records, evidence_items, evidence_heads, command_schema.
	Prefix string
}

// A Store is a command.Store in the application's own database.
type Store struct {
	db      *sql.DB
	dialect Dialect
	prefix  string
	// writer is held while writing to SQLite, which allows one writer. Others wait here instead of polling SQLite's lock.
	writer sync.Mutex

	findKey, findCommand, lockKey, put       string
	lost, sweep, all                         string
	makeHead, lockHead, moveHead, insertItem string
	head, heads                              string
}

var validPrefix = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,31})?$`)

// New returns a store. Call Migrate before using it.
func New(db *sql.DB, o Options) (*Store, error) {
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: a database is required")
	case o.Dialect != SQLite && o.Dialect != PostgreSQL:
		return nil, fmt.Errorf("sqlstore: dialect %.20q is neither %s nor %s", string(o.Dialect), SQLite, PostgreSQL)
	case !validPrefix.MatchString(o.Prefix):
		return nil, fmt.Errorf("sqlstore: prefix %.40q must be at most 32 lower-case letters, digits and underscores, not beginning with a digit", o.Prefix)
	}
	s := &Store{db: db, dialect: o.Dialect, prefix: o.Prefix}
	s.recordStatements()
	s.evidenceStatements()
	return s, nil
}

func (s *Store) lock() {
	if s.dialect == SQLite {
		s.writer.Lock()
	}
}

func (s *Store) unlock() {
	if s.dialect == SQLite {
		s.writer.Unlock()
	}
}

// forUpdate returns the clause that locks rows on reading, where the transaction does not lock them anyway.
func (s *Store) forUpdate() string {
	if s.dialect == PostgreSQL {
		return " FOR UPDATE"
	}
	return ""
}

// Times are stored in microseconds since 1970; 0 means none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// rows calls scan for each row of a query.
func (s *Store) rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	r, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		if err := scan(r); err != nil {
			return err
		}
	}
	return r.Err()
}
