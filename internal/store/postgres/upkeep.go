package postgres

import (
	"context"
	"fmt"

	"github.com/godwit-hq/godwit/internal/store"
)

// Ping writes one row: a server that answers but is read-only or full does not count.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO write_probe (one, at) VALUES (true, now()) ON CONFLICT (one) DO UPDATE SET at = now()`)
	return failed("ping", err)
}

// Describe tells what this store is.
func (s *Store) Describe(ctx context.Context) (store.Description, error) {
	config := s.pool.Config().ConnConfig
	d := store.Description{Backend: "postgres", Location: fmt.Sprintf("%s:%d/%s", config.Host, config.Port, config.Database)}
	var fsync, sync, pages, replicas string
	err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('synchronous_standby_names')`).
		Scan(&d.Version, &fsync, &sync, &pages, &replicas)
	if err != nil {
		return d, failed("describe", err)
	}
	if err := s.pool.QueryRow(ctx, schemaVersion).Scan(&d.SchemaVersion); err != nil {
		return d, failed("describe", err)
	}
	switch {
	case fsync != "on" || pages != "on":
		d.Durability = "NOT SAFE: the server runs with fsync or full_page_writes off; a power failure loses acknowledged events"
	case replicas != "" && sync != "local":
		d.Durability = "an acknowledgement means flushed to the server's log and to its synchronous standbys (synchronous_commit=" + sync + ")"
	default:
		d.Durability = "an acknowledgement means flushed to the server's log (synchronous_commit=" + sync + ")"
	}
	return d, nil
}
