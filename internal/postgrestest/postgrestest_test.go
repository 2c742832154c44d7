package postgrestest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	one, two := connect(t, URL(t)), connect(t, URL(t))
	if _, err := one.Exec(t.Context(), "CREATE TABLE mine (id int)"); err != nil {
		t.Fatal(err)
	}
	var there bool
	if err := two.QueryRow(t.Context(), "SELECT to_regclass('mine') IS NOT NULL").Scan(&there); err != nil {
		t.Fatal(err)
	}
	if there {
		t.Error("a table of one database shows in the other")
	}
}

func TestDatabaseGoesWithItsOpenConnections(t *testing.T) {
	var name string
	t.Run("owner", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), URL(t)) // left open
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var there bool
	err := connect(t, os.Getenv(Variable)).
		QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil {
		t.Fatal(err)
	}
	if there {
		t.Errorf("%s is still there", name)
	}
}

// The stores' promises are about what survives a crash; a cluster that does not
// sync would let a broken store pass.
func TestClusterSyncs(t *testing.T) {
	conn := connect(t, URL(t))
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&value); err != nil {
			t.Fatal(err)
		}
		if value != "on" {
			t.Errorf("%s is %s", setting, value)
		}
	}
}

func TestWithoutServerTheTestFails(t *testing.T) {
	for name, value := range map[string]string{
		"unset":       "",
		"not a URL":   "host=127.0.0.1 user=postgres",
		"wrong kind":  "mysql://127.0.0.1/",
		"unreachable": "postgres://postgres@127.0.0.1:1/postgres",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Variable, value)
			s := &stub{TB: t}
			func() {
				defer func() { _ = recover() }()
				URL(s)
			}()
			if s.message == "" {
				t.Fatal("did not fail")
			}
			if value == "" && !strings.HasSuffix(s.message, "run `make test` or set "+Variable) {
				t.Errorf("message %q does not say what to do", s.message)
			}
		})
	}
}

func connect(t *testing.T, server string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// stub is a test that notes why it ended.
type stub struct {
	testing.TB
	message string
}

func (s *stub) Fatalf(format string, args ...any) {
	s.message = fmt.Sprintf(format, args...)
	panic(s.message)
}
