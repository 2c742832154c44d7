package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestRetriesFollowOutcomeAndGuidance(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		play(t, newRig(t, o), append(retryAfterScenarios(), outcomeScenarios()...))
	})
}

func retryAfterScenarios() []scenario {
	later := start.Add(7 * time.Second).Truncate(time.Second)
	list := []scenario{
		{name: "guidance is kept", rows: []string{"EDS-RTY-4"}, script: afterwardOK(apptest.RetryAfter(429, "5")),
			want: thenAccepted, status: "accepted", check: waited(5 * time.Second)},
		{name: "no policy retries earlier", rows: []string{"EDS-RTY-3"}, script: afterwardOK(apptest.RetryAfter(503, "5")),
			fields: hasty, want: thenAccepted, status: "accepted", check: waited(5 * time.Second)},
		{name: "a date", rows: []string{"EDS-RTY-4"}, script: afterwardOK(apptest.RetryAfter(503, later.Format(http.TimeFormat))),
			want: thenAccepted, status: "accepted", check: func(t *testing.T, h *history) {
				if h.Attempts[0].NextAt.Before(later) || h.Attempts[1].StartedAt.Before(later) {
					t.Errorf("due at %v, begun at %v", h.Attempts[0].NextAt, h.Attempts[1].StartedAt)
				}
			}},
	}
	for _, code := range []int{408, 421, 425, 429, 500, 502, 503, 504, 511, 599} {
		list = append(list, scenario{name: fmt.Sprintf("Retry-After on %d", code), rows: []string{"EDS-RAF-2"},
			script: afterwardOK(apptest.RetryAfter(code, "5")), want: thenAccepted, status: "accepted", check: waited(5 * time.Second)})
	}
	return list
}

// hasty are the members of an endpoint that is retried as fast as can be configured.
var hasty = apptest.Fields{"policy": apptest.Fields{
	"base_seconds": 0.001, "cap_seconds": 0.001, "max_retries": 200, "rate_per_second": 100000, "burst": 100000,
	"concurrency": 1024, "hold_scope": "event", "circuit_after": 0, "disable_after": 0, "timeout_seconds": 0.1,
}}

func outcomeScenarios() []scenario {
	return []scenario{
		{name: "acknowledged", rows: []string{"EDS-OUT-2"}, script: theSame(apptest.Status(204)), want: accepted, status: "accepted",
			check: func(t *testing.T, h *history) {
				if h.DueAt != nil {
					t.Errorf("it is still due at %v", h.DueAt)
				}
			}},
		{name: "may clear", rows: []string{"EDS-OUT-4", "EDS-DEF-6"}, script: afterwardOK(apptest.Status(503)), want: thenAccepted, status: "accepted",
			check: func(t *testing.T, h *history) {
				if h.Attempts[1].Trigger != "retry" || h.Attempts[0].ID == h.Attempts[1].ID {
					t.Errorf("the retry is no attempt of its own: %+v", h.Attempts)
				}
			}},
		{name: "retried within the policy", rows: []string{"EDS-OUT-5"}, script: afterwardOK(apptest.Status(503)), want: thenAccepted,
			status: "accepted", check: inBackoff},
		{name: "not retried by policy", rows: []string{"EDS-OUT-5"}, script: afterwardOK(apptest.Status(503)), want: []string{"transient"},
			status: "exhausted", fields: apptest.Fields{"policy": apptest.Fields{"max_retries": 0}}, check: func(t *testing.T, h *history) {
				if h.Reason != "attempts-exhausted" {
					t.Errorf("reason %q", h.Reason)
				}
			}},
		{name: "each by its own response", rows: []string{"EDS-ATT-2"}, script: []apptest.Reply{apptest.Status(503), apptest.Status(500), apptest.Status(429), ok},
			want: []string{"transient", "transient", "transient", "accepted"}, status: "accepted", check: func(t *testing.T, h *history) {
				var codes []int
				for _, a := range h.Attempts {
					codes = append(codes, a.Status)
				}
				if !slices.Equal(codes, []int{503, 500, 429, 200}) {
					t.Errorf("statuses %v", codes)
				}
			}},
		{name: "an error in words", rows: []string{"EDS-OUT-9"}, script: theSame(apptest.Status(200).Body("application/json", `{"status":"error"}`)),
			want: accepted, status: "accepted"},
		{name: "a success in words", rows: []string{"EDS-OUT-9"}, script: afterwardOK(apptest.Status(500).Body("application/json", `{"ok":true}`)),
			want: thenAccepted, status: "accepted"},
		{name: "a rejection", rows: []string{"EDS-CLS-1"}, script: afterwardOK(apptest.Status(503)), want: thenAccepted, status: "accepted",
			check: func(t *testing.T, h *history) {
				if got := h.Attempts[0].FailureClass; got != "application" {
					t.Errorf("failure_class %q", got)
				}
			}},
	}
}

