package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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
	// CPU of the server for each; without the CPU of the database.
	FirstCPU  float64 `json:"first_server_cpu_us"`
	ReplayCPU float64 `json:"replayed_server_cpu_us"`
}

func (r *CommandsReport) print(t *table) {
	t.row("bare insert", "%.0f/s\ta row and a transaction each", r.BarePerS)
	t.row("commands executed", "%.0f/s\t%.2f of the bare insert, p99 %.1f ms, %.0f µs of the server's CPU each", r.FirstPerS, r.RatioFirst, r.FirstP99, r.FirstCPU)
	t.row("duplicates replayed", "%.0f/s\t%.2f of the bare insert, p99 %.1f ms, %.0f µs of the server's CPU each", r.ReplayPerS, r.RatioReplay, r.ReplayP99, r.ReplayCPU)
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
	err = b.withServer(ctx, func(srv *server) error { return b.submitCommands(ctx, srv, part) })
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

// submitCommands measures first executions, and then duplicates of the same commands.
func (b *bench) submitCommands(ctx context.Context, srv *server, length time.Duration) error {
	c, err := newCommanders(ctx, srv, b.o.Connections)
	if err != nil {
		return err
	}
	before, err := srv.usage()
	if err != nil {
		return err
	}
	b.o.Progress("commands for %s", length.Round(time.Second))
	profiled := b.startProfile(ctx, srv, length-time.Second)
	first, err := c.submitFor(ctx, length, func(i, k int) int { return k*b.o.Connections + i })
	if err := errors.Join(err, <-profiled); err != nil {
		return err
	}
	between, err := srv.usage()
	if err != nil {
		return err
	}
	b.o.Progress("duplicates for %s", length.Round(time.Second))
	again, err := c.submitFor(ctx, length, func(i, k int) int { return (k*b.o.Connections + i) % int(max(first.ok.Load(), 1)) })
	if err != nil {
		return err
	}
	after, err := srv.usage()
	if err != nil {
		return err
	}
	r := b.report.Commands
	r.First, r.FirstPerS, r.FirstP99 = first.ok.Load(), first.perS, ms(first.latency.quantile(0.99))
	r.Replayed, r.ReplayPerS, r.ReplayP99 = again.ok.Load(), again.perS, ms(again.latency.quantile(0.99))
	r.FirstCPU, r.ReplayCPU = each(between.cpu-before.cpu, r.First), each(after.cpu-between.cpu, r.Replayed)
	r.Failed = first.failed.Load() + again.failed.Load()
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
	addr, key     string
	tenant, actor string
	run           string // distinguishes the commands of this run from those of earlier ones
	clients       int
}

func newCommanders(ctx context.Context, srv *server, clients int) (*commanders, error) {
	c := &commanders{addr: hostOf(srv.url), key: srv.key, clients: clients, run: fmt.Sprintf("bench %d", time.Now().UnixNano())}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.url+"/ids/v1/registry", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := http.DefaultClient.Do(req)
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
	ok, failed atomic.Int64
	perS       float64
	latency    histogram
}

// submitFor submits for a while; number says which command the k-th of a client is.
func (c *commanders) submitFor(ctx context.Context, length time.Duration, number func(client, k int) int) (*commandTally, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs = make([]error, c.clients)
		t    = &commandTally{}
	)
	began := time.Now()
	for i := range c.clients {
		wg.Go(func() { errs[i] = c.client(ctx, t, func(k int) int { return number(i, k) }) })
	}
	wg.Wait()
	t.perS = round(float64(t.ok.Load())/time.Since(began).Seconds(), 0)
	return t, errors.Join(errs...)
}

// client submits commands over one connection until the context ends. It then waits for the last response.
func (c *commanders) client(ctx context.Context, t *commandTally, number func(k int) int) error {
	conn, err := dial(context.WithoutCancel(ctx), c.addr)
	if err != nil {
		return err
	}
	defer conn.close()
	var request []byte
	for k := 0; ctx.Err() == nil; k++ {
		request = c.appendRequest(request[:0], number(k))
		at := time.Now()
		status, err := conn.exchange(request)
		switch {
		case err != nil:
			return fmt.Errorf("submit a command: %w", err)
		case status == http.StatusOK:
			t.ok.Add(1)
			t.latency.add(time.Since(at))
		default:
			t.failed.Add(1)
		}
	}
	return nil
}

func (c *commanders) appendRequest(buf []byte, n int) []byte {
	now := time.Now().UTC()
	body := fmt.Sprintf(`{"command_id":%q,"tenant_id":%q,"actor_id":%q,"intent":{"entity":"probe","action":"touch"},"args":{"run":%q,"n":%d},"issued_at":%q}`,
		godwit.NewCommandID(now).String(), c.tenant, c.actor, c.run, n, now.Format(time.RFC3339Nano))
	return fmt.Appendf(buf, "POST /ids/v1/commands HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		c.addr, c.key, len(body), body)
}
