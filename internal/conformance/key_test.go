package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestEveryRequestHasAKey: first attempt, retry, followed redirect, move, PUT, redelivery, endpoint test.
func TestEveryRequestHasAKey(t *testing.T) {
	trace.Covers(t, "EDS-KEY-1", "EDS-KEY-2")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/retry", apptest.Status(503), ok)
	r.sink.Script("/temporary", apptest.Redirect(307, "/followed"))
	r.sink.Script("/permanent", apptest.Redirect(308, "/moved"))
	put := agreed("404", "transient")
	put["method"] = "PUT"
	endpoints := []apptest.Endpoint{
		r.Endpoint(r.sink.URL("/retry")), r.Endpoint(r.sink.URL("/temporary")), r.Endpoint(r.sink.URL("/permanent")),
		r.Endpoint(r.sink.URL("/put"), put),
	}
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.passUntil("all accepted", func() bool { return len(r.Pending()) == 0 })
	first := r.Delivery(got.ID, endpoints[0])
	r.Must(apptest.Call{Method: http.MethodPost, Path: "/v1/deliveries/" + first.ID.String() + "/retry"}, nil) // redelivery
	r.WaitAttempts(got.ID, endpoints[0], 3)
	r.settle()
	for path, want := range map[string]int{"/retry": 3, "/temporary": 1, "/followed": 1, "/permanent": 1, "/moved": 1, "/put": 1} {
		requests := r.sink.Requests(path)
		if len(requests) != want {
			t.Errorf("%d requests to %s, want %d", len(requests), path, want)
		}
		sameEvent(t, got, eventBody, requests)
	}
	var test receipt
	r.EndpointCall(endpoints[0], http.MethodPost, "/test", nil).JSON(t, &test)
	r.WaitDelivery(test.ID, endpoints[0], godwit.DeliveryAccepted)
	for _, req := range r.sink.Requests("") {
		keys := req.Header["Idempotency-Key"]
		if len(keys) != 1 || !wireKey.MatchString(keys[0]) || strings.Count(strings.ToLower(req.Head), "\r\nidempotency-key: \"") != 1 {
			t.Errorf("%s %s has the keys %q", req.Method, req.Path, keys)
		}
	}
}

// TestKeyOutlivesRestarts: ten attempts with a restart between them have the same key, and so has an operator's redelivery.
func TestKeyOutlivesRestarts(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-KEY-3", "EDS-IDM-2")
		r := newRig(t, o)
		r.sink.ReplyFunc("/flaky", func(req *apptest.Request) apptest.Reply {
			if req.N < 10 {
				return apptest.Status(503)
			}
			return ok
		})
		ep := r.Endpoint(r.sink.URL("/flaky"), apptest.Fields{"patterns": []string{"x"}})
		const odd = `order "7" \ paid, first time`
		for _, key := range []string{"", odd} {
			call := apptest.Call{Path: eventPath + "x", Body: eventBody}
			if key != "" {
				call.Header = map[string]string{"Idempotency-Key": `"order \"7\" \\ paid, first time"`}
			}
			before := len(r.sink.Requests("/flaky"))
			r.sink.ReplyFunc("/flaky", func(req *apptest.Request) apptest.Reply {
				if req.N < before+10 {
					return apptest.Status(503)
				}
				return ok
			})
			got := r.post(call)
			if key != "" && got.Key != key {
				t.Errorf("the receipt names the key %q", got.Key)
			}
			r.passUntil("5 attempts", func() bool { return r.Delivery(got.ID, ep).Attempts >= 5 })
			r = r.again()
			r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
			d := r.delivery(got.ID, ep)
			r.Must(apptest.Call{Method: http.MethodPost, Path: "/v1/deliveries/" + d.ID + "/retry"}, nil)
			r.WaitAttempts(got.ID, ep, d.Count+1)
			distinct := map[string]int{}
			for _, req := range r.sink.Requests("/flaky")[before:] {
				distinct[req.Key()]++
			}
			if len(distinct) != 1 || distinct[quoted(got.Key)] != 11 {
				t.Errorf("keys of the attempts: %v", distinct)
			}
			if actor := r.delivery(got.ID, ep).Attempts[10]; actor.Trigger != "manual" || actor.Trace.Actor == "" {
				t.Errorf("the redelivery is recorded as %+v", actor)
			}
		}
	})
}

