// Package postgres keeps everything in a PostgreSQL database, version 15 or newer.
//
//	Commit ─► one pipeline, one round trip, one transaction:
//	            hold the leases ─► records ─► events ─► pending ─► claims still held? ─► deliveries ─► attempts ─► health …
//	          a surprise (a repeated batch, a lost claim) rolls it back, and careful.go does it again row by row
//	Advance ─► one transaction, two round trips:
//	            lock the heads of the tenants' chains ─► read records │ steps │ records ─► evidence ─► heads
//	          effects run in between, behind a savepoint for each step that has some (effect.go)
//
// Layout: what is not finished lives in pending_deliveries, a small table that is vacuumed often; what is finished is
// appended to deliveries. Both show as one list. Events, finished deliveries and attempts are partitioned by day over
// their time-ordered ids, so that retention drops tables instead of deleting rows (partition.go, sweep.go).
//
// Claims: a row's claim_epoch is 0 or the epoch of its shard's lease. Whoever claims holds a shared lock until its
// transaction ends; whoever takes a lease locks exclusively, raises the epoch, and then releases the older claims. So the
// epoch in the row alone tells whether a result is still wanted, and no result has to look at the leases.
//
// For people who ask the database itself there are read-only views in the shape of the CYBERCUBE standard's schema
// (migrations/0003_views.sql): webhook_endpoints, webhook_events, webhook_deliveries, webhook_dlq.
//
// Evidence: the head of a tenant's chain is the first thing that a transaction locks, always in the order of tenants. It
// makes the commands of a tenant take turns across all nodes. Items are never changed; a trigger refuses it.
//
// There are two pools. The hot one runs commits, claims and commands on statements prepared when it connects, with a planner that
// is not allowed to scan or hash; the other one serves people, with a plan made for each query's own values.
//
// The connections keep settings and prepared statements, so a pooler in between must work by session, not by transaction.
//
// It deliberately does not: listen for notifications, read a clock (but the server's, to prepare partitions when it
// opens), retry on its own.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/godwit-hq/godwit/internal/store"
)

// Options tune the store. The zero value is right for most.
type Options struct {
	// HotConnections is how many connections commits, claims and commands may use. Defaults to 4.
	HotConnections int
	// Connections is how many connections everything else may use. Defaults to 8.
	Connections int
	// PartitionWidth is how much time one partition holds; what is past its time waits at most that long for its
	// partition to be dropped, unless the partition is small. Defaults to 24 h.
	PartitionWidth time.Duration
	// Now is where partitions are prepared from. Defaults to the server's clock.
	Now time.Time
	// Log hears of partitions that were made and dropped, and of trouble in the background. Defaults to none.
	Log *slog.Logger

	exactBytes int64           // see sweep.go
	tracer     pgx.QueryTracer // hears the queries of the pool that serves people
}

func (o *Options) setDefaults() {
	if o.HotConnections <= 0 {
		o.HotConnections = 4
	}
	if o.Connections <= 0 {
		o.Connections = 8
	}
	if o.PartitionWidth <= 0 {
		o.PartitionWidth = 24 * time.Hour
	}
	if o.exactBytes == 0 {
		o.exactBytes = exactBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Store is a PostgreSQL database.
type Store struct {
	hot     *pgxpool.Pool // commits, claims and commands
	pool    *pgxpool.Pool // everything else
	options Options
	vacuum  *vacuumer
	lookups lookups // of commands by their keys
	node    nodeSession

	prepared atomic.Int64 // partitions are there up to this time, in Unix nanoseconds
}

var _ store.Store = (*Store)(nil)

// oldestServer is the first version that has what we use.
const oldestServer = 150000

// Open connects to the database at the URL, brings its schema up to date and prepares partitions.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	o.setDefaults()
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if err := prepareDatabase(ctx, config); err != nil {
		return nil, err
	}
	s := &Store{options: o}
	s.lookups.s = s
	config.ConnConfig.Tracer = o.tracer
	if s.pool, err = openPool(ctx, config, o.Connections, connectCold); err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = nil
	if err := s.preparePartitions(ctx, o.Now); err != nil {
		s.pool.Close()
		return nil, err
	}
	if s.hot, err = openPool(ctx, config, o.HotConnections, connectHot); err != nil {
		s.pool.Close()
		return nil, err
	}
	s.vacuum = startVacuumer(s)
	return s, nil
}

// Close ends all connections.
func (s *Store) Close() error {
	s.vacuum.close()
	s.node.close()
	s.hot.Close()
	s.pool.Close()
	return nil
}

// parseURL hides the driver's error: it quotes the URL, and with it a password.
func parseURL(text string) (*pgxpool.Config, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, errors.New("open postgres: not a URL such as postgres://user:password@host:5432/database")
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errors.New("open postgres: a setting in the URL is not valid")
	}
	config.ConnConfig.RuntimeParams["application_name"] = "godwit"
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	return config, nil
}

// prepareDatabase checks the server and migrates, on a connection of its own.
func prepareDatabase(ctx context.Context, config *pgxpool.Config) error {
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return failed("connect to postgres", err)
	}
	defer conn.Close(ctx)
	var server serverInfo
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		current_setting('server_encoding')`).Scan(&server.number, &server.version, &server.encoding)
	if err != nil {
		return failed("ask postgres for its version", err)
	}
	if err := server.check(); err != nil {
		return err
	}
	return migrate(ctx, conn)
}

type serverInfo struct {
	number            int
	version, encoding string
}

func (i serverInfo) check() error {
	if i.number < oldestServer {
		return fmt.Errorf("open postgres: the server is PostgreSQL %s, but 15 or newer is needed", i.version)
	}
	if i.encoding != "UTF8" {
		return fmt.Errorf("open postgres: the database has encoding %s, but UTF8 is needed", i.encoding)
	}
	return nil
}

func openPool(ctx context.Context, config *pgxpool.Config, size int, connected func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.MaxConns = int32(size)
	config.MinConns = 1
	config.AfterConnect = connected
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, failed("open postgres", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, failed("connect to postgres", err)
	}
	return pool, nil
}

// durable undoes a default that would let an acknowledged commit be lost with the server's memory.
const durable = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';`

// connectCold plans every query for its own values: a list with LIMIT $1 gets the wrong plan when that is unknown.
func connectCold(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.PgConn().Exec(ctx, durable+`SET plan_cache_mode = force_custom_plan; SET jit = off`).ReadAll()
	return err
}

// connectHot plans once, before there are statistics, so it leaves the planner only what is right at any size. What is
// switched off counts as very expensive, which would set off the JIT compiler.
func connectHot(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.PgConn().Exec(ctx, durable+`SET plan_cache_mode = force_generic_plan; SET jit = off;
		SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off`).ReadAll()
	if err != nil {
		return err
	}
	return prepareHot(ctx, conn.PgConn())
}
