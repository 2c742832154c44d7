package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// A platform is a server with the environment staging and a key of it.
type platform struct {
	*apptest.Server
	t   *testing.T
	key string
}

func newPlatform(t *testing.T, o apptest.Options) *platform {
	p := &platform{Server: apptest.Start(t, o), t: t}
	p.Must(apptest.Call{Path: "/v1/environments", Body: apptest.Fields{"uid": "staging", "name": "Staging"}}, nil)
	var issued struct{ Token string }
	p.Must(apptest.Call{
		Path: "/v1/keys", Header: map[string]string{"Godwit-Environment": "staging"},
		Body: apptest.Fields{"name": "platform", "scopes": []string{"ingest", "read", "manage"}},
	}, &issued)
	p.key = issued.Token
	return p
}

// as sends a request with the environment's key for a tenant, or for the environment itself.
func (p *platform) as(tenant string, c apptest.Call) *apptest.Response {
	p.t.Helper()
	c.Key = p.key
	if tenant != "" {
		c.Header = map[string]string{"Godwit-Tenant": tenant}
	}
	return p.Call(c)
}

// want fails the test if the status is another.
func (p *platform) want(status int, r *apptest.Response) *apptest.Response {
	p.t.Helper()
	if r.Status != status {
		p.t.Fatalf("got %d, want %d: %s", r.Status, status, r.Body)
	}
	return r
}