// quoted is a key as a structured-field String.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// TestKeySurvivesKill: the process is killed between two attempts.
func TestKeySurvivesKill(t *testing.T) {
	trace.Covers(t, "EDS-IDM-2", "EDS-ATT-3")
	sink := newSink(t)
	sink.Script("/hook", apptest.Status(503))
	p := apptest.StartProcess(t, apptest.ProcessOptions{})
	call := func(path, body string) []byte {
		t.Helper()
		resp, err := p.NewClient().Post(p.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var answer bytes.Buffer
		if _, err := answer.ReadFrom(resp.Body); err != nil || resp.StatusCode > 299 {
			t.Fatalf("%s: %d %s %v", path, resp.StatusCode, &answer, err)
		}
		return answer.Bytes()
	}
	call("/v1/endpoints", `{"url":"`+sink.URL("/hook")+`","policy":{"base_seconds":0.2,"cap_seconds":0.2}}`)
	var got receipt
	if err := json.Unmarshal(call(eventPath+"x", eventBody), &got); err != nil {
		t.Fatal(err)
	}
	before := len(sink.WaitOn("/hook", 1))
	p.Kill()
	sink.Script("/hook", ok)
	p.Restart()
	requests := sink.WaitOn("/hook", before+1)
	sameEvent(t, got, eventBody, requests)
	heads := map[string]bool{}
	for _, req := range requests {
		for line := range strings.Lines(req.Head) {
			if strings.HasPrefix(line, "Idempotency-Key:") {
				heads[line] = true
			}
		}
	}
	if len(heads) != 1 {
		t.Errorf("header lines differ: %v", heads)
	}
}

// TestKeyIsThereBeforeTheFirstAttempt: the key is generated at acceptance and returned to the producer.
func TestKeyIsThereBeforeTheFirstAttempt(t *testing.T) {
	trace.Covers(t, "EDS-IDM-1", "EDS-KEY-4")
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/hook"), apptest.Fields{"patterns": []string{"x"}})
	r.EndpointCall(ep, http.MethodPost, "/pause", nil)
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	if id, err := uuid.Parse(got.Key); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
		t.Errorf("the key %q is no random UUID: %v", got.Key, err)
	}
	var event struct {
		Key string `json:"idempotency_key"`
	}
	r.Must(apptest.Call{Path: "/v1/events/" + got.ID.String()}, &event)
	if d := r.delivery(got.ID, ep); event.Key != got.Key || d.Count != 0 {
		t.Errorf("before the first attempt (%d made) the event has the key %q, the receipt %q", d.Count, event.Key, got.Key)
	}
	r.resume(ep)
	r.WaitDelivery(got.ID, ep, godwit.DeliveryAccepted)
	sameEvent(t, got, eventBody, r.sink.Requests("/hook"))
	for _, short := range []string{"", "1", "short"} {
		answer := r.Call(apptest.Call{Path: eventPath + "x", Body: eventBody, Header: map[string]string{"Idempotency-Key": `"` + short + `"`}})
		if answer.Status != http.StatusBadRequest {
			t.Errorf("the key %q got %d", short, answer.Status)
		}
	}
}

// TestMillionKeys: all keys differ, all are version 4, and every random bit is set about half of the time.
func TestMillionKeys(t *testing.T) {
	trace.Covers(t, "EDS-IDM-4", "EDS-KEY-4")
	const n, sample = 1_000_000, 100_000
	seen := make(map[[16]byte]struct{}, n)
	var set [128]int
	for i := range n {
		id, err := uuid.Parse(engine.NewKey())
		if err != nil || id.Version() != 4 {
			t.Fatalf("key %v: %v", id, err)
		}
		seen[id] = struct{}{}
		if i >= sample {
			continue
		}
		for bit := range set {
			set[bit] += int(id[bit/8] >> (7 - bit%8) & 1)
		}
	}
	if len(seen) != n {
		t.Errorf("%d distinct keys of %d", len(seen), n)
	}
	for bit, count := range set {
		fixed := bit >= 48 && bit < 52 || bit == 64 || bit == 65
		if !fixed && (count < sample/2-1600 || count > sample/2+1600) { // ten standard deviations
			t.Errorf("bit %d is set in %d of %d keys", bit, count, sample)
		}
	}
}

