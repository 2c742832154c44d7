package native

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestEndpointLifecycle(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	created := h.post("/v1/endpoints", `{"url":`+quote(receiver.URL)+`,"patterns":["order.*"],"description":"Orders","metadata":{"team":"a"},
		"filter":{"region":["eu"]},"headers":{"X-Api":"open-sesame"},"policy":{"max_retries":3}}`).want(201)
	var e IssuedEndpoint
	created.into(&e)
	if created.header.Get("Location") != "/v1/endpoints/"+e.ID || e.Secret.Value == "" || e.Status != "active" || e.Profile != "eds" || e.Method != "POST" {
		t.Fatalf("created %+v", e)
	}
	for _, path := range []string{"/v1/endpoints/" + e.ID, "/v1/endpoints", "/v1/endpoints/" + e.ID + "/secrets", "/v1/endpoints/" + e.ID + "/stats"} {
		if body := string(h.get(path).want(200).body); strings.Contains(body, "sesame") || strings.Contains(body, e.Secret.Value) {
			t.Errorf("%s shows a secret: %s", path, body)
		}
	}
	var got Endpoint
	h.get("/v1/endpoints/" + e.ID).want(200).into(&got)
	if !reflect.DeepEqual(got, e.Endpoint) {
		t.Errorf("read back %+v, created %+v", got, e.Endpoint)
	}
	if fmt.Sprint(got.HeaderNames) != "[X-Api]" || string(got.Metadata["team"]) != `"a"` || *got.Policy.MaxRetries != 3 || got.Filter["region"][0] != "eu" {
		t.Errorf("got %+v", got)
	}

	h.post("/v1/endpoints/"+e.ID+"/pause", `{"reason":"deploying"}`).want(200).into(&got)
	if got.Status != "paused" || got.StatusReason != "deploying" {
		t.Errorf("paused: %+v", got)
	}
	h.post("/v1/events?type=order.paid&attr.region=eu", `1`).want(202)
	h.post("/v1/endpoints/"+e.ID+"/test", ``).refused(409, problem.Conflict, "")
	var stats EndpointStats
	h.get("/v1/endpoints/" + e.ID + "/stats").want(200).into(&stats)
	if stats.Pending != 1 || stats.Status != "paused" || stats.Policy.MaxRetries != 3 || fmt.Sprint(stats.Overrides) != "[max_retries]" {
		t.Errorf("stats: %+v", stats)
	}
	got = Endpoint{}
	h.post("/v1/endpoints/"+e.ID+"/resume", ``).want(200).into(&got)
	if got.Status != "active" || got.StatusReason != "" {
		t.Errorf("resumed: %+v", got)
	}
	if r := receiver.wait(t); r.header.Get("X-Api") != "open-sesame" {
		t.Errorf("header on the wire: %q", r.header.Get("X-Api"))
	}
	h.post("/v1/endpoints/"+e.ID+"/test", ``).want(202)
	if r := receiver.wait(t); r.header.Get("Godwit-Event-Type") != testEventType || r.header.Get("Idempotency-Key") == "" {
		t.Errorf("test event: %v", r.header)
	}
	h.do(call{method: "DELETE", path: "/v1/endpoints/" + e.ID}).want(204)
	h.get("/v1/endpoints/"+e.ID).refused(404, problem.NotFound, "")
	h.do(call{method: "DELETE", path: "/v1/endpoints/" + e.ID}).refused(404, problem.NotFound, "")
	if a := h.publish("order.paid", `{}`); a.Deliveries != 0 {
		t.Errorf("a deleted endpoint gets %d deliveries", a.Deliveries)
	}
}

