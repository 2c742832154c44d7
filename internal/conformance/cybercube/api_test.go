package cybercube

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/trace"
)

// routes lists all routes of the API for an endpoint and an event.
func routes(ep, event string) []apptest.Call {
	at := base + "/endpoints/" + ep
	return []apptest.Call{
		{Method: "POST", Path: base + "/endpoints", Body: object{"url": "https://example.com/"}},
		{Method: "GET", Path: base + "/endpoints"},
		{Method: "GET", Path: at},
		{Method: "PATCH", Path: at, Body: object{"description": "x"}},
		{Method: "POST", Path: at + "/rotate-secret"},
		{Method: "POST", Path: at + "/test", Body: object{}},
		{Method: "GET", Path: at + "/failures"},
		{Method: "GET", Path: at + "/failures?format=ndjson"},
		{Method: "GET", Path: at + "/logs"},
		{Method: "POST", Path: base + "/events", Body: object{"type": "project.created", "data": object{"object": project()}}},
		{Method: "POST", Path: base + "/events/" + event + "/replay", Body: object{"endpoint_id": ep}},
		{Method: "POST", Path: base + "/replay", Body: object{"endpoint_id": ep, "start_time": "2026-01-01T00:00:00Z", "end_time": "2027-01-01T00:00:00Z"}},
		{Method: "DELETE", Path: at},
	}
}

func code(t testing.TB, r *apptest.Response) string {
	t.Helper()
	e, is := decode(t, r)["error"].(map[string]any)
	if !is || e["message"] == "" || e["request_id"] == "" || e["timestamp"] == "" {
		t.Fatalf("not an error: %s", r.Body)
	}
	return e["code"].(string)
}

func TestEveryRouteNeedsAToken(t *testing.T) {
	trace.Covers(t, "CCW-API-1")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	id := r.publish("project.created")
	for _, c := range routes(ep.ID, id) {
		c.Header = map[string]string{"Authorization": "Bearer gdw_nobodyknowsthistokenatall00000000000000000000"}
		equal(t, "with a wrong token: "+c.Path, code(t, r.want(401, c)), "AUTH_TOKEN_INVALID")
		c.Header = map[string]string{"Authorization": ""}
		equal(t, "without: "+c.Path, code(t, r.want(401, c)), "AUTH_TOKEN_INVALID")
	}
	equal(t, "endpoints", len(r.list("/endpoints")), 1)
	r.settle()
	equal(t, "requests", len(r.sink.Requests("")), 1)
}

// TestAccountsAreApart: an account cannot see the objects of another.
func TestAccountsAreApart(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-2", "CCW-API-1")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		id := r.publish("project.created")
		r.settle()
		_, other := r.NewTenant("other", godwit.AllScopes...)
		for _, c := range routes(ep.ID, id) {
			if strings.Contains(c.Path, ep.ID) || strings.Contains(c.Path, id) || strings.HasSuffix(c.Path, "/replay") {
				c.Key = other
				equal(t, c.Path, code(t, r.want(404, c)), "RESOURCE_NOT_FOUND")
			}
		}
		var theirs struct{ Data endpoint }
		r.want(201, apptest.Call{Path: base + "/endpoints", Key: other, Body: object{"url": r.sink.URL("/b")}}).JSON(t, &theirs)
		var list struct{ Data []endpoint }
		r.want(200, apptest.Call{Path: base + "/endpoints", Key: other}).JSON(t, &list)
		if len(list.Data) != 1 || list.Data[0].ID != theirs.Data.ID {
			t.Errorf("their endpoints: %v", list.Data)
		}
		equal(t, "our endpoints", len(r.list("/endpoints")), 1)
		// Their event, our event, their endpoint: they stay among themselves.
		r.want(202, apptest.Call{Path: base + "/events", Key: other, Body: object{"type": "task.created", "data": object{"object": project(object{"object": "task"})}}})
		r.want(404, apptest.Call{Path: base + "/events/" + id + "/replay", Key: other, Body: object{"endpoint_id": theirs.Data.ID}})
		got := r.sink.WaitOn("/b", 1)
		r.publish("project.updated")
		r.sink.WaitOn("/a", 2)
		r.settle()
		equal(t, "requests to theirs", len(r.sink.Requests("/b")), 1)
		equal(t, "requests to ours", len(r.sink.Requests("/a")), 2)
		if body(t, got[0])["account_id"] == body(t, r.sink.Requests("/a")[0])["account_id"] {
			t.Error("two accounts have one id")
		}
	})
}

