package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestPayloadsDoNotLeak marks a payload and looks for the mark in everything that outsiders can read: the debug log,
// metrics, refusals, notices, and every page that another tenant or a key without the read scope can request.
func TestPayloadsDoNotLeak(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-4", "EDS-SEC-CNF-2")
	const mark = "m4rk3d-p4yl04d"
	body := `{"card":"` + mark + `"}`
	r := newRig(t, apptest.Options{})
	r.sink.ReplyFunc("/echo", func(req *apptest.Request) apptest.Reply { // a receiver that repeats what it got
		switch req.N {
		case 1:
			return apptest.Status(503).Body("text/plain", string(req.Body))
		case 2:
			return apptest.Status(451, "Link", `</law>; rel="blocked-by"`).Body("application/problem+json", `{"detail":"`+mark+`"}`)
		}
		return apptest.Status(410).Body("application/json", string(req.Body))
	})
	ep := r.Endpoint(r.sink.URL("/echo"), apptest.Fields{"patterns": []string{"x"}})
	accepting := r.Endpoint(r.sink.URL("/fine"), apptest.Fields{"patterns": []string{"x"}})
	broken := r.Endpoint(apptest.DeadURL(t, "/"), apptest.Fields{"patterns": []string{"x"}})
	ev := r.PublishKey("x", "key-of-a-marked-event", body)
	r.WaitAttempts(ev, broken, 1)
	r.WaitDelivery(ev, accepting, godwit.DeliveryAccepted)
	r.passUntil("refused", func() bool { return r.Delivery(ev, ep).Status == godwit.DeliveryTerminal })
	r.WaitDelivery(r.Publish("x", body), ep, godwit.DeliveryTerminal)
	delivery := r.Delivery(ev, ep)

	refusals := map[string]*apptest.Response{
		"key reused":    r.Call(apptest.Call{Path: eventPath + "x", Body: `["` + mark + `"]`, Header: map[string]string{"Idempotency-Key": `"key-of-a-marked-event"`}}),
		"bad envelope":  r.Call(apptest.Call{Path: "/v1/events", Body: `{"type":"x","data":"` + mark + `","what":"` + mark + `"}`}),
		"bad JSON":      r.Call(apptest.Call{Path: "/v1/events", Body: `{"type":"x","data":"` + mark}),
		"bad type":      r.Call(apptest.Call{Path: eventPath + "x%20y", Body: body}),
		"too large":     r.Call(apptest.Call{Path: eventPath + "x", Body: strings.Repeat(mark, 100_000)}),
		"not permitted": r.Call(apptest.Call{Key: "gdw_wrong", Path: eventPath + "x", Body: body}),
		"notices":       r.Must(apptest.Call{Path: "/v1/notices"}, nil),
		"metrics":       r.Must(apptest.Call{Path: "/metrics"}, nil),
		"readiness":     r.Must(apptest.Call{Path: "/readyz"}, nil),
	}
	_, stranger := r.NewTenant("stranger", godwit.AllScopes...)
	ingestOnly := r.NewKey(r.Tenant, godwit.ScopeIngest)
	paths := []string{"/v1/events/" + ev.String(), "/v1/events/" + ev.String() + "/body", "/v1/deliveries/" + delivery.ID.String(),
		"/v1/dead-letters/" + delivery.ID.String(), "/v1/events", "/v1/deliveries", "/v1/dead-letters", "/v1/dead-letters/export", "/v1/endpoints/" + ep.ID.String()}
	for _, path := range paths {
		refusals["stranger "+path] = r.Call(apptest.Call{Key: stranger, Path: path})
		refusals["ingest only "+path] = r.Call(apptest.Call{Key: ingestOnly, Path: path})
		if got := refusals["ingest only "+path].Status; got != http.StatusForbidden && got != http.StatusNotFound {
			t.Errorf("a key that may not read got %d from %s", got, path)
		}
		if single := strings.Count(path, "_") > 0; single && refusals["stranger "+path].Status != http.StatusNotFound {
			t.Errorf("another tenant got %d from %s", refusals["stranger "+path].Status, path)
		}
	}
	for what, answer := range refusals {
		if strings.Contains(string(answer.Body), mark) {
			t.Errorf("%s shows the payload: %s", what, answer.Body)
		}
		for name, values := range answer.Header {
			if strings.Contains(strings.Join(values, " "), mark) {
				t.Errorf("%s shows the payload in %s", what, name)
			}
		}
	}
	if own := r.Must(apptest.Call{Path: "/v1/events/" + ev.String() + "/body"}, nil); string(own.Body) != body {
		t.Errorf("its owner gets %q", own.Body)
	}
	r.end()
	if log := r.Log.String(); strings.Contains(log, mark) || !strings.Contains(log, "level=DEBUG") {
		t.Error("the payload is in the log, or the log was not at its most talkative")
	}
}

// TestProblemDetailsAreKept: the operator sees a receiver's problem details, within limits.
func TestProblemDetailsAreKept(t *testing.T) {
	r := newRig(t, apptest.Options{})
	long := strings.Repeat("detail ", 10_000)
	play(t, r, []scenario{
		{name: "kept", rows: []string{"EDS-PRB-3"}, script: afterwardOK(apptest.Status(422).Body("application/problem+json; charset=utf-8", problemBody)),
			want: terminal, status: "terminal", check: func(t *testing.T, h *history) {
				p := h.Attempts[0].Trace.Problem
				if p == nil || *p != (godwit.Problem{Type: "https://example.com/problems/order", Title: "Order is not valid", Status: 422, Detail: "order_id is empty"}) {
					t.Errorf("kept %+v", p)
				}
			}},
		{name: "limited", rows: []string{"EDS-PRB-3"}, script: afterwardOK(apptest.Status(422).Body("text/plain", long)),
			want: terminal, status: "terminal", check: func(t *testing.T, h *history) {
				if n := len(h.Attempts[0].Trace.Body); n == 0 || n > 4<<10 {
					t.Errorf("kept %d bytes of the body", n)
				}
			}},
		{name: "limited problem", rows: []string{"EDS-PRB-3"}, script: afterwardOK(apptest.Status(400).Body("application/problem+json", `{"title":"t","detail":"`+long[:20000]+`"}`)),
			want: terminal, status: "terminal", check: func(t *testing.T, h *history) {
				if p := h.Attempts[0].Trace.Problem; p == nil || p.Title != "t" || len(p.Detail) > 1024 {
					t.Errorf("kept %+v", p)
				}
			}},
	})
}