func TestEndpointPatch(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	e := h.endpoint(receiver.URL, `"description":"one"`, `"headers":{"X-A":"1","X-B":"2"}`, `"metadata":{"a":"1","b":"2"}`,
		`"policy":{"max_retries":3,"concurrency":5}`, `"auth":{"kind":"bearer","token":"tok"}`, `"filter":{"a":["1"],"b":["2"]}`, `"patterns":["x.*"]`)
	path := "/v1/endpoints/" + e.ID
	patch := func(body string) Endpoint {
		t.Helper()
		var got Endpoint
		h.do(call{method: "PATCH", path: path, body: body}).want(200).into(&got)
		return got
	}
	if got := patch(`{}`); got.Description != "one" || got.Version != 2 || fmt.Sprint(got.HeaderNames) != "[X-A X-B]" || got.AuthKind != "bearer" {
		t.Errorf("nothing to change: %+v", got)
	}
	if got := patch(`{"description":"two","headers":{"X-A":null,"X-C":"3"},"metadata":{"a":null},"policy":{"max_retries":null,"burst":7},"filter":{"a":null}}`); got.Description != "two" || fmt.Sprint(got.HeaderNames) != "[X-B X-C]" || len(got.Metadata) != 1 ||
		got.Policy.MaxRetries != nil || *got.Policy.Concurrency != 5 || *got.Policy.Burst != 7 || len(got.Filter) != 1 {
		t.Errorf("merged: %+v", got)
	}
	// A patch replaces a credential entirely.
	if got := patch(`{"auth":{"kind":"basic","username":"u","password":"p"}}`); got.AuthKind != "basic" {
		t.Errorf("auth: %+v", got)
	}
	h.post("/v1/events?type=x.y&attr.b=2", `1`).want(202)
	if r := receiver.wait(t); r.header.Get("X-B") != "2" || r.header.Get("X-C") != "3" || r.header.Get("X-A") != "" || r.header.Get("Authorization") != "Basic dTpw" {
		t.Errorf("on the wire: %v", r.header)
	}
	if got := patch(`{"description":null,"headers":null,"metadata":null,"policy":null,"auth":null,"filter":null,"patterns":null,"method":null}`); got.Description != "" || len(got.HeaderNames) != 0 || got.Metadata != nil ||
		got.Policy.Concurrency != nil || got.AuthKind != "" || got.Filter != nil || fmt.Sprint(got.Patterns) != "[*]" || got.Method != "POST" {
		t.Errorf("cleared: %+v", got)
	}
	h.do(call{method: "PATCH", path: path, body: `{"description":"x"}`, header: []string{"Content-Type", "application/merge-patch+json"}}).want(200)
	for body, field := range map[string]string{
		`{"url":"ftp://x/"}`:                         "url",
		`{"profile":"ojs"}`:                          "profile",
		`{"patterns":[]}`:                            "patterns",
		`{"headers":{"Host":"x"}}`:                   "headers.Host",
		`{"policy":{"max_retries":100000}}`:          "policy.max_retries",
		`{"policy":{"statuses":{"404":"accepted"}}}`: "policy.statuses.404",
	} {
		h.do(call{method: "PATCH", path: path, body: body}).refused(422, problem.Invalid, field)
	}
	for body, field := range map[string]string{
		`{"url":null}`:                         "url",
		`{"profile":null}`:                     "profile",
		`{"colour":"red"}`:                     "colour",
		`{"id":"sub_x"}`:                       "id",
		`{"policy":{"max_retry":1}}`:           "policy.max_retry",
		`{"policy":{"max_retries":"many"}}`:    "policy.max_retries",
		`{"patterns":"*"}`:                     "patterns",
		`{"headers":{"X-A":1}}`:                "headers.X-A",
		`{"method":"GET"}`:                     "method",
		`{"auth":{"kind":"bearer","pin":"1"}}`: "auth.pin",
	} {
		h.do(call{method: "PATCH", path: path, body: body}).refused(400, problem.InvalidRequest, field)
	}
	var after Endpoint
	h.get(path).want(200).into(&after)
	if after.Description != "x" || after.URL != receiver.URL {
		t.Errorf("a refused patch changed something: %+v", after)
	}
}

