package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver "sqlite" of database/sql
)

// The waiting deliveries are copies of one that the server itself has stored: posting ten million would take longer than
// everything that is measured. A copy has ids of its own, whose first six bytes, the time, are those of the original.
//
// copiedColumns lists the columns that differ in a copy, as expressions over the original t and the number i of the copy.
type copiedColumns map[string]string

const (
	sqliteID   = "unhex(substr(hex(t.%s), 1, 12) || printf('%%020x', i))"
	postgresID = "(substr(replace(t.%s::text, '-', ''), 1, 12) || lpad(to_hex(i), 20, '0'))::uuid"
)

// multiply writes the waiting deliveries into the store of a stopped server.
func (b *bench) multiply(ctx context.Context, data string) error {
	if storeName(b.o.Store) == "postgres" {
		return b.multiplyPostgres(ctx)
	}
	return b.multiplySQLite(ctx, filepath.Join(data, "godwit.db"))
}

func (b *bench) multiplySQLite(ctx context.Context, file string) (err error) {
	// Without a log of its own and without syncs: nothing else uses the file. The server turns the WAL on again.
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-524288)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	id, eventID := fmt.Sprintf(sqliteID, "id"), fmt.Sprintf(sqliteID, "event_id")
	// An event's row lists its deliveries: 16 bytes of the id, then the rest.
	events := copiedColumns{
		"id": id, "key": "t.key || i",
		"deliveries": "unhex(substr(hex(t.deliveries), 1, 12) || printf('%020x', i) || hex(substr(t.deliveries, 17)))",
	}
	deliveries := copiedColumns{"id": id, "event_id": eventID}
	for _, table := range []struct {
		name, original string
		columns        copiedColumns
	}{
		{"events", "SELECT e.* FROM deliveries d JOIN events e ON e.tenant_id = d.tenant_id AND e.id = d.event_id WHERE d.n = ?1", events},
		{"deliveries", "SELECT * FROM deliveries WHERE n = ?1", deliveries},
	} {
		var original int64
		if err := db.QueryRowContext(ctx, "SELECT n FROM deliveries WHERE status = 'pending' AND claim_epoch = 0 ORDER BY attempts, n LIMIT 1").Scan(&original); err != nil {
			return fmt.Errorf("find a waiting delivery: %w", err)
		}
		names, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?) WHERE pk = 0", table.name)
		if err != nil {
			return err
		}
		into, from, err := table.columns.of(names)
		if err != nil {
			return err
		}
		statement := fmt.Sprintf(`WITH RECURSIVE t AS MATERIALIZED (%s), i (i) AS (SELECT ?2 UNION ALL SELECT i + 1 FROM i WHERE i + 1 < ?3)
			INSERT INTO %s (%s) SELECT %s FROM i CROSS JOIN t`, table.original, table.name, into, from)
		err = b.portions(table.name, func(first, last int) error {
			_, err := db.ExecContext(ctx, statement, original, first, last)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// of makes the lists of columns of an insert.
func (c copiedColumns) of(names *sql.Rows) (into, from string, err error) {
	defer names.Close()
	var list []string
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			return "", "", err
		}
		list = append(list, name)
	}
	into, from = c.lists(list)
	return into, from, names.Err()
}

func (c copiedColumns) lists(names []string) (into, from string) {
	values := make([]string, len(names))
	for i, name := range names {
		if values[i] = c[name]; values[i] == "" {
			values[i] = "t." + name
		}
	}
	return strings.Join(names, ", "), strings.Join(values, ", ")
}

// portions calls insert with numbers from first up to last, without last, until there are as many rows as wanted.
func (b *bench) portions(table string, insert func(first, last int) error) error {
	const portion = 500_000
	for first := 0; first < b.o.Backlog; first += portion {
		if err := insert(first, min(first+portion, b.o.Backlog)); err != nil {
			return fmt.Errorf("copy rows of %s: %w", table, err)
		}
		if first > 0 && first%(4*portion) == 0 {
			b.o.Progress("%d rows of %s", first, table)
		}
	}
	return nil
}

func (b *bench) multiplyPostgres(ctx context.Context) (err error) {
	db, err := pgx.Connect(ctx, b.o.Store)
	if err != nil {
		return errors.New("connect to the database") // the driver's error may quote a password
	}
	defer func() { err = errors.Join(err, db.Close(ctx)) }()
	id := fmt.Sprintf(postgresID, "id")
	var tenant, original, event string
	err = db.QueryRow(ctx, "SELECT tenant_id::text, id::text, event_id::text FROM pending_deliveries WHERE claim_epoch = 0 ORDER BY attempts, id LIMIT 1").
		Scan(&tenant, &original, &event)
	if err != nil {
		return fmt.Errorf("find a waiting delivery: %w", err)
	}
	deliveryIDs := fmt.Sprintf("uuid_send((substr(replace('%s', '-', ''), 1, 12) || lpad(to_hex(i), 20, '0'))::uuid)", original)
	for _, table := range []struct {
		name, original string
		columns        copiedColumns
	}{
		{"events", event, copiedColumns{"id": id, "key": "t.key || i", "key_slot": "t.key_slot + i", "deliveries": deliveryIDs}},
		{"pending_deliveries", original, copiedColumns{"id": id, "event_id": fmt.Sprintf(postgresID, "event_id")}},
	} {
		rows, err := db.Query(ctx, "SELECT column_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1", table.name)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		into, from := table.columns.lists(names)
		statement := fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM generate_series($3::bigint, $4::bigint - 1) AS i,
			(SELECT * FROM %s WHERE tenant_id = $1::uuid AND id = $2::uuid) AS t`, table.name, into, from, table.name)
		err = b.portions(table.name, func(first, last int) error {
			_, err := db.Exec(ctx, statement, tenant, table.original, first, last)
			return err
		})
		if err != nil {
			return err
		}
	}
	// As the database would have done by itself while the rows came one by one.
	for _, statement := range []string{"VACUUM (ANALYZE) events", "VACUUM (ANALYZE) pending_deliveries", "CHECKPOINT"} {
		if _, err := db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// countWaiting counts the deliveries that are not finished.
func (b *bench) countWaiting(ctx context.Context, data string) (n int64, err error) {
	if storeName(b.o.Store) == "postgres" {
		db, err := pgx.Connect(ctx, b.o.Store)
		if err != nil {
			return 0, errors.New("connect to the database")
		}
		err = db.QueryRow(ctx, "SELECT count(*) FROM pending_deliveries").Scan(&n)
		return n, errors.Join(err, db.Close(ctx))
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "godwit.db")+"?mode=ro")
	if err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM deliveries WHERE status = 'pending'").Scan(&n)
	return n, errors.Join(err, db.Close())
}
