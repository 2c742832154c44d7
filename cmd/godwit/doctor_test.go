package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// doctor examines a store that a server has used: its secrets open only with the ring that sealed them.
func TestDoctorOpensWhatTheServerSealed(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	srv.Endpoint("http://127.0.0.1:1/", apptest.Fields{"headers": map[string]string{"X-Key": "hush"}})
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ring string
		code int
		line string
	}{
		{srv.Config.Keyring, exitOK, "ok    store        sqlite"},
		{app.GenerateRing(), exitFailed, "fail  store        a secret in the store does not open"},
	} {
		var out, complaint strings.Builder
		code := run([]string{"doctor", "--data", srv.Config.Data, "--listen", "127.0.0.1:0"}, &environment{
			ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &complaint,
			lookup: func(name string) (string, bool) {
				if name == "GODWIT_KEYRING" {
					return c.ring, true
				}
				return "", false
			},
		})
		if code != c.code || !strings.Contains(out.String(), c.line) {
			t.Errorf("ended with %d, wanted %d and %q:\n%s%s", code, c.code, c.line, out.String(), complaint.String())
		}
	}
}

// doctor finds a database in which some bytes were changed by other means.
func TestDoctorFindsDamage(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	srv.Endpoint("http://127.0.0.1:1/")
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(srv.Config.Data, "godwit.db")
	look := func() (int, string) {
		var out strings.Builder
		code := run([]string{"doctor", "--data", srv.Config.Data, "--listen", "127.0.0.1:0"}, &environment{
			ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out,
			lookup: func(name string) (string, bool) {
				if name == "GODWIT_KEYRING" {
					return srv.Config.Keyring, true
				}
				return "", false
			},
		})
		return code, out.String()
	}
	if code, text := look(); code != exitOK || !strings.Contains(text, "quick_check found no damage") {
		t.Fatalf("ended with %d:\n%s", code, text)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	last := len(content)/page - 1
	for i := range 30 {
		content[last*page+i] ^= 0x5a // the head of the last page
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := look(); code != exitFailed || !strings.Contains(text, "fail  integrity") || !strings.Contains(text, "restore the database") {
		t.Errorf("ended with %d:\n%s", code, text)
	}
}

// doctor names a damaged index of PostgreSQL and says how to mend it.
func TestDoctorFindsADamagedIndex(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{Postgres: true})
	for _, name := range []string{"a", "b", "c"} {
		srv.NewTenant(name, godwit.ScopeRead)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), srv.Config.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	// The index's rows stand in another order than the catalogue states, as after a change of collation.
	for _, query := range []string{`CREATE EXTENSION amcheck`, `UPDATE pg_index SET indoption = '1' WHERE indexrelid = 'tenants_pkey'::regclass`} {
		if _, err := conn.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	code := run([]string{"doctor", "--data", srv.Config.Data, "--store", srv.Config.Store, "--listen", "127.0.0.1:0"}, &environment{
		ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out,
		lookup: func(name string) (string, bool) {
			if name == "GODWIT_KEYRING" {
				return srv.Config.Keyring, true
			}
			return "", false
		},
	})
	if text := out.String(); code != exitFailed || !strings.Contains(text, "fail  integrity") || !strings.Contains(text, "tenants_pkey") || !strings.Contains(text, "REINDEX") {
		t.Errorf("ended with %d:\n%s", code, text)
	}
}
