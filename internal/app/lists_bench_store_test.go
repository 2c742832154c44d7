//go:build unix

package app_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // fills a store

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A largeStore is a store that was filled.
type largeStore struct {
	Rows     int
	Tenant   godwit.TenantID
	Key      string         `json:"-"`
	Event    godwit.EventID // one that has deliveries
	Endpoint string         // one of the tenant's endpoints, with a hundred deliveries
	Resting  string         // one with deliveries that wait
	Middle   time.Time

	options apptest.Options
}

const (
	largeEndpoints = 10_000
	largeTenants   = 10_000
	largeResting   = 100 // endpoints that are paused, and have all deliveries that wait
)

// openLarge fills a store, or takes the one that an earlier run kept.
func openLarge(b *testing.B, kind string, rows int) *largeStore {
	large := &largeStore{Rows: rows, options: apptest.Options{Data: b.TempDir()}}
	kept := os.Getenv("GODWIT_TEST_LARGE")
	if kept != "" {
		large.options.Data = filepath.Join(kept, fmt.Sprintf("%s-%d", kind, rows))
	}
	switch {
	case kind == "sqlite":
	case kept == "":
		large.options.Store = apptest.PostgresURL(b)
	default:
		large.options.Store = keptDatabase(b, rows)
	}
	note := filepath.Join(large.options.Data, "large.json")
	text, err := os.ReadFile(note)
	if err == nil {
		if err := json.Unmarshal(text, large); err != nil {
			b.Fatal(err)
		}
		large.forgetKeys(b)
		return large
	}
	if !errors.Is(err, fs.ErrNotExist) {
		b.Fatal(err)
	}
	s := apptest.Start(b, large.options)
	large.Tenant = s.Tenant
	template := s.Endpoint(apptest.DeadURL(b, "/"), apptest.Fields{"patterns": []string{"none.such"}})
	if err := s.Stop(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if kind == "sqlite" {
		large.fillSQLite(b, large.database(), template.ID)
	} else {
		large.fillPostgres(b, large.options.Store, template.ID)
	}
	b.Logf("filled in %s", time.Since(began).Round(time.Second))
	if text, err = json.Marshal(large); err == nil {
		err = os.WriteFile(note, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return large
}

// database is the path of the SQLite file.
func (l *largeStore) database() string { return filepath.Join(l.options.Data, "godwit.db") }

// keptDatabase returns a database of a fixed name, which it creates unless it exists.
func keptDatabase(b *testing.B, rows int) string {
	server, err := url.Parse(os.Getenv("GODWIT_TEST_POSTGRES"))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	db, err := pgx.Connect(ctx, server.String())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close(ctx)
	name := fmt.Sprintf("godwit_large_%d", rows)
	var there bool
	if err := db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil {
		b.Fatal(err)
	}
	if !there {
		if _, err := db.Exec(ctx, "CREATE DATABASE "+name); err != nil {
			b.Fatal(err)
		}
	}
	server.Path = "/" + name
	return server.String()
}

// forgetKeys removes what binds a kept store to the keys of the process that filled it: check values, and secrets that are sealed.
func (l *largeStore) forgetKeys(b *testing.B) {
	if err := os.Remove(filepath.Join(l.options.Data, "evidence.key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.Fatal(err)
	}
	secrets := "secrets"
	if l.options.Store != "" {
		secrets = "endpoint_secrets"
	}
	forget := "DELETE FROM key_checks; DELETE FROM " + secrets
	var err error
	if ctx := context.Background(); l.options.Store != "" {
		var db *pgx.Conn
		if db, err = pgx.Connect(ctx, l.options.Store); err == nil {
			_, err = db.Exec(ctx, forget)
			db.Close(ctx)
		}
	} else {
		var db *sql.DB
		if db, err = sql.Open("sqlite", "file:"+l.database()); err == nil {
			_, err = db.Exec(forget)
			db.Close()
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

// sweep does what the server does once a minute, which on SQLite includes the index over keys.
func (l *largeStore) sweep(b *testing.B, s *apptest.Server) {
	for more := true; more; {
		swept, err := s.App.Store().Sweep(context.Background(), store.Sweep{Now: time.Now(), Limit: 500})
		if err != nil {
			b.Fatal(err)
		}
		more = swept.More
	}
}

// partitions makes a partition for each day, as the server would have done.
func (l *largeStore) partitions(base int64) string {
	var b strings.Builder
	first := func(t time.Time) string { return fmt.Sprintf("%012x%020x", t.UnixMilli(), 0) }
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for day := time.UnixMilli(base).UTC().Truncate(24 * time.Hour); day.Before(today); day = day.AddDate(0, 0, 1) {
		for _, table := range []string{"events", "deliveries", "attempts"} {
			fmt.Fprintf(&b, "CREATE TABLE %[1]s%[2]s PARTITION OF %[1]s FOR VALUES FROM ('%[3]s') TO ('%[4]s');\n", table, day.Format("_20060102_150405"), first(day), first(day.AddDate(0, 0, 1)))
		}
	}
	return b.String()
}

// step is the time between two events, in milliseconds: the store holds about ten days.
func (l *largeStore) step() int64 { return max(1, 10*24*3600*1000/int64(l.Rows)) }

// id returns the id of the i-th event, delivery, endpoint or tenant.
func (l *largeStore) id(base int64, i int) string {
	h := fmt.Sprintf("%012x7%03x8%015x", base+int64(i)*l.step(), i%4096, i)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// note remembers rows that the cases ask for.
func (l *largeStore) note(b *testing.B, base int64) {
	l.Middle = time.UnixMilli(base + int64(l.Rows/2)*l.step()).UTC()
	l.Endpoint, l.Resting = "sub_"+l.id(base, largeResting+1), "sub_"+l.id(base, 1)
	var err error
	if l.Event, err = godwit.ParseEventID("evt_" + l.id(base, l.Rows-1)); err != nil {
		b.Fatal(err)
	}
}

// fillSQLite writes the rows with statements of its own, since a million deliveries through the server would take an hour.
func (l *largeStore) fillSQLite(b *testing.B, path string, template godwit.EndpointID) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-200000)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	base := time.Now().UnixMilli() - int64(l.Rows)*l.step()
	l.note(b, base)
	const id = `unhex(printf('%%012x7%%03x8%%015x', %[1]d + %[3]s * %[2]d, %[3]s %% 4096, %[3]s))`
	idOf := func(expression string) string { return fmt.Sprintf(id, base, l.step(), expression) }
	series := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < %d) ", n-1)
	}
	at := fmt.Sprintf("((%d + i * %d) * 1000)", base, l.step())
	status := `CASE WHEN i % 100 = 0 THEN 'pending' WHEN i % 100 = 1 THEN 'terminal' WHEN i % 200 = 2 THEN 'exhausted' WHEN i % 200 = 102 THEN 'cancelled' ELSE 'accepted' END`
	endpoint := idOf(fmt.Sprintf("(CASE WHEN i %% 100 = 0 THEN i / 100 %% %d ELSE %d + i %% %d END)", largeResting, largeResting, largeEndpoints-largeResting))
	reason := `CASE WHEN i % 100 = 1 THEN 'status' WHEN i % 200 = 2 THEN 'timeout' ELSE '' END`
	kind := `CASE WHEN i % 250000 = 7 THEN 'rare.type' ELSE 'order.' || (i % 20) END`
	body := `CAST(printf('{"order":%d,"customer":"customer-%d","note":"', i, i % 10000) || hex(zeroblob(180)) || '"}' AS BLOB)`
	for _, q := range []string{
		series(largeTenants) + `INSERT INTO tenants (id, name, require_idempotency_key, created_at, deleted_at, code, uid) SELECT ` + idOf("i") + `, 'Customer ' || i, 0, ` + at + `, 0, '', 'customer-' || i FROM s`,
		series(largeEndpoints) + `INSERT INTO endpoints (id, tenant_id, url, method, profile, description, patterns, filter, policy, metadata, sealed, sealed_info, status, status_reason, status_at, created_at, updated_at, version)
			SELECT ` + idOf("i") + `, e.tenant_id, e.url, e.method, e.profile, e.description, e.patterns, e.filter, e.policy, e.metadata, e.sealed, e.sealed_info,
			CASE WHEN i < ` + strconv.Itoa(largeResting) + ` THEN 'paused' ELSE 'active' END, '', e.status_at, e.created_at, e.updated_at, 1 FROM s, endpoints e WHERE e.id = ?`,
		series(l.Rows) + `INSERT INTO events (tenant_id, id, type, key, content_type, attributes, principal, created_at, kept_since, format, source_id, occurred_at, deliveries, body)
			SELECT ?, ` + idOf("i") + `, ` + kind + `, 'key-' || i, 'application/json', NULL, zeroblob(16), ` + at + `, ` + at + `, '', '', 0, x'', ` + body + ` FROM s`,
		series(l.Rows) + `INSERT INTO deliveries (tenant_id, id, event_id, endpoint_id, status, claim_epoch, due_at, reason, attempts, last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed)
			SELECT ?, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + status + `, 0, ` + at + `, ` + reason + `, 1, 200, ` + at + `, ` + at + `, 'accept', '', 1, ` + at + `, 0 FROM s`,
		series(l.Rows) + `INSERT INTO dead_letters (tenant_id, id, event_id, endpoint_id, status, due_at, reason, attempts, last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed,
			dead_at, replayed_at, last_detail, type, key, content_type, principal, event_created_at, format, source_id, occurred_at, body)
			SELECT ?, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + status + `, 0, ` + reason + `, 1, 422, ` + at + `, ` + at + `, 'accept', '', 1, ` + at + `, 0, ` + at + `, 0, '', ` + kind + `, 'key-' || i,
			'application/json', zeroblob(16), ` + at + `, '', '', 0, ` + body + ` FROM s WHERE i % 100 = 1 OR i % 200 = 2`,
	} {
		args := []any{}
		switch strings.Count(q, "?") {
		case 1:
			if args = append(args, l.Tenant[:]); strings.Contains(q, "INTO endpoints") {
				args[0] = template[:]
			}
		}
		if _, err := db.Exec(q, args...); err != nil {
			b.Fatalf("%v in %.200s", err, q)
		}
	}
}

// fillPostgres does the same.
func (l *largeStore) fillPostgres(b *testing.B, address string, template godwit.EndpointID) {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, address)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close(ctx)
	base := time.Now().UnixMilli() - int64(l.Rows)*l.step()
	l.note(b, base)
	idOf := func(i string) string {
		return fmt.Sprintf("(lpad(to_hex(%d::bigint + (%s)::bigint * %d), 12, '0') || '7' || lpad(to_hex((%[2]s) %% 4096), 3, '0') || '8' || lpad(to_hex((%[2]s)::bigint), 15, '0'))::uuid", base, i, l.step())
	}
	series := func(n int) string { return fmt.Sprintf(" FROM generate_series(0, %d) AS s (i)", n-1) }
	at := fmt.Sprintf("to_timestamp((%d::bigint + i::bigint * %d) / 1000.0)", base, l.step())
	status := `CASE WHEN i % 100 = 1 THEN 'terminal' WHEN i % 200 = 2 THEN 'exhausted' WHEN i % 200 = 102 THEN 'cancelled' ELSE 'accepted' END`
	endpoint := idOf(fmt.Sprintf("CASE WHEN i %% 100 = 0 THEN i / 100 %% %d ELSE %d + i %% %d END", largeResting, largeResting, largeEndpoints-largeResting))
	reason := `CASE WHEN i % 100 = 1 THEN 'status' WHEN i % 200 = 2 THEN 'timeout' ELSE '' END`
	kind := `CASE WHEN i % 250000 = 7 THEN 'rare.type' ELSE 'order.' || (i % 20) END`
	body := `convert_to('{"order":' || i || ',"customer":"customer-' || (i % 10000) || '","note":"' || repeat(md5(i::text), 11) || '"}', 'UTF8')`
	tenant := "'" + strings.TrimPrefix(l.Tenant.String(), "ten_") + "'::uuid"
	shard := "(('x' || right(replace(" + endpoint + "::text, '-', ''), 2))::bit(8)::int % 64)::smallint"
	for _, q := range []string{
		l.partitions(base),
		`INSERT INTO tenants (id, name, require_idempotency_key, created_at, uid) SELECT ` + idOf("i") + `, 'Customer ' || i, false, ` + at + `, 'customer-' || i` + series(largeTenants),
		`INSERT INTO endpoints (id, tenant_id, url, method, profile, description, patterns, filter, policy, metadata, sealed, sealed_info, status, status_reason, status_at, created_at, updated_at, version)
			SELECT ` + idOf("i") + `, e.tenant_id, e.url, e.method, e.profile, e.description, e.patterns, e.filter, e.policy, e.metadata, e.sealed, e.sealed_info,
			CASE WHEN i < ` + strconv.Itoa(largeResting) + ` THEN 'paused' ELSE 'active' END, '', e.status_at, e.created_at, e.updated_at, 1` + series(largeEndpoints) +
			`, endpoints AS e WHERE e.id = '` + strings.TrimPrefix(template.String(), "sub_") + `'`,
		`INSERT INTO events (tenant_id, id, created_at, type, key, content_type, key_slot, deliveries, body)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + at + `, ` + kind + `, 'key-' || i, 'application/json', i, uuid_send(` + idOf("i") + `), ` + body + series(l.Rows),
		`INSERT INTO deliveries (tenant_id, id, event_id, endpoint_id, created_at, updated_at, attempts, last_status, run_attempts, run_refreshed, status, reason, run_trigger, run_actor)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + at + `, ` + at + `, 1, 200, 1, false, ` + status + `, ` + reason + `, 'accept', ''` + series(l.Rows) + ` WHERE i % 100 <> 0`,
		`INSERT INTO pending_deliveries (tenant_id, id, event_id, endpoint_id, claim_epoch, created_at, updated_at, due_at, shard, run_trigger)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, 0, ` + at + `, ` + at + `, ` + at + `, ` + shard + `, 'accept'` + series(l.Rows) + ` WHERE i % 100 = 0`,
		`INSERT INTO dead_letters (tenant_id, id, event_id, endpoint_id, created_at, updated_at, attempts, last_status, run_attempts, run_refreshed, status, reason, run_trigger, run_actor, dead_at, last_detail,
			event_created_at, event_type, event_key, event_content_type, event_body)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + at + `, ` + at + `, 1, 422, 1, false, ` + status + `, ` + reason + `, 'accept', '', ` + at + `, '',
			` + at + `, ` + kind + `, 'key-' || i, 'application/json', ` + body + series(l.Rows) + ` WHERE i % 100 = 1 OR i % 200 = 2`,
		`ANALYZE`,
	} {
		if _, err := db.Exec(ctx, q); err != nil {
			b.Fatalf("%v in %.300s", err, q)
		}
	}
}