// An environment's key makes tenants, which share its event types and have its settings, and posts for them by their uid.
func TestEnvironmentSharesTypesAndLendsSettings(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		for _, uid := range []string{"customer-1", "customer-2"} {
			p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": uid, "name": uid}}))
		}
		p.want(409, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": "customer-1", "name": "again"}}))
		p.want(201, p.as("", apptest.Call{Method: "PUT", Path: "/v1/event-types/order.paid", Body: `{"schema":{"type":"object","required":["total"]}}`}))

		// A name is shared or a tenant's own.
		p.want(409, p.as("customer-1", apptest.Call{Method: "PUT", Path: "/v1/event-types/order.paid", Body: `{}`}))
		p.want(201, p.as("customer-2", apptest.Call{Method: "PUT", Path: "/v1/event-types/order.own", Body: `{"schema":{"type":"object","required":["own"]}}`}))
		p.want(409, p.as("", apptest.Call{Method: "PUT", Path: "/v1/event-types/order.own", Body: `{}`}))
		var types struct {
			Items []struct {
				Name   string
				Shared bool
			}
		}
		p.want(200, p.as("customer-2", apptest.Call{Path: "/v1/event-types"})).JSON(t, &types)
		if len(types.Items) != 2 || types.Items[0].Name != "order.own" || types.Items[0].Shared || types.Items[1].Name != "order.paid" || !types.Items[1].Shared {
			t.Errorf("types of a tenant are %+v", types.Items)
		}
		p.want(200, p.as("customer-1", apptest.Call{Path: "/v1/event-types/order.paid"}))
		p.want(404, p.as("customer-1", apptest.Call{Path: "/v1/event-types/order.own"}))

		// Nothing judges before the environment says so, and then for all that do not say otherwise.
		post := func(tenant, eventType, body string) int {
			return p.as(tenant, apptest.Call{Path: "/v1/events?type=" + eventType, Body: body}).Status
		}
		check := func(what string, got, want int) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		check("without validation", post("customer-1", "order.paid", `{}`), 202)
		p.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: apptest.Fields{"event_validation": "strict"}}, nil)
		check("does not fit the shared schema", post("customer-1", "order.paid", `{}`), 422)
		check("fits", post("customer-1", "order.paid", `{"total":1}`), 202)
		check("another tenant", post("customer-2", "order.paid", `{}`), 422)
		check("its own type", post("customer-2", "order.own", `{"own":1}`), 202)
		check("does not fit its own type", post("customer-2", "order.own", `{}`), 422)
		check("a type of another tenant", post("customer-1", "order.own", `{"own":1}`), 422)
		p.want(200, p.as("", apptest.Call{Method: http.MethodPatch, Path: "/v1/tenants/customer-1", Body: apptest.Fields{"event_validation": ""}}))
		check("says otherwise", post("customer-1", "order.paid", `{}`), 202)
		p.want(200, p.as("", apptest.Call{Method: http.MethodPatch, Path: "/v1/tenants/customer-1", Body: `{"inherits":["event_validation"]}`}))
		check("inherits again", post("customer-1", "order.paid", `{}`), 422)
		p.want(204, p.as("", apptest.Call{Method: http.MethodDelete, Path: "/v1/event-types/order.paid"}))
		check("the type is gone", post("customer-1", "order.paid", `{"total":1}`), 422)
		p.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"event_validation":"","require_idempotency_key":true}`}, nil)
		check("without a key", post("customer-2", "order.paid", `{}`), 400)
	})
}

// Endpoints of an environment have its profile and policy, and receivers see that it is not live.
func TestEnvironmentIsShownToReceivers(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		p.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"endpoint_profile":"cybercube","endpoint_policy":{"max_retries":2}}`}, nil)
		if r := p.Call(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"live":true}`}); r.Status != 400 && r.Status != 422 {
			t.Errorf("live changes: %d %s", r.Status, r.Body)
		}
		p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"customer-1","name":"Customer 1"}`}))
		sink := apptest.NewSink(t)
		var endpoint struct {
			Profile string
			Policy  struct {
				MaxRetries int `json:"max_retries"`
			}
		}
		p.want(201, p.as("customer-1", apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": sink.URL("/")}})).JSON(t, &endpoint)
		if endpoint.Profile != "cybercube" || endpoint.Policy.MaxRetries != 2 {
			t.Errorf("the endpoint is %+v", endpoint)
		}
		p.want(202, p.as("customer-1", apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"total":1}`}))
		p.want(202, p.as("customer-1", apptest.Call{Path: "/api/v1/webhooks/events", Body: `{"type":"invoice.paid","data":{"object":{"id":"in_1","object":"invoice","created_at":"2026-11-16T07:00:00Z","updated_at":"2026-11-16T07:00:00Z"}}}`}))
		for _, r := range sink.Wait(2) {
			var event struct{ Livemode *bool }
			if err := json.Unmarshal(r.Body, &event); err != nil || event.Livemode == nil || *event.Livemode {
				t.Errorf("a receiver got %s, %v", r.Body, err)
			}
		}
	})
}

// Endpoints that the other APIs create have the environment's policy, too, for members that they leave open. A policy that does not fit a
// profile does not apply to it. What an environment lends new endpoints leaves those that there are alone.
func TestEnvironmentLendsItsPolicyToAllAPIs(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.put("", "/v1/tenants/customer", `{"name":"Customer"}`))
	type endpoint struct {
		ID, Profile string
		Policy      struct {
			Concurrency *int
			Timeout     *float64 `json:"timeout_seconds"`
			MaxRetries  *int     `json:"max_retries"`
		}
	}
	get := func(id string) (e endpoint) {
		p.want(200, p.as("customer", apptest.Call{Path: "/v1/endpoints/" + id})).JSON(t, &e)
		return e
	}
	create := func(path, body string) endpoint {
		var made struct{ ID string }
		p.want(201, p.as("customer", apptest.Call{Path: path, Body: body})).JSON(t, &made)
		if made.ID == "" { // CYBERCUBE has an envelope
			var enveloped struct{ Data struct{ ID string } }
			p.want(201, p.as("customer", apptest.Call{Path: path, Body: body})).JSON(t, &enveloped)
			made.ID = enveloped.Data.ID
		}
		return get(made.ID)
	}
	lend := func(body string) {
		p.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: body}, nil)
	}
	lend(`{"endpoint_policy":{"concurrency":3,"timeout_seconds":20}}`)
	for _, c := range []struct {
		path, body, profile string
		timeout             float64
	}{
		{"/v1/endpoints", `{"url":"https://example.com/1"}`, "eds", 20},
		{"/v1/endpoints", `{"url":"https://example.com/1","profile":"standard-webhooks"}`, "standard-webhooks", 20},
		{"/ojs/v1/webhooks/subscriptions", `{"url":"https://example.com/2","events":["order.*"]}`, "ojs", 20},
		{"/ojs/v1/webhooks/subscriptions", `{"url":"https://example.com/3","events":["order.*"],"timeout_seconds":7}`, "ojs", 7},
		{"/api/v1/webhooks/endpoints", `{"url":"https://example.com/4"}`, "cybercube", 20},
	} {
		e := create(c.path, c.body)
		if e.Profile != c.profile || e.Policy.Concurrency == nil || *e.Policy.Concurrency != 3 || e.Policy.Timeout == nil || *e.Policy.Timeout != c.timeout {
			t.Errorf("%s makes %+v", c.path, e)
		}
	}
	if e := create("/v1/endpoints", `{"url":"https://example.com/5","policy":{}}`); e.Policy.Concurrency != nil {
		t.Errorf("an endpoint with a policy of its own has %+v", e)
	}
	p.want(201, p.put("customer", "/v1/endpoints/kept", `{"url":"https://example.com/6"}`))
	lend(`{"endpoint_profile":"cybercube","endpoint_policy":{"max_retries":2}}`)
	if e := create("/ojs/v1/webhooks/subscriptions", `{"url":"https://example.com/7","events":["order.*"]}`); e.Policy.MaxRetries != nil {
		t.Errorf("a policy that ojs does not allow applies: %+v", e)
	}
	p.want(200, p.put("customer", "/v1/endpoints/kept", `{"url":"https://example.com/6"}`)) // names no profile, and keeps its own
	if e := get("kept"); e.Profile != "eds" {
		t.Errorf("the endpoint is now %+v", e)
	}
}

// An environment is deleted after its tenants, and its keys with it. The first one stays.
func TestEnvironmentIsDeleted(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	remove := apptest.Call{Method: http.MethodDelete, Path: "/v1/environments/staging"}
	p.want(200, p.as("", apptest.Call{Path: "/v1/environments/staging"}))
	p.want(403, p.as("", remove))
	p.want(409, p.Call(apptest.Call{Method: http.MethodDelete, Path: "/v1/environments/default"}))
	p.want(409, p.Call(apptest.Call{Path: "/v1/environments", Body: `{"uid":"staging","name":"again"}`}))
	var tenant struct{ ID string }
	p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"customer-1","name":"Customer 1"}`})).JSON(t, &tenant)
	if r := p.want(409, p.Call(remove)); !strings.Contains(string(r.Body), "tenants") {
		t.Errorf("the reason is %s", r.Body)
	}
	id, err := godwit.ParseTenantID(tenant.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.RemoveTenant(t.Context(), p.App.Store(), id, time.Now()); err != nil {
		t.Fatal(err)
	}
	p.want(204, p.Call(remove))
	p.want(401, p.as("", apptest.Call{Path: "/v1/tenants"}))
	p.want(404, p.Call(apptest.Call{Path: "/v1/environments/staging"}))
}

