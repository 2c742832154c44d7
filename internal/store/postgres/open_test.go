package postgres

import (
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
)

func TestSchemaIsReadWithoutChangingIt(t *testing.T) {
	url := postgrestest.URL(t)
	for _, opened := range []bool{false, true} {
		schema, err := ReadSchema(t.Context(), url)
		if err != nil || schema.Current < 1 || !schema.Usable || opened && schema.Version != schema.Current || !opened && schema.Version != 0 {
			t.Errorf("opened %v: %+v, %v", opened, schema, err)
		}
		s, err := Open(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestNodesThatStartTogetherMigrateOnce(t *testing.T) {
	url := postgrestest.URL(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(t.Context(), url, Options{HotConnections: 1, Connections: 1})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestServerIsChecked(t *testing.T) {
	for _, c := range []struct {
		server serverInfo
		want   string
	}{
		{serverInfo{number: 150018, version: "15.18", encoding: "UTF8"}, ""},
		{serverInfo{number: 180000, version: "18.0", encoding: "UTF8"}, ""},
		{serverInfo{number: 140005, version: "14.5 (Debian)", encoding: "UTF8"}, "the server is PostgreSQL 14.5 (Debian), but 15 or newer is needed"},
		{serverInfo{number: 150018, version: "15.18", encoding: "SQL_ASCII"}, "the database has encoding SQL_ASCII, but UTF8 is needed"},
	} {
		err := c.server.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.server, err)
		}
	}
}

func TestBadURLKeepsItsPassword(t *testing.T) {
	for _, url := range []string{
		"postgres://user:hunter2@%zz/db", "postgres://user:hunter2@host:port/db", "postgres://user:hunter2@host/db?sslmode=bogus",
		"mysql://user:hunter2@host/db", "host=x password=hunter2", "", "postgres://user:hunter2@127.0.0.1:1/db",
	} {
		_, err := Open(t.Context(), url, Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestDescribeShowsNoPassword(t *testing.T) {
	s := openAt(t, Options{})
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := s.pool.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	if d.Backend != "postgres" || !strings.HasSuffix(d.Location, "/"+name) || strings.Contains(d.Location, "@") {
		t.Errorf("description is %+v", d)
	}
	if !strings.Contains(d.Durability, "synchronous_commit=on") {
		t.Errorf("durability is %q", d.Durability)
	}
}

// A default of the database or role must not weaken the durability of an acknowledged commit.
func TestCommitsAreSynchronousWhateverTheDefault(t *testing.T) {
	url := postgrestest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, q := range map[string]querier{"hot": s.hot, "cold": s.pool} {
		r, err := q.Query(t.Context(), `SHOW synchronous_commit`)
		if err != nil {
			t.Fatal(err)
		}
		if value, err := pgx.CollectExactlyOneRow(r, pgx.RowTo[string]); err != nil || value != "on" {
			t.Errorf("%s connections commit with synchronous_commit=%s, %v", name, value, err)
		}
	}
}
