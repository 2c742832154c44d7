// Package postgres stores everything in a PostgreSQL database, version 15 or newer.
//
//	Commit ─► one pipeline, one round trip, one transaction:
//	            hold the leases ─► records ─► events ─► pending ─► claims still held? ─► deliveries ─► attempts ─► health …
//	          a surprise (a repeated batch, a lost claim) rolls it back, and careful.go does it again row by row
//	Advance ─► one transaction, two round trips:
//	            lock the heads of the tenants' chains ─► read records │ steps │ records ─► evidence ─► heads
//	          effects run in between, behind a savepoint for each step that has some (effect.go)
//
// Layout: unfinished deliveries are in pending_deliveries, a small table that is vacuumed often; finished ones are appended to
// deliveries. Lists merge both. Events, finished deliveries and attempts are partitioned by day over their time-ordered ids,
// so that retention drops tables instead of deleting rows (partition.go, sweep.go).
//
// Claims: a row's claim_epoch is 0 or the epoch of its shard's lease. A transaction that claims holds a shared lock until it
// ends; one that takes a lease locks exclusively, raises the epoch, and then releases the older claims. So the epoch in the
// row alone decides whether a result is accepted, and recording a result does not read the leases.
//
// For users who query the database directly there are read-only views with the schema of the CYBERCUBE standard
// (migrations/0003_views.sql): webhook_endpoints, webhook_events, webhook_deliveries, webhook_dlq.
//
// Evidence: a transaction locks the heads of the tenants' chains before anything else, always in the order of tenants. So the
// commands of a tenant take turns across all nodes. Items are never changed; a trigger enforces that.
//
// There are two pools. The hot one runs commits, claims and commands on statements prepared when it connects, with a planner
// that may neither scan nor hash. The cold one runs all other queries, with a plan for each query's own values.
//
// The connections keep settings and prepared statements, so a connection pooler must use session mode, not transaction mode.
//
// The package deliberately does not listen for notifications, does not retry on its own, and reads no clock except the
// server's, to prepare partitions when it opens.
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

// Options tune the store. The zero value suits most users.
type Options struct {
	// HotConnections bounds the connections for commits, claims and commands. Defaults to 4.
	HotConnections int
	// Connections bounds the connections for all other queries. Defaults to 8.
	Connections int
	// PartitionWidth is the period of one partition. Expired rows wait at most that long for their partition to be dropped,
	// unless the partition is small. Defaults to 24 h.
	PartitionWidth time.Duration
	// Now is the time from which partitions are prepared. Defaults to the server's clock.
	Now time.Time
	// Log receives messages about created and dropped partitions, and about background failures. Defaults to none.
	Log *slog.Logger

	exactBytes int64           // see sweep.go
	tracer     pgx.QueryTracer // traces the queries of the cold pool
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
	pool    *pgxpool.Pool // all other queries
	options Options
	vacuum  *vacuumer
	lookups lookups // of commands by their keys
	node    nodeSession

	prepared atomic.Int64 // partitions exist up to this time, in Unix nanoseconds
}

var _ store.Store = (*Store)(nil)

// oldestServer is the first version with all features that this package uses.
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

// parseURL hides the driver's error: it quotes the URL, which may contain a password.
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

// prepareDatabase checks the server and migrates, on a separate connection.
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

// durable overrides a default with which a server crash could lose an acknowledged commit.
const durable = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';`

// connectCold makes the server plan every query for its own values: with an unknown limit, a list with LIMIT $1 gets the wrong
// plan.
func connectCold(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.PgConn().Exec(ctx, durable+`SET plan_cache_mode = force_custom_plan; SET jit = off`).ReadAll()
	return err
}

// connectHot plans once, before there are statistics, so it disables plans that are wrong at some table sizes. Disabled plan
// nodes count as very expensive, which would trigger the JIT compiler.
func connectHot(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.PgConn().Exec(ctx, durable+`SET plan_cache_mode = force_generic_plan; SET jit = off;
		SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off`).ReadAll()
	if err != nil {
		return err
	}
	return prepareHot(ctx, conn.PgConn())
}
