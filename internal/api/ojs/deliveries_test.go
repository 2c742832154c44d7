package ojs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 999, time.UTC)

// still starts a server with a manual clock.
func still(t *testing.T) *rig {
	t.Helper()
	return newRig(t, apptest.Options{Clock: clock.NewManual(start), Tune: func(c *engine.Config) {
		c.LeaseTTL = 10000 * time.Hour
		c.Draw = func() float64 { return 0 }
	}})
}

// post publishes an event and returns its id.
func (r *rig) post(body string) string {
	r.t.Helper()
	return r.send(r.t, 202, apptest.Call{Path: events, Body: body})["id"].(string)
}

// endpoint is a subscription as the helpers of apptest know it.
func endpoint(t *testing.T, sub object) apptest.Endpoint {
	t.Helper()
	id, err := godwit.ParseEndpointID(sub["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return apptest.Endpoint{ID: id}
}

func eventID(t *testing.T, text string) godwit.EventID {
	t.Helper()
	id, err := godwit.ParseEventID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestDeliveriesByStatus(t *testing.T) {
	r := still(t)
	replies := map[string]apptest.Reply{"delivered": apptest.Status(200), "failed": apptest.Status(500), "rejected": apptest.Status(404), "cancelled": apptest.Status(503)}
	subs := map[string]object{}
	for name, reply := range replies {
		r.sink.Script("/"+name, reply)
		subs[name] = r.subscribe("/"+name, object{"events": []string{"job.failed"}})
	}
	gate := make(chan struct{})
	r.sink.Script("/pending", apptest.Status(200).Until(gate))
	defer close(gate)
	subs["pending"] = r.subscribe("/pending", object{"events": []string{"job.failed"}})
	id := r.post(event(object{"type": "job.failed"}))
	for name := range replies {
		r.WaitAttempts(eventID(t, id), endpoint(t, subs[name]), 1)
	}
	r.sink.WaitOn("/pending", 1)
	r.send(t, 204, apptest.Call{Method: "DELETE", Path: pathOf(subs["cancelled"], "")})
	want := map[string]string{"delivered": "delivered", "failed": "failed", "rejected": "dead", "pending": "pending"}
	for name, status := range want {
		got := r.send(t, 200, apptest.Call{Path: deliveries + "?event_type=job.failed&event_id=" + id + "&subscription_id=" + subs[name]["id"].(string) + "&status=" + status})
		list := got["deliveries"].([]any)
		if len(list) != 1 || list[0].(object)["status"] != status || list[0].(object)["event_id"] != id || list[0].(object)["event_type"] != "job.failed" {
			t.Errorf("%s: %v", name, got)
		}
		for _, other := range []string{"pending", "delivered", "failed", "dead", "cancelled"} {
			if other == status {
				continue
			}
			if got := r.send(t, 200, apptest.Call{Path: deliveries + "?subscription_id=" + subs[name]["id"].(string) + "&status=" + other}); len(got["deliveries"].([]any)) != 0 {
				t.Errorf("%s is %s too: %v", name, other, got)
			}
		}
	}
	for query, field := range map[string]string{
		"status=lost": "status", "subscription_id=x": "subscription_id", "event_id=evt_": "event_id", "event_type=a..b": "event_type",
	} {
		if got := r.send(t, 400, apptest.Call{Path: deliveries + "?" + query}); !slices.Equal(fields(got), []string{field}) {
			t.Errorf("%s: %v", query, got)
		}
	}
	for _, path := range []string{"/del_x", "/" + subs["failed"]["id"].(string), "/del_019539a4-b68c-7def-8000-ffeeddccbbaa"} {
		r.send(t, 404, apptest.Call{Path: deliveries + path})
		r.send(t, 404, apptest.Call{Method: "POST", Path: deliveries + path + "/retry"})
	}
}

// TestDeadDeliveriesInOnePage: rejected and exhausted deliveries form one list, newest first.
func TestDeadDeliveriesInOnePage(t *testing.T) {
	r := still(t)
	r.sink.Script("/down", apptest.Status(500))
	r.sink.Script("/gone", apptest.Status(410))
	down := r.subscribe("/down", object{"events": []string{"job.failed"}})
	gone := r.subscribe("/gone", object{"events": []string{"job.discarded"}})
	for range 2 {
		a := r.post(event(object{"type": "job.failed"}))
		r.WaitAttempts(eventID(t, a), endpoint(t, down), 1)
		b := r.post(event(object{"type": "job.discarded"}))
		r.WaitDelivery(eventID(t, b), endpoint(t, gone), godwit.DeliveryTerminal)
		for n, wait := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
			r.Advance(wait)
			r.WaitAttempts(eventID(t, a), endpoint(t, down), n+2)
		}
		r.WaitDelivery(eventID(t, a), endpoint(t, down), godwit.DeliveryExhausted)
	}
	var seen, reasons []string
	path := deliveries + "?status=dead&limit=1"
	for {
		got := r.send(t, 200, apptest.Call{Path: path})
		for _, item := range got["deliveries"].([]any) {
			seen = append(seen, item.(object)["id"].(string))
			reasons = append(reasons, item.(object)["reason"].(string))
		}
		page := got["pagination"].(object)
		if page["has_more"] == false {
			break
		}
		path = deliveries + "?status=dead&limit=1&cursor=" + page["next_cursor"].(string)
	}
	sorted := slices.Clone(seen)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	slices.Sort(reasons)
	if !slices.Equal(seen, sorted) || !slices.Equal(reasons, []string{"exhausted", "exhausted", "rejected", "rejected"}) {
		t.Errorf("seen %v %v", seen, reasons)
	}
}

func TestRetryRefusals(t *testing.T) {
	r := still(t)
	gate := make(chan struct{})
	r.sink.Script("/hook", apptest.Status(500), apptest.Status(500).Until(gate), apptest.Status(200))
	sub := r.subscribe("/hook", object{"events": []string{"job.*"}})
	id := eventID(t, r.post(event()))
	ep := endpoint(t, sub)
	r.WaitAttempts(id, ep, 1)
	retry := apptest.Call{Method: "POST", Path: deliveries + "/" + r.Delivery(id, ep).ID.String() + "/retry"}
	if got := r.send(t, 202, retry); got["status"] != "failed" || got["attempt_count"] != 1.0 || len(got["attempts"].([]any)) != 1 {
		t.Errorf("retried: %v", got)
	}
	r.sink.WaitOn("/hook", 2)
	if got := r.send(t, 409, retry); code(got) != "conflict" {
		t.Errorf("in flight: %v", got)
	}
	close(gate)
	r.WaitAttempts(id, ep, 2)
	r.send(t, 202, retry)
	r.WaitDelivery(id, ep, godwit.DeliveryAccepted)
	if got := r.send(t, 409, retry); code(got) != "conflict" {
		t.Errorf("delivered: %v", got)
	}
}

// TestRetryOfTheDeleted: a delivery whose subscription was deleted cannot be sent again.
func TestRetryOfTheDeleted(t *testing.T) {
	r := still(t)
	r.sink.Script("/hook", apptest.Status(404))
	sub := r.subscribe("/hook", object{"events": []string{"job.*"}})
	id := eventID(t, r.post(event()))
	d := r.WaitDelivery(id, endpoint(t, sub), godwit.DeliveryTerminal)
	r.send(t, 204, apptest.Call{Method: "DELETE", Path: pathOf(sub, "")})
	if got := r.send(t, 409, apptest.Call{Method: "POST", Path: deliveries + "/" + d.ID.String() + "/retry"}); code(got) != "conflict" {
		t.Errorf("%v", got)
	}
}
