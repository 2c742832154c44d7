package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
	// Time is the clock of leases and beats, for tests that move it. Defaults to the server's clock, which all nodes share.
	Time func() time.Time
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

// oldestServer is the first version with all features that this package uses.
const oldestServer = 150000

// Open connects to the database at the URL, brings its schema up to date and prepares partitions.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	o.setDefaults()
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	db := &database{log: o.Log, now: o.Time, connector: &connector{log: o.Log}}
	db.watchSessions(config.ConnConfig)
	db.connector.attach(config.ConnConfig)
	if err := prepareDatabase(ctx, config); err != nil {
		return nil, err
	}
	hot := config.Copy()
	config.ConnConfig.Tracer = &connectTracer{QueryTracer: o.tracer, connector: db.connector}
	if db.pool, err = db.openPool(ctx, config, o.Connections, connectCold); err != nil {
		return nil, err
	}
	s := newStore(db, &o)
	if err := s.partitions.prepare(ctx, o.Now); err != nil {
		db.pool.Close()
		return nil, err
	}
	if db.hot, err = db.openPool(ctx, hot, o.HotConnections, connectHot); err != nil {
		db.pool.Close()
		return nil, err
	}
	s.vacuum.start()
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