var (
	endpointForm = regexp.MustCompile(`^WEB-[A-HJ-NP-Z2-9]{6}-[A-HJ-NP-Z2-9]$`)
	accountForm  = regexp.MustCompile(`^ACC-[A-HJ-NP-Z2-9]{6}-[A-HJ-NP-Z2-9]$`)
)

func TestCreate(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-3", "CCW-API-4", "CCW-API-6", "CCW-API-7", "CCW-API-10")
		r := newRig(t, o)
		got := r.want(201, apptest.Call{Path: base + "/endpoints", Body: object{
			"url": "https://example.com/webhooks/cybercube", "description": "Production webhook handler",
			"events": []string{"project.created", "project.updated", "invoice.*"},
		}})
		made := decode(t, got)["data"].(map[string]any)
		id := made["id"].(string)
		if !endpointForm.MatchString(id) || profile.FormatCode("WEB", id[4:10]) != id || !accountForm.MatchString(made["account_id"].(string)) {
			t.Errorf("ids %v %v", id, made["account_id"])
		}
		equal(t, "Location", got.Header.Get("Location"), base+"/endpoints/"+id)
		want := object{
			"id": id, "url": "https://example.com/webhooks/cybercube", "description": "Production webhook handler",
			"events": []string{"project.created", "project.updated", "invoice.*"}, "secret": made["secret"], "status": "active",
			"account_id": made["account_id"], "created_at": "2026-07-01T12:00:00Z", "updated_at": "2026-07-01T12:00:00Z",
			"failure_count": 0, "health": "healthy", "secret_hint": made["secret"].(string)[45:], "secret_created_at": "2026-07-01T12:00:00Z",
		}
		sameJSON(t, "created", made, want)
		delete(want, "secret")
		sameJSON(t, "read", r.show(endpoint{ID: id}), want)
		plain := r.data(201, apptest.Call{Path: base + "/endpoints", Body: object{"url": "https://example.com/"}})
		sameJSON(t, "events", plain["events"], []string{"*"})
		if _, has := plain["description"]; has {
			t.Errorf("a description that nobody gave: %v", plain)
		}
	})
}

// TestIDs: an id with a wrong check character is rejected; case and the forms of other APIs are accepted.
func TestIDs(t *testing.T) {
	trace.Covers(t, "CCW-API-5", "CCW-API-4")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	native := r.stored(ep).ID.String()
	for _, id := range []string{ep.ID, strings.ToLower(ep.ID), url.PathEscape(" " + ep.ID + " "), native} {
		equal(t, id, r.show(endpoint{ID: id})["id"].(string), ep.ID)
	}
	for _, check := range "ABCDEFGHJKLMNPQRSTUVWXYZ23456789" {
		if id := ep.ID[:11] + string(check); id != ep.ID {
			equal(t, id, code(t, r.want(404, apptest.Call{Path: base + "/endpoints/" + id})), "RESOURCE_NOT_FOUND")
		}
	}
	for _, id := range []string{"WEB-X2M8KD-A", "WEB-X2M8KD-7", "WEB-X2M8KD-Z", "WEB-X2M8K-Z", "ACC" + ep.ID[3:], "x", "%00"} {
		r.want(404, apptest.Call{Path: base + "/endpoints/" + id})
	}
	event := r.publish("project.created")
	var listed struct{ Items []struct{ ID string } }
	r.want(200, apptest.Call{Path: "/v1/events"}).JSON(t, &listed)
	for _, id := range []string{event, listed.Items[0].ID} {
		answer := r.data(202, apptest.Call{Path: base + "/events/" + id + "/replay", Body: object{"endpoint_id": native}})
		equal(t, "event of "+id, answer["event_id"].(string), event)
		equal(t, "endpoint", answer["endpoint_id"].(string), ep.ID)
	}
}

