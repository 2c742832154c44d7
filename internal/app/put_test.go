package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// put sends a document with the environment's key.
func (p *platform) put(tenant, path, body string, header ...string) *apptest.Response {
	p.t.Helper()
	c := apptest.Call{Method: http.MethodPut, Path: path, Key: p.key, Body: body, Header: map[string]string{}}
	if tenant != "" {
		c.Header["Godwit-Tenant"] = tenant
	}
	for i := 0; i < len(header); i += 2 {
		c.Header[header[i]] = header[i+1]
	}
	return p.Call(c)
}

// A document that is put is created, read back as it was put, left alone when it is put again, replaced when it differs, and guarded by its version.
func TestPut(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		p.want(201, p.put("", "/v1/tenants/customer-1", `{"name":"Customer 1"}`))
		for _, c := range []struct{ tenant, path, first, second string }{
			{"", "/v1/tenants/customer-2", `{"uid":"customer-2","name":"Two","alert_emails":["a@example.com"],"event_validation":"known","require_idempotency_key":true}`, `{"name":"Second"}`},
			{"customer-1", "/v1/endpoints/billing",
				`{"uid":"billing","url":"https://example.com/hook","method":"POST","profile":"ojs","description":"Billing","patterns":["order.*","invoice.paid"],
					"filter":{"region":["eu","us"]},"policy":{"max_retries":7},"metadata":{"team":"a","n":[1,2]}}`, `{"url":"https://example.com/other","profile":"ojs"}`},
			{"customer-1", "/v1/sources/shop", `{"name":"shop","scheme":"github","description":"The shop","mode":"pass-through","event_type":{"fixed":"order.paid"},"keep_headers":["X-Shop"]}`, `{"scheme":"github"}`},
			{"", "/v1/event-types/order.paid", `{"description":"Paid","schema":{"type":"object","required":["total"]},"example":{"total":1}}`, `{"description":"Other"}`},
			{"customer-1", "/v1/event-types/order.own", `{"description":"Own"}`, `{"deprecated":true}`},
		} {
			p.want(412, p.put(c.tenant, c.path, c.first, "If-Match", "*")) // there is none
			made := p.want(201, p.put(c.tenant, c.path, c.first))
			if made.Header.Get("Location") == "" || made.Header.Get("ETag") != `"1"` {
				t.Errorf("%s: created with %v", c.path, made.Header)
			}
			got := p.want(200, p.as(c.tenant, apptest.Call{Path: c.path}))
			if got.Header.Get("ETag") != `"1"` {
				t.Errorf("%s: read with %v", c.path, got.Header)
			}
			within(t, c.path, c.first, got.Body)
			if again := p.want(200, p.put(c.tenant, c.path, c.first)); again.Header.Get("ETag") != `"1"` {
				t.Errorf("%s: put again with %v", c.path, again.Header)
			}
			p.want(412, p.put(c.tenant, c.path, c.second, "If-Match", `"2"`))
			p.want(412, p.put(c.tenant, c.path, c.second, "If-None-Match", `*`))
			p.want(400, p.put(c.tenant, c.path, c.second, "If-Match", `2`))
			within(t, c.path, c.first, p.want(200, p.as(c.tenant, apptest.Call{Path: c.path})).Body)
			replaced := p.want(200, p.put(c.tenant, c.path, c.second, "If-Match", `"1"`))
			if replaced.Header.Get("ETag") != `"2"` {
				t.Errorf("%s: replaced with %v", c.path, replaced.Header)
			}
			within(t, c.path, c.second, p.want(200, p.as(c.tenant, apptest.Call{Path: c.path})).Body)
		}
		// What was not given again is gone.
		var endpoint struct {
			ID, Description string
			Patterns        []string
			Filter          map[string]any
			Policy          map[string]any
		}
		p.want(200, p.as("customer-1", apptest.Call{Path: "/v1/endpoints/billing"})).JSON(t, &endpoint)
		if endpoint.Description != "" || !reflect.DeepEqual(endpoint.Patterns, []string{"*"}) || len(endpoint.Filter) != 0 || len(endpoint.Policy) != 0 {
			t.Errorf("the endpoint is %+v", endpoint)
		}
		p.want(404, p.put("customer-2", "/v1/endpoints/"+endpoint.ID, `{"url":"https://example.com/"}`)) // an id of ours is not chosen
		p.want(200, p.as("customer-1", apptest.Call{Method: http.MethodPost, Path: "/v1/endpoints/billing/pause"}))
		p.want(409, p.as("customer-1", apptest.Call{Path: "/v1/endpoints", Body: `{"uid":"billing","url":"https://example.com/"}`}))
		p.want(201, p.as("customer-2", apptest.Call{Path: "/v1/endpoints", Body: `{"uid":"billing","url":"https://example.com/"}`}))
		p.want(200, p.as("customer-1", apptest.Call{Path: "/api/v1/webhooks/endpoints/billing/logs"}))
		if r := p.as("customer-1", apptest.Call{Path: "/v1/endpoints", Body: `{"uid":"WEB-ABCDEF-G","url":"https://example.com/"}`}); r.Status != 422 && r.Status != 400 {
			t.Errorf("a uid like a public id: %d %s", r.Status, r.Body)
		}
		p.want(204, p.as("customer-1", apptest.Call{Method: http.MethodDelete, Path: "/v1/endpoints/billing"}))
		p.want(201, p.put("customer-1", "/v1/endpoints/billing", `{"url":"https://example.com/"}`)) // the uid is free again

		admin := func(body string) *apptest.Response {
			return p.Call(apptest.Call{Method: http.MethodPut, Path: "/v1/environments/team-a", Body: body})
		}
		p.want(201, admin(`{"name":"Team A","alert_emails":["a@example.com"]}`))
		if r := p.want(200, admin(`{"name":"Team A","alert_emails":["a@example.com"]}`)); r.Header.Get("ETag") != `"1"` {
			t.Errorf("an environment is changed by the same document: %v", r.Header)
		}
		within(t, "environment", `{"name":"Other","alert_emails":[]}`, p.want(200, admin(`{"name":"Other"}`)).Body)
	})
}