func TestRotateSecret(t *testing.T) {
	trace.Covers(t, "EDS-KEY-7")
	h := newHarness(t)
	receiver := newSink(t)
	e := h.endpoint(receiver.URL)
	path := "/v1/endpoints/" + e.ID
	live := func() (ids []string) {
		var l struct{ Items []Secret }
		h.get(path + "/secrets").want(200).into(&l)
		for _, s := range l.Items {
			if s.Live {
				ids = append(ids, s.ID)
			}
		}
		return ids
	}
	// An endpoint always has a secret that signs.
	if got := live(); len(got) != 1 || got[0] != e.Secret.ID {
		t.Fatalf("a new endpoint has live secrets %v", got)
	}
	h.publish("a.b", `1`)
	if r := receiver.wait(t); !strings.Contains(r.header.Get("Signature-Input"), e.Secret.ID) {
		t.Errorf("signed with %s", r.header.Get("Signature-Input"))
	}
	var next IssuedSecret
	h.post(path+"/rotate-secret", `{"algorithm":"ed25519","overlap_seconds":3600}`).want(200).into(&next)
	if next.PublicKey == "" || next.Value != "" || len(live()) != 2 {
		t.Errorf("rotated: %+v, live %v", next, live())
	}
	h.publish("a.b", `2`)
	if in := receiver.wait(t).header.Get("Signature-Input"); !strings.Contains(in, e.Secret.ID) || !strings.Contains(in, next.ID) {
		t.Errorf("during the overlap signed with %s", in)
	}
	h.clock.Advance(time.Hour)
	if got := live(); len(got) != 1 || got[0] != next.ID {
		t.Errorf("after the overlap live %v", got)
	}
	h.post(path+"/rotate-secret", `{"overlap_seconds":0}`).want(200).into(&next)
	if got := live(); len(got) != 1 || got[0] != next.ID || next.Algorithm != "ed25519" {
		t.Errorf("without overlap live %v", got)
	}
	for range management.MaxLiveSecrets - 1 {
		h.post(path+"/rotate-secret", ``).want(200)
	}
	h.post(path+"/rotate-secret", ``).refused(409, problem.LimitReached, "")
	h.post(path+"/rotate-secret", `{"algorithm":"rsa"}`).refused(400, problem.InvalidRequest, "algorithm")
	h.post(path+"/rotate-secret", `{"overlap_seconds":-1}`).refused(400, problem.InvalidRequest, "overlap_seconds")
	h.post(path+"/rotate-secret", `{"overlap_seconds":1e9}`).refused(400, problem.InvalidRequest, "overlap_seconds")
}

func TestEndpointStatusFilterAndPages(t *testing.T) {
	h := newHarness(t)
	var ids []string
	for i := range 7 {
		ids = append(ids, h.endpoint(fmt.Sprintf("http://127.0.0.1:9/%d", i)).ID)
	}
	h.post("/v1/endpoints/"+ids[2]+"/pause", ``).want(200)
	seen := map[string]bool{}
	pages := 0
	for cursor := ""; ; pages++ {
		var l list[Endpoint]
		h.get("/v1/endpoints?limit=3&cursor=" + cursor).want(200).into(&l)
		for _, e := range l.Items {
			if seen[e.ID] {
				t.Errorf("%s is on two pages", e.ID)
			}
			seen[e.ID] = true
		}
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != 7 || pages != 2 {
		t.Errorf("%d endpoints on %d pages", len(seen), pages+1)
	}
	var l list[Endpoint]
	h.get("/v1/endpoints?status=paused").want(200).into(&l)
	if len(l.Items) != 1 || l.Items[0].ID != ids[2] || l.Items[0].Status != string(godwit.EndpointPaused) {
		t.Errorf("paused: %+v", l.Items)
	}
}

// A credential is bound to an origin: a caller that may change the URL must not have it sent to another host.
func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	h := newHarness(t)
	receiver, thief := newSink(t), newSink(t)
	e := h.endpoint(receiver.URL, `"headers":{"X-A":"1"}`, `"auth":{"kind":"bearer","token":"tok"}`)
	patch := func(body string) *answer {
		return h.do(call{method: "PATCH", path: "/v1/endpoints/" + e.ID, body: body})
	}
	patch(`{"url":"`+thief.URL+`"}`).refused(422, problem.Invalid, "auth")
	patch(`{"url":"`+thief.URL+`","auth":{"kind":"bearer","token":"new"}}`).refused(422, problem.Invalid, "headers.X-A")
	patch(`{"url":"` + receiver.URL + `/elsewhere"}`).want(200)
	patch(`{"url":"` + thief.URL + `","auth":{"kind":"bearer","token":"new"},"headers":{"X-A":"2"}}`).want(200)
	h.publish("order.paid", `{}`)
	if r := thief.wait(t); r.header.Get("Authorization") != "Bearer new" || r.header.Get("X-A") != "2" {
		t.Errorf("sent %v", r.header)
	}
}

