package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestRedirectTable: which redirects are followed, stored, refused.
func TestRedirectTable(t *testing.T) {
	r := newRig(t, apptest.Options{})
	const target = "/elsewhere"
	refused := func(name string, reply apptest.Reply, reason string, rows ...string) scenario {
		return scenario{name: name, rows: append(rows, "EDS-RED-1"), script: afterwardOK(reply), want: terminal, status: "terminal",
			reason: reason, check: stayedAt(target, 0)}
	}
	scenarios := []scenario{
		{name: "307", rows: []string{"EDS-RED-1"}, script: theSame(apptest.Redirect(307, "/followed")), want: accepted, status: "accepted",
			check: stayedAt("/followed", 1)},
		{name: "307 without Location", rows: []string{"EDS-RED-1"}, script: afterwardOK(apptest.Status(307)), want: thenAccepted,
			status: "accepted", check: stayedAt(target, 0)},
		refused("307 to a forbidden address", apptest.Redirect(307, "http://169.254.169.254/latest/meta-data/"), ""),
		refused("307 to another host", apptest.Redirect(307, "http://localhost"+strings.TrimPrefix(r.sink.Addr(), "127.0.0.1")+target), "redirect-forbidden"),
		refused("308 without Location", apptest.Status(308), "move-refused"),
		refused("308 to a forbidden address", apptest.Redirect(308, "http://10.0.0.1/new"), "move-refused"),
		refused("308 to another host", apptest.Redirect(308, "http://localhost"+strings.TrimPrefix(r.sink.Addr(), "127.0.0.1")+target), "move-refused"),
	}
	for _, code := range []int{300, 301, 302, 303, 304, 305, 306, 399} {
		rows := []string{}
		if code >= 301 && code <= 303 {
			rows = append(rows, "EDS-RED-5")
		}
		scenarios = append(scenarios, refused(fmt.Sprint(code), apptest.Redirect(code, target), "redirect-not-followed", rows...))
	}
	play(t, r, scenarios)
}

// stayedAt checks that the stored URL is unchanged and how many requests of any method a target got.
func stayedAt(target string, requests int) func(*testing.T, *history) {
	return func(t *testing.T, h *history) {
		if !strings.HasSuffix(h.endpoint.URL, h.path) {
			t.Errorf("the endpoint's URL is now %s", h.endpoint.URL)
		}
		got := h.rig.sink.Requests(target)
		if len(got) != requests {
			t.Errorf("%d requests reached %s", len(got), target)
		}
		for _, req := range got {
			if req.Method != "POST" {
				t.Errorf("%s reached %s", req.Method, target)
			}
		}
		sameEvent(t, h.receipt, eventBody, got)
	}
}

// TestPermanentRedirectMovesTheEndpoint: the new URL is stored before anything else is sent, for this event and all later
// ones.
func TestPermanentRedirectMovesTheEndpoint(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-RED-2")
		r := newRig(t, o)
		r.sink.Script("/old", apptest.Redirect(308, "/new"))
		r.sink.Script("/new", apptest.Status(503), ok)
		ep := r.Endpoint(r.sink.URL("/old"), apptest.Fields{"patterns": []string{"x"}})
		got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
		r.WaitAttempts(got.ID, ep, 2) // at once: no time has passed
		if e := r.endpoint(ep); e.URL != r.sink.URL("/new") || e.Version != 2 {
			t.Errorf("stored: %s, version %d", e.URL, e.Version)
		}
		r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
		d := r.delivery(got.ID, ep)
		if !slices.Equal(d.outcomes(), []string{"transient", "transient", "accepted"}) || d.Attempts[0].Reason != "moved-permanently" ||
			d.Attempts[1].Trigger != "moved" || d.Attempts[1].URL != r.sink.URL("/new") {
			t.Errorf("attempts %+v", d.Attempts)
		}
		if list := r.notices(ep); len(list) != 1 || list[0].Kind != "endpoint-moved" ||
			!strings.Contains(list[0].Detail, "/old") || !strings.Contains(list[0].Detail, "/new") {
			t.Errorf("notices %+v", list)
		}
		r.WaitDelivery(r.Publish("x", eventBody), ep, godwit.DeliveryAccepted)
		r = r.again()
		r.WaitDelivery(r.Publish("x", eventBody), ep, godwit.DeliveryAccepted)
		if n := len(r.sink.Requests("/old")); n != 1 {
			t.Errorf("%d requests to the old URL", n)
		}
		sameEvent(t, got, eventBody, r.sink.Requests("/new")[:2])
	})
}

// TestTemporaryRedirectChangesNothing: each event goes to the registered URL first.
func TestTemporaryRedirectChangesNothing(t *testing.T) {
	trace.Covers(t, "EDS-RED-3")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/old", apptest.Redirect(307, "/tmp"))
	ep := r.Endpoint(r.sink.URL("/old"), apptest.Fields{"patterns": []string{"x"}})
	for n := 1; n <= 2; n++ {
		got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
		r.WaitDelivery(got.ID, ep, godwit.DeliveryAccepted)
		r.pass(time.Second)
		if a, b := r.sink.Requests("/old"), r.sink.Requests("/tmp"); len(a) != n || len(b) != n {
			t.Errorf("%d requests to /old, %d to /tmp, want %d each", len(a), len(b), n)
		}
		sameEvent(t, got, eventBody, []apptest.Request{r.sink.Requests("/old")[n-1], r.sink.Requests("/tmp")[n-1]})
	}
	if e := r.endpoint(ep); e.URL != r.sink.URL("/old") || e.Version != 1 {
		t.Errorf("stored: %s, version %d", e.URL, e.Version)
	}
	if list := r.notices(ep); len(list) != 0 {
		t.Errorf("notices %+v", list)
	}
}
