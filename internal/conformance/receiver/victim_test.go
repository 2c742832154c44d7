package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/redis/go-redis/v9"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/postgresstore"
	"github.com/godwit-hq/godwit/receiver/redisstore"
	"github.com/godwit-hq/godwit/receiver/sqlitestore"
)

// The variables by which the test tells a receiver of its own what to serve.
const (
	childKind  = "TORTURE_KIND"
	childPlace = "TORTURE_PLACE"
	childAhead = "TORTURE_AHEAD"
)

func TestMain(m *testing.M) {
	if os.Getenv(childKind) == "" {
		os.Exit(apptest.RemoveBinary(m.Run()))
	}
	fmt.Fprintln(os.Stderr, "receiver:", victim())
	os.Exit(1)
}

// A place is where a store and the effects are.
type place struct {
	kind, name string
	inbox      bool // whether deliveries use an inbox
}

// lease is how long other receivers leave the keys, or the jobs, of a dead receiver alone.
func (p place) lease() time.Duration {
	if p.inbox {
		return workTime + stopTime + time.Minute
	}
	return tortureLease
}

const inboxSuffix = " inbox"

// String is the kind, as newPlace takes it.
func (p place) String() string {
	if p.inbox {
		return p.kind + inboxSuffix
	}
	return p.kind
}

// redisVariable names the environment variable with the URL of a Redis server that the tests may use.
const redisVariable = "GODWIT_TEST_REDIS"

func newPlace(t *testing.T, kind string) place {
	t.Helper()
	kind, inbox := strings.CutSuffix(kind, inboxSuffix)
	switch kind {
	case "memory":
		return place{kind: kind}
	case "sqlite":
		return place{kind, filepath.Join(t.TempDir(), "webhooks.db"), inbox}
	case "postgres":
		return place{kind, postgrestest.URL(t), inbox}
	}
	url := os.Getenv(redisVariable)
	if url == "" {
		t.Fatalf("no Redis for this test: run `make test`, `scripts/with-redis go test …`, or set %s", redisVariable)
	}
	return place{kind, url + " torture:" + strconv.FormatUint(rand.Uint64(), 36) + ":", inbox}
}

const effectsTable = `CREATE TABLE IF NOT EXISTS effects (event TEXT NOT NULL)`

// open opens the store, and what writes an effect in the transaction of a handler.
func (p place) open(ctx context.Context) (receiver.Store, func(ctx context.Context, event string) error, error) {
	switch p.kind {
	case "sqlite":
		s, err := sqlitestore.Open(ctx, p.name, sqlitestore.Options{})
		if err != nil {
			return nil, nil, err
		}
		_, err = s.DB().ExecContext(ctx, effectsTable)
		return s, func(ctx context.Context, event string) error {
			_, err := sqlitestore.Tx(ctx).ExecContext(ctx, `INSERT INTO effects VALUES (?)`, event)
			return err
		}, err
	case "postgres":
		pool, err := pgxpool.New(ctx, p.name)
		if err != nil {
			return nil, nil, err
		}
		s, err := postgresstore.New(ctx, pool, postgresstore.Options{})
		if err != nil {
			return nil, nil, err
		}
		// Two receivers start together; without arguments this is one transaction.
		_, err = pool.Exec(ctx, `SELECT pg_advisory_xact_lock(1); `+effectsTable)
		return s, func(ctx context.Context, event string) error {
			_, err := postgresstore.Tx(ctx).Exec(ctx, `INSERT INTO effects VALUES ($1)`, event)
			return err
		}, err
	}
	url, prefix, _ := strings.Cut(p.name, " ")
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	return redisstore.New(redis.NewClient(o), redisstore.Options{Prefix: prefix}), func(ctx context.Context, event string) error {
		if !redisstore.Queue(ctx, "HINCRBY", prefix+"effects", event, 1) {
			return errors.New("no transaction")
		}
		return nil
	}, nil
}

