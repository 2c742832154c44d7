package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
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

// Budget is the largest number of connections that the store uses.
func (o Options) Budget() int {
	o.setDefaults()
	return o.HotConnections + o.Connections + alone
}

// alone are the connections outside the pools: the session of the node, and the one that waits for notifications.
const alone = 2

// LeastBudget is the smallest number of connections that a server can work with.
const LeastBudget = 3 + alone

// Share returns options under which the store uses at most n connections, a third of them for commits, claims and commands.
func Share(n int) Options {
	pools := max(n, LeastBudget) - alone
	hot := max(pools/3, 1)
	return Options{HotConnections: hot, Connections: pools - hot}
}

// Open connects to the database at the URL, brings its schema up to date and prepares partitions. An error that wraps
// store.ErrUnavailable may pass; others need an operator.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	o.setDefaults()
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	db := &database{log: o.Log, now: o.Time, connector: &connector{log: o.Log}}
	db.connector.renewed = db.forget
	db.watchSessions(config.ConnConfig)
	db.connector.attach(config.ConnConfig)
	if err := prepareDatabase(ctx, config, &o); err != nil {
		return nil, err
	}
	hot := config.Copy()
	config.ConnConfig.Tracer = &connectTracer{QueryTracer: o.tracer, connector: db.connector}
	if err := db.openPools(ctx, hot, config, &o); err != nil {
		return nil, err
	}
	s := newStore(db, &o)
	if err := s.partitions.prepare(ctx, o.Now); err != nil {
		db.closePools()
		return nil, err
	}
	s.vacuum.start()
	return s, nil
}

// Close ends all connections.
func (s *Store) Close() error {
	s.vacuum.close()
	s.node.close()
	s.closePools()
	return nil
}
