package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func newConnector() *connector { return &connector{log: slog.New(slog.DiscardHandler)} }

// hosts lists the hosts of a configuration in the order in which they are tried.
func hosts(config *pgx.ConnConfig) []string {
	list := []string{server{config.Host, config.Port}.String()}
	for _, f := range config.Fallbacks {
		list = append(list, server{f.Host, f.Port}.String())
	}
	return slices.Compact(list) // each host is tried with TLS and without
}

func TestSeveralHosts(t *testing.T) {
	for _, c := range []struct {
		url       string
		hosts     string
		validated bool
	}{
		{"postgres://u:p@a:1,b:2/db", "a:1 b:2", true},
		{"postgres://u:p@a:1,b/db", "a:1 b:5432", true},
		{"postgres://u:p@[::1]:1,[::2]:2/db", "[::1]:1 [::2]:2", true},
		{"postgresql:///db?host=a,b&port=1,2", "a:1 b:2", true},
		{"postgres://u:p@a:1/db", "a:1", false},
		{"postgres://u:p@a:1/db?sslmode=disable", "a:1", false},
	} {
		config, err := parseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if got := strings.Join(hosts(config.ConnConfig), " "); got != c.hosts {
			t.Errorf("%s: hosts %s", c.url, got)
		}
		if validated := config.ConnConfig.ValidateConnect != nil; validated != c.validated {
			t.Errorf("%s: the session is validated: %v", c.url, validated)
		}
	}
}

