package postgres

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
)

// A way is a proxy to the server that can be cut.
type way struct {
	listener net.Listener
	server   string
	swallow  atomic.Bool // the server's answer and the connection are lost
	lose     atomic.Bool // our request and the connection are lost
}

// newWay returns a URL that leads through the proxy.
func newWay(t *testing.T, target string) (*way, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l, server: u.Host}
	t.Cleanup(func() { l.Close() })
	go w.run()
	u.Host = l.Addr().String()
	return w, u.String()
}

func (w *way) run() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			client.Close()
			continue
		}
		go pass(server, client, &w.lose)
		go pass(client, server, &w.swallow)
	}
}

// pass copies until it is told to cut. The other side has handled everything that was read before the cut.
func pass(to, from net.Conn, cut *atomic.Bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || cut.Load() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// A commit whose answer is lost fails with ErrUnavailable, and may be repeated whether it took effect or not.
func TestCommitWithUnknownOutcomeCanBeRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		cut    func(*way) *atomic.Bool
		stored int // events after the first try
	}{
		"answer lost":  {func(w *way) *atomic.Bool { return &w.swallow }, 40},
		"request lost": {func(w *way) *atomic.Bool { return &w.lose }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			cut := c.cut
			direct := postgrestest.URL(t)
			w, through := newWay(t, direct)
			s, err := Open(t.Context(), through, Options{HotConnections: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			l := newLoad(t, s)
			before := l.accepts(20, false)
			l.commit(t, before)
			b := l.accepts(10, true)
			b.Accepts = append(b.Accepts, l.accepts(10, false).Accepts...)
			results := l.results(before)
			b.Results, b.Health = results.Results, results.Health
			b.Results[3].Delivery.Status, b.Results[3].KeepClaim = godwit.DeliveryPending, true

			cut(w).Store(true)
			if _, err := s.Commit(t.Context(), b); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("commit on a broken way gave %v", err)
			}
			cut(w).Store(false)

			observer, err := Open(t.Context(), direct, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer observer.Close()
			if events := count(t, observer, `SELECT count(*) FROM events`); events != c.stored {
				t.Fatalf("%d events after the first try, want %d", events, c.stored)
			}
			for try := range 2 { // and once more
				c, err := s.Commit(t.Context(), b)
				if errors.Is(err, store.ErrUnavailable) { // a connection that was pooled when the way was cut
					c, err = s.Commit(t.Context(), b)
				}
				if err != nil {
					t.Fatalf("repetition %d: %v", try, err)
				}
				for i, existing := range c.Existing {
					if existing != nil {
						t.Errorf("repetition %d: accept %d counts as another's", try, i)
					}
				}
			}
			for table, want := range map[string]int{
				"events": 40, "pending_deliveries": 21, "deliveries": 19, "attempts": 20, "idempotency_records": 10,
			} {
				if n := count(t, observer, `SELECT count(*) FROM `+table); n != want {
					t.Errorf("%s has %d rows, want %d", table, n, want)
				}
			}
			if n := count(t, observer, `SELECT count(*) FROM pending_deliveries WHERE claim_epoch <> 0`); n != 21 {
				t.Errorf("%d pending deliveries are claimed, want all 21", n)
			}
		})
	}
}

func count(t *testing.T, s *Store, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := s.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// An administrator kills the hot connections; the store reports it and recovers.
func TestConnectionsThatEndAreReplaced(t *testing.T) {
	s := openAt(t, Options{HotConnections: 1})
	l := newLoad(t, s)
	l.commit(t, l.accepts(3, false))
	_, err := s.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	b := l.accepts(3, false)
	if _, err := s.Commit(t.Context(), b); err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("commit on a dead connection gave %v", err)
	}
	l.commit(t, b)
	if n := count(t, s, `SELECT count(*) FROM events`); n != 6 {
		t.Errorf("%d events, want 6", n)
	}
}

// When the server ends all sessions, the first request that notices it is the only one that fails: the pools close their other connections, also those
// that were used too short a time ago to be tried before use.
func TestDeadConnectionsFailOneRequest(t *testing.T) {
	s := openAt(t, Options{HotConnections: 4, Connections: 4})
	pools := []*pgxpool.Pool{s.hot, s.pool}
	all := func(use func(*pgxpool.Conn)) {
		var held []*pgxpool.Conn
		for _, pool := range pools {
			for range 4 {
				conn, err := pool.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, conn)
			}
		}
		for _, conn := range held {
			use(conn)
			conn.Release()
		}
	}
	all(func(*pgxpool.Conn) {})
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hot, err := s.hot.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := conn.Conn().PgConn().PID()
	if _, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> $1`, own); err != nil {
		t.Fatal(err)
	}
	conn.Release()
	if err := hot.Ping(t.Context()); sqlState(err) != stateAdminShutdown {
		t.Fatalf("the session was not ended: %v", err)
	}
	hot.Release()
	all(func(conn *pgxpool.Conn) {
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("a dead connection was lent: %v", err)
		}
	})
}