// within fails the test unless every member of the document is in the answer, with the same value.
func within(t *testing.T, what, document string, answer []byte) {
	t.Helper()
	var put, got map[string]any
	if err := json.Unmarshal([]byte(document), &put); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	for name, value := range put {
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s: %s was put as %v and is read as %v", what, name, value, got[name])
		}
	}
}

// Requests that put one object at the same time create one; the others replace it, or are refused if they wanted to create it.
func TestPutAtOnce(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		p.want(201, p.put("", "/v1/tenants/owner", `{"name":"Owner"}`))
		for _, c := range []struct{ tenant, path, body string }{
			{"", "/v1/tenants/customer", `{"name":"Customer %d"}`},
			{"owner", "/v1/endpoints/hook", `{"url":"https://example.com/%d"}`},
			{"owner", "/v1/sources/shop", `{"scheme":"github","description":"%d"}`},
			{"", "/v1/event-types/order.paid", `{"description":"%d"}`},
			{"owner", "/v1/event-types/order.own", `{"description":"%d"}`},
			{"admin", "/v1/environments/team", `{"name":"Team %d"}`},
		} {
			for _, only := range []bool{false, true} {
				path := fmt.Sprintf("%s-%t", c.path, only)
				counts := p.atOnce(8, func(i int) *apptest.Response {
					call := apptest.Call{Method: http.MethodPut, Path: path, Key: p.key, Body: fmt.Sprintf(c.body, i), Header: map[string]string{}}
					switch c.tenant {
					case "":
					case "admin":
						call.Key = ""
					default:
						call.Header["Godwit-Tenant"] = c.tenant
					}
					if only {
						call.Header["If-None-Match"] = "*"
					}
					return p.Call(call)
				})
				others := 200
				if only {
					others = 412
				}
				if counts[201] != 1 || counts[others] != 7 {
					t.Errorf("%s: statuses are %v", path, counts)
				}
			}
		}
	})
}

// atOnce sends n requests at the same time and counts the statuses of the answers.
func (p *platform) atOnce(n int, send func(i int) *apptest.Response) map[int]int {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		counts = map[int]int{}
	)
	for i := range n {
		all.Go(func() {
			r := send(i)
			mu.Lock()
			defer mu.Unlock()
			counts[r.Status]++
		})
	}
	all.Wait()
	return counts
}