// The URL's own choice among the hosts is kept.
func TestSessionAttributesOfTheURL(t *testing.T) {
	for url, validated := range map[string]bool{
		"postgres://u@a,b/db?target_session_attrs=any": false, "postgres://u@a/db?target_session_attrs=primary": true,
	} {
		config, err := parseURL(url)
		if err != nil || (config.ConnConfig.ValidateConnect != nil) != validated {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// The host that took the last connection is tried first.
func TestLastHostComesFirst(t *testing.T) {
	config, err := parseURL("postgres://u:p@a:1,b:2,c:3/db")
	if err != nil {
		t.Fatal(err)
	}
	c := newConnector()
	for _, last := range []struct {
		server server
		want   string
	}{{server{}, "a:1 b:2 c:3"}, {server{"b", 2}, "b:2 a:1 c:3"}, {server{"c", 3}, "c:3 a:1 b:2"}, {server{"gone", 1}, "a:1 b:2 c:3"}} {
		c.last = last.server
		tried := config.ConnConfig.Copy()
		if err := c.before(t.Context(), tried); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(hosts(tried), " "); got != last.want {
			t.Errorf("after %s: %s, want %s", last.server, got, last.want)
		}
	}
}

// While no host takes connections, one attempt is made after each pause, and the pauses grow to a second.
func TestReconnectsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, err := parseURL("postgres://u:p@a:1/db")
		if err != nil {
			t.Fatal(err)
		}
		c := newConnector()
		away := errors.New("refused")
		var attempts []time.Duration
		began := time.Now()
		for time.Since(began) < 10*time.Second {
			err := c.before(t.Context(), config.ConnConfig.Copy())
			switch {
			case err == nil:
				attempts = append(attempts, time.Since(began))
				c.failed(away, time.Now())
			case !errors.Is(err, errWaiting) || !unavailable(err):
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if len(attempts) < 10 || len(attempts) > 30 {
			t.Errorf("%d attempts in 10 s: %v", len(attempts), attempts)
		}
		for i := 1; i < len(attempts); i++ {
			least := min(minPause<<(i-1), maxPause) / 2
			if pause := attempts[i] - attempts[i-1]; pause < least || pause > maxPause+2*time.Millisecond {
				t.Errorf("pause %d is %s, want %s to %s", i, pause, least, maxPause)
			}
		}
		c.took(server{"a", 1})
		for range 20 {
			if err := c.before(t.Context(), config.ConnConfig.Copy()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// While an attempt is under way, the others wait for its result.
func TestOneAttemptAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, err := parseURL("postgres://u:p@a:1/db")
		if err != nil {
			t.Fatal(err)
		}
		c := newConnector()
		c.failed(errors.New("refused"), time.Now())
		time.Sleep(maxPause)
		permitted := 0
		for range 12 {
			if c.before(t.Context(), config.ConnConfig.Copy()) == nil {
				permitted++
			}
		}
		if permitted != 1 {
			t.Errorf("%d attempts at once", permitted)
		}
	})
}

// A caller that gives up says nothing about the database.
func TestCallerThatGivesUpIsNoFailure(t *testing.T) {
	c := newConnector()
	tracer := &connectTracer{connector: c}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.TraceConnectEnd(ctx, pgx.TraceConnectEndData{Err: fmt.Errorf("connect: %w", ctx.Err())})
	if c.failures != 0 {
		t.Error("counted as a failure")
	}
	tracer.TraceConnectEnd(t.Context(), pgx.TraceConnectEndData{Err: errors.New("refused")})
	if c.failures != 1 {
		t.Error("a failure is not counted")
	}
}

// tooLong is the error of a connection that takes too long.
func tooLong(t *testing.T) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nothing answers there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = pgconn.Connect(ctx, "postgres://u@"+l.Addr().String()+"/db?sslmode=disable")
	if err == nil || !pgconn.Timeout(err) {
		t.Fatalf("no timeout: %v", err)
	}
	return err
}

// A busy server took too long for one connection. Queries that need another are refused only if the server did not answer meanwhile, and only until it does.
func TestSlowServerIsNotAway(t *testing.T) {
	timeout := tooLong(t)
	refused := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		config, err := parseURL("postgres://u:p@a:1/db")
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name  string
			steps func(tracer *connectTracer, fails func(error))
			away  bool
		}{
			{"a timeout", func(_ *connectTracer, fails func(error)) { fails(timeout) }, true},
			{"a timeout while queries are answered", func(tracer *connectTracer, fails func(error)) {
				tracer.TraceQueryEnd(t.Context(), nil, pgx.TraceQueryEndData{})
				fails(timeout)
			}, false},
			{"a timeout while queries fail", func(tracer *connectTracer, fails func(error)) {
				tracer.TraceQueryEnd(t.Context(), nil, pgx.TraceQueryEndData{Err: timeout})
				fails(timeout)
			}, true},
			{"a timeout before queries are answered", func(tracer *connectTracer, fails func(error)) {
				fails(timeout)
				tracer.TraceQueryEnd(t.Context(), nil, pgx.TraceQueryEndData{})
			}, false},
			{"a refusal while queries are answered", func(tracer *connectTracer, fails func(error)) {
				tracer.TraceQueryEnd(t.Context(), nil, pgx.TraceQueryEndData{})
				fails(refused)
				tracer.TraceQueryEnd(t.Context(), nil, pgx.TraceQueryEndData{})
			}, true},
			{"a refusal and a timeout before queries are answered", func(tracer *connectTracer, fails func(error)) {
				fails(refused)
				fails(timeout)
				tracer.TraceQueryEnd(t.Context(), nil, pgx.TraceQueryEndData{})
			}, true},
			{"an attempt that ends after a later one succeeded", func(tracer *connectTracer, fails func(error)) {
				tracer.connector.took(server{"a", 1})
				fails(timeout)
				fails(refused)
			}, false},
		} {
			c := newConnector()
			c.took(server{"a", 1})
			tracer := &connectTracer{connector: c}
			ctx := tracer.TraceConnectStart(t.Context(), pgx.TraceConnectStartData{})
			time.Sleep(time.Millisecond)
			test.steps(tracer, func(err error) {
				time.Sleep(time.Millisecond)
				tracer.TraceConnectEnd(ctx, pgx.TraceConnectEndData{Err: err})
			})
			if away := c.before(t.Context(), config.ConnConfig.Copy()) != nil; away != test.away {
				t.Errorf("%s: counts as away: %v", test.name, away)
			}
		}
	})
}

// After a server was down, the connections that were made before are closed. A server that only rejected connections, or was slow, keeps them.
func TestConnectionsBeforeAnOutageAreClosed(t *testing.T) {
	down := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, test := range []struct {
		name     string
		failures []error
		closed   bool
	}{
		{"no failure", nil, false},
		{"refused", []error{down}, true},
		{"starting", []error{&pgconn.PgError{Code: stateCannotConnect}}, true},
		{"full", []error{&pgconn.PgError{Code: "53300"}}, false},
		{"refused, then full", []error{down, &pgconn.PgError{Code: "53300"}}, true},
		{"slow", []error{tooLong(t)}, false},
	} {
		closed := false
		c := newConnector()
		c.renewed = func() { closed = true }
		c.took(server{"a", 1})
		for _, err := range test.failures {
			c.failed(err, time.Now())
		}
		c.took(server{"a", 1})
		if closed != test.closed {
			t.Errorf("%s: the connections are closed: %v", test.name, closed)
		}
		closed = false
		if c.took(server{"a", 1}); closed {
			t.Errorf("%s: closed again", test.name)
		}
	}
}