// effects counts them, by event.
func (p place) effects(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	if p.kind == "redis" {
		url, prefix, _ := strings.Cut(p.name, " ")
		o, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(o)
		defer client.Close()
		all, err := client.HGetAll(t.Context(), prefix+"effects").Result()
		if err != nil {
			t.Fatal(err)
		}
		for event, n := range all {
			counts[event], err = strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
		}
		return counts
	}
	driver := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[p.kind]
	db, err := sql.Open(driver, p.name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT event, count(*) FROM effects GROUP BY event`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var event string
		var n int
		if err := rows.Scan(&event, &n); err != nil {
			t.Fatal(err)
		}
		counts[event] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// victim is a receiver in a process of its own. It returns only if it cannot serve.
func victim() error {
	socket := os.NewFile(3, "socket")
	l, err := net.FileListener(socket)
	if err != nil {
		return err
	}
	ahead, err := strconv.ParseInt(os.Getenv(childAhead), 10, 64)
	if err != nil {
		return err
	}
	kind, inbox := strings.CutSuffix(os.Getenv(childKind), inboxSuffix)
	store, effect, err := place{kind, os.Getenv(childPlace), inbox}.open(context.Background())
	if err != nil {
		return err
	}
	handler := func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
		return suffer(ctx, d, effect)
	}
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead)) }
	o := tortured(receiver.Options{Store: store, Clock: clock})
	if inbox {
		worker, err := receiver.NewWorker(receiver.WorkerOptions{
			Inbox: store.(receiver.Inbox), Transactional: true, Handler: handler, Clock: clock, Log: o.Log,
			Timeout: workTime, StopTimeout: stopTime, Base: time.Millisecond, Cap: 10 * time.Millisecond, Poll: 50 * time.Millisecond, MaxAttempts: 1000,
		})
		if err != nil {
			return err
		}
		o.Inbox = worker
		go func() { _ = worker.Run(context.Background()) }()
	} else {
		o.Handler, o.Transactional = handler, true
	}
	r, err := receiver.New(o)
	if err != nil {
		return err
	}
	return http.Serve(l, dropping(r))
}

// The limits of workers.
const (
	workTime = 2 * time.Second
	stopTime = time.Second
)

// tortured are options that all receivers under torture share. Their clocks run apart by a lease with every death, hence the
// tolerance.
func tortured(o receiver.Options) receiver.Options {
	o.Scheme = receiver.StandardWebhooks{Keys: []string{"whsec_" + tortureSecret}}
	o.Timeout, o.Dedup.Lease, o.Freshness.Tolerance = 2*time.Second, tortureLease, 24*time.Hour
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// suffer writes the effect, and then may fail in any way.
func suffer(ctx context.Context, d *receiver.Delivery, effect func(context.Context, string) error) (receiver.Result, error) {
	if err := effect(ctx, d.Key); err != nil {
		return nil, err
	}
	n := rand.IntN(100)
	if n < 5 {
		return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL) // after the effect, before its completion
	}
	if result, err := fail(n - 5); result != nil || err != nil {
		return result, err
	}
	dawdle(ctx)
	return receiver.Accepted{Body: []byte(d.Key)}, nil
}

// fail fails in one of all ways, or not at all.
func fail(n int) (receiver.Result, error) {
	switch {
	case n < 5:
		return nil, errors.New("failed")
	case n < 10:
		panic("panicked")
	case n < 15:
		return receiver.RetryAfter{After: time.Millisecond}, nil
	}
	return nil, nil
}

// dawdle is, now and then, slow enough for the other receiver, whose clock may be ahead, to take the key over.
func dawdle(ctx context.Context) {
	if rand.IntN(4) != 0 {
		return
	}
	slow := time.NewTimer(time.Duration(rand.IntN(100)) * time.Millisecond)
	defer slow.Stop()
	select {
	case <-slow.C:
	case <-ctx.Done():
	}
}

// dropping drops connections before the receiver has seen a request, and after it has dealt with it.
func dropping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch n := rand.IntN(100); {
		case n < 3:
			panic(http.ErrAbortHandler)
		case n < 6:
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
}
