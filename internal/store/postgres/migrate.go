package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// A migration raises the schema by one version. There are no down migrations.
type migration struct {
	version int
	name    string
	sql     string
}

// Advisory locks.
const (
	leaseLock     = 113728124578164 // "godwit"
	migrationLock = leaseLock + 1
	sweepLock     = leaseLock + 2
	nodeLock      = 26480 // first of two numbers; the second identifies the instance of a node
	requeueLock   = 26479 // first of two numbers; the second identifies the tenant
)

func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var list []migration
	for i, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want number %d", name, i+1)
		}
		sql, err := migrationFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list = append(list, migration{version, name, string(sql)})
	}
	return list, nil
}

// SchemaDigest identifies the schema that Open creates: a hash of all migrations.
func SchemaDigest() (string, error) {
	list, err := migrations()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, m := range list {
		fmt.Fprintf(h, "%s\x00%s\x00", m.name, m.sql)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	list, err := migrations()
	if err != nil {
		return err
	}
	return apply(ctx, conn, list)
}

// apply applies the missing migrations of a list, each in a transaction. Nodes that start together take turns.
func apply(ctx context.Context, conn *pgx.Conn, list []migration) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return failed("lock the schema", err)
	}
	defer conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, int64(migrationLock)) // the lock also ends with the connection
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&there); err != nil {
		return failed("look for the table of migrations", err)
	}
	if !there {
		_, err := conn.Exec(ctx, `CREATE TABLE schema_migrations (
			version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
		if err != nil {
			return failed("create the table of migrations", err)
		}
	}
	var version int
	if err := conn.QueryRow(ctx, schemaVersion).Scan(&version); err != nil {
		return failed("read the schema version", err)
	}
	if version > len(list) {
		return fmt.Errorf("%w: it has version %d and this program knows %d; run the release that wrote it, or a later one",
			store.ErrNewerSchema, version, len(list))
	}
	for _, m := range list[version:] {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Conn().PgConn().Exec(ctx, m.sql).ReadAll(); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO schema_migrations (version, name) VALUES ($1, $2)`, m.version, m.name)
			return err
		})
		if err != nil {
			return failed("apply migration "+m.name, err)
		}
	}
	return nil
}

const schemaVersion = `SELECT coalesce(max(version), 0) FROM schema_migrations`
