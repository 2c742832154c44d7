package cybercube

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestSchedule runs the whole schedule, second by second around each attempt.
func TestSchedule(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-RTY-1", "CCW-RTY-2", "CCW-RTY-5", "CCW-RTY-11")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500))
		ep := r.endpoint("/a")
		id := r.publish("project.created")
		r.settle()
		at := start
		for n, d := range schedule {
			log := r.logs(ep, "")
			equal(t, "next_retry_at", log[0]["next_retry_at"].(string), at.Add(d).UTC().Format("2006-01-02T15:04:05Z"))
			r.pass(d - time.Microsecond)
			if got := len(r.sink.Requests("/a")); got != n+1 {
				t.Fatalf("%d requests before attempt %d is due", got, n+2)
			}
			r.pass(time.Microsecond)
			if got := len(r.sink.Requests("/a")); got != n+2 {
				t.Fatalf("%d requests when attempt %d is due", got, n+2)
			}
			at = at.Add(d)
		}
		equal(t, "window", at.Sub(start), 124_560*time.Second)
		for range 100 {
			r.pass(time.Hour)
		}
		equal(t, "requests", len(r.sink.Requests("/a")), 7)
		log := r.logs(ep, "")
		for i, want := range []string{"2026-07-01T12:00:00Z", "2026-07-01T12:01:00Z", "2026-07-01T12:06:00Z", "2026-07-01T12:36:00Z",
			"2026-07-01T14:36:00Z", "2026-07-01T22:36:00Z", "2026-07-02T22:36:00Z"} {
			e := log[6-i]
			status, next := "failed", any(nil)
			if i == 6 {
				status = "exhausted"
			} else {
				next = log[5-i]["created_at"]
			}
			sameJSON(t, "entry", e, without(object{
				"id": r.sink.Requests("/a")[i].Header.Get("X-Webhook-ID"), "event_id": id, "event_type": "project.created", "endpoint_id": ep.ID,
				"attempt": i + 1, "status": status, "http_status": 500, "response_time_ms": 0, "error_message": "Internal Server Error",
				"created_at": want, "next_retry_at": next,
			}))
		}
		for i, a := range r.failures(ep)[0]["attempts"].([]any) {
			equal(t, "stored error", a.(map[string]any)["error"].(string), "HTTP 500")
			equal(t, "stored attempt", a.(map[string]any)["attempt"].(float64), float64(i+1))
		}
	})
}

// without drops members that are nil.
func without(o object) object {
	for name, v := range o {
		if v == nil {
			delete(o, name)
		}
	}
	return o
}

// TestSuccessIsRecorded checks the record of a successful attempt.
func TestSuccessIsRecorded(t *testing.T) {
	trace.Covers(t, "CCW-RTY-11", "CCW-RTY-8")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500), apptest.Status(201))
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	r.pass(time.Minute)
	r.pass(48 * time.Hour)
	log := r.logs(ep, "?status=success")
	if len(log) != 1 || log[0]["status"] != "success" || log[0]["http_status"] != 201.0 || log[0]["response_time_ms"] == nil || log[0]["error_message"] != nil {
		t.Errorf("log %v", log)
	}
	equal(t, "requests", len(r.sink.Requests("/a")), 2)
	equal(t, "dead letters", len(r.failures(ep)), 0)
}

// TestRetriesSurviveRestarts: the schedule continues on time after a restart.
func TestRetriesSurviveRestarts(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-RTY-6", "CCW-RTY-9", "CCW-EVT-29")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500))
		ep := r.endpoint("/a")
		r.endpoint("/b")
		r.publish("project.created")
		r.settle()
		for i, d := range schedule {
			r = r.again(apptest.Options{})
			r.pass(d - time.Second)
			equal(t, "requests before it is due", len(r.sink.Requests("/a")), i+1)
			r.pass(time.Second)
			got := r.sink.Requests("/a")
			equal(t, "requests", len(got), i+2)
			last := got[len(got)-1]
			equal(t, "attempt", last.Header.Get("X-Webhook-Delivery-Attempt"), string(rune('2'+i)))
			equal(t, "first attempt", last.Header.Get("X-Webhook-First-Attempt-At"), "2026-07-01T12:00:00Z")
			verify(t, last, ep)
		}
		equal(t, "requests to the other endpoint", len(r.sink.Requests("/b")), 1)
		equal(t, "dead letters", len(r.failures(ep)), 1)
	})
}

// TestRestsCostNoAttempt: neither a pause in the middle of a schedule nor a rate limit uses up an attempt.
func TestRestsCostNoAttempt(t *testing.T) {
	trace.Covers(t, "CCW-RTY-10", "CCW-HLT-6")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500), apptest.Status(500), ok)
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	r.patch(ep, object{"status": "paused"})
	r.pass(72 * time.Hour)
	equal(t, "requests while paused", len(r.sink.Requests("/a")), 1)
	r.patch(ep, object{"status": "active"})
	r.settle()
	r.pass(5 * time.Minute)
	var numbers []string
	for _, q := range r.sink.Requests("/a") {
		numbers = append(numbers, q.Header.Get("X-Webhook-Delivery-Attempt"))
	}
	equal(t, "attempts", strings.Join(numbers, " "), "1 2 3")
	equal(t, "outcome", r.logs(ep, "")[0]["status"].(string), "success")
}
