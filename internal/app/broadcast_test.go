package app_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// broadcastView is a broadcast as the API shows it.
type broadcastView struct {
	ID         string
	State      string
	Tenants    int
	Accepted   int
	Skipped    int
	Deliveries int
	AllTenants bool   `json:"all_tenants"`
	EndedAt    string `json:"ended_at"`
	Items      []broadcastTenant
}

type broadcastTenant struct {
	TenantID string `json:"tenant_id"`
	UID      string
	Status   string
	EventID  string `json:"event_id"`
	Reason   string
	Detail   string
}

type broadcastAnswer struct {
	ID             string
	IdempotencyKey string `json:"idempotency_key"`
	Deliveries     int
	Broadcast      broadcastView
}

// A town is a platform with customers whose endpoints are at one receiver, each under its uid.
type town struct {
	*platform
	sink *apptest.Sink
}

func newTown(t *testing.T, o apptest.Options, customers int) *town {
	n := &town{platform: newPlatform(t, o), sink: apptest.NewSink(t)}
	for i := range customers {
		n.settle(fmt.Sprintf("customer-%d", i+1), "order.*")
	}
	return n
}

// settle makes a customer with an endpoint.
func (n *town) settle(uid, pattern string) {
	n.t.Helper()
	n.want(201, n.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": uid, "name": uid}}))
	n.want(201, n.as(uid, apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": n.sink.URL("/" + uid), "patterns": []string{pattern}}}))
}

// post posts an event of the type order.paid for tenants.
func (n *town) post(tenants, key, body string) *apptest.Response {
	n.t.Helper()
	c := apptest.Call{Path: "/v1/events?type=order.paid", Key: n.key, Body: body, Header: map[string]string{"Godwit-Tenant": tenants}}
	if key != "" {
		c.Header["Idempotency-Key"] = `"` + key + `"`
	}
	return n.Call(c)
}

// events counts the events of a customer.
func (n *town) events(uid string) int {
	n.t.Helper()
	var list struct{ Items []struct{ ID string } }
	n.want(200, n.as(uid, apptest.Call{Path: "/v1/events"})).JSON(n.t, &list)
	return len(list.Items)
}

// An event for several tenants is an event of each, with a key of its own; a repeat makes nothing twice.
func TestBroadcastToNamedTenants(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		n := newTown(t, o, 3)
		n.want(201, n.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"quiet","name":"no endpoint"}`}))
		var first, again broadcastAnswer
		r := n.want(202, n.post("customer-1, customer-3,quiet", "broadcast-key-000001", `{"total":1}`))
		r.JSON(t, &first)
		b := first.Broadcast
		if !strings.HasPrefix(first.ID, "bct_") || b.ID != first.ID || b.State != "ended" || b.Tenants != 3 || b.Accepted != 3 || b.Skipped != 0 ||
			b.Deliveries != 2 || b.AllTenants || len(b.Items) != 3 || b.EndedAt == "" || r.Header.Get("Location") != "/v1/broadcasts/"+first.ID {
			t.Fatalf("the answer is %s", r.Body)
		}
		requests := n.sink.Wait(2)
		if requests[0].Key() == requests[1].Key() || requests[0].Path == requests[1].Path {
			t.Errorf("two tenants got %+v", requests)
		}
		for _, it := range b.Items {
			n.want(200, n.as(it.UID, apptest.Call{Path: "/v1/events/" + it.EventID}))
			body := n.want(200, n.as(it.TenantID, apptest.Call{Path: "/v1/events/" + it.EventID + "/body"}))
			if string(body.Body) != `{"total":1}` || it.Status != "accepted" {
				t.Errorf("the event of %s is %s (%s)", it.UID, body.Body, it.Status)
			}
		}

		r = n.want(202, n.post("customer-1, customer-3,quiet", "broadcast-key-000001", `{"total":1}`))
		r.JSON(t, &again)
		if again.ID != first.ID || len(again.Broadcast.Items) != 3 || r.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("a repeat gets %s", r.Body)
		}
		n.want(422, n.post("customer-1, customer-3,quiet", "broadcast-key-000001", `{"total":2}`)) // another payload
		n.want(422, n.post("customer-1, customer-2", "broadcast-key-000001", `{"total":1}`))       // other tenants
		if n.events("customer-1") != 1 || n.events("customer-2") != 0 || n.events("quiet") != 1 {
			t.Error("a repeat has made events")
		}
		var usage struct {
			Items []struct {
				Total struct{ Events, Deliveries int }
			}
		}
		n.want(200, n.as("", apptest.Call{Path: "/v1/usage?tenant_id=customer-1"})).JSON(t, &usage)
		if len(usage.Items) != 1 || usage.Items[0].Total.Events != 1 || usage.Items[0].Total.Deliveries != 1 {
			t.Errorf("the usage of a tenant is %+v", usage)
		}
	})
}

// What a request names must be there, and nothing is stored of one that is refused.
func TestBroadcastIsRefusedWhole(t *testing.T) {
	n := newTown(t, apptest.Options{}, 2)
	n.want(201, n.as("", apptest.Call{Method: "PUT", Path: "/v1/event-types/order.paid", Body: `{"schema":{"type":"object","required":["total"]}}`}))
	n.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"event_validation":"known"}`}, nil)
	tooMany := strings.TrimSuffix(strings.Repeat("customer-1,", godwit.MaxBroadcastNames+1), ",")
	for _, c := range []struct {
		what    string
		status  int
		says    string
		tenants string
		body    string
	}{
		{"an unknown tenant", 404, "customer-9", "customer-1,customer-9", `{"total":1}`},
		{"a tenant of another environment", 404, n.Tenant.String(), "customer-1," + n.Tenant.String(), `{"total":1}`},
		{"one twice", 422, "names the same tenant", "customer-1,customer-1", `{"total":1}`},
		{"no name", 400, "Godwit-Tenant", " , ", `{"total":1}`},
		{"all and one", 400, "Godwit-Tenant", "*,customer-2", `{"total":1}`},
		{"too many", 400, fmt.Sprint(godwit.MaxBroadcastNames), tooMany, `{"total":1}`},
		{"an event that does not fit the shared schema", 422, "total", "*", `{}`},
		{"the same for a list", 422, "total", "customer-1,customer-2", `{}`},
	} {
		if r := n.post(c.tenants, "", c.body); r.Status != c.status || !strings.Contains(string(r.Body), c.says) {
			t.Errorf("%s: %d %s", c.what, r.Status, r.Body)
		}
	}
	n.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"require_idempotency_key":true}`}, nil)
	n.want(400, n.post("*", "", `{"total":1}`))
	n.want(400, n.as("*", apptest.Call{Path: "/v1/events"}))
	n.want(400, n.as("customer-1,customer-2", apptest.Call{Path: "/v1/events/batch", Body: `{"events":[]}`}))
	if n.events("customer-1")+n.events("customer-2") != 0 {
		t.Error("a refused request has made events")
	}
}

// All tenants that have an endpoint for the event get it, and no other. A tenant whose own type refuses it is skipped with the reason.
func TestBroadcastToAll(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		n := newTown(t, o, 3)
		n.settle("other-type", "invoice.*")
		n.want(201, n.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"quiet","name":"no endpoint"}`}))
		n.want(201, n.as("customer-2", apptest.Call{Method: "PUT", Path: "/v1/event-types/order.paid", Body: `{"schema":{"type":"object","required":["own"]}}`}))
		n.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"event_validation":"known"}`}, nil)
		var answer broadcastAnswer
		n.want(202, n.post("*", "", `{"total":1}`)).JSON(t, &answer)
		b := answer.Broadcast
		if b.Tenants != 3 || b.Accepted != 2 || b.Skipped != 1 || !b.AllTenants || b.State != "ended" {
			t.Fatalf("the answer is %+v", answer)
		}
		n.sink.Wait(2)
		for uid, want := range map[string]int{"customer-1": 1, "customer-2": 0, "customer-3": 1, "other-type": 0, "quiet": 0} {
			if got := n.events(uid); got != want {
				t.Errorf("%s has %d events, want %d", uid, got, want)
			}
		}
		var shown broadcastView
		n.want(200, n.as("", apptest.Call{Path: "/v1/broadcasts/" + b.ID})).JSON(t, &shown)
		if shown.Skipped != 1 || shown.ID != b.ID {
			t.Errorf("shown as %+v", shown)
		}
		var list struct{ Items []broadcastTenant }
		n.want(200, n.as("", apptest.Call{Path: "/v1/broadcasts/" + b.ID + "/tenants?status=skipped"})).JSON(t, &list)
		if len(list.Items) != 1 || list.Items[0].UID != "customer-2" || list.Items[0].Reason != "invalid" || !strings.Contains(list.Items[0].Detail, "own") {
			t.Errorf("skipped: %+v", list.Items)
		}
		var all struct{ Items []broadcastView }
		n.want(200, n.as("", apptest.Call{Path: "/v1/broadcasts"})).JSON(t, &all)
		if len(all.Items) != 1 || all.Items[0].ID != b.ID {
			t.Errorf("listed as %+v", all.Items)
		}
		n.want(200, n.as("", apptest.Call{Method: http.MethodPatch, Path: "/v1/tenants/customer-1", Body: `{"limits":{"payload_bytes":20}}`}))
		n.want(200, n.as("", apptest.Call{Method: http.MethodPatch, Path: "/v1/tenants/customer-3", Body: `{"limits":{"events_per_second":1,"burst":1}}`}))
		n.want(202, n.post("customer-1,customer-3", "", `{"total":1,"more":"than 20 bytes"}`)).JSON(t, &answer)
		if b := answer.Broadcast; b.Accepted != 1 || b.Skipped != 1 || b.Items[1].Reason != "limit" {
			t.Errorf("beyond a limit: %+v", b)
		}
		n.want(202, n.as("*", apptest.Call{Path: "/v1/events?type=nothing.subscribed", Body: `{}`})).JSON(t, &answer)
		if answer.Broadcast.Tenants != 0 || answer.Broadcast.State != "ended" {
			t.Errorf("without subscribers: %+v", answer.Broadcast)
		}
	})
}

// Only keys of the environment, and the administrator's, post for several tenants and see broadcasts.
func TestBroadcastAuthorisation(t *testing.T) {
	c := newCast(t)
	for who, want := range map[caller]answer{
		{name: "none"}: noKey,
		{name: "tenant", key: "Bearer " + c.byScope[ingest]}:                                              refused,
		{name: "tenant for its environment", key: "Bearer " + c.byScope[ingest], environment: "default"}:  refused,
		{name: "another tenant", key: "Bearer " + c.otherKey}:                                             refused,
		{name: "administrator without ingest", key: "Bearer " + c.ops}:                                    refused,
		{name: "administrator with all scopes", key: "Bearer " + c.full}:                                  admitted,
		{name: "the same for another environment", key: "Bearer " + c.full, environment: "staging"}:       admitted,
		{name: "environment", key: "Bearer " + c.environment[ingest]}:                                     admitted,
		{name: "environment for itself", key: "Bearer " + c.environment[ingest], environment: "default"}:  admitted,
		{name: "environment for another", key: "Bearer " + c.environment[ingest], environment: "staging"}: refused,
		{name: "environment without ingest", key: "Bearer " + c.environment[manage]}:                      refused,
		{name: "foreign environment that names it", key: "Bearer " + c.foreign, environment: "default"}:   refused,
	} {
		for _, tenants := range []string{"*", "acme,other"} {
			who, want := who, want
			who.tenant = tenants
			status, text := c.send(who, "POST", "/v1/events?type=order.paid", "{}")
			if who.environment == "staging" && want == admitted && tenants != "*" { // they are not there
				if status != 404 {
					t.Errorf("%s for %s: %d %s", who.name, tenants, status, text)
				}
				continue
			}
			if got := judge(status, text); got != want || want == admitted && status != 202 {
				t.Errorf("%s for %s: %d %s, want %v", who.name, tenants, status, text, want)
			}
		}
	}
	// What one environment has posted is nothing to another.
	var list struct{ Items []broadcastView }
	c.Must(apptest.Call{Path: "/v1/broadcasts", Key: c.foreign}, &list)
	for _, b := range list.Items {
		if r := c.Call(apptest.Call{Path: "/v1/broadcasts/" + b.ID, Key: c.environment[read]}); r.Status != 404 {
			t.Errorf("a broadcast of another environment: %d %s", r.Status, r.Body)
		}
	}
	if len(list.Items) != 1 {
		t.Errorf("the other environment has %d broadcasts, want that of the administrator", len(list.Items))
	}
}

// quickDir returns a directory in memory, if the system has one. Thousands of tenants are thousands of transactions, and the tests that make them
// are not about the disk.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "godwit-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A broadcast reaches every one of 5,000 tenants that subscribe, each exactly once.
func TestBroadcastReachesFiveThousand(t *testing.T) {
	const tenants = 5000
	srv := apptest.Start(t, apptest.Options{Data: quickDir(t)})
	sink := apptest.NewSink(t)
	m, ctx := srv.App.Management(), context.Background()
	for i := range tenants {
		tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{UID: fmt.Sprintf("customer-%d", i), Name: "customer"})
		if err == nil {
			_, _, err = m.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
				URL: sink.URL(fmt.Sprintf("/%d", i)), Patterns: []string{"order.*"},
			}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var answer broadcastAnswer
	srv.Must(apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"total":1}`, Header: map[string]string{"Godwit-Tenant": "*"}}, &answer)
	if answer.Broadcast.Tenants != tenants || len(answer.Broadcast.Items) != 0 {
		t.Fatalf("the answer is %+v", answer)
	}
	requests := sink.Wait(tenants)
	seen := map[string]int{}
	for i := range requests {
		seen[requests[i].Path]++
	}
	if len(requests) != tenants || len(seen) != tenants {
		t.Errorf("%d requests to %d endpoints", len(requests), len(seen))
	}
	var b broadcastView
	srv.Must(apptest.Call{Path: "/v1/broadcasts/" + answer.ID}, &b) // the last event left after the last part was stored
	if b.State != "ended" || b.Accepted != tenants || b.Deliveries != tenants || b.Skipped != 0 {
		t.Errorf("at the end: %+v", b)
	}
}
