// Package postgrestest gives each test a PostgreSQL database of its own.
//
//	GODWIT_TEST_POSTGRES (scripts/with-postgres) ─┬─► URL(t): CREATE DATABASE ─────────────────┬─► test ─► DROP DATABASE
//	                                              └─► Template.URL(t): the same, as a copy of ─┘
//	                                                  a database that is prepared once
//
// URL and Template start no server, apply no migration and never skip: without a
// server the test fails and says how to get one. NewCluster starts a server of the
// test's own, which the test may crash, kill and fail over.
package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

// Variable names the environment variable with the URL of a superuser on the
// cluster that the tests may use.
const Variable = "GODWIT_TEST_POSTGRES"

// patience bounds one statement on the cluster; creating a database waits for
// its turn when many tests start together.
const patience = 5 * time.Minute

// URL creates an empty database for the test and returns its URL. The database
// goes when the test ends, with the connections still open to it.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, serverURL(t), "")
}

// serverURL reads the variable; the test fails without a usable one. In short mode it skips the test.
func serverURL(t testing.TB) *url.URL {
	t.Helper()
	slowtest.Needs(t, "PostgreSQL")
	server := os.Getenv(Variable)
	if server == "" {
		t.Fatalf("no PostgreSQL for this test: run `make test` or set %s", Variable)
	}
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		t.Fatalf("%s must be a URL such as postgres://postgres@127.0.0.1:5432/postgres", Variable)
	}
	return u
}

// create makes a database that goes with the test; options follow its name in CREATE DATABASE.
func create(t testing.TB, server *url.URL, options string) string {
	t.Helper()
	name := "godwit_test_" + strings.ToLower(rand.Text())
	if err := execute(server, "CREATE DATABASE "+name+options); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return at(server, name)
}

// at is the URL of another database on the server.
func at(server *url.URL, database string) string {
	u := *server
	u.Path = "/" + database
	return u.String()
}

// execute runs one statement on a connection of its own: the test's context is
// gone by the time of the cleanup, and a pool would hold the cluster's slots.
func execute(server *url.URL, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
