package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // the driver of the bare insert

	"github.com/godwit-hq/godwit/internal/godwit"
)

// CommandsReport compares the executor with a bare insert into the same kind of store.
type CommandsReport struct {
	BarePerS    float64 `json:"bare_insert_per_s"` // one durable row of the size of an envelope, a transaction each, from as many clients
	FirstPerS   float64 `json:"first_per_s"`       // commands executed: reserved, with an effect, with evidence
	FirstP99    float64 `json:"first_p99_ms"`
	ReplayPerS  float64 `json:"replayed_per_s"` // duplicates answered with the kept outcome, with evidence
	ReplayP99   float64 `json:"replayed_p99_ms"`
	RatioFirst  float64 `json:"ratio_first_bare"`
	RatioReplay float64 `json:"ratio_replayed_bare"`
	First       int64   `json:"first"`
	Replayed    int64   `json:"replayed"`
	Failed      int64   `json:"failed"`
}

func (r *CommandsReport) print(t *table) {
	t.row("bare insert", "%.0f/s\ta row and a transaction each", r.BarePerS)
	t.row("commands executed", "%.0f/s\t%.2f of the bare insert, p99 %.1f ms", r.FirstPerS, r.RatioFirst, r.FirstP99)
	t.row("duplicates replayed", "%.0f/s\t%.2f of the bare insert, p99 %.1f ms", r.ReplayPerS, r.RatioReplay, r.ReplayP99)
	t.row("submissions", "%d\t%d refused", r.First+r.Replayed, r.Failed)
}

// commands measures first executions and duplicates, and a bare insert before and after them.
func (b *bench) commands(ctx context.Context) error {
	r := &CommandsReport{}
	b.report.Commands = r
	part := b.share(22)
	b.o.Progress("bare inserts for %s", part.Round(time.Second))
	before, err := b.bareInserts(ctx, part/2)
	if err != nil {
		return fmt.Errorf("measure bare inserts: %w", err)
	}
	err = b.withServer(ctx, func(srv *server) error {
		c, err := newCommanders(ctx, srv, b.o.Connections)
		if err != nil {
			return err
		}
		b.o.Progress("commands for %s", part.Round(time.Second))
		first, err := c.run(ctx, part, func(i, k int) int { return k*b.o.Connections + i })
		if err != nil {
			return err
		}
		b.o.Progress("duplicates for %s", part.Round(time.Second))
		again, err := c.run(ctx, part, func(i, k int) int { return (k*b.o.Connections + i) % int(max(first.ok, 1)) })
		if err != nil {
			return err
		}
		r.First, r.FirstPerS, r.FirstP99 = first.ok, first.perS, ms(first.latency.quantile(0.99))
		r.Replayed, r.ReplayPerS, r.ReplayP99 = again.ok, again.perS, ms(again.latency.quantile(0.99))
		r.Failed = first.failed + again.failed
		return nil
	})
	if err != nil {
		return err
	}
	after, err := b.bareInserts(ctx, part/2)
	if err != nil {
		return fmt.Errorf("measure bare inserts: %w", err)
	}
	r.BarePerS = round((before+after)/2, 0)
	r.RatioFirst, r.RatioReplay = round(r.FirstPerS/r.BarePerS, 2), round(r.ReplayPerS/r.BarePerS, 2)
	return nil
}

// bareInserts measures the store itself: each insert is a row of the size of an envelope in its own durable transaction.
func (b *bench) bareInserts(ctx context.Context, length time.Duration) (perS float64, err error) {
	insert, closeAll, err := b.bareStore(ctx)
	if err != nil {
		return 0, err
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	row := bytes.Repeat([]byte("x"), 600)
	var (
		done atomic.Int64
		wg   sync.WaitGroup
		errs = make([]error, b.o.Connections)
	)
	began := time.Now()
	for i := range b.o.Connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := insert(ctx, done.Add(1), row); err != nil {
					done.Add(-1)
					if ctx.Err() == nil {
						errs[i] = err
					}
					return
				}
			}
		})
	}
	wg.Wait()
	return round(float64(done.Load())/time.Since(began).Seconds(), 0), errors.Join(errs...)
}

