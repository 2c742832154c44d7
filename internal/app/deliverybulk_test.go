package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

type bulkChanged struct {
	Matched, Changed int
	More             bool
	NextCursor       string `json:"next_cursor"`
}

// Many deliveries are previewed, retried and cancelled by one request, in parts, and the evidence tells of it.
func TestDeliveriesInBulk(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s, sink := apptest.Start(t, o), apptest.NewSink(t)
		broken := make(chan struct{})
		sink.ReplyFunc("/dead", func(r *apptest.Request) apptest.Reply {
			select {
			case <-broken:
				return apptest.Status(200)
			default:
				return apptest.Status(422)
			}
		})
		dead := s.Endpoint(sink.URL("/dead"), apptest.Fields{"uid": "dead", "policy": apptest.Fields{"disable_after": 0}})
		waiting := s.Endpoint(sink.URL("/waiting"), apptest.Fields{"uid": "waiting"})
		s.EndpointCall(waiting, http.MethodPost, "/pause", nil)
		var events []godwit.EventID
		for i := range 5 {
			events = append(events, s.Publish("order.paid", fmt.Sprintf(`{"n":%d}`, i)))
		}
		for _, e := range events {
			s.WaitDelivery(e, dead, godwit.DeliveryTerminal)
		}
		call := func(action string, body apptest.Fields) (out bulkChanged) {
			t.Helper()
			s.Must(apptest.Call{Path: "/v1/deliveries/" + action, Body: body}, &out)
			return out
		}
		if got := call("retry", apptest.Fields{"endpoint": "dead", "dry_run": true}); got != (bulkChanged{Matched: 5}) {
			t.Errorf("preview of a retry: %+v", got)
		}
		if got := call("cancel", apptest.Fields{"all": true, "dry_run": true}); got != (bulkChanged{Matched: 5}) {
			t.Errorf("preview of a cancellation: %+v", got)
		}
		if got := call("retry", apptest.Fields{"endpoint": "dead", "status": "accepted", "dry_run": true}); got != (bulkChanged{}) {
			t.Errorf("preview of none: %+v", got)
		}

		for kind, want := range map[string]int{"order.paid": 10, "order.sent": 0} {
			if got := call("retry", apptest.Fields{"type": kind, "dry_run": true}); got != (bulkChanged{Matched: want}) {
				t.Errorf("preview of a retry of %s: %+v", kind, got)
			}
		}
		for filter, want := range map[string]int{"type=order.paid": 5, "type=order.sent": 0, "status=terminal": 5, "status=exhausted": 0, "since=2000-01-01T00:00:00Z&type=order.paid": 5} {
			var page struct {
				Items      []any  `json:"items"`
				NextCursor string `json:"next_cursor"`
			}
			s.Must(apptest.Call{Path: "/v1/dead-letters?" + filter}, &page)
			if len(page.Items) != want || page.NextCursor != "" {
				t.Errorf("dead letters with %s: %+v", filter, page)
			}
		}

		// In parts, with a cursor: what a part has sent again is not sent by the next.
		close(broken)
		body := apptest.Fields{"endpoint": "dead", "limit": 2}
		changed, requests := 0, 0
		for {
			got := call("retry", body)
			changed, requests = changed+got.Changed, requests+1
			if got.More != (got.NextCursor != "") {
				t.Fatalf("more without a cursor, or the reverse: %+v", got)
			}
			if !got.More {
				break
			}
			body["cursor"] = got.NextCursor
		}
		if changed != 5 || requests != 3 {
			t.Errorf("%d deliveries were retried in %d requests, want 5 in 3", changed, requests)
		}
		for _, e := range events {
			s.WaitDelivery(e, dead, godwit.DeliveryAccepted)
		}

		// By id; a repeat under the same key gets the first answer, and a second request finds nothing left.
		id := s.Delivery(events[0], waiting).ID.String()
		header := map[string]string{"Idempotency-Key": `"cancel-one-of-them"`}
		for range 2 {
			var out bulkChanged
			s.Must(apptest.Call{Path: "/v1/deliveries/cancel", Header: header, Body: apptest.Fields{"ids": []string{id}}}, &out)
			if out.Changed != 1 {
				t.Errorf("cancelled by id: %+v", out)
			}
		}
		if got := call("cancel", apptest.Fields{"ids": []string{id}}); got != (bulkChanged{Matched: 1}) {
			t.Errorf("cancelled a second time: %+v", got)
		}
		if got := call("cancel", apptest.Fields{"endpoint": "waiting"}); got != (bulkChanged{Matched: 4, Changed: 4}) {
			t.Errorf("cancelled the rest: %+v", got)
		}
		s.WaitDelivery(events[4], waiting, godwit.DeliveryCancelled)

		evidence := string(s.Must(apptest.Call{Path: "/ids/v1/evidence"}, nil).Body)
		for _, w := range []string{"deliveries.retry", "2 deliveries: endpoint dead", "deliveries.cancel", "1 deliveries: chosen by id", "4 deliveries: endpoint waiting"} {
			if !strings.Contains(evidence, w) {
				t.Errorf("the evidence does not say %q: %s", w, evidence)
			}
		}
		for name, refused := range map[string]struct {
			action string
			body   apptest.Fields
			field  string
		}{
			"no choice":          {"cancel", apptest.Fields{}, "all"},
			"all and a filter":   {"retry", apptest.Fields{"all": true, "type": "a.b"}, "all"},
			"ids and a filter":   {"retry", apptest.Fields{"ids": []string{id}, "type": "a.b"}, "ids"},
			"ids and a status":   {"retry", apptest.Fields{"ids": []string{id}, "status": "pending"}, "ids"},
			"an id of no use":    {"retry", apptest.Fields{"ids": []string{"x"}}, "ids[0]"},
			"a foreign id":       {"retry", apptest.Fields{"ids": []string{godwit.NewDeliveryID(events[0].Time()).String()}}, "ids[0]"},
			"an unknown member":  {"cancel", apptest.Fields{"all": true, "status": "pending"}, "status"},
			"a foreign endpoint": {"cancel", apptest.Fields{"endpoint": "nothing"}, "endpoint"},
			"a bad type":         {"cancel", apptest.Fields{"type": "a..b"}, "type"},
			"a bad cursor":       {"cancel", apptest.Fields{"all": true, "cursor": "x"}, "cursor"},
		} {
			r := s.Call(apptest.Call{Path: "/v1/deliveries/" + refused.action, Body: refused.body})
			if r.Status != 400 && r.Status != 422 || !strings.Contains(string(r.Body), refused.field) {
				t.Errorf("%s: %d %s", name, r.Status, r.Body)
			}
		}
	})
}