// TestProfilesAreDocumented fails if the document lacks a new profile.
func TestProfilesAreDocumented(t *testing.T) {
	field, _ := reflect.TypeFor[NewEndpoint]().FieldByName("Profile")
	for _, name := range profile.Names() {
		if !strings.Contains(field.Tag.Get("doc"), name) {
			t.Errorf("profile %s is not named", name)
		}
	}
}

// Metadata is any JSON and is returned as sent; a patch changes only the members that it names.
func TestMetadataIsAnyJSON(t *testing.T) {
	h := newHarness(t)
	e := h.endpoint("https://a.example/", `"metadata":{"team":"a","limits":{"z":1,"a":[true,null,1e300]},"n":12345678901234567890,"none":null}`)
	read := func() map[string]string {
		var got Endpoint
		h.get("/v1/endpoints/" + e.ID).want(200).into(&got)
		text := map[string]string{}
		for name, value := range got.Metadata {
			text[name] = string(value)
		}
		return text
	}
	want := map[string]string{"team": `"a"`, "limits": `{"z":1,"a":[true,null,1e300]}`, "n": `12345678901234567890`, "none": `null`}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	h.do(call{method: "PATCH", path: "/v1/endpoints/" + e.ID, body: `{"metadata":{"team":null,"limits":{"z":null},"more":[1,{"b":2}]}}`}).want(200)
	want = map[string]string{"limits": `{"a":[true,null,1e300]}`, "n": `12345678901234567890`, "none": `null`, "more": `[1,{"b":2}]`}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("after the patch: %v", got)
	}
	h.do(call{method: "PATCH", path: "/v1/endpoints/" + e.ID, body: `{"metadata":"x"}`}).refused(400, problem.InvalidRequest, "metadata")
}

