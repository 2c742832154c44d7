package ojs_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// TestBadSubscriptions: the response names every invalid field, and nothing is created or changed.
func TestBadSubscriptions(t *testing.T) {
	r := newRig(t, apptest.Options{})
	sub := r.subscribe("/hook", object{"filter": object{"queues": []string{"a"}}})
	before := r.send(t, 200, apptest.Call{Path: pathOf(sub, "")})
	good := `"url":"https://example.com/x","events":["job.*"]`
	for name, c := range map[string]struct {
		body   string
		fields []string
		create bool // invalid only on creation
	}{
		"not JSON":              {body: `{`, fields: []string{"body"}},
		"no object":             {body: `[]`, fields: []string{"body"}},
		"nothing":               {body: `{}`, fields: []string{"url", "events"}, create: true},
		"no url":                {body: `{"events":["*"]}`, fields: []string{"url"}, create: true},
		"url null":              {body: `{"url":null,"events":["*"]}`, fields: []string{"url"}},
		"url empty":             {body: `{"url":"","events":["*"]}`, fields: []string{"url"}},
		"url number":            {body: `{"url":1,"events":["*"]}`, fields: []string{"url"}},
		"url relative":          {body: `{"url":"/x","events":["*"]}`, fields: []string{"url"}},
		"url scheme":            {body: `{"url":"ftp://h/","events":["*"]}`, fields: []string{"url"}},
		"url unparsable":        {body: `{"url":"https://%zz/","events":["*"]}`, fields: []string{"url"}},
		"url private":           {body: `{"url":"https://10.0.0.1/","events":["*"]}`, fields: []string{"url"}},
		"events text":           {body: `{"url":"https://example.com/","events":"*"}`, fields: []string{"events"}},
		"events null":           {body: `{"url":"https://example.com/","events":null}`, fields: []string{"events"}},
		"events empty":          {body: `{"url":"https://example.com/","events":[]}`, fields: []string{"events"}},
		"events numbers":        {body: `{"url":"https://example.com/","events":[1]}`, fields: []string{"events"}},
		"events with null":      {body: `{"url":"https://example.com/","events":[null]}`, fields: []string{"events"}},
		"empty type":            {body: `{"url":"https://example.com/","events":[""]}`, fields: []string{"events[0]"}},
		"wildcard inside":       {body: `{"url":"https://example.com/","events":["a","job.*.x"]}`, fields: []string{"events[1]"}},
		"same twice":            {body: `{"url":"https://example.com/","events":["a","a"]}`, fields: []string{"events[1]"}},
		"active text":           {body: `{` + good + `,"active":"yes"}`, fields: []string{"active"}},
		"active null":           {body: `{` + good + `,"active":null}`, fields: []string{"active"}},
		"secret short":          {body: `{` + good + `,"secret":"fifteen_letters"}`, fields: []string{"secret"}},
		"secret long":           {body: `{` + good + `,"secret":"` + strings.Repeat("x", 257) + `"}`, fields: []string{"secret"}},
		"secret number":         {body: `{` + good + `,"secret":12345678901234567}`, fields: []string{"secret"}},
		"filter list":           {body: `{` + good + `,"filter":[]}`, fields: []string{"filter"}},
		"filter text":           {body: `{` + good + `,"filter":{"queues":"payments"}}`, fields: []string{"filter.queues"}},
		"filter numbers":        {body: `{` + good + `,"filter":{"job_types":[1]}}`, fields: []string{"filter.job_types"}},
		"filter unknown":        {body: `{` + good + `,"filter":{"queue":["a"],"zone":["b"]}}`, fields: []string{"filter.queue", "filter.zone"}},
		"filter too long":       {body: `{` + good + `,"filter":{"queues":["` + strings.Repeat("x", 257) + `"]}}`, fields: []string{"filter.queues[0]"}},
		"metadata list":         {body: `{` + good + `,"metadata":[1]}`, fields: []string{"metadata"}},
		"metadata too large":    {body: `{` + good + `,"metadata":{"n":"` + strings.Repeat("x", 5000) + `"}}`, fields: []string{"metadata.n"}},
		"timeout low":           {body: `{` + good + `,"timeout_seconds":4}`, fields: []string{"timeout_seconds"}},
		"timeout high":          {body: `{` + good + `,"timeout_seconds":61}`, fields: []string{"timeout_seconds"}},
		"timeout fraction":      {body: `{` + good + `,"timeout_seconds":5.5}`, fields: []string{"timeout_seconds"}},
		"timeout text":          {body: `{` + good + `,"timeout_seconds":"30"}`, fields: []string{"timeout_seconds"}},
		"headers list":          {body: `{` + good + `,"headers":[]}`, fields: []string{"headers"}},
		"header number":         {body: `{` + good + `,"headers":{"X-A":1}}`, fields: []string{"headers.X-A"}},
		"header reserved":       {body: `{` + good + `,"headers":{"x-ojs-signature":"x"}}`, fields: []string{"headers.x-ojs-signature"}},
		"header of HTTP":        {body: `{` + good + `,"headers":{"Content-Length":"1"}}`, fields: []string{"headers.Content-Length"}},
		"several at once":       {body: `{"url":1,"events":[],"active":0,"timeout_seconds":0}`, fields: []string{"url", "events", "active", "timeout_seconds"}},
		"several of management": {body: `{"url":"/x","events":["*.x"]}`, fields: []string{"url", "events[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.send(t, 400, apptest.Call{Path: subscriptions, Body: c.body})
			if code(got) != "invalid_request" || !slices.Equal(fields(got), c.fields) {
				t.Errorf("created: %v", got)
			}
			if c.create {
				return
			}
			got = r.send(t, 400, apptest.Call{Method: "PATCH", Path: pathOf(sub, ""), Body: c.body})
			if !slices.Contains(fields(got), c.fields[0]) && !slices.Contains(fields(got), "secret") {
				t.Errorf("changed: %v", got)
			}
		})
	}
	if n := r.count(); n != 1 {
		t.Errorf("%d subscriptions", n)
	}
	if after := r.send(t, 200, apptest.Call{Path: pathOf(sub, "")}); !reflect.DeepEqual(after, before) {
		t.Errorf("it is %v, was %v", after, before)
	}
}

