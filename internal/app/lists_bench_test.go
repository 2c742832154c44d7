package app_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // fills a store

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// BenchmarkLists measures every list that the pages show, with their filters, over a large store: a million events and deliveries, 10,000 endpoints of
// one tenant, and 10,000 tenants. GODWIT_TEST_ROWS sets another number of deliveries. Run it with
//
//	scripts/with-postgres go test ./internal/app -run '^$' -bench Lists -benchtime 5x -timeout 60m
func BenchmarkLists(b *testing.B) {
	rows := 1_000_000
	if text := os.Getenv("GODWIT_TEST_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("sqlite", func(b *testing.B) { benchLists(b, apptest.Options{Data: b.TempDir()}, rows) })
	b.Run("postgres", func(b *testing.B) {
		benchLists(b, apptest.Options{Data: b.TempDir(), Store: apptest.PostgresURL(b)}, rows)
	})
}

// A largeStore is a store that was filled.
type largeStore struct {
	rows     int
	tenant   godwit.TenantID
	key      string
	event    godwit.EventID // one that has deliveries
	endpoint string         // one of the tenant's endpoints, with a hundred deliveries
	resting  string         // one with deliveries that wait
	middle   time.Time
}

const (
	largeEndpoints = 10_000
	largeTenants   = 10_000
	largeResting   = 100 // endpoints that are paused, and have all deliveries that wait
)

func benchLists(b *testing.B, o apptest.Options, rows int) {
	s := apptest.Start(b, o)
	large := &largeStore{rows: rows, tenant: s.Tenant, key: s.Key}
	template := s.Endpoint(apptest.DeadURL(b, "/"), apptest.Fields{"patterns": []string{"none.such"}})
	if err := s.Stop(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if o.Store == "" {
		large.fillSQLite(b, filepath.Join(o.Data, "godwit.db"), template.ID)
	} else {
		large.fillPostgres(b, o.Store, template.ID)
	}
	b.Logf("filled in %s", time.Since(began).Round(time.Second))
	s = apptest.Start(b, o)
	for _, c := range large.cases() {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if c.search != nil {
					firstHit(b, s, large.key, *c.search)
					continue
				}
				r := s.Call(apptest.Call{Method: c.method, Path: c.path, Key: large.key, Body: c.body})
				if r.Status != http.StatusOK {
					b.Fatalf("%d %s", r.Status, r.Body)
				}
			}
		})
	}
}

// firstHit searches until the first event is found, and ends the search.
func firstHit(b *testing.B, s *apptest.Server, key string, q client.EventSearch) {
	cl, err := client.New(s.URL, key)
	if err != nil {
		b.Fatal(err)
	}
	for line, err := range cl.SearchEvents(context.Background(), q) {
		if err != nil {
			b.Fatal(err)
		}
		if line.Event != nil {
			return
		}
	}
	b.Fatal("nothing was found")
}

type listCase struct {
	name, method, path string
	body               any
	search             *client.EventSearch
}