func TestRefusedEndpoints(t *testing.T) {
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	for name, c := range map[string]struct {
		row   string
		body  any
		field string
	}{
		"no url":             {"CCW-API-8", object{}, "url"},
		"url null":           {"CCW-API-8", object{"url": nil}, "url"},
		"url a number":       {"CCW-API-8", object{"url": 5}, "url"},
		"no url at all":      {"CCW-API-8", object{"url": "nonsense"}, "url"},
		"another scheme":     {"CCW-API-8", object{"url": "ftp://example.com/"}, "url"},
		"no host":            {"CCW-API-8", object{"url": "https:///x"}, "url"},
		"a password":         {"CCW-API-8", object{"url": "https://user:password@example.com/"}, "url"},
		"a private address":  {"CCW-API-8", object{"url": "https://10.0.0.1/"}, "url"},
		"events in words":    {"CCW-API-8", object{"url": "https://example.com/", "events": "project.*"}, "events"},
		"events empty":       {"CCW-API-8", object{"url": "https://example.com/", "events": []string{}}, "events"},
		"events null":        {"CCW-API-8", object{"url": "https://example.com/", "events": nil}, "events"},
		"star within":        {"CCW-API-8", object{"url": "https://example.com/", "events": []string{"project.created", "pro*"}}, "events[1]"},
		"star first":         {"CCW-API-8", object{"url": "https://example.com/", "events": []string{"*.created"}}, "events[0]"},
		"empty pattern":      {"CCW-API-8", object{"url": "https://example.com/", "events": []string{""}}, "events[0]"},
		"pattern twice":      {"CCW-API-8", object{"url": "https://example.com/", "events": []string{"a.b", "a.b"}}, "events[1]"},
		"long description":   {"CCW-API-8", object{"url": "https://example.com/", "description": strings.Repeat("x", 501)}, "description"},
		"description object": {"CCW-API-8", object{"url": "https://example.com/", "description": object{}}, "description"},
		"unknown member":     {"CCW-API-8", object{"url": "https://example.com/", "color": "red"}, "color"},
		"own secret":         {"CCW-SEC-2", object{"url": "https://example.com/", "secret": testSecret}, "secret"},
		"a list":             {"CCW-API-8", []string{}, "body"},
		"no JSON":            {"CCW-API-8", "{", "body"},
		"filter in words":    {"CCW-API-19", object{"url": "https://example.com/", "filter": "x"}, "filter"},
		"filter of others":   {"CCW-API-19", object{"url": "https://example.com/", "filter": object{"color": "red"}}, "filter.color"},
		"no ids":             {"CCW-API-19", object{"url": "https://example.com/", "filter": object{"resource_ids": []string{}}}, "filter.resource_ids"},
		"attribute object":   {"CCW-API-19", object{"url": "https://example.com/", "filter": object{"attributes": object{"a": object{}}}}, "filter.attributes.a"},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, c.row)
			named(t, r.want(400, apptest.Call{Path: base + "/endpoints", Body: c.body}), c.field)
		})
	}
	t.Run("changes", func(t *testing.T) {
		trace.Covers(t, "CCW-API-12", "CCW-API-8")
		before := r.show(ep)
		for field, change := range map[string]object{
			"status":    {"status": "gone"},
			"url":       {"url": nil},
			"events":    {"events": nil},
			"events[0]": {"events": []string{"a*"}, "status": "paused"},
			"id":        {"id": "WEB-X2M8KD-Z"},
			"secret":    {"secret": "x"},
		} {
			named(t, r.want(400, apptest.Call{Method: "PATCH", Path: base + "/endpoints/" + ep.ID, Body: change}), field)
		}
		named(t, r.want(400, apptest.Call{Method: "PATCH", Path: base + "/endpoints/" + ep.ID, Body: object{"status": 5}}), "status")
		sameJSON(t, "endpoint", r.show(ep), before)
	})
	equal(t, "endpoints", len(r.list("/endpoints")), 1)
}

func TestList(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-9")
		r := newRig(t, o)
		var made []string
		for range 23 {
			r.Advance(time.Millisecond)
			made = append(made, r.endpoint("/a").ID)
		}
		slices.Reverse(made)
		var seen []string
		sizes := []int{}
		for path := base + "/endpoints"; path != ""; {
			var page struct {
				Data []object
				Meta struct {
					Pagination struct {
						Size    int  `json:"page_size"`
						HasNext bool `json:"has_next"`
						HasPrev bool `json:"has_prev"`
					}
				}
				Links struct{ Next string }
			}
			r.want(200, apptest.Call{Path: path}).JSON(t, &page)
			for _, e := range page.Data {
				seen = append(seen, e["id"].(string))
				if e["secret"] != nil || e["status"] != "active" {
					t.Errorf("entry %v", e)
				}
			}
			p := page.Meta.Pagination
			if p.Size != len(page.Data) || p.HasNext != (page.Links.Next != "") || p.HasPrev != (len(sizes) > 0) {
				t.Errorf("pagination %+v", p)
			}
			sizes = append(sizes, p.Size)
			path = page.Links.Next
		}
		if !slices.Equal(seen, made) || !slices.Equal(sizes, []int{20, 3}) {
			t.Errorf("made %v\nseen %v in pages of %v", made, seen, sizes)
		}
		equal(t, "three", len(r.list("/endpoints?limit=3")), 3)
		for field, query := range map[string]string{"limit": "limit=101", "cursor": "cursor=x", "color": "color=red"} {
			named(t, r.want(400, apptest.Call{Path: base + "/endpoints?" + query}), field)
		}
		named(t, r.want(400, apptest.Call{Path: base + "/endpoints?limit=0"}), "limit")
	})
}