// TestUpdateReplacesWhatItNames shows how members are merged.
func TestUpdateReplacesWhatItNames(t *testing.T) {
	r := newRig(t, apptest.Options{})
	sub := r.subscribe("/hook", object{
		"filter": object{"queues": []string{"a"}, "job_types": []string{"b"}}, "metadata": object{"x": 1, "y": object{"z": []any{nil}}},
		"timeout_seconds": 7, "headers": object{"X-Env": "prod"},
	})
	patch := func(t *testing.T, body string) object {
		t.Helper()
		return r.send(t, 200, apptest.Call{Method: "PATCH", Path: pathOf(sub, ""), Body: body})
	}
	for _, c := range []struct {
		body, member string
		want         any
	}{
		{`{"active":false}`, "active", false},
		{`{"active":false,"url":"` + r.sink.URL("/other") + `"}`, "url", r.sink.URL("/other")},
		{`{"filter":{"queues":["c"]}}`, "filter", object{"queues": []any{"c"}}},
		{`{"filter":{"queues":[],"job_types":["d"]}}`, "filter", object{"job_types": []any{"d"}}},
		{`{"filter":null}`, "filter", nil},
		{`{"metadata":{"w":true}}`, "metadata", object{"w": true}},
		{`{"metadata":null}`, "metadata", nil},
		{`{"timeout_seconds":null}`, "timeout_seconds", nil},
		{`{"headers":{"X-Two":"2"}}`, "header_names", []any{"X-Two"}},
		{`{"headers":null}`, "header_names", nil},
		{`{"events":["job.*"],"active":true}`, "events", []any{"job.*"}},
		{`{"nobody":"knows","tenant_id":"x"}`, "active", true},
		{`{}`, "events", []any{"job.*"}},
	} {
		before := r.send(t, 200, apptest.Call{Path: pathOf(sub, "")})
		got := patch(t, c.body)
		if !reflect.DeepEqual(got[c.member], c.want) {
			t.Errorf("%s: %s is %v, want %v", c.body, c.member, got[c.member], c.want)
		}
		if after := r.send(t, 200, apptest.Call{Path: pathOf(sub, "")}); !reflect.DeepEqual(after, got) {
			t.Errorf("%s: answered %v, read %v", c.body, got, after)
		}
		for name := range before {
			if name != c.member && name != "subscription" && name != "active" && !reflect.DeepEqual(before[name], got[name]) {
				t.Errorf("%s: %s became %v", c.body, name, got[name])
			}
		}
	}
}

