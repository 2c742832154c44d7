package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// A migration raises the schema by one version. There are no down migrations.
type migration struct {
	version int
	name    string
	sql     string
	beside  int // oldest schema version whose programs may run beside this one
}

// besideLine is the first line of a migration. Nodes of the previous release still run while an upgrade goes from node to node;
// so the line says which programs can read and write the new schema. A migration that they cannot work with names itself.
var besideLine = regexp.MustCompile(`^-- Programs of schema (\d+) and later may run beside this one\.\n`)

// firstBeside is the first migration with a besideLine. Programs of the schemas before it refuse every newer one.
const firstBeside = 9

// oldestBeside returns the version that the besideLine of a migration names.
func oldestBeside(m migration) (int, error) {
	if m.version < firstBeside {
		return m.version, nil
	}
	found := besideLine.FindStringSubmatch(m.sql)
	if found == nil {
		return 0, fmt.Errorf("migration %s: the first line must be like %q", m.name, "-- Programs of schema 8 and later may run beside this one.")
	}
	oldest, err := strconv.Atoi(found[1])
	if err != nil || oldest > m.version || oldest < firstBeside-1 {
		return 0, fmt.Errorf("migration %s: programs of schema %s cannot run beside schema %d", m.name, found[1], m.version)
	}
	return oldest, nil
}

// Advisory locks.
const (
	leaseLock     = 113728124578164 // "godwit"
	migrationLock = leaseLock + 1
	sweepLock     = leaseLock + 2
	statsLock     = leaseLock + 3
	nodeLock      = 26480 // first of two numbers; the second identifies the instance of a node
	requeueLock   = 26479 // first of two numbers; the second identifies the tenant
	allowanceLock = 26478 // first of two numbers; the second identifies the allowance
	createLock    = 26477 // first of two numbers; the second identifies the tenant
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
		m := migration{version: version, name: name, sql: string(sql)}
		if m.beside, err = oldestBeside(m); err != nil {
			return nil, err
		}
		list = append(list, m)
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

// apply applies the missing migrations of a list, each in a transaction. Nodes that start together take turns. A node that finds
// the schema up to date takes no lock: it starts at once while another one migrates or while the lock is stuck.
func apply(ctx context.Context, conn *pgx.Conn, list []migration) error {
	found, err := readSchema(ctx, conn)
	if err != nil {
		return err
	}
	if found.version >= len(list) {
		return found.check(len(list))
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return failed("lock the schema", err)
	}
	defer conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, int64(migrationLock)) // the lock also ends with the connection
	_, err = conn.PgConn().Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (
			version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
		ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS beside int`).ReadAll()
	if err != nil {
		return failed("create the table of migrations", err)
	}
	if found, err = readSchema(ctx, conn); err != nil { // another node may have migrated meanwhile
		return err
	}
	if found.version >= len(list) {
		return found.check(len(list))
	}
	for _, m := range list[found.version:] {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Conn().PgConn().Exec(ctx, m.sql).ReadAll(); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO schema_migrations (version, name, beside) VALUES ($1, $2, $3)`, m.version, m.name, m.beside)
			return err
		})
		if err != nil {
			return failed("apply migration "+m.name, err)
		}
	}
	return nil
}

const schemaVersion = `SELECT coalesce(max(version), 0) FROM schema_migrations`
