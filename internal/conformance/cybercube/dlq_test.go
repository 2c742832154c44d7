package cybercube

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

const day = 24 * time.Hour

// TestExhausted: after the last attempt the event is among the endpoint's failures, with all details.
func TestExhausted(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-DLQ-1", "CCW-DLQ-2", "CCW-DLQ-6", "CCW-DLQ-8", "CCW-DLQ-9", "CCW-API-24")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500))
		ep := r.endpoint("/a")
		id := r.publish("project.created")
		r.exhaust()
		log := r.logs(ep, "")
		equal(t, "last attempt", log[0]["status"].(string), "exhausted")
		shown := r.show(ep)
		equal(t, "failure_count", shown["failure_count"].(float64), 7)
		equal(t, "last_failure_at", shown["last_failure_at"].(string), "2026-07-02T22:36:00Z")
		failures := r.failures(ep)
		equal(t, "failures", len(failures), 1)
		attempts := []object{}
		for i, q := range r.sink.Requests("/a") {
			attempts = append(attempts, object{
				"attempt": i + 1, "delivery_id": q.Header.Get("X-Webhook-ID"), "at": log[6-i]["created_at"], "response_status": 500,
				"response_time_ms": 0, "error": "HTTP 500",
			})
		}
		sameJSON(t, "failure", failures[0], object{
			"event": body(t, r.sink.Requests("/a")[0]), "failure_reason": "HTTP 500 after 7 attempts", "attempts": attempts,
			"created_at": "2026-07-02T22:36:00Z", "expires_at": "2026-08-01T22:36:00Z",
			"replay": object{"method": "POST", "href": base + "/events/" + id + "/replay", "body": object{"endpoint_id": ep.ID}},
		})
	})
}

// TestReasons: each kind of failure has a text.
func TestReasons(t *testing.T) {
	trace.Covers(t, "CCW-DLQ-8", "CCW-RSP-15")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/404", apptest.Status(404))
	r.sink.Script("/429", apptest.Status(429))
	gone := r.endpoint("/404")
	busy := r.endpoint("/429")
	refused := r.register(apptest.DeadURL(t, "/"))
	r.publish("project.created")
	r.settle()
	entry := r.failures(gone)[0]
	equal(t, "404", entry["failure_reason"].(string), "HTTP 404 (not retryable)")
	equal(t, "attempts at the 404", len(entry["attempts"].([]any)), 1)
	r.exhaust()
	equal(t, "429", r.failures(busy)[0]["failure_reason"].(string), "HTTP 429 after 7 attempts")
	equal(t, "refused", r.failures(refused)[0]["failure_reason"].(string), "connection-refused after 7 attempts")
}

// TestReplayOfAFailure: the replay URL of the entry works; the entry shows the replay time, and the series of attempts
// starts again.
func TestReplayOfAFailure(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-DLQ-5", "CCW-API-24", "CCW-API-20")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(404), ok)
		ep := r.endpoint("/a")
		id := r.publish("project.created")
		r.settle()
		r.pass(time.Hour)
		option := r.failures(ep)[0]["replay"].(map[string]any)
		answer := r.data(202, apptest.Call{Method: option["method"].(string), Path: option["href"].(string), Body: option["body"]})
		sameJSON(t, "answer", answer, object{"event_id": id, "endpoint_id": ep.ID, "queued": 1})
		r.settle()
		got := r.sink.Requests("/a")
		equal(t, "requests", len(got), 2)
		equal(t, "body", string(got[1].Body), string(got[0].Body))
		equal(t, "attempt", got[1].Header.Get("X-Webhook-Delivery-Attempt"), "1")
		if got[1].Header.Get("X-Webhook-ID") == got[0].Header.Get("X-Webhook-ID") || got[1].Header.Get("X-Webhook-Retry-Count") != "" {
			t.Errorf("header of the replay: %v", got[1].Header)
		}
		after := r.failures(ep)
		if len(after) != 1 || after[0]["replayed_at"] != "2026-07-01T13:00:00Z" {
			t.Errorf("failures %v", after)
		}
		equal(t, "outcome", r.logs(ep, "")[0]["status"].(string), "success")
	})
}

