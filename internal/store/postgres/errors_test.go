package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/internal/store"
)

func TestErrorsBySQLState(t *testing.T) {
	for _, c := range []struct {
		name      string
		err       error
		want, hot error // nil: no error of package store
	}{
		{"disk full", &pgconn.PgError{Code: "53100"}, store.ErrUnavailable, store.ErrUnavailable},
		{"too many connections", &pgconn.PgError{Code: "53300"}, store.ErrUnavailable, store.ErrUnavailable},
		{"admin shutdown", &pgconn.PgError{Code: "57P01"}, store.ErrUnavailable, store.ErrUnavailable},
		{"starting up", &pgconn.PgError{Code: "57P03"}, store.ErrUnavailable, store.ErrUnavailable},
		{"serialization", &pgconn.PgError{Code: "40001"}, store.ErrUnavailable, store.ErrUnavailable},
		{"deadlock", &pgconn.PgError{Code: "40P01"}, store.ErrUnavailable, store.ErrUnavailable},
		{"connection failure", &pgconn.PgError{Code: "08006"}, store.ErrUnavailable, store.ErrUnavailable},
		{"read-only after a failover", &pgconn.PgError{Code: "25006"}, store.ErrUnavailable, store.ErrUnavailable},
		{"I/O error", &pgconn.PgError{Code: "58030"}, store.ErrUnavailable, store.ErrUnavailable},
		{"unique violation", &pgconn.PgError{Code: "23505"}, store.ErrConflict, store.ErrConflict},
		{"lease lost", &pgconn.PgError{Code: stateLeaseLost}, store.ErrFenced, store.ErrFenced},
		{"bad value", &pgconn.PgError{Code: "22003"}, nil, nil},
		{"table is missing", &pgconn.PgError{Code: "42P01"}, nil, store.ErrUnavailable},
		{"no row", pgx.ErrNoRows, store.ErrNotFound, store.ErrUnavailable},
		{"end of file", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), store.ErrUnavailable, store.ErrUnavailable},
		{"network", &net.OpError{Op: "read", Err: errors.New("reset")}, store.ErrUnavailable, store.ErrUnavailable},
		{"connection closed", fmt.Errorf("x: %w", pgconn.ErrConnClosed), store.ErrUnavailable, store.ErrUnavailable},
		{"caller gave up", context.Canceled, store.ErrUnavailable, store.ErrUnavailable},
		{"time out", context.DeadlineExceeded, store.ErrUnavailable, store.ErrUnavailable},
		{"cannot scan", errors.New("cannot scan text into *int"), nil, store.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours := []error{store.ErrNotFound, store.ErrConflict, store.ErrUnavailable, store.ErrFenced}
			for _, err := range ours {
				if is := errors.Is(failed("do it", c.err), err); is != (err == c.want) {
					t.Errorf("is %v: %v", err, is)
				}
				if is := errors.Is(hotFailed("do it", c.err), err); is != (err == c.hot) {
					t.Errorf("on the hot path, is %v: %v", err, is)
				}
			}
		})
	}
	if failed("do it", nil) != nil || hotFailed("do it", nil) != nil {
		t.Error("success is an error")
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	const url = "postgres://user:hunter2@127.0.0.1:1/db" // nothing listens there
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("opening gave %v", err)
	}
}

// A receiver's answer must not make a batch permanently unstorable.
func TestTextThatPostgresRefusesIsCleaned(t *testing.T) {
	s := openAt(t, Options{})
	l := newLoad(t, s)
	accepted := l.accepts(2, false)
	l.commit(t, accepted)
	b := l.results(accepted)
	bad := "a\x00b\xff\xfec"
	for i := range b.Results {
		r := &b.Results[i]
		r.Delivery.Status, r.Delivery.Reason, r.LastDetail = "terminal", "status", bad
		r.Delivery.Run.Actor = bad
		r.Attempt.URL, r.Attempt.Trace.Body, r.Attempt.Trace.Detail = bad, bad, bad
		r.Attempt.Verdict.MoveTo = bad
		r.Event = accepted.Accepts[i].Events[0].Event
	}
	l.commit(t, b)
	d, err := s.DeadLetter(t.Context(), l.tenant, b.Results[0].Delivery.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want := "a\uFFFDb\uFFFDc"; d.LastDetail != want {
		t.Errorf("detail is %q, want %q", d.LastDetail, want)
	}
	as, err := s.Attempts(t.Context(), l.tenant, b.Results[0].Delivery.ID)
	if err != nil || len(as) != 1 {
		t.Errorf("attempts %v, %v", as, err)
	}
}

// A commit that was the victim of a deadlock is repeated: nothing of it is stored, and the database is not away.
func TestDeadlockedCommitIsRepeated(t *testing.T) {
	if !surprising(fmt.Errorf("commit: %w", &pgconn.PgError{Code: stateDeadlock})) {
		t.Error("a commit is not repeated after a deadlock")
	}
	if surprising(&pgconn.PgError{Code: "53100"}) || surprising(nil) {
		t.Error("a commit is repeated although the disk is full, or nothing failed")
	}
}