// TestHeadersStayWithTheirOrigin: custom headers of one host are not sent to another.
func TestHeadersStayWithTheirOrigin(t *testing.T) {
	r := newRig(t, apptest.Options{})
	sub := r.subscribe("/hook", object{"headers": object{"X-Token": "hush"}})
	if holds(sub, "hush") || holds(r.send(t, 200, apptest.Call{Path: pathOf(sub, "")}), "hush") {
		t.Error("the value of a header is shown")
	}
	got := r.send(t, 400, apptest.Call{Method: "PATCH", Path: pathOf(sub, ""), Body: object{"url": "https://example.com/"}})
	if !slices.Equal(fields(got), []string{"headers.X-Token"}) {
		t.Errorf("%v", got)
	}
}

// TestEndpointsOfOtherAPIs: this API shows an endpoint that another API created, and keeps the settings that this dialect
// does not have.
func TestEndpointsOfOtherAPIs(t *testing.T) {
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/eds"), apptest.Fields{"filter": object{"queue": []string{"a"}, "region": []string{"eu"}}})
	var native object
	r.EndpointCall(ep, "GET", "", nil).JSON(t, &native)
	sub := r.send(t, 200, apptest.Call{Path: subscriptions + "/" + ep.ID.String()})
	want := object{"queues": []any{"a"}, "attributes": object{"region": []any{"eu"}}}
	if sub["profile"] != "eds" || !reflect.DeepEqual(sub["filter"], want) {
		t.Errorf("it is %v", sub)
	}
	if list := r.send(t, 200, apptest.Call{Path: subscriptions}); !holds(list, ep.ID.String()) {
		t.Errorf("the list is %v", list)
	}
	if public, ok := native["public_id"].(string); ok {
		if by := r.send(t, 200, apptest.Call{Path: subscriptions + "/" + public}); !reflect.DeepEqual(by, sub) {
			t.Errorf("by %s it is %v", public, by)
		}
	}
	sub = r.send(t, 200, apptest.Call{Method: "PUT", Path: pathOf(sub, ""), Body: `{"filter":{"job_types":["b"]}}`})
	want = object{"job_types": []any{"b"}, "attributes": object{"region": []any{"eu"}}}
	if !reflect.DeepEqual(sub["filter"], want) {
		t.Errorf("the filter is %v", sub["filter"])
	}
	rotated := r.send(t, 200, apptest.Call{Method: "POST", Path: pathOf(sub, "/rotate-secret")})
	if rotated["public_key"] == nil && rotated["secret"] == nil {
		t.Errorf("rotated: %v", rotated)
	}
	// The other way round: a subscription is an endpoint of the profile ojs.
	made := r.subscribe("/ojs", object{"timeout_seconds": 9})
	got := r.Must(apptest.Call{Path: "/v1/endpoints/" + made["id"].(string)}, nil)
	var view struct {
		Profile string `json:"profile"`
	}
	got.JSON(t, &view)
	if view.Profile != "ojs" {
		t.Errorf("profile %q", view.Profile)
	}
}

