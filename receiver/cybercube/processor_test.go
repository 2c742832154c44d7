package cybercube_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver/cybercube"
)

// The variables by which a test process tells a child of its own which database to process events in.
const (
	childDriver = "CYBERCUBE_TEST_DRIVER"
	childSource = "CYBERCUBE_TEST_SOURCE"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDriver) == "" {
		os.Exit(m.Run())
	}
	if err := processAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var dialects = map[string]cybercube.Dialect{"sqlite": cybercube.SQLite, "pgx": cybercube.Postgres}

func openSource(t testing.TB, driver string) (source string) {
	if driver == "pgx" {
		return postgrestest.URL(t)
	}
	source = filepath.Join(t.TempDir(), "events.db") + "?_pragma=busy_timeout(600000)"
	// The change to WAL does not wait for other connections, so it is made before a test opens several.
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "PRAGMA journal_mode = WAL"); err != nil {
		t.Fatal(err)
	}
	return source
}

func openDB(t testing.TB, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// eachEvents runs a test on every memory of events.
func eachEvents(t *testing.T, test func(t *testing.T, events cybercube.Events)) {
	t.Run("memory", func(t *testing.T) { test(t, cybercube.NewMemoryEvents()) })
	for driver, dialect := range dialects {
		t.Run(driver, func(t *testing.T) {
			events, err := cybercube.NewSQLEvents(t.Context(), openDB(t, driver, openSource(t, driver)), dialect)
			if err != nil {
				t.Fatal(err)
			}
			test(t, events)
		})
	}
}

var start = time.Date(2026, 1, 17, 10, 0, 0, 123456789, time.UTC)

type rig struct {
	*cybercube.Processor
	now   time.Time
	calls atomic.Int32
	fail  error
	began chan struct{} // closed when a handler that is to block has begun
	block chan struct{}
}

func newRig(t *testing.T, events cybercube.Events) *rig {
	t.Helper()
	g := &rig{now: start}
	var err error
	g.Processor, err = cybercube.NewProcessor(cybercube.ProcessorOptions{
		Events: events, Clock: func() time.Time { return g.now },
		Handlers: map[string]cybercube.Handler{"order.paid": func(context.Context, *cybercube.Event) (string, error) {
			g.calls.Add(1)
			if g.block != nil {
				close(g.began)
				<-g.block
			}
			return "booked", g.fail
		}, "panics": func(context.Context, *cybercube.Event) (string, error) { panic("no") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var paid = &cybercube.Event{ID: "evt_01JHS0EXAMPLE00000000000AB", Type: "order.paid"}

func (g *rig) want(t *testing.T, e *cybercube.Event, status cybercube.Status) *cybercube.Result {
	t.Helper()
	got, err := g.Process(t.Context(), e)
	if err != nil || got.Status != status {
		t.Fatalf("%+v, %v; want %s", got, err, status)
	}
	return got
}

func TestProcessor(t *testing.T) {
	trace.Covers(t, "CCW-IDM-1", "CCW-IDM-2", "CCW-IDM-3", "CCW-IDM-12")
	eachEvents(t, func(t *testing.T, events cybercube.Events) {
		g := newRig(t, events)
		if got := g.want(t, paid, cybercube.StatusProcessed); got.Result != "booked" {
			t.Errorf("%+v", got)
		}
		g.now = g.now.Add(time.Hour)
		got := g.want(t, paid, cybercube.StatusDuplicate)
		if o := got.Original; o.EventID != paid.ID || o.Result != "booked" || !o.ProcessedAt.Truncate(time.Microsecond).Equal(start.Truncate(time.Microsecond)) {
			t.Errorf("original %+v", o)
		}
		if g.calls.Load() != 1 {
			t.Errorf("handled %d times", g.calls.Load())
		}
		other := &cybercube.Event{ID: "evt_other", Type: "unknown.type"}
		if got := g.want(t, other, cybercube.StatusProcessed); got.Result != "unhandled" {
			t.Errorf("%+v", got)
		}
		g.want(t, other, cybercube.StatusDuplicate)
	})
}

func TestProcessorReleases(t *testing.T) {
	trace.Covers(t, "CCW-IDM-4")
	eachEvents(t, func(t *testing.T, events cybercube.Events) {
		g := newRig(t, events)
		g.fail = errors.New("not now")
		if _, err := g.Process(t.Context(), paid); !errors.Is(err, g.fail) {
			t.Fatalf("%v is not propagated", err)
		}
		if _, err := g.Process(t.Context(), &cybercube.Event{ID: "evt_p", Type: "panics"}); err == nil {
			t.Fatal("a panic is no error")
		}
		g.fail = nil
		g.want(t, paid, cybercube.StatusProcessed)
		if g.calls.Load() != 2 {
			t.Errorf("handled %d times", g.calls.Load())
		}
	})
}

func TestProcessorConcurrent(t *testing.T) {
	trace.Covers(t, "CCW-IDM-3", "CCW-IDM-5")
	eachEvents(t, func(t *testing.T, events cybercube.Events) {
		g := newRig(t, events)
		g.began, g.block = make(chan struct{}), make(chan struct{})
		first := make(chan error, 1)
		go func() {
			got, err := g.Process(t.Context(), paid)
			if err == nil && got.Status != cybercube.StatusProcessed {
				err = fmt.Errorf("%+v", got)
			}
			first <- err
		}()
		select {
		case <-g.began:
		case err := <-first:
			t.Fatalf("ended before it began: %v", err)
		}
		second := newRig(t, events) // as another process would
		got := second.want(t, paid, cybercube.StatusConcurrent)
		if got.Message == "" {
			t.Errorf("%+v", got)
		}
		close(g.block)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		second.want(t, paid, cybercube.StatusDuplicate)
		if g.calls.Load() != 1 || second.calls.Load() != 0 {
			t.Errorf("handled %d and %d times", g.calls.Load(), second.calls.Load())
		}
	})
}

// TestLockEnds: at 4:59 it is held, at 5:01 it is free, and who lost it marks nothing.
func TestLockEnds(t *testing.T) {
	trace.Covers(t, "CCW-IDM-6")
	eachEvents(t, func(t *testing.T, events cybercube.Events) {
		ctx := t.Context()
		token, ok, err := events.Lock(ctx, paid, start, start.Add(-5*time.Minute))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		g := newRig(t, events)
		g.now = start.Add(4*time.Minute + 59*time.Second)
		g.want(t, paid, cybercube.StatusConcurrent)
		g.now = start.Add(5*time.Minute + time.Second)
		g.want(t, paid, cybercube.StatusProcessed)
		if ok, err := events.MarkProcessed(ctx, paid.ID, token, "late", g.now); ok || err != nil {
			t.Errorf("marked by who lost the lock: %t, %v", ok, err)
		}
		if err := events.ReleaseLock(ctx, paid.ID, token); err != nil {
			t.Error(err)
		}
		if got := g.want(t, paid, cybercube.StatusDuplicate); got.Original.Result != "booked" {
			t.Errorf("%+v", got.Original)
		}
	})
}

func TestCleanup(t *testing.T) {
	trace.Covers(t, "CCW-IDM-9")
	eachEvents(t, func(t *testing.T, events cybercube.Events) {
		g := newRig(t, events)
		g.want(t, paid, cybercube.StatusProcessed)
		day := 24 * time.Hour
		g.now = start.Add(6*day + 21*time.Hour)
		if n, err := g.Cleanup(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		g.want(t, paid, cybercube.StatusDuplicate)
		g.now = start.Add(30*day + time.Second)
		if n, err := g.Cleanup(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if found, err := events.Get(t.Context(), paid.ID); found != nil || err != nil {
			t.Fatal(found, err)
		}
		for i := range 5 {
			g.want(t, &cybercube.Event{ID: fmt.Sprint("evt_", i), Type: "order.paid"}, cybercube.StatusProcessed)
		}
		if n, err := events.Cleanup(t.Context(), g.now.Add(time.Second), 3); n != 3 || err != nil {
			t.Errorf("a step of 3 dropped %d, %v", n, err)
		}
	})
	for _, o := range []cybercube.ProcessorOptions{{}, {Events: cybercube.NewMemoryEvents(), Retention: 7*24*time.Hour - 1}} {
		if _, err := cybercube.NewProcessor(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// TestSchema: exactly the columns of the standard, and its index.
func TestSchema(t *testing.T) {
	trace.Covers(t, "CCW-IDM-8")
	want := []string{
		"event_id varchar(30) key", "event_type varchar(100) required", "received_at timestamptz required default", "processed_at timestamptz",
		"processing_status varchar(20) required default 'pending'", "result text",
	}
	for driver, dialect := range dialects {
		t.Run(driver, func(t *testing.T) {
			db := openDB(t, driver, openSource(t, driver))
			for range 2 { // made once, found the second time
				if _, err := cybercube.NewSQLEvents(t.Context(), db, dialect); err != nil {
					t.Fatal(err)
				}
			}
			columns := `SELECT lower(name || ' ' || type || CASE WHEN pk THEN ' key' WHEN "notnull" THEN ' required' ELSE '' END ||
  CASE WHEN dflt_value IS NULL THEN '' WHEN dflt_value LIKE '''%' THEN ' default ' || dflt_value ELSE ' default' END)
FROM pragma_table_info('processed_webhook_events') ORDER BY cid`
			index := `SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql LIKE '%(received_at)%'`
			if driver == "pgx" {
				columns = `SELECT column_name || ' ' || CASE data_type WHEN 'character varying' THEN 'varchar(' || character_maximum_length || ')'
    WHEN 'timestamp with time zone' THEN 'timestamptz' ELSE data_type END ||
  CASE WHEN column_name = 'event_id' THEN ' key' WHEN is_nullable = 'NO' THEN ' required' ELSE '' END ||
  CASE WHEN column_default IS NULL THEN '' WHEN column_default LIKE '''%' THEN ' default ' || split_part(column_default, '::', 1) ELSE ' default' END
FROM information_schema.columns WHERE table_name = 'processed_webhook_events' ORDER BY ordinal_position`
				index = `SELECT count(*) FROM pg_indexes WHERE tablename = 'processed_webhook_events' AND indexdef LIKE '%(received_at)%'`
			}
			rows, err := db.QueryContext(t.Context(), columns)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var got []string
			for rows.Next() {
				var column string
				if err := rows.Scan(&column); err != nil {
					t.Fatal(err)
				}
				got = append(got, column)
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("columns:\n%s", strings.Join(got, "\n"))
			}
			var indexes int
			if err := db.QueryRowContext(t.Context(), index).Scan(&indexes); err != nil || indexes != 1 {
				t.Errorf("%d indexes, %v", indexes, err)
			}
			if _, err := db.ExecContext(t.Context(), `INSERT INTO processed_webhook_events (event_id, event_type) VALUES ('e', 't')`); err != nil {
				t.Error(err) // the defaults suffice
			}
		})
	}
	if _, err := cybercube.NewSQLEvents(t.Context(), nil, 0); err == nil {
		t.Error("an unknown dialect was taken")
	}
}

// TestProcessorHandler: through HTTP.
func TestProcessorHandler(t *testing.T) {
	trace.Covers(t, "CCW-IDM-1", "CCW-IDM-4", "CCW-IDM-5", "CCW-RSP-14", "CCW-RCV-18")
	events := cybercube.NewMemoryEvents()
	g := newRig(t, events)
	h := g.Handler(newWebhooks(t))
	body := `{"id":"evt_1","type":"order.paid"}`
	g.fail = errors.New("not now")
	if w := post(t, h, body, true); w.Code != 500 || w.Body.String() != `{"error":"Internal error"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	g.fail = nil
	for range 2 {
		if w := post(t, h, body, true); w.Code != 200 || w.Body.String() != `{"received":true,"event_id":"evt_1"}` {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if g.calls.Load() != 2 {
		t.Errorf("handled %d times", g.calls.Load())
	}
	if _, ok, err := events.Lock(t.Context(), &cybercube.Event{ID: "evt_2"}, g.now, g.now.Add(-time.Minute)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	w := post(t, h, `{"id":"evt_2","type":"order.paid"}`, true)
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := post(t, h, body, false); w.Code != 401 {
		t.Errorf("%d", w.Code)
	}
	for range 2 { // they could not be told apart, so none is taken for another's duplicate
		if w := post(t, h, `{"type":"order.paid"}`, true); w.Code != 400 || w.Body.String() != `{"error":"Event has no id"}` {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

const sharedEvents = 50

// processAll is what a child process does: it processes every event and tells which it handled.
func processAll() error {
	ctx, driver := context.Background(), os.Getenv(childDriver)
	db, err := sql.Open(driver, os.Getenv(childSource))
	if err != nil {
		return err
	}
	events, err := cybercube.NewSQLEvents(ctx, db, dialects[driver])
	if err != nil {
		return err
	}
	handled := func(_ context.Context, e *cybercube.Event) (string, error) { fmt.Println(e.ID); return "", nil }
	p, err := cybercube.NewProcessor(cybercube.ProcessorOptions{Events: events, Handlers: map[string]cybercube.Handler{"t": handled}})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for i := range sharedEvents {
		if _, err := p.Process(ctx, &cybercube.Event{ID: fmt.Sprintf("evt_%d", i), Type: "t"}); err != nil {
			return err
		}
	}
	return nil
}

// TestTwoProcesses: on one database they handle each event once.
func TestTwoProcesses(t *testing.T) {
	trace.Covers(t, "CCW-IDM-7")
	slowtest.Needs(t, "other processes")
	for driver := range dialects {
		t.Run(driver, func(t *testing.T) {
			source := openSource(t, driver)
			handled := map[string]int{}
			var mu sync.Mutex
			var ready, all sync.WaitGroup
			begin := make(chan struct{})
			for range 2 {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childDriver+"="+driver, childSource+"="+source)
				cmd.Stderr = os.Stderr
				stdin, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ready.Add(1)
				all.Go(func() {
					lines := bufio.NewScanner(stdout)
					if !lines.Scan() {
						t.Error("child said nothing")
					}
					ready.Done()
					<-begin
					fmt.Fprintln(stdin, "go")
					for lines.Scan() {
						mu.Lock()
						handled[lines.Text()]++
						mu.Unlock()
					}
					if err := cmd.Wait(); err != nil {
						t.Error(err)
					}
				})
			}
			ready.Wait()
			close(begin)
			all.Wait()
			if len(handled) != sharedEvents {
				t.Errorf("%d events were handled", len(handled))
			}
			for id, n := range handled {
				if n != 1 {
					t.Errorf("%s was handled %d times", id, n)
				}
			}
		})
	}
}