// Decision 6: any API takes any rendering of an id.
func TestIdsInEveryRendering(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	e := h.endpoint(receiver.URL)
	if code, err := profile.ParseCode(profile.CodeEndpoint, e.PublicID); err != nil || code == "" {
		t.Fatalf("public id %q: %v", e.PublicID, err)
	}
	for _, id := range []string{e.ID, e.PublicID, strings.ToLower(e.PublicID)} {
		var got Endpoint
		h.get("/v1/endpoints/" + id).want(200).into(&got)
		if got.ID != e.ID {
			t.Errorf("%s is %s", id, got.ID)
		}
		h.get("/v1/endpoints/" + id + "/stats").want(200)
		h.do(call{method: "PATCH", path: "/v1/endpoints/" + id, body: `{"description":"x"}`}).want(200)
	}
	w := h.watch()
	var sent Accepted
	h.post("/v1/events?type=order.paid", `1`).want(202).into(&sent)
	w.until(godwit.DeliveryAccepted)
	event, err := godwit.ParseEventID(sent.ID)
	must(t, err)
	for _, id := range []string{sent.ID, "evt_" + event.Base32()} {
		var got EventDetail
		h.get("/v1/events/" + id).want(200).into(&got)
		if got.ID != sent.ID {
			t.Errorf("%s is %s", id, got.ID)
		}
		var l list[Delivery]
		h.get("/v1/deliveries?event=" + id + "&endpoint=" + e.PublicID + "&type=order.paid").want(200).into(&l)
		if len(l.Items) != 1 || l.Items[0].EventType != "order.paid" {
			t.Errorf("deliveries of %s: %+v", id, l.Items)
		}
		h.post("/v1/events/"+id+"/replay", `{"endpoints":["`+e.PublicID+`"]}`).want(202)
		w.until(godwit.DeliveryAccepted)
	}
	var l list[Delivery]
	if h.get("/v1/deliveries?type=order.other").want(200).into(&l); len(l.Items) != 0 {
		t.Errorf("deliveries of another type: %+v", l.Items)
	}

	wrong := []byte(e.PublicID)
	wrong[len(wrong)-1] ^= 1 // another letter
	h.get("/v1/endpoints/"+string(wrong)).refused(404, problem.NotFound, "")
	h.get("/v1/deliveries?endpoint="+string(wrong)).refused(422, problem.Invalid, "endpoint")
	h.get("/v1/endpoints/ACC-X2M8KD-Z").refused(400, problem.InvalidRequest, "id")
	h.get("/v1/events/evt_zzzz").refused(400, problem.InvalidRequest, "id")
	h.post("/v1/events/"+sent.ID+"/replay", `{"endpoints":["`+e.ID+`","`+e.PublicID+`"]}`).refused(422, problem.Invalid, "endpoints[1]")
}

// An endpoint's owner may supply the key; only the response that accepts it shows it.
func TestOwnSigningKey(t *testing.T) {
	h := newHarness(t)
	own := base64Of(bytes.Repeat([]byte{7}, 32))
	next := base64Of(bytes.Repeat([]byte{9}, 32))
	e := h.endpoint("https://a.example/", `"secret":"`+own+`"`, `"algorithm":"hmac-sha256"`, `"paused":true`)
	if e.Secret.Value != own || e.Status != "paused" {
		t.Errorf("issued %+v", e)
	}
	var rotated IssuedSecret
	h.post("/v1/endpoints/"+e.ID+"/rotate-secret", `{"secret":"`+next+`"}`).want(200).into(&rotated)
	if rotated.Value != next || rotated.Hint != next[len(next)-4:] {
		t.Errorf("rotated to %+v", rotated)
	}
	for _, path := range []string{"/v1/endpoints", "/v1/endpoints/" + e.ID, "/v1/endpoints/" + e.ID + "/secrets"} {
		if body := string(h.get(path).want(200).body); strings.Contains(body, own) || strings.Contains(body, next) {
			t.Errorf("%s shows a key", path)
		}
	}
	for _, weak := range []string{"short", "not base64 at all, but long enough to be one"} {
		a := h.post("/v1/endpoints", `{"url":"https://a.example/","secret":"`+weak+`"}`)
		if a.refused(422, problem.Invalid, "secret"); strings.Contains(string(a.body), weak) {
			t.Errorf("the refusal repeats the key: %s", a.body)
		}
	}
}

