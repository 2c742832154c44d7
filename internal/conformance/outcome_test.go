package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestFinishedDeliveriesStayFinished: an accepted or terminally refused delivery is not sent again, not even by a restarted
// server on the same store.
func TestFinishedDeliveriesStayFinished(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		cases := map[string]struct {
			row    string
			reply  apptest.Reply
			status godwit.DeliveryStatus
		}{
			"accepted":                  {"EDS-OUT-3", apptest.Status(200), godwit.DeliveryAccepted},
			"accepted with Retry-After": {"EDS-OUT-3", apptest.RetryAfter(200, "1"), godwit.DeliveryAccepted},
			"terminal":                  {"EDS-OUT-7", apptest.Status(422), godwit.DeliveryTerminal},
			"terminal with Retry-After": {"EDS-OUT-7", apptest.RetryAfter(422, "1"), godwit.DeliveryTerminal},
		}
		endpoints, events := map[string]apptest.Endpoint{}, map[string]godwit.EventID{}
		for i, name := range slices.Sorted(maps.Keys(cases)) {
			path, kind := fmt.Sprintf("/final%d", i), fmt.Sprintf("final.f%d", i)
			r.sink.Script(path, cases[name].reply)
			endpoints[name] = r.Endpoint(r.sink.URL(path), apptest.Fields{"patterns": []string{kind}, "metadata": apptest.Fields{"path": path}})
			events[name] = r.Publish(kind, eventBody)
		}
		r.settle()
		r.passWindow()
		r = r.again()
		r.passWindow()
		got := map[string]godwit.Delivery{}
		for name := range cases {
			got[name] = r.Delivery(events[name], endpoints[name])
		}
		r.end()
		for i, name := range slices.Sorted(maps.Keys(cases)) {
			t.Run(name, func(t *testing.T) {
				trace.Covers(t, cases[name].row)
				if n := len(r.sink.Requests(fmt.Sprintf("/final%d", i))); n != 1 {
					t.Errorf("%d requests", n)
				}
				if d := got[name]; d.Status != cases[name].status || d.Attempts != 1 {
					t.Errorf("delivery %+v", d)
				}
			})
		}
	})
}

// TestTerminalIsOfOneEventAtOneEndpoint: a terminal outcome affects neither the endpoint's other events nor the event's
// other endpoints.
func TestTerminalIsOfOneEventAtOneEndpoint(t *testing.T) {
	trace.Covers(t, "EDS-OUT-6")
	r := newRig(t, apptest.Options{})
	r.sink.ReplyFunc("/picky", func(req *apptest.Request) apptest.Reply {
		if string(req.Body) == `{"event":1}` {
			return apptest.Status(422)
		}
		return ok
	})
	picky := r.Endpoint(r.sink.URL("/picky"), apptest.Fields{"patterns": []string{"order"}})
	easy := r.Endpoint(r.sink.URL("/easy"), apptest.Fields{"patterns": []string{"order"}})
	one, two := r.Publish("order", `{"event":1}`), r.Publish("order", `{"event":2}`)
	r.settle()
	r.passWindow()
	for _, c := range []struct {
		ev   godwit.EventID
		ep   apptest.Endpoint
		want string
	}{{one, picky, "terminal"}, {two, picky, "accepted"}, {one, easy, "accepted"}, {two, easy, "accepted"}} {
		if d := r.delivery(c.ev, c.ep); d.Status != c.want || d.Count != 1 {
			t.Errorf("event %s at endpoint %s is %s after %d attempts, want %s", c.ev, c.ep.ID, d.Status, d.Count, c.want)
		}
	}
	if e := r.endpoint(picky); e.Status != "active" {
		t.Errorf("endpoint is %s", e.Status)
	}
}