func TestRoutes(t *testing.T) {
	r := newRig(t, apptest.Options{})
	sub := r.subscribe("/hook")
	for path, allow := range map[string]string{
		subscriptions:                 "GET, HEAD, POST",
		pathOf(sub, ""):               "GET, HEAD, PATCH, PUT, DELETE",
		pathOf(sub, "/test"):          "POST",
		pathOf(sub, "/rotate-secret"): "POST",
		deliveries:                    "GET, HEAD",
		deliveries + "/del_x":         "GET, HEAD",
		deliveries + "/del_x/retry":   "POST",
		events:                        "GET, HEAD, POST",
		events + "/batch":             "POST",
		"/ojs/manifest":               "GET, HEAD",
		"/ojs/v1/manifest":            "GET, HEAD",
	} {
		resp := r.Call(apptest.Call{Method: "TRACE", Path: path})
		var got object
		resp.JSON(t, &got)
		checkError(t, resp, got)
		if resp.Status != http.StatusMethodNotAllowed || code(got) != "method_not_allowed" || resp.Header.Get("Allow") != allow {
			t.Errorf("%s: %d, Allow %q", path, resp.Status, resp.Header.Get("Allow"))
		}
	}
	for _, path := range []string{"/ojs", "/ojs/", "/ojs/v1/webhooks", subscriptions + "/", pathOf(sub, "/nothing"), "/ojs/v1/jobs"} {
		resp := r.Call(apptest.Call{Path: path})
		if path == "/ojs" {
			continue // the mux of the server may redirect it
		}
		var got object
		resp.JSON(t, &got)
		checkError(t, resp, got)
		if resp.Status != http.StatusNotFound || code(got) != "not_found" {
			t.Errorf("%s: %d %v", path, resp.Status, got)
		}
	}
	if resp := r.Call(apptest.Call{Method: "HEAD", Path: pathOf(sub, "")}); resp.Status != 200 || len(resp.Body) != 0 {
		t.Errorf("HEAD: %d %s", resp.Status, resp.Body)
	}
}

// TestScopes: each operation requires its own scope, and refuses in this dialect's form.
func TestScopes(t *testing.T) {
	r := newRig(t, apptest.Options{})
	sub := r.subscribe("/hook")
	ingest := r.NewKey(r.Tenant, "ingest")
	read := r.NewKey(r.Tenant, "read")
	for _, c := range []struct {
		key, method, path string
	}{
		{ingest, "GET", subscriptions}, {ingest, "DELETE", pathOf(sub, "")}, {read, "POST", subscriptions}, {read, "PATCH", pathOf(sub, "")},
		{read, "POST", events}, {ingest, "GET", events}, {read, "POST", pathOf(sub, "/test")}, {read, "POST", pathOf(sub, "/rotate-secret")},
	} {
		if got := r.send(t, 403, apptest.Call{Key: c.key, Method: c.method, Path: c.path}); code(got) != "forbidden" {
			t.Errorf("%s %s: %v", c.method, c.path, got)
		}
	}
	resp := r.Call(apptest.Call{Path: subscriptions, Header: map[string]string{"Authorization": "Basic x"}})
	if resp.Status != 401 || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %v", resp.Status, resp.Header)
	}
	for _, kind := range []string{"text/plain", "application/json; charset=utf-8", "application/openjobspec+json"} {
		want := 201
		if kind == "text/plain" {
			want = 415
		}
		got := r.send(t, want, apptest.Call{Path: subscriptions, Header: map[string]string{"Content-Type": kind},
			Body: `{"url":"https://example.com/","events":["*"]}`})
		if want == 415 && code(got) != "unsupported_media_type" {
			t.Errorf("%v", got)
		}
	}
}

// TestRepeatsUnderAKey: a repeat gets the first response without its secret (OT-26).
func TestRepeatsUnderAKey(t *testing.T) {
	r := newRig(t, apptest.Options{})
	key := map[string]string{"Idempotency-Key": `"create-subscription-1"`}
	body := object{"url": r.sink.URL("/hook"), "events": []string{"*"}, "secret": "sixteen letters!"}
	create := apptest.Call{Path: subscriptions, Body: body, Header: key}
	first := r.send(t, 201, create)
	second := r.Call(create)
	if second.Status != 201 || second.Header.Get("Idempotency-Replayed") != "true" || strings.Contains(string(second.Body), `"secret"`) {
		t.Errorf("repeated: %d %s", second.Status, second.Body)
	}
	var again object
	second.JSON(t, &again)
	for _, shown := range []object{first, first["subscription"].(object)} {
		delete(shown, "secret")
		shown["secret_redacted"] = true // IDS IT-14
	}
	if !reflect.DeepEqual(again, first) || r.count() != 1 {
		t.Errorf("repeated: %v, first %v", again, first)
	}
	rotate := apptest.Call{Method: "POST", Path: pathOf(first, "/rotate-secret"), Header: map[string]string{"Idempotency-Key": `"rotate-subscription-1"`}}
	if got := r.send(t, 200, rotate); got["secret"] == nil || got["secret"] != got["new_secret"] {
		t.Errorf("rotated: %v", got)
	}
	if got := r.send(t, 200, rotate); holds(got, "whsec_") || got["previous_secret_expires_at"] == nil {
		t.Errorf("rotated again: %v", got)
	}
	body["events"] = []string{"a"}
	if got := r.send(t, 422, apptest.Call{Path: subscriptions, Body: body, Header: key}); code(got) != "idempotency_key_reused" {
		t.Errorf("reused: %v", got)
	}
	if got := r.send(t, 400, apptest.Call{Path: subscriptions, Body: body, Header: map[string]string{"Idempotency-Key": "bare"}}); code(got) != "idempotency_key_malformed" {
		t.Errorf("malformed: %v", got)
	}
}

