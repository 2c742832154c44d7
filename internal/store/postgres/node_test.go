package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A process whose connection was lost keeps sending heartbeats while the server still considers that connection alive, and
// learns when another process takes its name.
func TestNodeIsKeptBesideALostConnection(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n := godwit.Node{Name: "a", Instance: "first", Holder: "a process"}
	if err := s.ClaimNode(ctx, n); err != nil {
		t.Fatal(err)
	}
	lost := s.node.conn
	s.node.conn = nil
	if err := beat(ctx, s, n); err != nil {
		t.Fatal(err)
	}
	if s.node.locked {
		t.Error("the new connection holds the lock of the lost one")
	}
	if err := lost.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for !s.node.locked { // until the server has noticed; each iteration is a round trip
		if err := beat(ctx, s, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(ctx, `UPDATE nodes SET instance = 'second'`); err != nil {
		t.Fatal(err)
	}
	if err := beat(ctx, s, n); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the error of a process that lost its name is %v", err)
	}
}

func beat(ctx context.Context, s *Store, n godwit.Node) error {
	_, err := s.Beat(ctx, store.Beat{Node: n, TTL: time.Minute})
	return err
}

// A node that is frozen while it moves shards keeps neither leases nor claims from the others.
func TestSilentTransactionEnds(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	frozen, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, int64(leaseLock)); err != nil {
		t.Fatal(err)
	}
	n := godwit.Node{Name: "a", Instance: "first", Holder: "a process"}
	for { // until the server has ended the transaction; each iteration waits for the lock
		if taken, err := s.Take(t.Context(), n, time.Minute, 1); err == nil {
			if len(taken) != 1 {
				t.Errorf("took %d shards", len(taken))
			}
			break
		}
	}
	if err := frozen.Commit(t.Context()); err == nil {
		t.Error("the transaction of a silent node was committed")
	}
}

// lockTracer counts the queries that ask for the lock of leases alone.
type lockTracer struct{ locks int }

func (l *lockTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if slices.Contains(q.Args, any(int64(leaseLock))) {
		l.locks++
	}
	return ctx
}

func (*lockTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The lock that holds up the commits of all nodes is asked for together with all that is done under it, so that a slow node does not keep it.
func TestLeasesChangeInOneRoundTrip(t *testing.T) {
	alone := &lockTracer{}
	s := openAt(t, Options{Now: suiteTime, tracer: alone})
	n := godwit.Node{Name: "a", Instance: "first", Holder: "a process"}
	taken, err := s.Take(t.Context(), n, time.Minute, 2)
	if err != nil || len(taken) != 2 {
		t.Fatal(taken, err)
	}
	if _, err := s.Reclaim(t.Context(), godwit.EndpointID{}, 1, nil, suiteTime); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), taken, true); err != nil {
		t.Fatal(err)
	}
	if alone.locks != 0 {
		t.Errorf("the lock was asked for %d times in a round trip of its own", alone.locks)
	}
}

// A process that lost its node's name takes nothing.
func TestTakeWithoutName(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	n := godwit.Node{Name: "a", Instance: "first", Holder: "a process"}
	if _, err := s.Take(t.Context(), n, time.Minute, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE nodes SET instance = 'second'`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), n, time.Minute, 1); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the error is %v", err)
	}
	if held := count(t, s, `SELECT count(*) FROM leases WHERE owner <> ''`); held != 1 {
		t.Errorf("%d leases have an owner, want 1", held)
	}
}