// TestOnlyStatedSignalsCount: latency, body and unknown fields change neither the outcome nor the decision.
func TestOnlyStatedSignalsCount(t *testing.T) {
	for code, want := range map[int]string{200: "accepted accepted", 500: "transient status pending", 422: "terminal status terminal"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			trace.Covers(t, "EDS-ATT-6", "EDS-OUT-9")
			r := newRig(t, apptest.Options{})
			late := make(chan struct{})
			variants := []apptest.Reply{
				apptest.Status(code),
				apptest.Status(code).Body("application/json", `{"ok":true,"status":200,"retry":false}`),
				apptest.Status(code).Body("application/json", `{"error":"rejected","retry":true}`),
				apptest.Status(code, "Server", "nginx", "X-Error", "fatal", "X-Should-Retry", "false"),
				apptest.Status(code, "Server", "queue", "X-Status", "200", "X-Should-Retry", "true").ThenClose(),
				apptest.Status(code).Until(late),
			}
			var endpoints []apptest.Endpoint
			for i, reply := range variants {
				path := fmt.Sprintf("/v%d", i)
				r.sink.Script(path, reply)
				endpoints = append(endpoints, r.Endpoint(r.sink.URL(path), apptest.Fields{"patterns": []string{"x"}}))
			}
			ev := r.Publish("x", eventBody)
			r.sink.WaitOn("/v5", 1)
			r.Advance(25 * time.Second)
			close(late)
			for i, ep := range endpoints {
				r.WaitAttempts(ev, ep, 1)
				d := r.delivery(ev, ep)
				a := d.Attempts[0]
				got := a.Outcome + " " + a.Reason
				if a.Outcome != "accepted" {
					got += " " + map[bool]string{true: "pending", false: "terminal"}[a.NextAt != nil]
				}
				if got != want {
					t.Errorf("variant %d: %s, want %s", i, got, want)
				}
				if a.NextAt != nil && (a.NextAt.Before(a.ended()) || a.NextAt.Sub(a.ended()) > time.Second) {
					t.Errorf("variant %d: next attempt at %v after %v", i, a.NextAt, a.ended())
				}
			}
		})
	}
}

// TestHealthStandsInForNoOutcome: a failed endpoint test decides nothing about an event, and the server probes no other
// address.
func TestHealthStandsInForNoOutcome(t *testing.T) {
	trace.Covers(t, "EDS-OUT-9")
	r := newRig(t, apptest.Options{})
	r.sink.ReplyFunc("/hook", func(req *apptest.Request) apptest.Reply {
		if req.Header.Get("Godwit-Event-Type") == "godwit.test" {
			return apptest.Status(404)
		}
		return apptest.RetryAfter(503, "60")
	})
	ep := r.Endpoint(r.sink.URL("/hook"), apptest.Fields{"patterns": []string{"x"}})
	ev := r.Publish("x", eventBody)
	r.WaitAttempts(ev, ep, 1)
	var test receipt
	r.EndpointCall(ep, http.MethodPost, "/test", nil).JSON(t, &test)
	r.pass(time.Minute)
	r.WaitDelivery(test.ID, ep, godwit.DeliveryTerminal)
	if d := r.delivery(ev, ep); d.Status != "pending" || d.Attempts[0].Outcome != "transient" {
		t.Errorf("a failed test made the event %s", d.Status)
	}
	for _, req := range r.sink.Requests("") {
		if req.Path != "/hook" {
			t.Errorf("%s %s was probed", req.Method, req.Path)
		}
	}
}

// TestAcceptedIsCalledAccepted: a 2xx means that the attempt was received, and no name claims more.
func TestAcceptedIsCalledAccepted(t *testing.T) {
	trace.Covers(t, "EDS-DEF-5")
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/hook"), apptest.Fields{"patterns": []string{"x"}})
	ev := r.Publish("x", eventBody)
	r.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	d := r.delivery(ev, ep)
	if d.Status != "accepted" || d.Attempts[0].Outcome != "accepted" {
		t.Errorf("shown as %s, %s", d.Status, d.Attempts[0].Outcome)
	}
	r.cross() // the line of an attempt is written after it is stored
	if !r.Log.Has("msg=attempt", d.Attempts[0].ID, "outcome=accepted", "delivery_status=accepted") {
		t.Error("the log does not call it accepted")
	}
	var document struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	r.Must(apptest.Call{Path: "/openapi.json"}, &document)
	names := 0
	eachName(document.Components.Schemas, func(name string) {
		names++
		if mentions(name, "processed", "completed", "succeeded", "success", "durable", "consumed", "done") {
			t.Errorf("the API has the name %q", name)
		}
	})
	if names < 100 {
		t.Errorf("looked at %d names only", names)
	}
	raw, _ := json.Marshal(d)
	if mentions(string(raw), "processed", "completed", "succeeded", "durable") {
		t.Errorf("the delivery claims more than receipt: %s", raw)
	}
}

// eachName visits the members of objects and the values of enumerations in JSON schemas.
func eachName(node any, visit func(string)) {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			switch list, isList := value.([]any); {
			case key == "enum" && isList:
				for _, v := range list {
					visit(fmt.Sprint(v))
				}
			case key == "properties":
				members, _ := value.(map[string]any)
				for name := range members {
					visit(name)
				}
			}
			eachName(value, visit)
		}
	case []any:
		for _, v := range n {
			eachName(v, visit)
		}
	}
}
