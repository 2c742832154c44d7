package conformance

import (
	"fmt"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestCloudEventsIDIsNoKey: an id is unique only within its source and may change, so it is never the key. No setting makes
// it the key.
func TestCloudEventsIDIsNoKey(t *testing.T) {
	const media = "application/cloudevents+json"
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/ce"), apptest.Fields{"patterns": []string{"com.example.order"}})
	event := func(source string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":"order-event-0001","source":%q,"type":"com.example.order","data":{"n":1}}`, source)
	}
	publish := func(source string) receipt {
		got := r.post(apptest.Call{Path: eventPath + "com.example.order", Body: event(source), Header: map[string]string{"Content-Type": media}})
		r.WaitDelivery(got.ID, ep, godwit.DeliveryAccepted)
		return got
	}
	one, two := publish("/shop/1"), publish("/shop/2")
	requests := r.sink.Requests("/ce")
	t.Run("apart from the id", func(t *testing.T) {
		trace.Covers(t, "EDS-CE-2")
		for i, got := range []receipt{one, two} {
			if got.Key == "order-event-0001" || requests[i].Key() != quoted(got.Key) {
				t.Errorf("the key is %q, on the wire %s", got.Key, requests[i].Key())
			}
		}
		for _, member := range []string{"cloudevents_id_as_key", "reuse_ce_id", "key_from"} {
			answer := r.Call(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": r.sink.URL("/ce"), "policy": apptest.Fields{member: true}}})
			if answer.Status < 400 || answer.Status > 499 {
				t.Errorf("policy.%s: %d", member, answer.Status)
			}
		}
	})
	t.Run("equal ids", func(t *testing.T) {
		trace.Covers(t, "EDS-CE-3")
		if len(requests) != 2 || requests[0].Key() == requests[1].Key() {
			t.Errorf("%d requests with the keys %s and %s", len(requests), requests[0].Key(), requests[1].Key())
		}
		for i, source := range []string{"/shop/1", "/shop/2"} {
			if string(requests[i].Body) != event(source) || requests[i].Header.Get("Content-Type") != media {
				t.Errorf("event of %s arrived as %s %s", source, requests[i].Header.Get("Content-Type"), requests[i].Body)
			}
		}
	})
}