func TestUpdate(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-11", "CCW-API-12", "CCW-HLT-4")
		r := newRig(t, o)
		ep := r.endpoint("/a", object{"description": "one"})
		want := r.show(ep)
		expect := func(change, differs object) {
			t.Helper()
			r.pass(time.Second)
			for name, v := range differs {
				want[name] = v
			}
			want["updated_at"] = r.Clock.Now().Format("2006-01-02T15:04:05Z")
			sameJSON(t, "answer", r.patch(ep, change), without(want))
			sameJSON(t, "read", r.show(ep), without(want))
		}
		expect(object{"events": []string{"project.*", "task.*"}, "status": "paused"}, object{"events": []string{"project.*", "task.*"}, "status": "paused"})
		expect(object{"description": "two"}, object{"description": "two"})
		expect(object{"url": r.sink.URL("/b")}, object{"url": r.sink.URL("/b")})
		expect(object{"status": "active"}, object{"status": "active"})
		expect(object{"status": "disabled"}, object{"status": "disabled", "disabled_at": "2026-07-01T12:00:05Z"})
		expect(object{"description": nil}, object{"description": nil})
		expect(object{"status": "active"}, object{"status": "active", "disabled_at": nil})
		expect(object{"filter": object{"resource_ids": []string{"PRJ-1"}}}, object{"filter": object{"resource_ids": []string{"PRJ-1"}}})
		expect(object{"filter": nil}, object{"filter": nil})
		r.publish("project.created")
		equal(t, "path", r.sink.Wait(1)[0].Path, "/b")
	})
}

// TestNewPatternsAreForNewEvents: deliveries that were queued before stay queued.
func TestNewPatternsAreForNewEvents(t *testing.T) {
	trace.Covers(t, "CCW-API-13")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500), ok)
	ep := r.endpoint("/a", object{"events": []string{"project.*"}})
	before := r.publish("project.created")
	r.settle()
	r.patch(ep, object{"events": []string{"task.*"}})
	r.publish("project.created")
	after := r.publish("task.created", object{"object": "task"})
	r.settle()
	r.pass(time.Minute)
	var got []string
	for _, q := range r.sink.Requests("/a") {
		got = append(got, body(t, q)["id"].(string))
	}
	if !slices.Equal(got, []string{before, after, before}) {
		t.Errorf("delivered %v", got)
	}
}

