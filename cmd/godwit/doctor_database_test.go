//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store/postgres"
)

// doctor reads the settings of the database, its limits and the nodes on it. Each finding says what to do.
func TestDoctorExaminesTheDatabase(t *testing.T) {
	c := postgrestest.NewCluster(t)
	ring := app.GenerateRing()
	data := t.TempDir()
	look := func() (int, string) {
		t.Helper()
		var out strings.Builder
		code := run([]string{"doctor", "--data", data, "--store", c.URL(), "--listen", "127.0.0.1:0"}, &environment{
			ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out,
			lookup: func(name string) (string, bool) {
				if name == "GODWIT_KEYRING" {
					return ring, true
				}
				return "", false
			},
		})
		return code, out.String()
	}
	shows := func(text string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !regexp.MustCompile(line).MatchString(text) {
				t.Errorf("no line %q in:\n%s", line, text)
			}
		}
	}
	s, err := postgres.Open(t.Context(), c.URL(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	code, text := look()
	if code != exitOK {
		t.Errorf("ended with %d", code)
	}
	shows(text, `ok +store +postgres`, `ok +pooler +connected`, `ok +durability`, `ok +autovacuum`, `ok +clock skew`, `ok +connections +14 of`, `ok +nodes +none runs`)

	execute := func(statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), c.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, sql := range statements {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	execute(`ALTER ROLE postgres SET synchronous_commit = off`, `ALTER DATABASE postgres CONNECTION LIMIT 30`,
		`INSERT INTO nodes (name, instance, holder, version, claimed_at, seen_at, lease_until)
			SELECT n, n, '', 'v0.' || n, now(), now(), now() + interval '1 hour' FROM unnest(ARRAY['1', '2', '3']) AS n`)
	code, text = look()
	if code != exitOK {
		t.Errorf("with warnings ended with %d", code)
	}
	shows(text, `warn +durability +synchronous_commit is off`, `warn +connections +3 nodes with 14 .* admits 30 .*CONNECTION LIMIT`,
		`warn +nodes .*running: 1 v0.1, 2 v0.2, 3 v0.3`, `→ finish the upgrade`)

	execute(`SET synchronous_commit = on`, `ALTER ROLE postgres RESET ALL`, `ALTER DATABASE postgres CONNECTION LIMIT 10`) // survives the crash
	c.Crash()
	c.Configure("full_page_writes = off", "autovacuum = off")
	c.Start()
	code, text = look()
	if code != exitFailed {
		t.Errorf("with failures ended with %d", code)
	}
	shows(text, `fail +durability +full_page_writes is off`, `→ set full_page_writes = on`, `fail +autovacuum`, `→ set autovacuum = on`,
		`fail +connections +this node may use 14 connections, and the server admits 10`)

	c.Crash()
	code, text = look()
	if code != exitFailed {
		t.Errorf("without a database ended with %d", code)
	}
	shows(text, `fail +database`, `→ start the database`, `durability +not looked at`)
}

// A pooler that shares sessions is named by the doctor.
func TestDoctorFindsAPooler(t *testing.T) {
	for mode, line := range map[string]string{"session": `ok +pooler +a pooler in session mode`, "transaction": `fail +database .*pool_mode=session`} {
		var out strings.Builder
		run([]string{"doctor", "--data", t.TempDir(), "--store", postgrestest.Pooler(t, postgrestest.URL(t), mode), "--listen", "127.0.0.1:0"}, &environment{
			ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out, lookup: func(string) (string, bool) { return "", false },
		})
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("%s: no line %q in:\n%s", mode, line, out.String())
		}
	}
}

func TestDatabaseFindings(t *testing.T) {
	good := postgres.Settings{Fsync: true, FullPageWrites: true, SynchronousCommit: "on", Autovacuum: true, Admitted: 97}
	with := func(change func(*postgres.Settings)) postgres.Settings {
		s := good
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		found finding
		want  string
	}{
		"fsync off":        {examineDurability(with(func(s *postgres.Settings) { s.Fsync = false })), resultFail},
		"local":            {examineDurability(with(func(s *postgres.Settings) { s.SynchronousCommit = "local" })), resultOK},
		"local, standbys":  {examineDurability(with(func(s *postgres.Settings) { s.SynchronousCommit, s.Standbys = "local", "*" })), resultWarn},
		"same time":        {examineSkew(with(func(s *postgres.Settings) { s.Ahead = 300 * time.Millisecond })), resultOK},
		"slow answer":      {examineSkew(with(func(s *postgres.Settings) { s.Ahead, s.Uncertain = 3*time.Second, 3*time.Second })), resultOK},
		"two seconds":      {examineSkew(with(func(s *postgres.Settings) { s.Ahead = -2 * time.Second })), resultWarn},
		"an hour":          {examineSkew(with(func(s *postgres.Settings) { s.Ahead = -time.Hour })), resultFail},
		"six nodes fit":    {examineConnections(good, 14, 6), resultOK},
		"seven do not":     {examineConnections(good, 14, 7), resultWarn},
		"not even one":     {examineConnections(good, 98, 0), resultFail},
		"no node runs yet": {examineConnections(good, 97, 0), resultOK},
	} {
		if c.found.Result != c.want || c.want != resultOK && c.found.Advice == "" {
			t.Errorf("%s: %+v", name, c.found)
		}
	}
}
