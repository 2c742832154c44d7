//go:build unix

package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
)

// execute runs a statement on a server, outside the store.
func execute(t *testing.T, c *postgrestest.Cluster, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// A synchronous standby is promoted under load: after the primary was killed, and after it was fenced, that is still there but
// read-only. The store finds the new primary by itself. Each acknowledged batch is stored exactly once.
func TestFailover(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, primary *postgrestest.Cluster){
		"killed": func(_ *testing.T, primary *postgrestest.Cluster) { primary.Kill() },
		"fenced": func(t *testing.T, primary *postgrestest.Cluster) {
			execute(t, primary, `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			primary := postgrestest.NewCluster(t)
			standby := primary.Standby(t.TempDir())
			primary.Synchronise()
			url := strings.Replace(primary.URL(), primary.Address(), primary.Address()+","+standby.Address(), 1)
			s, err := Open(t.Context(), url, Options{HotConnections: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			l := newLoad(t, s)

			const writers, size = 4, 20
			acks := make(chan int)
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() { writeUntil(ctx, t, l, size, acks) })
			}
			events := 0
			for range 40 {
				events += <-acks
			}
			moved := make(chan struct{})
			go func() {
				defer close(moved)
				end(t, primary)
				standby.Promote()
				execute(t, standby, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
			}()
			for done := false; !done; {
				select {
				case n := <-acks:
					events += n
				case <-moved:
					done = true
				}
			}
			for range 40 {
				events += <-acks
			}
			stop()
			go func() {
				wg.Wait()
				close(acks)
			}()
			for n := range acks {
				events += n
			}
			if s.connector.current() != standby.Address() {
				t.Errorf("the store uses %s", s.connector.current())
			}
			for table, want := range map[string]int{"events": events, "attempts": events, "deliveries": events, "pending_deliveries": 0} {
				if n := count(t, s, `SELECT count(*) FROM `+table); n != want {
					t.Errorf("%s has %d rows after the failover, %d were acknowledged", table, n, want)
				}
			}
		})
	}
}

// Connections that only read get no error from a primary that was fenced. They are replaced once another connection has found the new one.
func TestReadsFollowThePrimary(t *testing.T) {
	primary := postgrestest.NewCluster(t)
	standby := primary.Standby(t.TempDir())
	primary.Synchronise()
	url := strings.Replace(primary.URL(), primary.Address(), primary.Address()+","+standby.Address(), 1)
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	reads := func() string {
		var address string
		if err := s.pool.QueryRow(t.Context(), `SELECT host(inet_server_addr()) || ':' || inet_server_port()`).Scan(&address); err != nil {
			t.Fatal(err)
		}
		return address
	}
	if at := reads(); at != primary.Address() {
		t.Fatalf("reads go to %s", at)
	}
	execute(t, primary, `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`)
	standby.Promote()
	s.hot.Reset() // as if their requests had run out of time
	for s.connector.current() != standby.Address() {
		_ = s.hot.Ping(t.Context()) // fails while the pause between two attempts lasts
	}
	if at := reads(); at != standby.Address() {
		t.Errorf("reads go to %s, the primary is %s", at, standby.Address())
	}
}

// PostgreSQL reports a commit as successful when its wait for the standby is cancelled. The store does not acknowledge it, also not
// when it is repeated, until the standby has it.
func TestCommitThatWasNotReplicated(t *testing.T) {
	c := postgrestest.NewCluster(t)
	s := openURL(t, c.URL())
	l := newLoad(t, s)
	var batch *store.Batch
	events := 0
	execute(t, c, `ALTER SYSTEM SET synchronous_standby_names = 'absent'`, `SELECT pg_reload_conf()`)
	var err1 error
	for err1 == nil { // until the server has read its settings
		batch = l.accepts(1, false)
		events++
		err1 = commitWithoutWaiting(t, c, s, batch)
	}
	err2 := commitWithoutWaiting(t, c, s, batch)
	if !errors.Is(err1, store.ErrUnavailable) || !errors.Is(err2, store.ErrUnavailable) {
		t.Errorf("commits gave %v, %v", err1, err2)
	}
	execute(t, c, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
	if _, err := s.Commit(t.Context(), batch); err != nil {
		t.Errorf("with the standby back: %v", err)
	}
	if n := count(t, s, `SELECT count(*) FROM events`); n != events {
		t.Errorf("%d events are stored, want %d", n, events)
	}
}

// commitWithoutWaiting commits while every wait for the standby is cancelled.
func commitWithoutWaiting(t *testing.T, c *postgrestest.Cluster, s *Store, b *store.Batch) error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), b)
		done <- err
	}()
	for {
		execute(t, c, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
		select {
		case err := <-done:
			return err
		default:
		}
	}
}