// TestReplayThatFailsAgain goes through the whole schedule once more, and leaves a second entry.
func TestReplayThatFailsAgain(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-DLQ-11")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500))
		ep := r.endpoint("/a")
		r.policy(ep, object{"disable_after_failures": 0})
		id := r.publish("project.created")
		r.exhaust()
		r.pass(time.Hour)
		r.replay(id, ep)
		r.exhaust()
		r.pass(100 * time.Hour)
		got := r.sink.Requests("/a")
		equal(t, "requests", len(got), 14)
		equal(t, "attempt", got[13].Header.Get("X-Webhook-Delivery-Attempt"), "7")
		equal(t, "first attempt", got[13].Header.Get("X-Webhook-First-Attempt-At"), "2026-07-02T23:36:00Z")
		failures := r.failures(ep)
		equal(t, "failures", len(failures), 2)
		for i, f := range failures { // the newest first
			attempts := f["attempts"].([]any)
			equal(t, "attempts", len(attempts), 7)
			first := attempts[0].(map[string]any)
			equal(t, "number", first["attempt"].(float64), 1)
			equal(t, "id", first["delivery_id"].(string), got[7*(1-i)].Header.Get("X-Webhook-ID"))
			equal(t, "reason", f["failure_reason"].(string), "HTTP 500 after 7 attempts")
		}
		if failures[0]["replayed_at"] != nil || failures[1]["replayed_at"] != "2026-07-02T23:36:00Z" {
			t.Errorf("failures %v", failures)
		}
	})
}

// TestRetention: a dead letter is kept for exactly 30 days after the failure. Events expire earlier.
func TestRetention(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-DLQ-4", "CCW-DLQ-10", "CCW-IDM-10", "CCW-DLQ-6")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500))
		ep := r.endpoint("/a")
		minted := r.publish("project.created")
		own := r.post(object{"id": "evt_00000000000000000000000own", "type": "project.created", "data": object{"object": project()}})
		r.policy(ep, object{"disable_after_failures": 0})
		r.exhaust()
		r.Advance(29 * day)
		r.sweep()
		failures := r.failures(ep)
		equal(t, "failures after 29 days", len(failures), 2)
		for _, f := range failures {
			equal(t, "attempts after 29 days", len(f["attempts"].([]any)), 7)
		}
		r.sink.Script("/a", ok)
		r.replay(minted, ep)
		r.settle()
		got := r.sink.Requests("/a")
		equal(t, "id", body(t, got[14])["id"].(string), minted)
		equal(t, "body", string(got[14].Body), string(find(t, got, minted).Body))
		r.replay(own, ep)
		r.settle()
		got = r.sink.Requests("/a")
		equal(t, "own id", body(t, got[15])["id"].(string), own)

		r.Advance(day + 2*time.Minute)
		r.sweep()
		equal(t, "failures after 30 days", len(r.failures(ep)), 0)
		r.Advance(31 * day) // replayed dead letters are kept as long as others
		r.sweep()
		for _, id := range []string{minted, own} {
			r.want(404, apptest.Call{Path: base + "/events/" + id + "/replay", Body: object{"endpoint_id": ep.ID}})
		}
	})
}

func find(t testing.TB, requests []apptest.Request, id string) apptest.Request {
	t.Helper()
	for _, q := range requests {
		if body(t, q)["id"] == id {
			return q
		}
	}
	t.Fatalf("no request with %s", id)
	return apptest.Request{}
}

// sweep waits until the server has swept at the current time: the log shows what it removed.
func (r *rig) sweep() {
	r.t.Helper()
	before := strings.Count(r.Log.String(), "msg=swept")
	r.until("swept", func() bool {
		r.Advance(time.Minute)
		return len(r.Pending()) >= 0 && strings.Count(r.Log.String(), "msg=swept") > before
	})
}

func (r *rig) anyEndpoint() string {
	r.t.Helper()
	return r.list("/endpoints")[0]["id"].(string)
}

