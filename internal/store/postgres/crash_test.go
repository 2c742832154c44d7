package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func TestConcurrency(t *testing.T) { storetest.RunConcurrency(t, open) }

func TestCrash(t *testing.T) {
	storetest.RunCrash(t, storetest.Crash{
		Location: func(t testing.TB) string { return postgrestest.URL(t) },
		Open: func(ctx context.Context, location string) (store.Store, error) {
			if err := endOthers(ctx, location); err != nil {
				return nil, err
			}
			return Open(ctx, location, Options{Now: suiteTime})
		},
	})
}

// endOthers waits until the server has closed the connections of a killed process: statements it had sent may still be
// running.
func endOthers(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	return err
}
