package app_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// The platform sets limits on its tenants. What exceeds them is refused with the limit's name; other tenants do not notice.
func TestTenantLimits(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		sink := apptest.NewSink(t)
		limits := apptest.Fields{"events_per_second": 1, "burst": 2, "endpoints": 3, "payload_bytes": 500, "endpoint_creations_per_minute": 1}
		var made struct {
			ID     string
			Limits map[string]int
		}
		p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": "small", "name": "small", "limits": limits}})).JSON(t, &made)
		if fmt.Sprint(made.Limits) != fmt.Sprint(limits) {
			t.Errorf("limits are %v, want %v", made.Limits, limits)
		}
		p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": "other", "name": "other"}}))
		refused := func(status int, limit string, r *apptest.Response) *apptest.Response {
			t.Helper()
			if p.want(status, r); !strings.Contains(string(r.Body), limit) {
				t.Errorf("%s does not name %s", r.Body, limit)
			}
			if status == 429 && r.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return r
		}

		// Creations a minute hold for the tenant's own key; those of the platform do not count. The number of endpoints holds for both.
		id, err := godwit.ParseTenantID(made.ID)
		if err != nil {
			t.Fatal(err)
		}
		large := `{"text":"` + strings.Repeat("x", 500) + `"}`
		own := p.NewKey(id, godwit.ScopeManage, godwit.ScopeIngest)
		endpoint := apptest.Fields{"url": sink.URL("/")}
		for range 2 {
			p.want(201, p.as("small", apptest.Call{Path: "/v1/endpoints", Body: endpoint}))
		}
		p.want(201, p.Call(apptest.Call{Path: "/v1/endpoints", Key: own, Body: endpoint}))
		refused(429, "endpoint_creations_per_minute", p.Call(apptest.Call{Path: "/v1/endpoints", Key: own, Body: endpoint}))
		refused(403, "endpoints", p.as("small", apptest.Call{Path: "/v1/endpoints", Body: endpoint}))

		refused(413, "payload_bytes", p.Call(apptest.Call{Path: "/v1/events?type=a.b", Key: own, Body: large}))
		// A batch larger than the burst is taken at once, and the next event has to wait.
		batch := `{"events":[` + strings.Repeat(`{"type":"a.b","data":{}},`, 99) + `{"type":"a.b","data":{}}]}`
		p.want(202, p.Call(apptest.Call{Path: "/v1/events/batch", Key: own, Body: batch}))
		refused(429, "events_per_second", p.Call(apptest.Call{Path: "/v1/events?type=a.b", Key: own, Body: `{}`}))
		refused(429, "events_per_second", p.Call(apptest.Call{
			Path: "/ojs/v1/events", Key: own, Body: apptest.Fields{"specversion": "1.0", "type": "a.b", "source": "ojs://s", "id": "evt_1", "time": "2026-07-01T12:00:00Z", "data": apptest.Fields{}},
		}))
		refused(429, "events_per_second", p.Call(apptest.Call{Path: "/api/v1/webhooks/events", Key: own, Body: `{"type":"a.b","data":{"object":{"id":"in_1","object":"invoice","created_at":"2026-11-16T07:00:00Z","updated_at":"2026-11-16T07:00:00Z"}}}`}))
		for range 5 {
			p.want(202, p.as("other", apptest.Call{Path: "/v1/events?type=a.b", Body: large}))
		}

		// Changed limits are in force at once.
		p.want(200, p.as("", apptest.Call{Method: "PATCH", Path: "/v1/tenants/small", Body: `{"limits":{}}`}))
		p.want(202, p.Call(apptest.Call{Path: "/v1/events?type=a.b", Key: own, Body: large}))
		p.want(403, p.Call(apptest.Call{Method: "PATCH", Path: "/v1/tenants/small", Key: own, Body: `{"limits":{"endpoints":9}}`}))
		p.want(400, p.as("", apptest.Call{Method: "PATCH", Path: "/v1/tenants/small", Body: `{"limits":{"endpoints":-1}}`}))

		// Waiting deliveries.
		var list struct{ Items []struct{ ID string } }
		p.want(200, p.as("small", apptest.Call{Path: "/v1/endpoints"})).JSON(t, &list)
		for _, e := range list.Items {
			p.want(200, p.as("small", apptest.Call{Method: "POST", Path: "/v1/endpoints/" + e.ID + "/pause"}))
		}
		p.want(202, p.as("small", apptest.Call{Path: "/v1/events?type=a.b", Body: `{}`})) // three that wait
		p.want(200, p.as("", apptest.Call{Method: "PATCH", Path: "/v1/tenants/small", Body: `{"limits":{"waiting_deliveries":3}}`}))
		refused(429, "waiting_deliveries", p.as("small", apptest.Call{Path: "/v1/events?type=a.b", Body: `{}`}))
	})
}