// TestKeysAreScopedAndExact: the same value in another scope is another event, and a slightly different value is another
// key.
func TestKeysAreScopedAndExact(t *testing.T) {
	r := newRig(t, apptest.Options{})
	publish := func(t *testing.T, apiKey, key, body string) *apptest.Response {
		t.Helper()
		return r.Call(apptest.Call{Key: apiKey, Path: eventPath + "x", Body: body, Header: map[string]string{"Idempotency-Key": quoted(key)}})
	}
	t.Run("other tenants", func(t *testing.T) {
		trace.Covers(t, "EDS-IDM-3")
		const key = "0191e6c2-8a51-4f5e-9a3b-2f6f1c7d9e01"
		for i := range 2 {
			_, apiKey := r.NewTenant(fmt.Sprintf("tenant-%d", i), godwit.AllScopes...)
			path := fmt.Sprintf("/tenant-%d", i)
			r.Must(apptest.Call{Key: apiKey, Path: "/v1/endpoints", Body: apptest.Fields{"url": r.sink.URL(path)}}, nil)
			if answer := publish(t, apiKey, key, fmt.Sprintf(`{"tenant":%d}`, i)); answer.Status != http.StatusAccepted {
				t.Fatalf("tenant %d: %d %s", i, answer.Status, answer.Body)
			}
			if req := r.sink.WaitOn(path, 1)[0]; req.Key() != quoted(key) || string(req.Body) != fmt.Sprintf(`{"tenant":%d}`, i) {
				t.Errorf("tenant %d: %s %s", i, req.Key(), req.Body)
			}
		}
	})
	t.Run("near-identical", func(t *testing.T) {
		trace.Covers(t, "EDS-KEY-10")
		ep := r.Endpoint(r.sink.URL("/near"), apptest.Fields{"patterns": []string{"x"}})
		keys := []string{"0191e6c2-8a51-4f5e-9a3b-2f6f1c7d9e01", "0191e6c2-8a51-4f5e-9a3b-2f6f1c7d9e02", "0191E6C2-8A51-4F5E-9A3B-2F6F1C7D9E01",
			"0191e6c2-8a51-4f5e-9a3b-2f6f1c7d9e01 ", strings.Repeat("k", 254) + "a", strings.Repeat("k", 254) + "b"}
		arrived := map[string]int{}
		for _, key := range keys {
			var got receipt
			answer := publish(t, "", key, eventBody)
			answer.JSON(t, &got)
			if answer.Status != http.StatusAccepted || got.Key != key {
				t.Fatalf("%q: %d %s", key, answer.Status, answer.Body)
			}
			r.WaitDelivery(got.ID, ep, godwit.DeliveryAccepted)
		}
		for _, req := range r.sink.Requests("/near") {
			arrived[req.Key()]++
		}
		for _, key := range keys {
			if arrived[quoted(key)] != 1 {
				t.Errorf("%s arrived %d times; all: %v", quoted(key), arrived[quoted(key)], arrived)
			}
		}
	})
}

// TestKeyReuse: within the window, by default a day, a key identifies one event.
func TestKeyReuse(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		ep := r.Endpoint(r.sink.URL("/hook"), apptest.Fields{"patterns": []string{"x"}})
		const key = "order-7-paid-2026-07-01"
		publish := func(body string) int {
			return r.Call(apptest.Call{Path: eventPath + "x", Body: body, Header: map[string]string{"Idempotency-Key": `"` + key + `"`}}).Status
		}
		first := r.PublishKey("x", key, eventBody)
		r.WaitDelivery(first, ep, godwit.DeliveryAccepted)
		t.Run("another event", func(t *testing.T) {
			trace.Covers(t, "EDS-DUP-6")
			if got := publish(`{"n":2}`); got != http.StatusUnprocessableEntity {
				t.Errorf("another event under the same key: %d", got)
			}
			if got := publish(eventBody); got != http.StatusAccepted {
				t.Errorf("the same event again: %d", got)
			}
		})
		t.Run("unknown window", func(t *testing.T) {
			trace.Covers(t, "EDS-DUP-7")
			r.pass(23 * time.Hour)
			if got := publish(`{"n":2}`); got != http.StatusUnprocessableEntity {
				t.Errorf("another event under the same key after 23 hours: %d", got)
			}
			r.pass(59*time.Minute + 59*time.Second)
			if got := publish(`{"n":2}`); got != http.StatusUnprocessableEntity {
				t.Errorf("just before the day is over: %d", got)
			}
		})
		t.Run("fresh for each event", func(t *testing.T) {
			trace.Covers(t, "EDS-DUP-8")
			one, two := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody}), r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
			r.WaitDelivery(one.ID, ep, godwit.DeliveryAccepted)
			r.WaitDelivery(two.ID, ep, godwit.DeliveryAccepted)
			requests := r.sink.Requests("/hook")
			if len(requests) != 3 || one.Key == two.Key || requests[1].Key() == requests[2].Key() {
				t.Errorf("%d requests, keys %q and %q", len(requests), one.Key, two.Key)
			}
		})
	})
}
