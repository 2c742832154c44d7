package app_test

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

type statsCounts struct {
	Events, Attempts, Acknowledged, Dead int64
	FailedAttempts                       int64    `json:"failed_attempts"`
	P50                                  *float64 `json:"p50_ms"`
	P99                                  *float64 `json:"p99_ms"`
}

func (c statsCounts) counts() [5]int64 {
	return [5]int64{c.Events, c.Attempts, c.Acknowledged, c.FailedAttempts, c.Dead}
}

type statsAnswer struct {
	Since, Until time.Time
	CoveredSince time.Time `json:"covered_since"`
	CoveredUntil time.Time `json:"covered_until"`
	Step         string
	Total        statsCounts
	Points       []struct {
		At time.Time
		statsCounts
	}
	Groups []struct {
		Endpoint, Tenant string
		Total            statsCounts
	}
	GroupCount int `json:"group_count"`
}

// The history shows what was accepted and delivered, to those that may see it, with the causes of failures and what waits.
func TestStatsShowWhatHappened(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		sink := apptest.NewSink(t)
		sink.Script("/gone", apptest.Status(422))
		ids, endpoints := map[string]string{}, map[string]string{}
		for _, uid := range []string{"customer-1", "customer-2"} {
			var made, endpoint struct{ ID string }
			p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": uid, "name": uid}})).JSON(t, &made)
			path := map[string]string{"customer-1": "/", "customer-2": "/gone"}[uid]
			p.want(201, p.as(uid, apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": sink.URL(path), "uid": "hook"}})).JSON(t, &endpoint)
			ids[uid], endpoints[uid] = made.ID, endpoint.ID
			p.want(202, p.as(uid, apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"n":1}`}))
		}
		ask := func(tenant, query string) (a statsAnswer) {
			t.Helper()
			p.want(200, p.as(tenant, apptest.Call{Path: "/v1/stats" + query})).JSON(t, &a)
			return a
		}
		for ask("", "").Total.Attempts < 2 { // the results are committed after the answers
		}
		all := ask("", "?group=tenant")
		if all.Total.counts() != [5]int64{2, 2, 1, 1, 1} || all.Step != "hour" || len(all.Points) != 25 || all.Total.P50 == nil || all.GroupCount != 2 {
			t.Errorf("environment: %+v", all)
		}
		if all.CoveredSince.Before(all.Since) || !all.CoveredSince.After(all.CoveredUntil.Add(-time.Hour)) || all.CoveredUntil.After(all.Until) {
			t.Errorf("covered from %s to %s", all.CoveredSince, all.CoveredUntil)
		}
		if g := all.Groups; len(g) != 2 || g[0].Tenant != ids["customer-2"] || g[0].Total.FailedAttempts != 1 || g[0].Endpoint != "" {
			t.Errorf("groups: %+v", g)
		}
		if one := ask("customer-1", "?step=minute&since="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)); one.Total.counts() != [5]int64{1, 1, 1, 0, 0} || len(one.Points) != 61 {
			t.Errorf("first tenant: %+v", one.Total)
		}
		if one := ask("", "?tenant_id=customer-2"); one.Total.counts() != [5]int64{1, 1, 0, 1, 1} || one.Total.P99 != nil {
			t.Errorf("second tenant: %+v", one.Total)
		}
		for _, query := range []string{"?endpoint=hook", "?endpoint=" + endpoints["customer-2"]} {
			if one := ask("customer-2", query); one.Total.Dead != 1 {
				t.Errorf("%s: %+v", query, one.Total)
			}
		}
		if g := ask("", "?group=endpoint&endpoint="+endpoints["customer-1"]+","+endpoints["customer-2"]); len(g.Groups) != 2 || g.Total.Attempts != 2 {
			t.Errorf("two endpoints: %+v", g)
		}
		if other := ask("customer-1", "?endpoint="+endpoints["customer-2"]); other.Total.counts() != [5]int64{} {
			t.Errorf("another tenant's endpoint: %+v", other.Total)
		}
		var causes struct {
			Causes []struct {
				Cause, Advice   string
				Code, Endpoints int
				Count           int64
				Example         string    `json:"example_endpoint"`
				FirstAt         time.Time `json:"first_at"`
			}
		}
		p.want(200, p.as("", apptest.Call{Path: "/v1/stats/failures"})).JSON(t, &causes)
		if c := causes.Causes; len(c) != 1 || c[0].Cause != "client-error" || c[0].Code != 422 || c[0].Count != 1 || c[0].Endpoints != 1 || c[0].Example != endpoints["customer-2"] || c[0].Advice == "" || c[0].FirstAt.IsZero() {
			t.Errorf("causes: %+v", c)
		}
		p.want(200, p.as("customer-1", apptest.Call{Path: "/v1/stats/failures"})).JSON(t, &causes)
		if len(causes.Causes) != 0 {
			t.Errorf("causes of the first tenant: %+v", causes.Causes)
		}
		p.want(200, p.as("customer-1", apptest.Call{Path: "/v1/endpoints/hook/pause", Body: apptest.Fields{}}))
		p.want(202, p.as("customer-1", apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"n":2}`}))
		var waiting struct {
			Waiting   int
			OldestAt  *time.Time `json:"oldest_at"`
			Endpoints map[string]int
		}
		p.want(200, p.as("", apptest.Call{Path: "/v1/stats/waiting"})).JSON(t, &waiting)
		if waiting.Waiting != 1 || waiting.OldestAt == nil || waiting.Endpoints["paused"] != 1 || waiting.Endpoints["failing"] != 1 {
			t.Errorf("waiting: %+v", waiting)
		}

		tenant, err := godwit.ParseTenantID(ids["customer-1"])
		if err != nil {
			t.Fatal(err)
		}
		own := p.NewKey(tenant, godwit.ScopeRead)
		for path, status := range map[string]int{
			"/v1/stats?tenant_id=" + ids["customer-2"]:                                    404,
			"/v1/stats/waiting?tenant_id=" + ids["customer-2"]:                            404,
			"/v1/stats?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z":             400,
			"/v1/stats?since=2020-01-01T00:00:00Z&until=2026-01-01T00:00:00Z&step=minute": 400,
			"/v1/stats/failures?since=1980-01-01T00:00:00Z&until=2026-01-01T00:00:00Z":    400,
			"/v1/stats?endpoint=a,b": 400,
			"/v1/stats?group=endpoint&limit=200&step=minute&since=" + ago(24*time.Hour): 400,
			"/v1/stats?group=tenant&endpoint=" + endpoints["customer-1"]:                400,
		} {
			p.want(status, p.Call(apptest.Call{Path: path, Key: own}))
		}
	})
}

func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