// A tenant's limits are put with it, and reset by a document without them. What it leaves open is its environment's.
func TestLimitsArePutAndLent(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	shown := func(r *apptest.Response) string {
		t.Helper()
		var v struct {
			Limits   map[string]int
			Inherits []string
		}
		r.JSON(t, &v)
		return fmt.Sprint(v.Limits, v.Inherits)
	}
	const open = "[require_idempotency_key event_validation alert_emails"
	same := func(want string, r *apptest.Response) {
		t.Helper()
		if got := shown(r); r.Status > 201 || got != want {
			t.Errorf("%d with %s, want %s", r.Status, got, want)
		}
	}
	get := func() *apptest.Response { return p.as("", apptest.Call{Path: "/v1/tenants/acme"}) }
	const limited = `{"name":"Acme","limits":{"burst":7,"endpoints":2,"events_per_second":5}}`
	same("map[burst:7 endpoints:2 events_per_second:5] "+open+"]", p.want(201, p.put("", "/v1/tenants/acme", limited)))
	same("map[burst:7 endpoints:2 events_per_second:5] "+open+"]", get())
	if r := p.want(200, p.put("", "/v1/tenants/acme", limited)); !strings.Contains(string(r.Body), `"version":1`) {
		t.Errorf("the same document made a change: %s", r.Body)
	}
	same("map[] "+open+" limits]", p.want(200, p.put("", "/v1/tenants/acme", `{"name":"Acme"}`)))

	environment := func(body string) {
		t.Helper()
		p.want(200, p.Call(apptest.Call{Method: "PATCH", Path: "/v1/environments/staging", Body: body}))
	}
	environment(`{"limits":{"payload_bytes":10}}`)
	same("map[payload_bytes:10] "+open+" limits]", get())
	p.want(413, p.as("acme", apptest.Call{Path: "/v1/events?type=a.b", Body: `{"more":"than ten"}`}))
	p.want(200, p.as("", apptest.Call{Method: "PATCH", Path: "/v1/tenants/acme", Body: `{"limits":{}}`})) // the server's
	p.want(202, p.as("acme", apptest.Call{Path: "/v1/events?type=a.b", Body: `{"more":"than ten"}`}))
	same("map[] "+open+"]", get())
	environment(`{"limits":{}}`)
	for body, status := range map[string]int{`{"limits":{"burst":1}}`: 422, `{"limits":{"endpoints":0}}`: 400, `{"limits":{"rows":1}}`: 400} {
		p.want(status, p.as("", apptest.Call{Method: "PATCH", Path: "/v1/tenants/acme", Body: body}))
		p.want(status, p.Call(apptest.Call{Method: "PATCH", Path: "/v1/environments/staging", Body: body}))
	}
}

// Nodes share the rate of a tenant: what one has taken is not free for the other.
func TestNodesShareTheRateOfATenant(t *testing.T) {
	first := apptest.Start(t, apptest.Options{Postgres: true})
	second := apptest.Start(t, apptest.Options{Store: first.Config.Store, Configure: func(c *config.Config) { c.Node = "second" }})
	for _, s := range []*apptest.Server{first, second} {
		for s.App.Engine().Alone() {
			runtime.Gosched()
		}
	}
	var made struct{ ID string }
	// A burst is free again after a thousand seconds.
	first.Must(apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"name": "small", "limits": apptest.Fields{"events_per_second": 1, "burst": 1000}}}, &made)
	id, err := godwit.ParseTenantID(made.ID)
	if err != nil {
		t.Fatal(err)
	}
	key := first.NewKey(id, godwit.ScopeIngest)
	batch := `{"events":[` + strings.Repeat(`{"type":"a.b","data":{}},`, 499) + `{"type":"a.b","data":{}}]}`
	var accepted, refused int
	for range 3 {
		for _, s := range []*apptest.Server{first, second} {
			switch r := s.Call(apptest.Call{Path: "/v1/events/batch", Key: key, Body: batch}); r.Status {
			case 202:
				accepted++
			case 429:
				refused++
			default:
				t.Fatalf("%d %s", r.Status, r.Body)
			}
		}
	}
	if accepted != 2 || refused != 4 {
		t.Errorf("%d batches of half a burst were accepted, %d refused", accepted, refused)
	}
}
