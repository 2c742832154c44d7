package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// Without amcheck Verify checks nothing and tells the operator so; with it, it checks every index.
func TestVerifyByAmcheck(t *testing.T) {
	url := postgrestest.URL(t)
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if looked, err := s.Verify(t.Context()); err != nil || !strings.Contains(looked, "amcheck is not installed") {
		t.Errorf("without amcheck: %q, %v", looked, err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `CREATE EXTENSION amcheck`); err != nil {
		t.Fatal(err)
	}
	if looked, err := s.Verify(t.Context()); err != nil || !strings.HasPrefix(looked, "amcheck found no damage in ") || strings.Contains(looked, " 0 indexes") {
		t.Errorf("with amcheck: %q, %v", looked, err)
	}
}
