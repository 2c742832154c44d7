package cybercube

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// fail makes n failing attempts, each for a separate event without retries.
func (r *rig) fail(path string, n int) {
	r.t.Helper()
	r.sink.Script(path, apptest.Status(400))
	for range n {
		r.publish("project.created")
		r.settle()
	}
}

func (r *rig) succeed(path string, n int) {
	r.t.Helper()
	r.sink.Script(path, ok)
	for range n {
		r.publish("project.created")
		r.settle()
	}
}

func TestActive(t *testing.T) {
	trace.Covers(t, "CCW-HLT-1", "CCW-HLT-7", "CCW-API-3")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	shown := r.show(ep)
	equal(t, "status", shown["status"].(string), "active")
	equal(t, "health", shown["health"].(string), "healthy")
	equal(t, "failure_count", shown["failure_count"].(float64), 0)
	for _, name := range []string{"last_delivery_at", "last_success_at", "last_failure_at"} {
		if shown[name] != nil {
			t.Errorf("%s before any delivery: %v", name, shown[name])
		}
	}
	r.succeed("/a", 1)
	r.pass(time.Minute)
	r.fail("/a", 2)
	shown = r.show(ep)
	equal(t, "failure_count", shown["failure_count"].(float64), 2)
	equal(t, "last_success_at", shown["last_success_at"].(string), "2026-07-01T12:00:00Z")
	equal(t, "last_failure_at", shown["last_failure_at"].(string), "2026-07-01T12:01:00Z")
	equal(t, "last_delivery_at", shown["last_delivery_at"].(string), "2026-07-01T12:01:00Z")
	r.pass(time.Minute)
	r.succeed("/a", 1)
	shown = r.show(ep)
	equal(t, "failure_count", shown["failure_count"].(float64), 0)
	equal(t, "last_delivery_at", shown["last_delivery_at"].(string), "2026-07-01T12:02:00Z")
	equal(t, "last_success_at", shown["last_success_at"].(string), "2026-07-01T12:02:00Z")
}

// TestDegraded: more than half of an hour's attempts fail; one alert is sent; deliveries continue.
func TestDegraded(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-HLT-2")
		r := newRig(t, o)
		ep := r.endpoint("/a", object{"events": []string{"project.*"}})
		r.endpoint("/alerts", object{"events": []string{"godwit.alert.endpoint_degraded"}})
		health := func(what, want string) {
			t.Helper()
			shown := r.show(ep)
			equal(t, what, shown["health"].(string), want)
			equal(t, what+": status", shown["status"].(string), "active")
		}
		r.succeed("/a", 1)
		r.fail("/a", 1)
		health("one of two", "healthy")
		equal(t, "alerts", len(r.sink.Requests("/alerts")), 0)
		r.fail("/a", 1)
		health("two of three", "degraded")
		r.fail("/a", 1)
		health("three of four", "degraded")
		r.settle()
		told := r.sink.WaitOn("/alerts", 1)
		equal(t, "alerts", len(told), 1)
		checkAlert(t, told[0], "godwit.alert.endpoint_degraded")
		equal(t, "endpoint", alert(t, told[0])["endpoint"].(string), ep.ID)
		equal(t, "notices", len(r.notices("endpoint-degraded")), 1)
		r.pass(59 * time.Minute)
		health("after 59 minutes", "degraded")
		r.pass(2 * time.Minute)
		health("after an hour", "healthy")
		r.fail("/a", 1)
		health("one of one", "degraded")
		r.settle()
		r.sink.WaitOn("/alerts", 2)
		equal(t, "notices", len(r.notices("endpoint-degraded")), 2)
		r.succeed("/a", 1)
		health("one of two", "healthy")
	})
}

// TestDisabled: the eleventh consecutive failure of any kind disables the endpoint; a success in between resets the count.
func TestDisabled(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-HLT-3", "CCW-HLT-8", "CCW-DLQ-2")
		r := newRig(t, o)
		ep := r.endpoint("/a", object{"events": []string{"project.*"}})
		r.endpoint("/alerts", object{"events": []string{"godwit.alert.endpoint_disabled"}})
		r.fail("/a", 10)
		equal(t, "after 10", r.show(ep)["status"].(string), "active")
		r.succeed("/a", 1)
		equal(t, "after a success", r.show(ep)["failure_count"].(float64), 0)
		r.fail("/a", 10)
		equal(t, "after 10 more", r.show(ep)["status"].(string), "active")
		r.fail("/a", 1)
		shown := r.show(ep)
		equal(t, "after 11", shown["status"].(string), "disabled")
		equal(t, "failure_count", shown["failure_count"].(float64), 11)
		if shown["disabled_at"] != "2026-07-01T12:00:00Z" || shown["disabled_reason"] == nil || shown["reenable_at"] != "2026-07-02T12:00:00Z" {
			t.Errorf("endpoint %v", shown)
		}
		n := len(r.sink.Requests("/a"))
		r.publish("project.created")
		r.settle()
		r.pass(time.Hour)
		equal(t, "requests while disabled", len(r.sink.Requests("/a")), n)
		told := r.sink.WaitOn("/alerts", 1)
		equal(t, "alerts", len(told), 1)
		checkAlert(t, told[0], "godwit.alert.endpoint_disabled")
		equal(t, "endpoint", alert(t, told[0])["endpoint"].(string), ep.ID)
		equal(t, "notices", len(r.notices("endpoint-disabled")), 1)
	})
}

