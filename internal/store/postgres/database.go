package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A database is the two pools of connections. All parts of the store share it.
type database struct {
	hot  *pgxpool.Pool // commits, claims and commands
	pool *pgxpool.Pool // all other queries
	open atomic.Bool   // both pools are set
	log  *slog.Logger

	connector   *connector
	replication replication      // commits that did not wait for their synchronous standby
	now         func() time.Time // see Options.Time; may be nil
}

// time returns the time to pass to statements about leases: null for the server's own.
func (d *database) time() *time.Time {
	if d.now == nil {
		return nil
	}
	t := d.now()
	return &t
}

// openPools opens both pools at the same time: each waits for the server to start a process and to prepare statements.
func (d *database) openPools(ctx context.Context, hot, cold *pgxpool.Config, o *Options) error {
	var first, second *pgxpool.Pool
	var failure error
	var opening sync.WaitGroup
	opening.Go(func() { first, failure = d.openPool(ctx, hot, o.HotConnections, connectHot) })
	second, err := d.openPool(ctx, cold, o.Connections, connectCold)
	opening.Wait()
	d.hot, d.pool = first, second
	if err = errors.Join(failure, err); err != nil {
		d.closePools()
		return err
	}
	d.open.Store(true)
	return nil
}

// closePools closes the pools that were opened.
func (d *database) closePools() {
	for _, pool := range []*pgxpool.Pool{d.hot, d.pool} {
		if pool != nil {
			pool.Close()
		}
	}
}

func (d *database) openPool(ctx context.Context, config *pgxpool.Config, size int, connected func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.MaxConns = int32(size)
	config.MinConns = 1
	config.BeforeConnect = d.connector.before
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

// bounded makes the server end a transaction whose node is silent. A node that is frozen or cut off in the middle of one would
// otherwise keep its locks, and all nodes would wait for it. A server with a limit of its own keeps that.
const bounded = `SELECT set_config('idle_in_transaction_session_timeout', '5s', false)
	WHERE current_setting('idle_in_transaction_session_timeout') = '0';`

// connectCold makes the server plan every query for its own values: with an unknown limit, a list with LIMIT $1 gets the wrong
// plan.
func connectCold(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.PgConn().Exec(ctx, durable+bounded+`SET plan_cache_mode = force_custom_plan; SET jit = off`).ReadAll()
	return err
}

// indexed runs queries that search an index once for each of many values. Where the statistics say that one value has most of the rows, the server would scan the whole
// table for each of them.
func (d *database) indexed(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
			return err
		}
		return fn(tx)
	})
}

// connectHot plans once, before there are statistics, so it disables plans that are wrong at some table sizes. Disabled plan
// nodes count as very expensive, which would trigger the JIT compiler.
func connectHot(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.PgConn().Exec(ctx, durable+bounded+`SET plan_cache_mode = force_generic_plan; SET jit = off;
		SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off`).ReadAll()
	if err != nil {
		return err
	}
	return prepareHot(ctx, conn.PgConn())
}