// TestTestEvent: the event goes only to that endpoint, whatever its patterns, and does not change the endpoint.
func TestTestEvent(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-15", "CCW-API-16", "CCW-EVT-8")
		r := newRig(t, o)
		ep := r.endpoint("/a", object{"events": []string{"task.*"}})
		r.endpoint("/b")
		try := func(members object) object {
			return r.data(200, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/test", Body: members})
		}
		r.sink.Script("/a", apptest.Status(201).Body("text/plain", "thanks"))
		answer := try(object{"event_type": "invoice.payment.failed"})
		q := r.sink.Requests("/a")[0]
		checkSchema(t, q.Body)
		verify(t, q, ep)
		event := body(t, q)
		equal(t, "type", event["type"].(string), "invoice.payment.failed")
		equal(t, "livemode", event["livemode"].(bool), false)
		sameJSON(t, "answer", answer, object{
			"event_id": event["id"], "delivery_id": q.Header.Get("X-Webhook-ID"), "success": true, "status_code": 201,
			"response_time_ms": 0, "response_body": "thanks",
		})
		equal(t, "type when none is asked for", try(object{})["success"].(bool), true)
		equal(t, "type", r.sink.Requests("/a")[1].Header.Get("X-Webhook-Event-Type"), "project.created")
		try(object{"event_type": "user.subscription.upgraded"})
		checkSchema(t, r.sink.Requests("/a")[2].Body)
		named(t, r.want(400, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/test", Body: object{"event_type": "Nonsense"}}), "event_type")

		r.sink.Script("/a", apptest.Status(500).Body("text/plain", "no"))
		answer = try(object{})
		if answer["success"] != false || answer["status_code"] != 500.0 || answer["response_body"] != "no" || answer["error"] != "HTTP 500" {
			t.Errorf("a failed test: %v", answer)
		}
		r.patch(ep, object{"status": "paused"})
		equal(t, "while paused", try(object{})["status_code"].(float64), 500)
		r.pass(48 * time.Hour)
		equal(t, "requests", len(r.sink.Requests("/a")), 5)
		equal(t, "requests to others", len(r.sink.Requests("/b")), 0)
		shown := r.show(ep)
		if shown["failure_count"] != 0.0 || shown["last_delivery_at"] != nil || shown["health"] != "healthy" {
			t.Errorf("the endpoint after tests: %v", shown)
		}
		equal(t, "log", len(r.logs(ep, "")), 0)
		equal(t, "failures", len(r.failures(ep)), 0)
		dead := r.register(apptest.DeadURL(t, "/"))
		answer = r.data(200, apptest.Call{Path: base + "/endpoints/" + dead.ID + "/test", Body: object{}})
		if answer["success"] != false || answer["status_code"] != nil || !strings.HasPrefix(answer["error"].(string), "connection-refused") {
			t.Errorf("nobody there: %v", answer)
		}
	})
}

func TestDelete(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-17")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(404), apptest.Status(500))
		ep := r.endpoint("/a")
		r.publish("project.created")
		r.settle()
		r.publish("project.created")
		r.settle()
		gone := r.want(204, apptest.Call{Method: "DELETE", Path: base + "/endpoints/" + ep.ID})
		equal(t, "body", len(gone.Body), 0)
		r.want(404, apptest.Call{Path: base + "/endpoints/" + ep.ID})
		r.want(404, apptest.Call{Method: "DELETE", Path: base + "/endpoints/" + ep.ID})
		equal(t, "list", len(r.list("/endpoints")), 0)
		r.publish("project.created")
		r.until("what waited is cancelled", func() bool { return len(r.Pending()) == 0 })
		r.Advance(48 * time.Hour)
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
		equal(t, "requests", len(r.sink.Requests("/a")), 2)
		r = r.again(apptest.Options{})
		var letters struct{ Items []object }
		r.want(200, apptest.Call{Path: "/v1/dead-letters"}).JSON(t, &letters)
		equal(t, "dead letters that are kept", len(letters.Items), 1)
	})
}

// TestPatterns is the table of patterns and types.
func TestPatterns(t *testing.T) {
	trace.Covers(t, "CCW-API-18")
	types := []string{"project.created", "project.deleted", "task.created", "invoice.paid", "invoice.payment.failed", "invoice.payment.succeeded", "projects.created"}
	cases := []struct {
		patterns []string
		want     string // positions in types
	}{
		{[]string{"*"}, "0123456"},
		{[]string{"project.*"}, "01"},
		{[]string{"project.created"}, "0"},
		{[]string{"invoice.payment.*"}, "45"},
		{[]string{"invoice.*"}, "345"},
		{[]string{"project.*", "task.created", "invoice.paid"}, "0123"},
		{[]string{"project.*", "project.created", "*"}, "0123456"},
		{[]string{"invoice.payment"}, ""},
		{[]string{"nothing.*"}, ""},
	}
	r := newRig(t, apptest.Options{})
	for i, c := range cases {
		r.endpoint(fmt.Sprintf("/%d", i), object{"events": c.patterns})
	}
	for _, name := range types {
		resource, _, _ := strings.Cut(name, ".")
		r.publish(name, object{"object": resource})
		r.settle()
	}
	for i, c := range cases {
		got := ""
		for _, q := range r.sink.Requests(fmt.Sprintf("/%d", i)) {
			got += fmt.Sprint(slices.Index(types, q.Header.Get("X-Webhook-Event-Type")))
		}
		equal(t, fmt.Sprint(c.patterns), got, c.want)
	}
}