func TestPagesOfSubscriptions(t *testing.T) {
	r := newRig(t, apptest.Options{})
	var ids []string
	for range 5 {
		ids = append([]string{r.subscribe("/hook")["id"].(string)}, ids...)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	var seen []string
	path := subscriptions + "?limit=2"
	for pages := 1; ; pages++ {
		got := r.send(t, 200, apptest.Call{Path: path})
		for _, item := range got["subscriptions"].([]any) {
			seen = append(seen, item.(object)["id"].(string))
		}
		page := got["pagination"].(object)
		if got["total"] != 5.0 || page["total"] != 5.0 {
			t.Errorf("totals %v, %v", got["total"], page["total"])
		}
		if page["has_more"] == false {
			if page["next_cursor"] != nil || pages != 3 {
				t.Errorf("last page %d: %v", pages, page)
			}
			break
		}
		path = subscriptions + "?limit=2&cursor=" + page["next_cursor"].(string)
	}
	if !slices.Equal(seen, ids) {
		t.Errorf("seen %v, want %v", seen, ids)
	}
	for _, query := range []string{"limit=0", "limit=201", "limit=x", "limit=", "limit=1&limit=2", "cursor=x", "cursor=AWQ", "%zz"} {
		if got := r.send(t, 400, apptest.Call{Path: subscriptions + "?" + query}); code(got) != "invalid_request" {
			t.Errorf("%s: %v", query, got)
		}
	}
	// A cursor of one list is not valid for another.
	other := r.send(t, 200, apptest.Call{Path: subscriptions + "?limit=2"})["pagination"].(object)["next_cursor"].(string)
	r.send(t, 400, apptest.Call{Path: deliveries + "?cursor=" + other})
}

// TestLimits: the refusal of too many registrations has this dialect's form.
func TestLimits(t *testing.T) {
	r := newRig(t, apptest.Options{KeepLimits: true, Configure: func(c *config.Config) { c.Limits.Endpoints = 50 }})
	body := object{"url": r.sink.URL("/hook"), "events": []string{"never"}}
	key := r.NewKey(r.Tenant, godwit.ScopeManage) // the rate is not that of administrators
	for range 50 {
		r.send(t, 201, apptest.Call{Path: subscriptions, Key: key, Body: body})
	}
	if got := r.send(t, 409, apptest.Call{Path: subscriptions, Key: key, Body: body}); code(got) != "limit_reached" {
		t.Errorf("one too many: %v", got)
	}
	for range 100 { // refused requests count too
		resp := r.Call(apptest.Call{Path: subscriptions, Key: key, Body: body})
		if resp.Status == http.StatusConflict {
			continue
		}
		var got object
		resp.JSON(t, &got)
		checkError(t, resp, got)
		if resp.Status != http.StatusTooManyRequests || code(got) != "rate_limited" || got["error"].(object)["retryable"] != true || resp.Header.Get("Retry-After") == "" {
			t.Errorf("too fast: %d %s", resp.Status, resp.Body)
		}
		return
	}
	t.Error("there is no limit")
}

// The response to a request with very many errors must not be longer than the request.
func TestErrorsAreBounded(t *testing.T) {
	r := newRig(t, apptest.Options{})
	criteria := object{}
	for i := range 1000 {
		criteria[fmt.Sprintf("m%d", i)] = 0
	}
	got := r.send(t, 400, apptest.Call{Path: subscriptions, Body: object{"url": "https://receiver.example/", "events": []string{"*"}, "filter": criteria}})
	if fields := got["error"].(object)["details"].(object)["fields"].([]any); len(fields) != 20 {
		t.Errorf("%d fields are named", len(fields))
	}
}
