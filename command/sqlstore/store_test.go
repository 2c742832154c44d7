package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/command/sqlstore"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store/storetest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A backend is a database that the tests run on.
type backend struct {
	dialect sqlstore.Dialect
	driver  string
	place   func(t testing.TB) string // an empty data source
}

var backends = map[string]backend{
	"SQLite": {sqlstore.SQLite, "sqlite", func(t testing.TB) string {
		return "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)"
	}},
	"PostgreSQL": {sqlstore.PostgreSQL, "pgx", func(t testing.TB) string { return postgrestest.URL(t) }},
}

// opened is a store with its database.
type opened struct {
	*sqlstore.Store
	db            *sql.DB
	place, prefix string
}

func (b backend) open(t testing.TB, place, prefix string) *opened {
	t.Helper()
	db, err := sql.Open(b.driver, place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: b.dialect, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS marks (name varchar(80) PRIMARY KEY)")
	if err != nil {
		t.Fatal(err)
	}
	return &opened{s, db, place, prefix}
}

// mark is an effect in a table of the application. A name can be marked once.
func mark(name string) sqlstore.Func[int64] { return sqlstore.Exec(insertMark(name)) }

func insertMark(name string) string { return "INSERT INTO marks (name) VALUES ('" + name + "')" }

func (o *opened) marks(t testing.TB, name string) (n int) {
	t.Helper()
	if err := o.db.QueryRowContext(t.Context(), "SELECT count(*) FROM marks WHERE name LIKE '"+name+"'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

var marked atomic.Int64

// nextMark returns a name that no test has used.
func nextMark() string { return fmt.Sprintf("mark %d", marked.Add(1)) }

var errSoldOut = errors.New("sold out")

func soldOut(context.Context, *sql.Tx) (any, error) { return nil, errSoldOut }

func TestStore(t *testing.T) {
	for name, b := range backends {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, "IDS-DLV-7")
			place, stores := b.place(t), 0
			storetest.RunRecords(t, storetest.Records{
				Open: func(t testing.TB) command.Store { // uses its own tables, because creating a database takes longer
					stores++
					return b.open(t, place, fmt.Sprintf("s%d_", stores))
				},
				Reopen: func(t testing.TB, s command.Store) command.Store {
					o := s.(*opened)
					if err := o.db.Close(); err != nil {
						t.Fatal(err)
					}
					return b.open(t, o.place, o.prefix)
				},
				Exec: func(t testing.TB, s command.Store, statement string) error {
					o := s.(*opened)
					for _, table := range []string{"command_records", "evidence_items"} {
						statement = strings.ReplaceAll(statement, table, o.prefix+table)
					}
					_, err := o.db.ExecContext(t.Context(), statement)
					return err
				},
				Kinds: []storetest.Kind{
					{Name: "statement", Make: func(t testing.TB, s command.Store) (command.Effect, func() any) {
						name := nextMark()
						return mark(name), func() any { return s.(*opened).marks(t, name) }
					}},
					{Name: "function", Make: func(t testing.TB, s command.Store) (command.Effect, func() any) {
						name := nextMark()
						return sqlstore.Effect(func(ctx context.Context, tx *sql.Tx) (sql.Result, error) {
								return tx.ExecContext(ctx, insertMark(name))
							}),
							func() any { return s.(*opened).marks(t, name) }
					}},
				},
				Fails: func(testing.TB, command.Store) (command.Effect, error) { return sqlstore.Effect(soldOut), errSoldOut },
			})
		})
	}
}
