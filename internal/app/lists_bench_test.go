//go:build unix

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// BenchmarkLists measures every list that the pages show, with their filters, over a large store: a million events and deliveries, 10,000 endpoints of
// one tenant, and 10,000 tenants. GODWIT_TEST_ROWS sets another number of deliveries. Run it with
//
//	scripts/with-postgres go test ./internal/app -run '^$' -bench Lists -benchtime 5x -timeout 60m
//
// GODWIT_TEST_LARGE names a directory in which the filled stores are kept for further runs; the database of PostgreSQL stays on its server.
func BenchmarkLists(b *testing.B) {
	rows := 1_000_000
	if text := os.Getenv("GODWIT_TEST_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("sqlite", func(b *testing.B) { benchLists(b, openLarge(b, "sqlite", rows)) })
	b.Run("postgres", func(b *testing.B) { benchLists(b, openLarge(b, "postgres", rows)) })
}

func benchLists(b *testing.B, large *largeStore) {
	s := apptest.Start(b, large.options)
	large.sweep(b, s)
	large.Key = s.NewKey(large.Tenant, godwit.AllScopes...)
	for _, c := range large.cases() {
		b.Run(c.name, func(b *testing.B) {
			before := processor()
			defer func() { b.ReportMetric(float64((processor()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op") }()
			for b.Loop() {
				if c.search != nil {
					firstHit(b, s, large.Key, *c.search)
					continue
				}
				r := s.Call(apptest.Call{Method: c.method, Path: c.path, Key: large.Key, Body: c.body})
				if r.Status != http.StatusOK {
					b.Fatalf("%d %s", r.Status, r.Body)
				}
			}
		})
	}
}

// processor returns the CPU time of this process, which includes SQLite, but not PostgreSQL.
func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
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
	since, until := "since="+url.QueryEscape(l.Middle.Format(time.RFC3339)), "until="+url.QueryEscape(l.Middle.Format(time.RFC3339))
	short := since + "&until=" + url.QueryEscape(l.Middle.Add(time.Hour).Format(time.RFC3339))
	add("events", "", "type=order.7", "type=order.*", "type=rare.type", "type=none.such", "key=key-"+strconv.Itoa(l.Rows/3), "key=no-such-key", since, until, short, "limit=200", short+"&type=rare.type")
	add("deliveries", "", "limit=200", "status=pending", "status=accepted", "status=terminal", "status=exhausted", "status=cancelled", "type=order.7", "type=rare.type", "type=none.such", since, until, short,
		"endpoint="+l.Endpoint, "endpoint="+l.Resting, "endpoint="+l.Endpoint+"&status=pending", "endpoint="+l.Resting+"&status=pending", "endpoint="+l.Endpoint+"&status=accepted", "endpoint="+l.Endpoint+"&status=terminal",
		"endpoint="+l.Endpoint+"&type=rare.type", "status=pending&type=rare.type", "status=terminal&type=rare.type", "status=accepted&type=rare.type", "status=exhausted&"+short, "status=pending&"+short,
		"event="+l.Event.String())
	add("dead-letters", "", "limit=200", "endpoint="+l.Endpoint, "type=order.7", "type=rare.type", "status=terminal", "status=exhausted", "reason=status", "reason=timeout", since, until, short, "replayed=true")
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
	add("events/"+l.Event.String()+"/explain", "limit=200", "endpoint="+l.Endpoint)
	all = append(all,
		listCase{name: "deliveries.retry(all)", method: http.MethodPost, path: "/v1/deliveries/retry", body: apptest.Fields{"all": true, "dry_run": true}},
		listCase{name: "deliveries.cancel(endpoint)", method: http.MethodPost, path: "/v1/deliveries/cancel", body: apptest.Fields{"endpoint": l.Resting, "dry_run": true}},
		listCase{name: "search(first-hit-of-frequent-text)", search: &client.EventSearch{Text: "customer-4711"}},
		listCase{name: "search(first-hit-20000-events-back)", search: &client.EventSearch{Text: fmt.Sprintf(`"order":%d,`, l.Rows-min(20_000, l.Rows/2))}},
		listCase{name: "search(first-hit-200000-events-back)", search: &client.EventSearch{Text: fmt.Sprintf(`"order":%d,`, l.Rows-min(200_000, l.Rows-1))}},
		listCase{name: "search(rare-type)", search: &client.EventSearch{Type: "rare.type"}},
	)
	return all
}