// An environment's key lists the endpoints and sources of all its tenants, and no others.
func TestEnvironmentListsWhatItsTenantsHave(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		want := map[string]string{} // uid of the tenant by its id
		for _, uid := range []string{"customer-1", "customer-2"} {
			var made struct{ ID string }
			p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": uid, "name": uid}})).JSON(t, &made)
			want[made.ID] = uid
			p.want(201, p.put(uid, "/v1/endpoints/"+uid, `{"url":"https://example.com/"}`))
			p.want(201, p.put(uid, "/v1/sources/"+uid, `{"scheme":"bearer","event_type":{"fixed":"order.paid"}}`))
		}
		p.Must(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": "https://example.com/"}}, nil) // of another environment
		for _, path := range []string{"/v1/endpoints", "/v1/sources"} {
			var list struct {
				Items []struct {
					UID, Name string
					TenantID  string `json:"tenant_id"`
				}
			}
			p.want(200, p.as("", apptest.Call{Path: path})).JSON(t, &list)
			if len(list.Items) != 2 {
				t.Errorf("%s: %+v", path, list.Items)
			}
			for _, item := range list.Items {
				if item.UID+item.Name != want[item.TenantID] {
					t.Errorf("%s: %+v", path, item)
				}
			}
		}
	})
}

// A request that names an environment concerns that environment alone, although an administrator may act everywhere.
func TestNamedEnvironmentBoundsAnAdministrator(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	var tenant struct{ ID string }
	p.want(201, p.put("", "/v1/tenants/customer", `{"name":"Customer"}`)).JSON(t, &tenant)
	call := func(environment, header, path string) int {
		c := apptest.Call{Path: path, Header: map[string]string{}}
		if environment != "" {
			c.Header["Godwit-Environment"] = environment
		}
		if header != "" {
			c.Header["Godwit-Tenant"] = header
		}
		return p.Call(c).Status
	}
	for _, c := range []struct {
		environment, header, path string
		status                    int
	}{
		{"", tenant.ID, "/v1/endpoints", 200}, // an id is enough
		{"staging", tenant.ID, "/v1/endpoints", 200},
		{"staging", "customer", "/v1/endpoints", 200},
		{"default", tenant.ID, "/v1/endpoints", 404},
		{"default", "customer", "/v1/endpoints", 404},
		{"", "", "/v1/tenants/" + tenant.ID, 200},
		{"staging", "", "/v1/tenants/customer", 200},
		{"default", "", "/v1/tenants/" + tenant.ID, 404},
	} {
		if got := call(c.environment, c.header, c.path); got != c.status {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// What an environment lends holds for events of every API.
func TestLentSettingsHoldInEveryAPI(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.put("", "/v1/tenants/customer", `{"name":"Customer"}`))
	lend := func(body string) {
		p.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: body}, nil)
	}
	doors := []apptest.Call{
		{Path: "/v1/events?type=invoice.paid", Body: `{}`},
		{Path: "/v1/events/batch", Body: `{"events":[{"type":"invoice.paid","data":{}}]}`},
		{Path: "/ojs/v1/events", Body: `{"specversion":"1.0","type":"invoice.paid","source":"ojs://shop/queues/a","time":"2026-02-12T10:30:00Z","data":{}}`},
		{Path: "/api/v1/webhooks/events", Body: `{"type":"invoice.paid","data":{"object":{"id":"in_1","object":"invoice","created_at":"2026-11-16T07:00:00Z","updated_at":"2026-11-16T07:00:00Z"}}}`},
	}
	for _, door := range doors {
		if r := p.as("customer", door); r.Status/100 != 2 {
			t.Errorf("%s without settings: %d %s", door.Path, r.Status, r.Body)
		}
	}
	lend(`{"require_idempotency_key":true}`)
	for _, door := range doors {
		if r := p.as("customer", door); r.Status != 400 {
			t.Errorf("%s without a key: %d %s", door.Path, r.Status, r.Body)
		}
	}
	lend(`{"require_idempotency_key":false,"event_validation":"strict"}`)
	for _, door := range doors {
		if r := p.as("customer", door); r.Status != 422 && r.Status != 400 || !strings.Contains(string(r.Body), "catalogue") {
			t.Errorf("%s with an unknown type: %d %s", door.Path, r.Status, r.Body)
		}
	}
}
