package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// A broadcast that is refused as a whole leaves the limits of its tenants as they were.
func TestRefusedBroadcastUsesNoLimits(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"b","name":"B","require_idempotency_key":true}`})) // older: it is judged later
	p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"a","name":"A","limits":{"events_per_second":1,"burst":1}}`}))
	for range 3 {
		p.want(400, p.as("a, b", apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`}))
	}
	p.want(202, p.as("a", apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`}))
}

// A repeat gets its stored answer also while its tenant is over its rate.
func TestRepeatIsAnsweredOverTheRate(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"a","name":"A","limits":{"events_per_second":1,"burst":1}}`}))
	post := func(key string) *apptest.Response {
		return p.Call(apptest.Call{Key: p.key, Header: map[string]string{"Godwit-Tenant": "a", "Idempotency-Key": `"` + key + `"`}, Path: "/v1/events?type=order.paid", Body: `{}`})
	}
	first := post("8e03978e-40d5-43e8-bc93-6894a57f9324")
	p.want(202, first)
	over := false
	for n := 0; !over && n < 1000; n++ { // a slow machine lets some of them in
		over = p.as("a", apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`}).Status == 429
		if r := post("8e03978e-40d5-43e8-bc93-6894a57f9324"); r.Status != 202 || string(r.Body) != string(first.Body) {
			t.Fatalf("a repeat is answered %d %s", r.Status, r.Body)
		}
	}
	if !over {
		t.Error("the tenant was never over its rate")
	}
}

// A key of an environment deletes the environment's tenants, with its confirmation; an environment that a request names bounds what it deletes.
func TestEnvironmentDeletesItsTenants(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		p.Must(apptest.Call{Path: "/v1/environments", Body: `{"uid":"other","name":"Other"}`}, nil)
		var mine, theirs struct{ ID string }
		p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"customer","name":"Customer"}`})).JSON(t, &mine)
		p.Must(apptest.Call{Path: "/v1/tenants", Header: map[string]string{"Godwit-Environment": "other"}, Body: `{"uid":"theirs","name":"Theirs"}`}, &theirs)

		p.want(404, p.as("", apptest.Call{Method: http.MethodDelete, Path: "/v1/tenants/" + theirs.ID}))
		p.want(404, p.Call(apptest.Call{Method: http.MethodDelete, Path: "/v1/tenants/" + theirs.ID, Header: map[string]string{"Godwit-Environment": "staging"}}))
		p.want(202, p.Call(apptest.Call{Method: http.MethodDelete, Path: "/v1/tenants/" + theirs.ID, Header: map[string]string{"Godwit-Environment": "other"}}))
		p.want(412, p.Call(apptest.Call{Method: http.MethodDelete, Path: "/v1/tenants/customer", Key: p.key, Header: map[string]string{"If-Match": `"9"`}}))

		remove := apptest.Call{Method: http.MethodDelete, Path: "/v1/tenants/customer", Key: p.key}
		var asked struct {
			CommandID string `json:"command_id"`
			Token     string `json:"confirmation_token"`
			StepUp    string `json:"step_up_url"`
		}
		p.want(202, p.Call(remove)).JSON(t, &asked)
		if asked.StepUp != "" {
			t.Errorf("another key must approve: %+v", asked)
		}
		p.want(200, p.as("", apptest.Call{Path: "/v1/tenants/customer"}))
		remove.Path = "/v1/tenants/" + mine.ID
		remove.Header = map[string]string{"Godwit-Command": asked.CommandID, "Godwit-Confirmation": asked.Token}
		p.want(204, p.Call(remove))
		p.want(204, p.Call(remove)) // sent again
		p.want(404, p.as("", apptest.Call{Path: "/v1/tenants/customer"}))
	})
}

// If-Match guards a deletion against changes that others made meanwhile.
func TestDeleteIfMatch(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.put("", "/v1/tenants/customer", `{"name":"Customer"}`))
	p.want(201, p.put("customer", "/v1/endpoints/a", `{"url":"https://example.com/"}`))
	p.want(201, p.put("customer", "/v1/sources/b", `{"scheme":"github"}`))
	p.want(201, p.put("customer", "/v1/event-types/c.d", `{"description":"A type"}`))
	for _, path := range []string{"/v1/endpoints/a", "/v1/sources/b", "/v1/event-types/c.d"} {
		tag := p.as("customer", apptest.Call{Path: path}).Header.Get("ETag")
		remove := func(match string) *apptest.Response {
			return p.Call(apptest.Call{Method: http.MethodDelete, Path: path, Key: p.key, Header: map[string]string{"Godwit-Tenant": "customer", "If-Match": match}})
		}
		p.want(412, remove(`"77"`))
		p.want(400, remove(`7`))
		p.want(200, p.as("customer", apptest.Call{Path: path}))
		p.want(204, remove(tag))
	}
	p.want(201, p.Call(apptest.Call{Path: "/v1/environments", Body: `{"uid":"gone","name":"Gone"}`}))
	remove := apptest.Call{Method: http.MethodDelete, Path: "/v1/environments/gone", Header: map[string]string{"If-Match": `"2"`}}
	p.want(412, p.Call(remove))
	remove.Header["If-Match"] = `"1"`
	p.want(204, p.Call(remove))
}

// The order in which a tenant names what it inherits does not count.
func TestInheritsIsASet(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.put("", "/v1/tenants/customer", `{"name":"Customer"}`))
	r := p.want(200, p.as("", apptest.Call{Method: http.MethodPatch, Path: "/v1/tenants/customer", Body: `{"inherits":["limits","alert_emails","event_validation","require_idempotency_key"]}`}))
	if !strings.Contains(string(r.Body), `"version":1`) {
		t.Errorf("the order made a change: %s", r.Body)
	}
}