// TestReenabled: automatically after a day, or manually at any time; held events are then delivered, with their count of
// attempts.
func TestReenabled(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-HLT-5", "CCW-HLT-6")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		r.fail("/a", 11)
		r.sink.Script("/a", ok)
		n := len(r.sink.Requests("/a"))
		r.publish("project.created")
		r.pass(24*time.Hour - time.Second)
		equal(t, "a second before", r.show(ep)["status"].(string), "disabled")
		equal(t, "requests", len(r.sink.Requests("/a")), n)
		r.Advance(time.Second)
		got := r.sink.WaitOn("/a", n+1)
		r.settle()
		equal(t, "attempt", got[n].Header.Get("X-Webhook-Delivery-Attempt"), "1")
		shown := r.show(ep)
		equal(t, "a day after", shown["status"].(string), "active")
		equal(t, "failure_count", shown["failure_count"].(float64), 0)

		r.fail("/a", 11)
		equal(t, "failed again", r.show(ep)["status"].(string), "disabled")
		r.sink.Script("/a", ok)
		n = len(r.sink.Requests("/a"))
		r.publish("project.created")
		shown = r.patch(ep, object{"status": "active"})
		equal(t, "by hand", shown["status"].(string), "active")
		equal(t, "failure_count", shown["failure_count"].(float64), 0)
		r.settle()
		equal(t, "requests", len(r.sink.WaitOn("/a", n+1)), n+1)
	})
}

// TestReenablingIsASetting: the delay can be changed or the re-enabling switched off.
func TestReenablingIsASetting(t *testing.T) {
	trace.Covers(t, "CCW-HLT-5")
	r := newRig(t, apptest.Options{})
	soon, never := r.endpoint("/soon"), r.endpoint("/never")
	r.policy(soon, object{"reenable_after_seconds": 3600})
	r.policy(never, object{"reenable_after_seconds": 0})
	r.sink.Script("/never", apptest.Status(400))
	r.fail("/soon", 11)
	r.sink.Script("/soon", ok)
	r.publish("project.created")
	r.Advance(time.Hour)
	r.sink.WaitOn("/soon", 12)
	r.settle()
	r.pass(30 * 24 * time.Hour)
	equal(t, "after an hour", r.show(soon)["status"].(string), "active")
	equal(t, "after 30 days", r.show(never)["status"].(string), "disabled")
}

// TestGoneStaysDisabled: after a 410, only an operator can re-enable the endpoint.
func TestGoneStaysDisabled(t *testing.T) {
	trace.Covers(t, "CCW-HLT-5")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(410), ok)
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	r.publish("project.updated")
	r.pass(25 * time.Hour)
	r.pass(5 * 24 * time.Hour)
	equal(t, "status", r.show(ep)["status"].(string), "disabled")
	equal(t, "requests", len(r.sink.Requests("/a")), 1)
	r.patch(ep, object{"status": "active"})
	r.settle()
	got := r.sink.WaitOn("/a", 2)
	equal(t, "type", got[1].Header.Get("X-Webhook-Event-Type"), "project.updated")
}

// TestPaused: events that arrive while an endpoint is paused are held and then delivered in order.
func TestPaused(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-HLT-4", "CCW-HLT-6")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		r.policy(ep, object{"concurrency": 1})
		equal(t, "status", r.patch(ep, object{"status": "paused"})["status"].(string), "paused")
		var posted []string
		for range 3 {
			posted = append(posted, r.publish("project.created"))
			r.pass(time.Minute)
		}
		r = r.again(apptest.Options{})
		r.pass(29 * day / 2)
		equal(t, "requests while paused", len(r.sink.Requests("/a")), 0)
		equal(t, "waiting", len(r.logs(ep, "?status=pending")), 3)
		r.patch(ep, object{"status": "active"})
		r.settle()
		got := r.sink.WaitOn("/a", 3)
		for i, q := range got {
			equal(t, "event", body(t, q)["id"].(string), posted[i])
			equal(t, "attempt", q.Header.Get("X-Webhook-Delivery-Attempt"), "1")
		}
	})
}

// TestHeldTooLong: after 30 days a held event becomes a dead letter.
func TestHeldTooLong(t *testing.T) {
	trace.Covers(t, "CCW-HLT-6")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	r.patch(ep, object{"status": "paused"})
	id := r.publish("project.created")
	r.Advance(30*day + time.Minute)
	r.sweep()
	failures := r.failures(ep)
	if len(failures) != 1 || failures[0]["failure_reason"] == "" || failures[0]["event"].(map[string]any)["id"] != id {
		t.Fatalf("failures %v", failures)
	}
	r.patch(ep, object{"status": "active"})
	r.replay(id, ep)
	r.settle()
	equal(t, "id", body(t, r.sink.WaitOn("/a", 1)[0])["id"].(string), id)
}
