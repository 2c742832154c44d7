package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// TestStatusTable plays the draft's status table, a row a subtest.
func TestStatusTable(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		scenarios := transientStatuses()
		scenarios = append(scenarios, terminalStatuses(r)...)
		scenarios = append(scenarios, acceptedStatuses()...)
		play(t, r, scenarios)
	})
}

func acceptedStatuses() []scenario {
	list := []scenario{
		{name: "299", rows: []string{"EDS-STA-2xx"}, script: theSame(apptest.Status(299)), want: accepted, status: "accepted"},
	}
	for _, code := range []int{203, 205, 206, 208, 226, 250} {
		list = append(list, scenario{name: fmt.Sprint(code), rows: []string{"EDS-STA-2xx-other"},
			script: theSame(apptest.Status(code)), want: accepted, status: "accepted"})
	}
	for name, reply := range map[string]apptest.Reply{
		"200 empty":          apptest.Status(200),
		"200 with error":     apptest.Status(200).Body("application/json", `{"status":"error","message":"failed"}`),
		"200 with page":      apptest.Status(200).Body("text/html", "<h1>500 Internal Server Error</h1>"),
		"204":                apptest.Status(204),
		"201 with problem":   apptest.Status(201).Body("application/problem+json", `{"status":500,"title":"Failed"}`),
		"202 without length": apptest.Raw("HTTP/1.1 202 Accepted\r\nConnection: close\r\n\r\nno"),
	} {
		list = append(list, scenario{name: name, rows: []string{"EDS-STA-2xx-body"}, script: theSame(reply), want: accepted, status: "accepted"})
	}
	return list
}

// inBackoff checks that the gap before the retry lies in the first window of the back-off.
func inBackoff(t *testing.T, h *history) {
	t.Helper()
	first := h.Attempts[0]
	if wait := first.NextAt.Sub(first.ended()); wait < 0 || wait > time.Second {
		t.Errorf("the retry was due %v after the failure, want 0 to 1 s", wait)
	}
	if gap := h.gap(1); gap < first.NextAt.Sub(first.ended()) {
		t.Errorf("the retry began %v after the failure, before it was due", gap)
	}
}

// waited checks that the retry was neither due nor sent before the wait that was asked for.
func waited(d time.Duration) func(t *testing.T, h *history) {
	return func(t *testing.T, h *history) {
		t.Helper()
		first := h.Attempts[0]
		if wait := first.NextAt.Sub(first.ended()); wait < d {
			t.Errorf("the retry was due after %v, want at least %v", wait, d)
		}
		if gap := h.gap(1); gap < d {
			t.Errorf("the retry began after %v, want at least %v", gap, d)
		}
		if asked := first.RetryAfter; asked != d.Seconds() {
			t.Errorf("recorded as retry_after_seconds %g, want %g", asked, d.Seconds())
		}
	}
}

func transientStatuses() []scenario {
	transient := func(row, name string, reply apptest.Reply, check func(*testing.T, *history)) scenario {
		return scenario{name: name, rows: []string{row}, script: afterwardOK(reply), want: thenAccepted, status: "accepted", check: check}
	}
	list := []scenario{
		transient("EDS-STA-408", "408", apptest.Status(408), unknownEffect),
		transient("EDS-STA-429", "429", apptest.Status(429), inBackoff),
		transient("EDS-STA-429", "429 with Retry-After", apptest.RetryAfter(429, "3"), waited(3*time.Second)),
		transient("EDS-STA-500", "500", apptest.Status(500), inBackoff),
		transient("EDS-STA-502", "502", apptest.Status(502), inBackoff),
		transient("EDS-STA-503", "503", apptest.Status(503), inBackoff),
		transient("EDS-STA-503", "503 with Retry-After", apptest.RetryAfter(503, "30"), waited(30*time.Second)),
		transient("EDS-STA-504", "504", apptest.Status(504), unknownEffect),
		transient("EDS-STA-511", "511", apptest.Status(511, "Link", `</portal>; rel="login"`, "Location", "/portal").
			Body("text/html", `<meta http-equiv="refresh" content="0; url=/portal"><a href="/portal">log in</a>`), noPortal),
		transient("EDS-STA-INV", "999", apptest.Raw("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"), inBackoff),
		transient("EDS-STA-INV", "099", apptest.Raw("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"), nil),
		transient("EDS-STA-INV", "600", apptest.Raw("HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n"), inBackoff),
		{name: "409 then 200", rows: []string{"EDS-STA-409"}, script: afterwardOK(apptest.Status(409)), want: thenAccepted,
			status: "accepted", check: func(t *testing.T, h *history) {
				if h.Attempts[0].Reason != "in-progress" {
					t.Errorf("reason %q", h.Attempts[0].Reason)
				}
			}},
		{name: "409 while the first runs", rows: []string{"EDS-STA-409"}, script: []apptest.Reply{apptest.Stall(), apptest.Status(409), ok},
			fields: apptest.Fields{"policy": apptest.Fields{"timeout_seconds": 0.3}}, want: []string{"transient", "transient", "accepted"}, status: "accepted"},
		{name: "409 by agreement", rows: []string{"EDS-STA-409"}, script: afterwardOK(apptest.Status(409)), want: terminal,
			status: "terminal", reason: "agreement", fields: agreed("409", "terminal")},
	}
	for _, code := range []int{501, 505, 506, 507, 508, 510, 520, 599} {
		list = append(list, transient("EDS-STA-5xx-other", fmt.Sprint(code), apptest.Status(code), inBackoff))
	}
	return list
}

