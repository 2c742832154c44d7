package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ReadSchema returns the schema version of a database, 0 if it has none, and the version that this program knows. It changes
// nothing.
func ReadSchema(ctx context.Context, url string) (version, current int, err error) {
	list, err := migrations()
	if err != nil {
		return 0, 0, err
	}
	current = len(list)
	config, err := parseURL(url)
	if err != nil {
		return 0, current, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return 0, current, failed("connect to postgres", err)
	}
	defer conn.Close(ctx)
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, current, failed("look for the table of migrations", err)
	}
	if err := conn.QueryRow(ctx, schemaVersion).Scan(&version); err != nil {
		return 0, current, failed("read the schema version", err)
	}
	return version, current, nil
}
