package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestSunset: after the announced end, every response other than acceptance is final.
func TestSunset(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-SUN-1")
		r := newRig(t, o)
		end := start.Add(time.Hour).Truncate(time.Second)
		sunset := func(code int, at string) apptest.Reply { return apptest.Status(code, "Sunset", at) }
		announced := r.Endpoint(r.sink.URL("/announced"), apptest.Fields{"patterns": []string{"x"}})
		garbled := r.Endpoint(r.sink.URL("/garbled"), apptest.Fields{"patterns": []string{"x"}})
		expect := func(when string, ep apptest.Endpoint, want ...string) {
			t.Helper()
			ev := r.Publish("x", eventBody)
			r.settle()
			r.passUntil(when, func() bool { return r.Delivery(ev, ep).Status != godwit.DeliveryPending })
			if d := r.delivery(ev, ep); !slices.Equal(d.outcomes(), want[1:]) || d.Status != want[0] {
				t.Errorf("%s: %s by %v, want %s by %v", when, d.Status, d.outcomes(), want[0], want[1:])
			}
		}
		r.sink.Script("/announced", sunset(200, end.Format(http.TimeFormat)))
		r.sink.Script("/garbled", sunset(200, "next week"))
		expect("announced by a 200", announced, "accepted", "accepted")
		r.sink.Script("/announced", apptest.Status(503), ok)
		expect("before", announced, "accepted", "transient", "accepted")
		r.pass(2 * time.Hour)
		r = r.again()
		r.sink.Script("/announced", apptest.Status(503), ok)
		expect("after, 503", announced, "terminal", "transient")
		r.sink.Script("/announced", ok)
		expect("after, 200", announced, "accepted", "accepted")
		r.sink.Script("/announced", apptest.Hangup(), ok)
		expect("after, no reply", announced, "terminal", "transient")
		r.sink.Script("/garbled", apptest.Status(503), ok)
		expect("unparsable", garbled, "accepted", "transient", "accepted")
		later := r.Clock.Now().Add(time.Hour).Format(http.TimeFormat)
		r.sink.Script("/announced", sunset(503, later), ok)
		expect("put off", announced, "accepted", "transient", "accepted")
	})
}

// TestGoneDeactivates: a 410 ends the subscription until an operator resumes it; events wait meanwhile.
func TestGoneDeactivates(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-STA-410b", "EDS-STA-410a")
		r := newRig(t, o)
		r.sink.Script("/gone", apptest.Status(410), ok)
		ep := r.Endpoint(r.sink.URL("/gone"), apptest.Fields{"patterns": []string{"x"}})
		first := r.Publish("x", eventBody)
		r.WaitDelivery(first, ep, godwit.DeliveryTerminal)
		if e := r.endpoint(ep); e.Status != "disabled" || e.StatusReason != "endpoint-gone" {
			t.Errorf("endpoint is %s (%s)", e.Status, e.StatusReason)
		}
		if list := r.notices(ep); len(list) != 1 || list[0].Kind != "endpoint-disabled" {
			t.Errorf("notices %+v", list)
		}
		second := r.Publish("x", eventBody)
		r.passWindow()
		r = r.again()
		r.passWindow()
		if n := len(r.sink.Requests("/gone")); n != 1 {
			t.Errorf("%d requests to an endpoint that is gone", n)
		}
		if d := r.delivery(second, ep); d.Status != "pending" || d.Count != 0 {
			t.Errorf("the event that came later is %s after %d attempts", d.Status, d.Count)
		}
		r.resume(ep)
		r.WaitDelivery(second, ep, godwit.DeliveryAccepted)
		if d := r.delivery(first, ep); d.Status != "terminal" || d.Count != 1 {
			t.Errorf("the event that met the 410 is %s after %d attempts", d.Status, d.Count)
		}
	})
}

// TestRepeatedRefusalsDisable: consecutive terminal outcomes of distinct events disable the endpoint and notify an operator.
func TestRepeatedRefusalsDisable(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-SEC-DOS-3")
		r := newRig(t, o)
		ep := r.Endpoint(r.sink.URL("/wrong"), apptest.Fields{"patterns": []string{"x"}})
		refuse := func(times int) {
			t.Helper()
			r.sink.Script("/wrong", apptest.Status(404))
			for range times {
				r.WaitDelivery(r.Publish("x", eventBody), ep, godwit.DeliveryTerminal)
			}
		}
		refuse(9)
		r.sink.Script("/wrong", ok)
		r.WaitDelivery(r.Publish("x", eventBody), ep, godwit.DeliveryAccepted) // starts the count anew
		refuse(9)
		if e := r.endpoint(ep); e.Status != "active" {
			t.Fatalf("endpoint is %s after 9 refusals in a row", e.Status)
		}
		refuse(1)
		if e := r.endpoint(ep); e.Status != "disabled" || !strings.Contains(e.StatusReason, "10") {
			t.Errorf("endpoint is %s (%s)", e.Status, e.StatusReason)
		}
		if list := r.notices(ep); len(list) != 1 || list[0].Kind != "endpoint-disabled" {
			t.Errorf("notices %+v", list)
		}
		sent := len(r.sink.Requests("/wrong"))
		r.sink.Script("/wrong", ok)
		held := r.Publish("x", eventBody)
		r.passWindow()
		if n := len(r.sink.Requests("/wrong")); n != sent || r.endpoint(ep).Status != "disabled" {
			t.Errorf("%d requests went to a disabled endpoint, which is now %s", n-sent, r.endpoint(ep).Status)
		}
		r.resume(ep)
		r.WaitDelivery(held, ep, godwit.DeliveryAccepted)
	})
}

// TestNoLoadAmplifier registers a third party's URL that always fails: the number of attempts is limited, and a refusal ends
// the deliveries.
func TestNoLoadAmplifier(t *testing.T) {
	for _, code := range []int{503, 403} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			trace.Covers(t, "EDS-SEC-THR-5")
			const events = 11
			r := newRig(t, apptest.Options{})
			r.sink.Script("/stranger", apptest.Status(code))
			ep := r.Endpoint(r.sink.URL("/stranger"), apptest.Fields{"patterns": []string{"x"}, "policy": apptest.Fields{"max_retries": 4}})
			for range events {
				r.Publish("x", eventBody)
				r.settle()
			}
			bound := events * 5
			if code == 403 {
				bound = 10
				r.passWindow()
			} else {
				r.passUntil("all are exhausted", func() bool { return len(r.Pending()) == 0 })
			}
			n := len(r.sink.Requests("/stranger"))
			if n > bound {
				t.Errorf("%d requests for %d events, want at most %d", n, events, bound)
			}
			if disabled := r.endpoint(ep).Status == "disabled"; disabled != (code == 403) {
				t.Errorf("endpoint is %s", r.endpoint(ep).Status)
			}
			r.passWindow()
			if more := len(r.sink.Requests("/stranger")) - n; more != 0 {
				t.Errorf("%d requests after the end", more)
			}
		})
	}
}