// noPortal checks that the sender did not follow the links of a captive portal.
func noPortal(t *testing.T, h *history) {
	inBackoff(t, h)
	if seen := h.rig.sink.Requests("/portal"); len(seen) != 0 {
		t.Errorf("%d requests to the captive portal", len(seen))
	}
}

// agreed are the members of an endpoint that reads a status code otherwise.
func agreed(code, outcome string) apptest.Fields {
	return apptest.Fields{"policy": apptest.Fields{
		"statuses":  apptest.Fields{code: outcome},
		"agreement": apptest.Fields{"document": "https://example.com/agreement", "visible_to_both": true},
	}}
}

const problemBody = `{"type":"https://example.com/problems/order","title":"Order is not valid","status":422,"detail":"order_id is empty"}`

func terminalStatuses(r *rig) []scenario {
	once := func(row, name string, reply apptest.Reply, check func(*testing.T, *history)) scenario {
		// The receiver would accept a second request: that none comes is the point.
		return scenario{name: name, rows: []string{row}, script: afterwardOK(reply), want: terminal, status: "terminal", check: check}
	}
	list := []scenario{
		once("EDS-STA-400", "400", apptest.Status(400), nil),
		once("EDS-STA-403", "403", apptest.Status(403), nil),
		once("EDS-STA-404", "404", apptest.Status(404), func(t *testing.T, h *history) {
			if h.Reason != "endpoint-not-found" {
				t.Errorf("reason %q does not say that the endpoint needs reconfiguring", h.Reason)
			}
		}),
		once("EDS-STA-405", "405", apptest.Status(405, "Allow", "PUT"), nil),
		once("EDS-STA-410a", "410", apptest.Status(410), nil),
		once("EDS-STA-413", "413 with Retry-After", apptest.RetryAfter(413, "1"), func(t *testing.T, h *history) {
			if got := h.Attempts[0].Trace.RetryAfter; got != "1" {
				t.Errorf("Retry-After is kept for the operator as %q", got)
			}
		}),
		once("EDS-STA-414", "414", apptest.Status(414), nil),
		once("EDS-STA-415", "415", apptest.Status(415, "Accept-Post", "text/plain"), nil),
		once("EDS-STA-422", "422", apptest.Status(422).Body("application/problem+json", problemBody), func(t *testing.T, h *history) {
			if p := h.Attempts[0].Trace.Problem; p == nil || p.Title != "Order is not valid" || p.Detail != "order_id is empty" {
				t.Errorf("problem details kept: %+v", p)
			}
		}),
		once("EDS-STA-451a", "451", apptest.Status(451), nil),
		once("EDS-STA-451b", "451 with Link", apptest.Status(451, "Link", `<https://example.com/law>; rel="blocked-by"`), legalReview),
	}
	for _, code := range []int{402, 406, 407, 411, 412, 416, 417, 418, 423, 424, 426, 428, 431, 499} {
		list = append(list, once("EDS-STA-4xx-other", fmt.Sprint(code), apptest.Status(code), nil))
	}
	return list
}

// legalReview checks that an operator is notified of a 451, with the event, the endpoint and the receiver's explanation.
func legalReview(t *testing.T, h *history) {
	if len(h.notices) != 1 {
		t.Fatalf("notices: %+v", h.notices)
	}
	n := h.notices[0]
	if n.Kind != "legal-review" || n.EventID != h.receipt.ID.String() || n.Link != `<https://example.com/law>; rel="blocked-by"` {
		t.Errorf("notice %+v", n)
	}
}