// A probe waits for the response and stores nothing.
func TestProbe(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 204, 500)
	e := h.endpoint(receiver.URL, `"patterns":["order.*"]`, `"paused":true`)
	probe := func(id string) Probe {
		var p Probe
		h.post("/v1/endpoints/"+id+"/probe", ``).want(200).into(&p)
		return p
	}
	if p := probe(e.ID); p.Outcome != "accepted" || p.Status != 204 || p.DurationMS <= 0 {
		t.Errorf("probe: %+v", p)
	}
	if r := receiver.wait(t); r.header.Get("Godwit-Event-Type") != testEventType || !strings.Contains(string(r.body), e.ID) {
		t.Errorf("sent %v %s", r.header, r.body)
	}
	if p := probe(e.PublicID); p.Outcome != "transient" || p.Status != 500 {
		t.Errorf("refused: %+v", p)
	}
	away := h.endpoint("http://127.0.0.1:1/")
	if p := probe(away.ID); p.Outcome != "transient" || p.Reason != "connection-refused" || p.Status != 0 || p.FailureClass != "transport" {
		t.Errorf("away: %+v", p)
	}
	if n := h.counts().events; n != 0 {
		t.Errorf("%d events are stored", n)
	}
	var stats EndpointStats
	if h.get("/v1/endpoints/" + e.ID + "/stats").want(200).into(&stats); stats.Health.Transient != 0 || stats.Health.Accepted != 0 {
		t.Errorf("health: %+v", stats.Health)
	}
	h.post("/v1/endpoints/"+godwit.NewEndpointID(h.clock.Now()).String()+"/probe", ``).refused(404, problem.NotFound, "")
}

// The statistics show the inputs and results of the dialects' health rules.
func TestStatsShowHealth(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 500)
	e := h.endpoint(receiver.URL, `"profile":"cybercube"`, `"policy":{"disable_after_failures":2,"reenable_after_seconds":3600}`)
	stats := func() (s EndpointStats) {
		h.get("/v1/endpoints/" + e.PublicID + "/stats").want(200).into(&s)
		return s
	}
	if s := stats(); s.Health.Degraded || s.Policy.PerMinute != 1000 || s.Policy.PerSecond != 100 || s.Policy.AccountPerMinute != 10000 ||
		s.Policy.DisableAfterFails != 2 || !s.Policy.Alert || fmt.Sprint(s.Overrides) != "[disable_after_failures reenable_after_seconds]" {
		t.Errorf("at first: %+v", s)
	}
	w := h.watch()
	h.post("/v1/events?type=project.created", `{}`).want(202)
	w.until(godwit.DeliveryPending)
	if s := stats(); s.Health.Streak != 1 || !s.Health.Degraded || s.Health.DegradedAt == nil || s.Status != "active" || s.ReenableAt != nil {
		t.Errorf("after one failure: %+v", s)
	}
	h.post("/v1/events?type=project.created", `{}`).want(202)
	w.until(godwit.DeliveryPending)
	s := stats()
	if s.Health.Streak != 2 || s.Status != "disabled" || s.ReenableAt == nil {
		t.Fatalf("after two: %+v", s)
	}
	if wait := s.ReenableAt.Sub(h.clock.Now()); wait > time.Hour || wait < 59*time.Minute {
		t.Errorf("it rests for %s", wait)
	}
	var got Endpoint
	h.post("/v1/endpoints/"+e.ID+"/resume", ``).want(200).into(&got)
	// Degraded depends on the attempts of the last hour, which a reset does not change.
	if s := stats(); got.ReenableAt != nil || s.Health.Streak != 0 || !s.Health.Degraded || s.Status != "active" {
		t.Errorf("resumed: %+v, %+v", got, s)
	}
}

// Resuming an active endpoint closes its circuit, because an operator has checked the endpoint.
func TestResumeClosesTheCircuit(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 503)
	e := h.endpoint(receiver.URL, `"policy":{"circuit_after":1,"base_seconds":3600,"cap_seconds":3600}`)
	w := h.watch()
	h.post("/v1/events?type=a.b", `1`).want(202)
	w.until(godwit.DeliveryPending)
	var stats EndpointStats
	if h.get("/v1/endpoints/" + e.ID + "/stats").want(200).into(&stats); stats.Health.CircuitOpenAt == nil || stats.Status != "active" {
		t.Fatalf("the circuit is closed: %+v", stats)
	}
	h.post("/v1/endpoints/"+e.ID+"/resume", ``).want(200)
	stats = EndpointStats{}
	if h.get("/v1/endpoints/" + e.ID + "/stats").want(200).into(&stats); stats.Health.CircuitOpenAt != nil {
		t.Errorf("the circuit is still open: %+v", stats.Health)
	}
}
