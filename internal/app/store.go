package app

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/postgres"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// openStore opens the store of a server. now is the clock of its leases, for tests; nil is the store's own. Only one process may
// serve from an embedded database.
func openStore(ctx context.Context, s *config.Storage, log *slog.Logger, now func() time.Time, tune func(*sqlite.Options)) (store.Store, error) {
	if s.Postgres() {
		o := share(s)
		o.Log, o.Time = log, now
		return opened(postgres.Open(ctx, s.Store, o))
	}
	o := sqlite.Options{Exclusive: true, Log: log, Time: now}
	if tune != nil {
		tune(&o)
	}
	return opened(sqlite.Open(ctx, DatabaseFile(s), o))
}

// defaultConnections is the default of --store-connections, for configurations that were not parsed.
const defaultConnections = 14

func share(s *config.Storage) postgres.Options {
	return postgres.Share(cmp.Or(s.StoreConnections, defaultConnections))
}

// ConnectionBudget is the largest number of connections that a server uses on PostgreSQL.
func ConnectionBudget(s *config.Storage) int { return share(s).Budget() }

// ReadSettings reads the settings of PostgreSQL and changes nothing.
func ReadSettings(ctx context.Context, s *config.Storage) (postgres.Settings, error) {
	return postgres.ReadSettings(ctx, s.Store)
}

// OpenStore opens the store for a command. A server may be running on it.
func OpenStore(ctx context.Context, s *config.Storage, log *slog.Logger) (store.Store, error) {
	if s.Postgres() {
		return opened(postgres.Open(ctx, s.Store, postgres.Options{HotConnections: 1, Connections: 2, Log: log}))
	}
	return opened(sqlite.Open(ctx, DatabaseFile(s), sqlite.Options{Log: log}))
}

// opened returns a nil interface on error: an interface that holds a nil pointer is not nil.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
