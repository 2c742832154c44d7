package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
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

// An index whose order does not fit its rows is found. The test changes the order that the catalogue states, which leaves the
// same state as a damaged page or a changed collation: searches miss rows.
func TestVerifyFindsADamagedIndex(t *testing.T) {
	url := postgrestest.URL(t)
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for range 3 {
		if err := s.CreateTenant(t.Context(), &godwit.Tenant{ID: godwit.NewTenantID(now), Name: "t", CreatedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, query := range []string{`CREATE EXTENSION amcheck`, `UPDATE pg_index SET indoption = '1' WHERE indexrelid = 'tenants_pkey'::regclass`} {
		if _, err := conn.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if looked, err := s.Verify(t.Context()); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "tenants_pkey") {
		t.Errorf("with a damaged index: %q, %v", looked, err)
	}
}