// TestExport: every dead letter, one a line.
func TestExport(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-DLQ-7")
		const events = 130
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(404))
		ep := r.endpoint("/a")
		r.policy(ep, object{"disable_after_failures": 0, "per_second": 0, "per_minute": 0})
		var posted []string
		for range events {
			posted = append(posted, r.publish("project.created"))
			r.Advance(time.Millisecond)
		}
		r.settle()
		got := r.want(200, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/failures?format=ndjson"})
		equal(t, "type", got.Header.Get("Content-Type"), "application/x-ndjson")
		var exported []string
		for line := range bytes.Lines(got.Body) {
			var f struct {
				Event    object
				Reason   string `json:"failure_reason"`
				Attempts []object
				Expires  string `json:"expires_at"`
			}
			if err := json.Unmarshal(line, &f); err != nil || f.Reason == "" || len(f.Attempts) != 1 || f.Expires == "" || f.Event["data"] == nil {
				t.Fatalf("line %s: %v", line, err)
			}
			exported = append(exported, f.Event["id"].(string))
		}
		slices.Reverse(exported)
		if !slices.Equal(exported, posted) {
			t.Errorf("posted %d, exported %d", len(posted), len(exported))
		}
		// The list has the same in pages.
		var paged []string
		for path := base + "/endpoints/" + ep.ID + "/failures?limit=50"; path != ""; {
			var page struct {
				Data  []struct{ Event object }
				Meta  struct{ Pagination object }
				Links struct{ Next string }
			}
			r.want(200, apptest.Call{Path: path}).JSON(t, &page)
			for _, f := range page.Data {
				paged = append(paged, f.Event["id"].(string))
			}
			equal(t, "has_next", page.Meta.Pagination["has_next"].(bool), page.Links.Next != "")
			path = page.Links.Next
		}
		slices.Reverse(paged)
		if !slices.Equal(paged, posted) {
			t.Errorf("posted %d, paged %d", len(posted), len(paged))
		}
	})
}

// TestDeathsAreTold: each failure is announced once, to the endpoints that subscribe to alerts by name, with its details.
func TestDeathsAreTold(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-DLQ-3")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(404))
		ep := r.endpoint("/a", object{"events": []string{"project.*"}})
		r.endpoint("/all")
		r.endpoint("/alerts", object{"events": []string{"godwit.alert.delivery_dead"}})
		ids := []string{r.publish("project.created"), r.publish("project.updated")}
		got := r.sink.WaitOn("/alerts", 2)
		r.settle()
		equal(t, "alerts", len(r.sink.Requests("/alerts")), 2)
		equal(t, "requests to who asks for all events", len(r.sink.Requests("/all")), 2)
		notices := r.notices("delivery-dead")
		if len(notices) != 2 || notices[0]["detail"] != "HTTP 404 (not retryable)" {
			t.Errorf("notices %v", notices)
		}
		var events []string
		for _, q := range got {
			checkAlert(t, q, "godwit.alert.delivery_dead")
			a := alert(t, q)
			equal(t, "endpoint", a["endpoint"].(string), ep.ID)
			equal(t, "reason", a["reason"].(string), "HTTP 404 (not retryable)")
			answer := r.replay(a["event_id"].(string), ep) // in whatever form it is told
			events = append(events, answer["event_id"].(string))
		}
		slices.Sort(events)
		slices.Sort(ids)
		if !slices.Equal(events, ids) {
			t.Errorf("told of %v, dead are %v", events, ids)
		}
	})
}

func checkAlert(t testing.TB, q apptest.Request, eventType string) {
	t.Helper()
	equal(t, "type", q.Header.Get("X-Webhook-Event-Type"), eventType)
	equal(t, "type in the body", body(t, q)["type"].(string), eventType)
}

// alert is the resource of an alert.
func alert(t testing.TB, q apptest.Request) object {
	t.Helper()
	return body(t, q)["data"].(map[string]any)["object"].(map[string]any)
}

func (r *rig) notices(kind string) []object {
	r.t.Helper()
	var all struct{ Items []object }
	got := r.want(200, apptest.Call{Path: "/v1/notices"})
	if err := json.Unmarshal(got.Body, &all); err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(all.Items, func(n object) bool { return n["kind"] != kind })
}