// TestFilters: by resource, attributes and environment; all criteria and the patterns must match.
func TestFilters(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-19", "CCW-RCV-13")
		r := newRig(t, o)
		cases := []struct {
			filter object
			want   string // which of the events
		}{
			{object{"resource_ids": []string{"PRJ-1"}}, "03"},
			{object{"resource_ids": []string{"PRJ-1", "PRJ-2"}}, "0123"},
			{object{"attributes": object{"status": "active"}}, "02"},
			{object{"attributes": object{"status": []string{"active", "archived"}}}, "012"},
			{object{"attributes": object{"budget": 5}}, "1"},
			{object{"attributes": object{"owner.id": "USR-1", "urgent": true}}, "0"},
			{object{"resource_ids": []string{"PRJ-2"}, "attributes": object{"status": "active"}}, "2"},
			{object{"livemode": true}, "012"},
			{object{"livemode": false}, "3"},
			{object{"attributes": object{"missing": "x"}}, ""},
		}
		for i, c := range cases {
			ep := r.endpoint(fmt.Sprintf("/%d", i), object{"filter": c.filter, "events": []string{"project.*"}})
			if i == 0 {
				sameJSON(t, "shown", r.show(ep)["filter"], c.filter)
			}
		}
		events := []object{
			project(object{"id": "PRJ-1", "status": "active", "owner": object{"id": "USR-1"}, "urgent": true}),
			project(object{"id": "PRJ-2", "status": "archived", "budget": 5}),
			project(object{"id": "PRJ-2", "status": "active", "owner": object{"id": "USR-1"}, "urgent": false}),
			project(object{"id": "PRJ-1", "status": "other"}),
		}
		ids := map[string]int{}
		for i, e := range events {
			ids[r.post(object{"type": "project.created", "data": object{"object": e}, "livemode": i != 3})] = i
			r.settle()
		}
		r.publish("task.created", object{"id": "PRJ-1", "object": "task", "status": "active"})
		r.settle()
		for i, c := range cases {
			got := ""
			for _, q := range r.sink.Requests(fmt.Sprintf("/%d", i)) {
				got += fmt.Sprint(ids[body(t, q)["id"].(string)])
			}
			equal(t, fmt.Sprint(c.filter), got, c.want)
		}
	})
}

// TestEverythingByTheAPI: managing an endpoint needs only this API.
func TestEverythingByTheAPI(t *testing.T) {
	trace.Covers(t, "CCW-API-29")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	id := r.publish("project.created")
	r.settle()
	for _, c := range routes(ep.ID, id) {
		if got := r.Call(c); got.Status < 200 || got.Status > 299 {
			t.Errorf("%s %s: %d %s", c.Method, c.Path, got.Status, got.Body)
		}
	}
}

// TestErrorsHaveOneShape: wrong methods, unknown paths, wrong media types, missing scopes.
func TestErrorsHaveOneShape(t *testing.T) {
	trace.Covers(t, "CCW-API-1")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	at := base + "/endpoints/" + ep.ID
	for _, c := range []struct {
		call   apptest.Call
		status int
		code   string
		allow  string
	}{
		{apptest.Call{Method: "PUT", Path: base + "/endpoints"}, 405, "METHOD_NOT_ALLOWED", "GET, HEAD, POST"},
		{apptest.Call{Method: "POST", Path: at}, 405, "METHOD_NOT_ALLOWED", "GET, HEAD, PATCH, DELETE"},
		{apptest.Call{Method: "GET", Path: base + "/events"}, 405, "METHOD_NOT_ALLOWED", "POST"},
		{apptest.Call{Method: "GET", Path: at + "/nothing"}, 404, "RESOURCE_NOT_FOUND", ""},
		{apptest.Call{Method: "GET", Path: base + "/"}, 404, "RESOURCE_NOT_FOUND", ""},
		{apptest.Call{Path: base + "/events", Body: "x", Header: map[string]string{"Content-Type": "text/plain"}}, 415, "UNSUPPORTED_MEDIA_TYPE", ""},
		{apptest.Call{Path: base + "/events", Body: strings.Repeat(" ", 2<<20)}, 413, "BODY_TOO_LARGE", ""},
		{apptest.Call{Path: base + "/events", Body: object{"type": "a.b", "data": object{"object": project()}}, Header: map[string]string{"Idempotency-Key": "bare"}}, 400, "IDEMPOTENCY_KEY_MALFORMED", ""},
		{apptest.Call{Path: base + "/endpoints", Key: r.NewKey(r.Tenant, godwit.ScopeIngest)}, 403, "AUTH_INSUFFICIENT_SCOPE", ""},
	} {
		got := r.want(c.status, c.call)
		equal(t, c.call.Path, code(t, got), c.code)
		equal(t, "Content-Type", got.Header.Get("Content-Type"), "application/json")
		equal(t, "Allow", got.Header.Get("Allow"), c.allow)
	}
}