func (b *bench) bareStore(ctx context.Context) (insert func(context.Context, int64, []byte) error, closeAll func(), err error) {
	if storeName(b.o.Store) == "postgres" {
		return barePostgres(ctx, b.o.Store, b.o.Connections)
	}
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return nil, nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "bare.db"))+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	db.SetMaxOpenConns(1) // SQLite has one writer
	closeAll = func() { db.Close(); os.RemoveAll(dir) }
	if _, err := db.ExecContext(ctx, "CREATE TABLE bare (id INTEGER PRIMARY KEY, row BLOB)"); err != nil {
		closeAll()
		return nil, nil, err
	}
	stmt, err := db.PrepareContext(ctx, "INSERT INTO bare (row) VALUES (?)")
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return func(ctx context.Context, _ int64, row []byte) error {
		_, err := stmt.ExecContext(ctx, row)
		return err
	}, closeAll, nil
}

func barePostgres(ctx context.Context, url string, connections int) (func(context.Context, int64, []byte) error, func(), error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = int32(min(connections, 16)) // more would only wait for each other
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	table := pgx.Identifier{fmt.Sprintf("bench_bare_%d", time.Now().UnixNano())}.Sanitize()
	drop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, _ = pool.Exec(ctx, "DROP TABLE IF EXISTS "+table)
		pool.Close()
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, row bytea)"); err != nil {
		drop()
		return nil, nil, err
	}
	return func(ctx context.Context, n int64, row []byte) error {
		_, err := pool.Exec(ctx, "INSERT INTO "+table+" (id, row) VALUES ($1, $2)", time.Now().UnixNano()*1000+n%1000, row)
		return err
	}, drop, nil
}

// commanders submit commands, each after the response to the one before.
type commanders struct {
	url, key      string
	tenant, actor string
	run1          string
	clients       int
	http          *http.Client
}

func newCommanders(ctx context.Context, srv *server, clients int) (*commanders, error) {
	c := &commanders{url: srv.url, key: srv.key, clients: clients, run1: fmt.Sprintf("bench %d", time.Now().UnixNano()),
		http: &http.Client{Timeout: answerWithin, Transport: &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/ids/v1/registry", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var about struct {
		Caller struct {
			Tenant string `json:"tenant_id"`
			Actor  string `json:"actor_id"`
		} `json:"caller"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&about); err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	c.tenant, c.actor = about.Caller.Tenant, about.Caller.Actor
	return c, nil
}

type commandTally struct {
	ok, failed int64
	perS       float64
	latency    *histogram
}

// run submits for a while; number says which command the k-th of a client is.
func (c *commanders) run(ctx context.Context, length time.Duration, number func(client, k int) int) (*commandTally, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var (
		ok, failed atomic.Int64
		wg         sync.WaitGroup
		errs       = make([]error, c.clients)
		t          = &commandTally{latency: &histogram{}}
	)
	began := time.Now()
	for i := range c.clients {
		wg.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				at := time.Now()
				status, err := c.submit(number(i, k))
				switch {
				case err != nil:
					errs[i] = err
					return
				case status == http.StatusOK:
					ok.Add(1)
					t.latency.add(time.Since(at))
				default:
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.ok, t.failed = ok.Load(), failed.Load()
	t.perS = round(float64(t.ok)/time.Since(began).Seconds(), 0)
	return t, errors.Join(errs...)
}

func (c *commanders) submit(n int) (status int, err error) {
	now := time.Now().UTC()
	body := fmt.Sprintf(`{"command_id":%q,"tenant_id":%q,"actor_id":%q,"intent":{"entity":"probe","action":"touch"},"args":{"run":%q,"n":%d},"issued_at":%q}`,
		godwit.NewCommandID(now).String(), c.tenant, c.actor, c.run1, n, now.Format(time.RFC3339Nano))
	req, err := http.NewRequest(http.MethodPost, c.url+"/ids/v1/commands", bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