// TestNoSettingRetriesEarlier looks for a switch against Retry-After; the endpoint's own are tried by "no policy retries
// earlier".
func TestNoSettingRetriesEarlier(t *testing.T) {
	trace.Covers(t, "EDS-RTY-3")
	for _, s := range config.Settings() {
		if mentions(s.Flag+" "+s.Doc, "retry-after", "retry after", "ignore", "early") {
			t.Errorf("setting %s: %s", s.Flag, s.Doc)
		}
	}
}

// TestBackoffSparesTheReceiver draws many delays for each retry: they grow, and there is no tight loop.
func TestBackoffSparesTheReceiver(t *testing.T) {
	trace.Covers(t, "EDS-RTY-5")
	const events, retries = 20, 6
	r := newRig(t, apptest.Options{})
	r.sink.Script("/down", apptest.Status(503))
	ep := r.Endpoint(r.sink.URL("/down"), apptest.Fields{"patterns": []string{"down"},
		"policy": apptest.Fields{"max_retries": retries, "circuit_after": 0}})
	var published []godwit.EventID
	for range events {
		published = append(published, r.Publish("down", eventBody))
	}
	r.settle()
	for len(r.Pending()) > 0 {
		r.pass(time.Second)
	}
	var mean [retries]time.Duration
	for _, ev := range published {
		d := r.delivery(ev, ep)
		if d.Status != "exhausted" || len(d.Attempts) != retries+1 {
			t.Fatalf("delivery %+v", d)
		}
		for n := range retries {
			wait := d.Attempts[n].NextAt.Sub(d.Attempts[n].ended())
			if window := time.Second << n; wait < 0 || wait > window {
				t.Errorf("retry %d was due after %v, outside [0, %v]", n+1, wait, window)
			}
			if gap := d.gap(n + 1); gap < wait {
				t.Errorf("retry %d began after %v, it was due after %v", n+1, gap, wait)
			}
			mean[n] += wait / events
		}
	}
	// The means of 20 draws from windows that double lie apart by many times their deviation over three doublings.
	for n := range retries - 3 {
		if mean[n+3] <= 2*mean[n] {
			t.Errorf("mean delays do not grow: %v", mean)
		}
	}
	if n := len(r.sink.Requests("/down")); n != events*(retries+1) {
		t.Errorf("%d requests for %d attempts", n, events*(retries+1))
	}
}

// TestRetryAfterBindsItsEvent: a Retry-After delays its own event always, and other events by the endpoint's policy.
func TestRetryAfterBindsItsEvent(t *testing.T) {
	for _, scope := range []string{godwit.HoldEndpoint, godwit.HoldEvent} {
		t.Run(scope, func(t *testing.T) {
			trace.Covers(t, "EDS-RAF-7")
			r := newRig(t, apptest.Options{})
			r.sink.Script("/held", apptest.RetryAfter(503, "30"), ok)
			ep := r.Endpoint(r.sink.URL("/held"), apptest.Fields{"patterns": []string{"held"}, "policy": apptest.Fields{"hold_scope": scope}})
			first := r.Publish("held", `{"event":"A"}`)
			r.WaitAttempts(first, ep, 1)
			other := r.Publish("held", `{"event":"B"}`)
			want := 1
			if scope == godwit.HoldEvent {
				r.WaitDelivery(other, ep, godwit.DeliveryAccepted)
				want = 2
			}
			for range 29 {
				r.pass(time.Second)
			}
			r.pass(999 * time.Millisecond)
			r.cross()
			if n := len(r.sink.Requests("/held")); n != want {
				t.Errorf("%d requests before the wait was over, want %d", n, want)
			}
			r.pass(time.Minute)
			r.WaitDelivery(other, ep, godwit.DeliveryAccepted)
			a, b := r.delivery(first, ep), r.delivery(other, ep)
			if a.Status != "accepted" || a.gap(1) < 30*time.Second {
				t.Errorf("A is %s after a gap of %v", a.Status, a.gap(1))
			}
			if held := b.Attempts[0].StartedAt.Sub(a.Attempts[0].ended()) >= 30*time.Second; held != (scope == godwit.HoldEndpoint) {
				t.Errorf("B began %v after A's failure", b.Attempts[0].StartedAt.Sub(a.Attempts[0].ended()))
			}
		})
	}
}
