package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// An endpoint gets the events that its content filter lets pass; explanations name the part that says no.
func TestContentFilter(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s, sink := apptest.Start(t, o), apptest.NewSink(t)
		type object = map[string]any
		large := object{"body": object{"amount": object{"$gte": 100}}}
		e := s.Endpoint(sink.URL("/large"), apptest.Fields{"uid": "large", "content_filter": large})
		all := s.Endpoint(sink.URL("/all"), apptest.Fields{"uid": "all"})
		post := func(body string) godwit.EventID {
			return s.Post(apptest.Call{Path: "/v1/events?type=order.paid", Body: body})
		}
		explain := func(event godwit.EventID) explanation {
			var page struct {
				Endpoints []struct {
					explanation
					Part string
				}
			}
			s.Must(apptest.Call{Path: "/v1/events/" + event.String() + "/explain?endpoint=large"}, &page)
			x := page.Endpoints[0]
			if (x.Reason == "content") != (x.Part != "") {
				t.Errorf("the part of %+v", x)
			}
			return x.explanation
		}
		many, few, text := post(`{"amount":250}`), post(`{"amount":42}`), post(`amount=250`)
		s.WaitDelivery(many, e, godwit.DeliveryAccepted)
		for _, event := range []godwit.EventID{many, few, text} {
			s.WaitDelivery(event, all, godwit.DeliveryAccepted)
		}
		if x := explain(many); !x.Matched || x.Reason != "matched" || !strings.Contains(x.Detail, "content filter") {
			t.Errorf("the large order: %+v", x)
		}
		if x := explain(few); x.Matched || x.Reason != "content" || !strings.Contains(x.Detail, "body.amount.$gte wants at least 100; the event has 42") {
			t.Errorf("the small order: %+v", x)
		}
		if x := explain(text); x.Matched || x.Reason != "content" || !strings.Contains(x.Detail, "no such member") {
			t.Errorf("the body that is not JSON: %+v", x)
		}

		// The endpoint explains events that may come, and drafts of filters.
		for _, c := range []struct {
			ask                  object
			matched              bool
			reason, part, detail string
		}{
			{object{"event": few.String()}, false, "content", "body.amount.$gte", "42"},
			{object{"event": many.String()}, true, "matched", "", ""},
			{object{"type": "order.paid", "body": object{"amount": 100}}, true, "matched", "", ""},
			{object{"type": "order.paid", "body": object{"amount": "100"}}, false, "content", "body.amount.$gte", `"100"`},
			{object{"event": few.String(), "content_filter": object{"type": "order.paid"}}, true, "matched", "", ""},
			{object{"event": many.String(), "content_filter": object{"attributes": object{"region": "eu"}}}, false, "content", "attributes.region", "no such member"},
			{object{"type": "godwit.test"}, false, "event-type", "", "godwit.test"},
		} {
			var got struct {
				Matched              bool
				Reason, Part, Detail string
			}
			s.Must(apptest.Call{Path: "/v1/endpoints/large/explain", Body: c.ask}, &got)
			if got.Matched != c.matched || got.Reason != c.reason || got.Part != c.part || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%v: %+v", c.ask, got)
			}
		}
		for field, ask := range map[string]object{
			"content_filter.body.amount.$gt": {"type": "order.paid", "content_filter": object{"body": object{"amount": object{"$gt": true}}}},
			"type":                           {"body": object{}},
			"event":                          {"event": few.String(), "type": "order.paid"},
			"source":                         {"type": "order.paid", "source": "x"},
		} {
			if r := s.Call(apptest.Call{Path: "/v1/endpoints/large/explain", Body: ask}); r.Status != http.StatusUnprocessableEntity || !strings.Contains(string(r.Body), `"`+field+`"`) {
				t.Errorf("%v: %d %s", ask, r.Status, r.Body)
			}
		}

		// A filter that is wrong changes nothing; a patch replaces the whole filter, and holds for the next event.
		wrong := object{"content_filter": object{"body": object{"amount": object{"$greater": 1}}}}
		if r := s.Call(apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/large", Body: wrong}); r.Status != http.StatusUnprocessableEntity || !strings.Contains(string(r.Body), "content_filter.body.amount.$greater") {
			t.Errorf("a wrong filter: %d %s", r.Status, r.Body)
		}
		var shown struct {
			Content map[string]any `json:"content_filter"`
		}
		s.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/large", Body: object{"content_filter": object{"type": object{"$endsWith": ".paid"}, "body": object{"n": 1}}}}, &shown)
		if _, old := shown.Content["body"].(object)["amount"]; old || len(shown.Content) != 2 {
			t.Errorf("the patched filter is %v", shown.Content)
		}
		first := post(`{"n":[0,1]}`)
		s.WaitDelivery(first, e, godwit.DeliveryAccepted)
		if x := explain(post(`{"amount":250}`)); x.Matched || x.Reason != "content" {
			t.Errorf("after the patch: %+v", x)
		}
		// A replay that names the endpoint sends what the filter excludes.
		s.Must(apptest.Call{Path: "/v1/events/" + few.String() + "/replay", Body: object{"endpoints": []string{"large"}}}, nil)
		s.WaitDelivery(few, e, godwit.DeliveryAccepted)
		shown.Content = nil
		withNulls := object{"body": object{"deleted_at": nil, "n": object{"$neq": nil}}}
		s.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/large", Body: object{"content_filter": withNulls}}, &shown)
		if got, _ := json.Marshal(shown.Content); string(got) != `{"body":{"deleted_at":null,"n":{"$neq":null}}}` {
			t.Errorf("a filter with nulls was stored as %s", got)
		}
		shown.Content = nil
		s.Must(apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/large", Body: object{"content_filter": nil}}, &shown)
		if shown.Content != nil {
			t.Errorf("the removed filter is %v", shown.Content)
		}
		s.WaitDelivery(post(`{}`), e, godwit.DeliveryAccepted)
	})
}
