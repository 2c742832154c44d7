package postgres

import (
	"context"
	"fmt"

	"github.com/godwit-hq/godwit/internal/store"
)

// upkeep checks and describes the database.
type upkeep struct{ *database }

// Ping writes one row: a server that is read-only or full must not count as available.
func (s *upkeep) Ping(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, writeProbe)
	return failed("ping", err)
}

const writeProbe = `INSERT INTO write_probe (one, at) VALUES (true, now()) ON CONFLICT (one) DO UPDATE SET at = now()`

// Verify checks every B-tree index of the schema with the extension amcheck, if it is installed and permitted. The server's
// own checksums cover the pages of tables.
func (s *upkeep) Verify(ctx context.Context) (string, error) {
	var installed, allowed bool
	err := s.pool.QueryRow(ctx, `SELECT p.oid IS NOT NULL, coalesce(has_function_privilege(p.oid, 'EXECUTE'), false)
		FROM (SELECT 1) AS one LEFT JOIN (SELECT p.oid FROM pg_proc AS p JOIN pg_extension AS e ON e.extname = 'amcheck'
			JOIN pg_depend AS d ON d.objid = p.oid AND d.refobjid = e.oid WHERE p.proname = 'bt_index_check' AND p.pronargs = 1) AS p ON true
		LIMIT 1`).Scan(&installed, &allowed)
	switch {
	case err != nil:
		return "", failed("verify database", err)
	case !installed:
		return "not looked at: the extension amcheck is not installed; a superuser installs it with CREATE EXTENSION amcheck", nil
	case !allowed:
		return "not looked at: this user may not use amcheck; a superuser permits it with GRANT EXECUTE ON FUNCTION bt_index_check(regclass)", nil
	}
	var function string
	err = s.pool.QueryRow(ctx, `SELECT quote_ident(n.nspname) || '.bt_index_check' FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
		WHERE e.extname = 'amcheck'`).Scan(&function)
	if err != nil {
		return "", failed("verify database", err)
	}
	var indexes int
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT `+function+`(c.oid::regclass) FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam AND a.amname = 'btree'
		JOIN pg_index AS i ON i.indexrelid = c.oid AND i.indisvalid AND i.indisready
		WHERE c.relkind = 'i' AND c.relpersistence = 'p' AND c.relnamespace = current_schema()::regnamespace OFFSET 0) AS checked`).Scan(&indexes)
	if state := sqlState(err); state == stateDataCorrupted || state == stateIndexCorrupted {
		return "", fmt.Errorf("verify database: %w: %w", store.ErrDamaged, err)
	}
	return fmt.Sprintf("amcheck found no damage in %d indexes", indexes), failed("verify database", err)
}

// Describe describes this store.
func (s *upkeep) Describe(ctx context.Context) (store.Description, error) {
	known, err := migrations()
	if err != nil {
		return store.Description{}, err
	}
	d := store.Description{
		Backend: "postgres", ProgramSchema: len(known), Location: s.connector.current() + "/" + s.pool.Config().ConnConfig.Database,
	}
	var fsync, sync, pages, replicas string
	err = s.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync'),
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