func (l *largeStore) cases() (all []listCase) {
	add := func(path string, queries ...string) {
		for _, q := range queries {
			name, full := path, "/v1/"+path
			if q != "" {
				name, full = name+"?"+strings.ReplaceAll(q, "/", "_"), full+"?"+q
			}
			all = append(all, listCase{name: strings.ReplaceAll(name, "/", "."), path: full})
		}
	}
	since, until := "since="+url.QueryEscape(l.middle.Format(time.RFC3339)), "until="+url.QueryEscape(l.middle.Format(time.RFC3339))
	short := since + "&until=" + url.QueryEscape(l.middle.Add(time.Hour).Format(time.RFC3339))
	add("events", "", "type=order.7", "type=order.*", "type=rare.type", "type=none.such", "key=key-"+strconv.Itoa(l.rows/3), "key=no-such-key", since, until, short, "limit=200", short+"&type=rare.type")
	add("deliveries", "", "limit=200", "status=pending", "status=accepted", "status=terminal", "status=exhausted", "status=cancelled", "type=order.7", "type=rare.type", "type=none.such", since, until, short,
		"endpoint="+l.endpoint, "endpoint="+l.resting, "endpoint="+l.endpoint+"&status=pending", "endpoint="+l.resting+"&status=pending", "endpoint="+l.endpoint+"&status=accepted", "endpoint="+l.endpoint+"&status=terminal",
		"endpoint="+l.endpoint+"&type=rare.type", "status=pending&type=rare.type", "status=terminal&type=rare.type", "status=accepted&type=rare.type", "status=exhausted&"+short, "status=pending&"+short,
		"event="+l.event.String())
	add("dead-letters", "", "limit=200", "endpoint="+l.endpoint, "type=order.7", "type=rare.type", "status=terminal", "status=exhausted", "reason=status", "reason=timeout", since, until, short, "replayed=true")
	add("endpoints", "", "limit=200", "status=active", "status=paused", "status=disabled")
	add("tenants", "", "limit=200", "search=customer-99", "search=no-such", "health=true", "health=true&limit=200", "search=customer-99&health=true")
	add("sources", "")
	add("keys", "")
	add("notices", "")
	add("event-types", "")
	add("environments", "")
	add("usage", "")
	add("nodes", "")
	add("settings", "")
	add("stats/waiting", "")
	add("events/"+l.event.String()+"/explain", "limit=200", "endpoint="+l.endpoint)
	all = append(all,
		listCase{name: "deliveries.retry(all)", method: http.MethodPost, path: "/v1/deliveries/retry", body: apptest.Fields{"all": true, "dry_run": true}},
		listCase{name: "deliveries.cancel(endpoint)", method: http.MethodPost, path: "/v1/deliveries/cancel", body: apptest.Fields{"endpoint": l.resting, "dry_run": true}},
		listCase{name: "search(first-hit-of-frequent-text)", search: &client.EventSearch{Text: "customer-4711"}},
		listCase{name: "search(first-hit-20000-events-back)", search: &client.EventSearch{Text: fmt.Sprintf(`"order":%d,`, l.rows-min(20_000, l.rows/2))}},
		listCase{name: "search(first-hit-200000-events-back)", search: &client.EventSearch{Text: fmt.Sprintf(`"order":%d,`, l.rows-min(200_000, l.rows-1))}},
		listCase{name: "search(rare-type)", search: &client.EventSearch{Type: "rare.type"}},
	)
	return all
}

// step is the time between two events, in milliseconds: the store holds about ten days.
func (l *largeStore) step() int64 { return max(1, 10*24*3600*1000/int64(l.rows)) }