// A patch is refused if the object has changed since the caller read it. Patches without that condition are all applied, although they come at
// the same time.
func TestPatch(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		p.want(201, p.put("", "/v1/tenants/owner", `{"name":"Owner"}`))
		p.want(201, p.put("owner", "/v1/endpoints/hook", `{"url":"https://example.com/"}`))
		p.want(201, p.put("owner", "/v1/sources/shop", `{"scheme":"github"}`))
		for _, c := range []struct {
			tenant, path string
			bodies       []string // each sets another member
			after        string
		}{
			{"", "/v1/tenants/owner", []string{`{"name":"A"}`, `{"event_validation":"known"}`, `{"alert_emails":["a@example.com"]}`, `{"require_idempotency_key":true}`},
				`{"name":"A","event_validation":"known","alert_emails":["a@example.com"],"require_idempotency_key":true}`},
			{"owner", "/v1/endpoints/hook", []string{`{"description":"A"}`, `{"patterns":["a.b"]}`, `{"metadata":{"a":1}}`, `{"policy":{"max_retries":7}}`},
				`{"description":"A","patterns":["a.b"],"metadata":{"a":1},"policy":{"max_retries":7}}`},
			{"owner", "/v1/sources/shop", []string{`{"description":"A"}`, `{"mode":"pass-through"}`, `{"keep_headers":["X-A"]}`},
				`{"description":"A","mode":"pass-through","keep_headers":["X-A"]}`},
			{"admin", "/v1/environments/staging", []string{`{"name":"A"}`, `{"make_tenants":true}`, `{"event_validation":"known"}`, `{"endpoint_profile":"ojs"}`},
				`{"name":"A","make_tenants":true,"event_validation":"known","endpoint_profile":"ojs"}`},
		} {
			send := func(method, body, match string) *apptest.Response {
				call := apptest.Call{Method: method, Path: c.path, Key: p.key, Header: map[string]string{}}
				if body != "" {
					call.Body = body
				}
				switch c.tenant {
				case "":
				case "admin":
					call.Key = ""
				default:
					call.Header["Godwit-Tenant"] = c.tenant
				}
				if match != "" {
					call.Header["If-Match"] = match
				}
				return p.Call(call)
			}
			before := p.want(200, send(http.MethodGet, "", "")).Header.Get("ETag")
			if counts := p.atOnce(len(c.bodies), func(i int) *apptest.Response { return send(http.MethodPatch, c.bodies[i], "") }); counts[200] != len(c.bodies) {
				t.Errorf("%s: statuses are %v", c.path, counts)
			}
			after := p.want(200, send(http.MethodGet, "", ""))
			within(t, c.path, c.after, after.Body)
			p.want(412, send(http.MethodPatch, c.bodies[0], before))
			p.want(400, send(http.MethodPatch, c.bodies[0], "7"))
			within(t, c.path, c.after, p.want(200, send(http.MethodGet, "", "")).Body)
			p.want(200, send(http.MethodPatch, c.bodies[0], after.Header.Get("ETag")))
			p.want(200, send(http.MethodPatch, c.bodies[0], "*"))
		}
	})
}

// An environment that allows it makes the tenants that requests name.
func TestTenantsAreMade(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		event := apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`}
		p.want(404, p.as("customer-1", event))
		p.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"make_tenants":true}`}, nil)
		p.want(404, p.as("customer-1", apptest.Call{Path: "/v1/events"})) // reading makes none
		p.want(202, p.as("customer-1", event))
		p.want(202, p.as("customer-1", event))
		p.want(201, p.as("customer-2", apptest.Call{Path: "/v1/endpoints", Body: `{"url":"https://example.com/"}`}))
		p.want(404, p.as("no such uid", event))
		var list struct {
			Items []struct {
				UID, Name string
				Inherits  []string
			}
		}
		p.want(200, p.as("", apptest.Call{Path: "/v1/tenants"})).JSON(t, &list)
		if len(list.Items) != 2 || list.Items[1].UID != "customer-1" || list.Items[1].Name != "customer-1" || len(list.Items[1].Inherits) != len(godwit.LentSettings) {
			t.Errorf("tenants are %+v", list.Items)
		}
	})
}
