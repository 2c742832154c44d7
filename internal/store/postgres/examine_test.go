package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
)

// A pooler works in session mode only.
func TestPooler(t *testing.T) {
	direct := newDatabase(t, Options{Now: suiteTime})
	t.Run("session", func(t *testing.T) {
		s := openURL(t, postgrestest.Pooler(t, direct, "session"))
		l := newLoad(t, s)
		l.commit(t, l.accepts(3, false))
	})
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			_, err := Open(t.Context(), postgrestest.Pooler(t, direct, mode), Options{Now: suiteTime})
			if !errors.Is(err, errTransactionMode) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("opening gave %v", err)
			}
		})
	}
}

func TestConnectionBudget(t *testing.T) {
	for _, c := range []struct {
		limit  connectionLimit
		budget int
		err    string
		warned bool
	}{
		{connectionLimit{most: 100, reserved: 3, role: -1, database: -1, used: 10}, 14, "", false},
		{connectionLimit{most: 100, reserved: 3, role: -1, database: -1, used: 90}, 14, "", true},
		{connectionLimit{most: 16, reserved: 3, role: -1, database: -1}, 14, "this node may use 14 connections, but the server admits 13 to this user (max_connections)", false},
		{connectionLimit{most: 100, reserved: 3, role: 5, database: -1}, 14, "admits 5 to this user (the role's CONNECTION LIMIT)", false},
		{connectionLimit{most: 100, reserved: 3, role: 20, database: 6}, 14, "admits 6 to this user (the database's CONNECTION LIMIT)", false},
	} {
		var log bytes.Buffer
		err := c.limit.check(c.budget, slog.New(slog.NewTextHandler(&log, nil)))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v", c.limit, err)
		}
		if (log.Len() > 0) != c.warned {
			t.Errorf("%+v: logged %q", c.limit, log.String())
		}
	}
	for n := LeastBudget; n < 100; n++ {
		if o := Share(n); o.Budget() != n || o.HotConnections < 1 || o.Connections < 2 {
			t.Errorf("a share of %d gives %+v", n, o)
		}
	}
}

// A server that can never carry the node's connections is refused at the start.
func TestServerThatAdmitsTooFewConnections(t *testing.T) {
	direct := newDatabase(t, Options{Now: suiteTime})
	conn, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 9', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	o := Share(9)
	o.Now = suiteTime
	s, err := Open(t.Context(), direct, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	o = Share(10)
	if _, err := Open(t.Context(), direct, o); err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "admits 9") {
		t.Errorf("opening gave %v", err)
	}
}

// What only an operator can mend does not count as temporary, so that a server ends instead of waiting for ever.
func TestLastingErrors(t *testing.T) {
	direct, err := url.Parse(newDatabase(t, Options{Now: suiteTime}))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(u *url.URL){
		"no such database": func(u *url.URL) { u.Path = "/godwit_missing" },
		"no such user":     func(u *url.URL) { u.User = url.User("godwit_missing") },
	} {
		u := *direct
		change(&u)
		if _, err := Open(t.Context(), u.String(), Options{}); err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		codes   []string
		lasting bool
	}{
		{[]string{"28P01"}, true}, {[]string{"28000", "28000"}, true}, {[]string{"3D000"}, true}, {[]string{"42501"}, true},
		{[]string{"57P03"}, false}, {[]string{"57P03", "28P01"}, false}, {[]string{"53300"}, false}, {nil, false},
	} {
		var errs []error
		for _, code := range c.codes {
			errs = append(errs, fmt.Errorf("host: %w", &pgconn.PgError{Code: code}))
		}
		if got := lasting(fmt.Errorf("connect: %w", errors.Join(errs...))); got != c.lasting {
			t.Errorf("%v: lasting %v", c.codes, got)
		}
	}
}