// id returns the id of the i-th event, delivery, endpoint or tenant.
func (l *largeStore) id(base int64, i int) string {
	h := fmt.Sprintf("%012x7%03x8%015x", base+int64(i)*l.step(), i%4096, i)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// note remembers rows that the cases ask for.
func (l *largeStore) note(b *testing.B, base int64) {
	l.middle = time.UnixMilli(base + int64(l.rows/2)*l.step()).UTC()
	l.endpoint, l.resting = "sub_"+l.id(base, largeResting+1), "sub_"+l.id(base, 1)
	var err error
	if l.event, err = godwit.ParseEventID("evt_" + l.id(base, l.rows-1)); err != nil {
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
	base := time.Now().UnixMilli() - int64(l.rows)*l.step()
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
		series(l.rows) + `INSERT INTO events (tenant_id, id, type, key, content_type, attributes, principal, created_at, kept_since, format, source_id, occurred_at, deliveries, body)
			SELECT ?, ` + idOf("i") + `, ` + kind + `, 'key-' || i, 'application/json', NULL, zeroblob(16), ` + at + `, ` + at + `, '', '', 0, x'', ` + body + ` FROM s`,
		series(l.rows) + `INSERT INTO deliveries (tenant_id, id, event_id, endpoint_id, status, claim_epoch, due_at, reason, attempts, last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed)
			SELECT ?, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + status + `, 0, ` + at + `, ` + reason + `, 1, 200, ` + at + `, ` + at + `, 'accept', '', 1, ` + at + `, 0 FROM s`,
		series(l.rows) + `INSERT INTO dead_letters (tenant_id, id, event_id, endpoint_id, status, due_at, reason, attempts, last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed,
			dead_at, replayed_at, last_detail, type, key, content_type, principal, event_created_at, format, source_id, occurred_at, body)
			SELECT ?, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + status + `, 0, ` + reason + `, 1, 422, ` + at + `, ` + at + `, 'accept', '', 1, ` + at + `, 0, ` + at + `, 0, '', ` + kind + `, 'key-' || i,
			'application/json', zeroblob(16), ` + at + `, '', '', 0, ` + body + ` FROM s WHERE i % 100 = 1 OR i % 200 = 2`,
	} {
		args := []any{}
		switch strings.Count(q, "?") {
		case 1:
			if args = append(args, l.tenant[:]); strings.Contains(q, "INTO endpoints") {
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
	base := time.Now().UnixMilli() - int64(l.rows)*l.step()
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
	tenant := "'" + strings.TrimPrefix(l.tenant.String(), "ten_") + "'::uuid"
	shard := "(('x' || right(replace(" + endpoint + "::text, '-', ''), 2))::bit(8)::int % 64)::smallint"
	for _, q := range []string{
		`INSERT INTO tenants (id, name, require_idempotency_key, created_at, uid) SELECT ` + idOf("i") + `, 'Customer ' || i, false, ` + at + `, 'customer-' || i` + series(largeTenants),
		`INSERT INTO endpoints (id, tenant_id, url, method, profile, description, patterns, filter, policy, metadata, sealed, sealed_info, status, status_reason, status_at, created_at, updated_at, version)
			SELECT ` + idOf("i") + `, e.tenant_id, e.url, e.method, e.profile, e.description, e.patterns, e.filter, e.policy, e.metadata, e.sealed, e.sealed_info,
			CASE WHEN i < ` + strconv.Itoa(largeResting) + ` THEN 'paused' ELSE 'active' END, '', e.status_at, e.created_at, e.updated_at, 1` + series(largeEndpoints) +
			`, endpoints AS e WHERE e.id = '` + strings.TrimPrefix(template.String(), "sub_") + `'`,
		`INSERT INTO events (tenant_id, id, created_at, type, key, content_type, key_slot, deliveries, body)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + at + `, ` + kind + `, 'key-' || i, 'application/json', i, uuid_send(` + idOf("i") + `), ` + body + series(l.rows),
		`INSERT INTO deliveries (tenant_id, id, event_id, endpoint_id, created_at, updated_at, attempts, last_status, run_attempts, run_refreshed, status, reason, run_trigger, run_actor)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + at + `, ` + at + `, 1, 200, 1, false, ` + status + `, ` + reason + `, 'accept', ''` + series(l.rows) + ` WHERE i % 100 <> 0`,
		`INSERT INTO pending_deliveries (tenant_id, id, event_id, endpoint_id, claim_epoch, created_at, updated_at, due_at, shard, run_trigger)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, 0, ` + at + `, ` + at + `, ` + at + `, ` + shard + `, 'accept'` + series(l.rows) + ` WHERE i % 100 = 0`,
		`INSERT INTO dead_letters (tenant_id, id, event_id, endpoint_id, created_at, updated_at, attempts, last_status, run_attempts, run_refreshed, status, reason, run_trigger, run_actor, dead_at, last_detail,
			event_created_at, event_type, event_key, event_content_type, event_body)
			SELECT ` + tenant + `, ` + idOf("i") + `, ` + idOf("i") + `, ` + endpoint + `, ` + at + `, ` + at + `, 1, 422, 1, false, ` + status + `, ` + reason + `, 'accept', '', ` + at + `, '',
			` + at + `, ` + kind + `, 'key-' || i, 'application/json', ` + body + series(l.rows) + ` WHERE i % 100 = 1 OR i % 200 = 2`,
		`ANALYZE`,
	} {
		if _, err := db.Exec(ctx, q); err != nil {
			b.Fatalf("%v in %.300s", err, q)
		}
	}
}
