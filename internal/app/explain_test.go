package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

type explanation struct {
	Endpoint struct{ ID, UID, URL, Status string }
	Matched  bool
	Reason   string
	Detail   string
	Delivery string
	State    string
}

type explained struct {
	Endpoints  []explanation
	NextCursor string `json:"next_cursor"`
}

// An event's explanation names, for every endpoint of the tenant, the setting that let it in or kept it out.
func TestEventIsExplained(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s, sink := apptest.Start(t, o), apptest.NewSink(t)
		sink.Script("/gone", apptest.Status(422))
		add := func(uid string, fields apptest.Fields) apptest.Endpoint {
			return s.Endpoint(sink.URL("/"+uid), apptest.Fields{"uid": uid}, fields)
		}
		all := add("all", nil)
		add("invoices", apptest.Fields{"patterns": []string{"invoice.*", "refund.made"}})
		add("germany", apptest.Fields{"filter": map[string][]string{"country": {"de", "at"}}})
		add("size", apptest.Fields{"filter": map[string][]string{"size": {"xl"}}})
		resting := add("resting", apptest.Fields{"patterns": []string{"order.*"}})
		s.EndpointCall(resting, http.MethodPost, "/pause", apptest.Fields{"reason": "maintenance"})
		gone := add("gone", nil)
		changing := add("changing", nil)
		skipping := add("skipping", apptest.Fields{"profile": "ojs"})
		s.EndpointCall(skipping, http.MethodPost, "/pause", nil)
		event := s.Post(apptest.Call{Path: "/v1/events?type=order.paid&attr.country=fr", Body: `{"n":1}`})
		s.WaitDelivery(event, all, godwit.DeliveryAccepted)
		s.WaitDelivery(event, gone, godwit.DeliveryTerminal)
		s.WaitDelivery(event, changing, godwit.DeliveryAccepted)
		s.EndpointCall(gone, http.MethodDelete, "", nil)
		s.EndpointCall(changing, http.MethodPatch, "", apptest.Fields{"patterns": []string{"invoice.*"}})
		add("late", nil)
		path := "/v1/events/" + event.String() + "/explain"

		var page explained
		got := map[string]explanation{}
		for query := "?limit=4"; ; query = "?limit=4&cursor=" + page.NextCursor {
			page = explained{}
			s.Must(apptest.Call{Path: path + query}, &page)
			for _, x := range page.Endpoints {
				uid := x.Endpoint.URL[strings.LastIndexByte(x.Endpoint.URL, '/')+1:]
				if _, twice := got[uid]; twice {
					t.Errorf("%s is explained twice", uid)
				}
				got[uid] = x
			}
			if page.NextCursor == "" {
				break
			}
		}
		for uid, want := range map[string]struct {
			matched       bool
			reason, state string
			words         []string
		}{
			"all":      {true, "matched", "accepted", []string{`"*"`, "order.paid", "acknowledged it after 1 attempt."}},
			"invoices": {false, "event-type", "", []string{`"invoice.*" or "refund.made"`, "order.paid"}},
			"germany":  {false, "attribute", "", []string{`"country"`, `"de" or "at"`, `the event has "fr"`}},
			"size":     {false, "attribute", "", []string{"no such attribute"}},
			"resting":  {true, "held", "pending", []string{"paused since", "maintenance", "waits until it is resumed"}},
			"gone":     {true, "deleted", "terminal", []string{"was deleted at", "status 422"}},
			"changing": {true, "changed", "accepted", []string{"were changed", `"invoice.*"`, "acknowledged"}},
			"skipping": {false, "paused", "", []string{"paused since", "skips"}},
			"late":     {false, "created-later", "", []string{"was created at", "replay"}},
		} {
			x, ok := got[uid]
			if !ok || x.Matched != want.matched || x.Reason != want.reason || x.State != want.state || (x.Delivery != "") != want.matched {
				t.Errorf("%s: %+v, want %+v", uid, x, want)
			}
			for _, w := range want.words {
				if !strings.Contains(x.Detail, w) {
					t.Errorf("%s: %q does not say %q", uid, x.Detail, w)
				}
			}
		}
		if len(got) != 9 {
			t.Errorf("%d endpoints are explained, want 9", len(got))
		}

		// A replay that names an endpoint is told from a match; the same endpoint can be asked for alone.
		s.Must(apptest.Call{Path: "/v1/events/" + event.String() + "/replay", Body: apptest.Fields{"endpoints": []string{"invoices"}}}, nil)
		s.Must(apptest.Call{Path: path + "?endpoint=invoices"}, &page)
		if len(page.Endpoints) != 1 || page.Endpoints[0].Reason != "replayed" || !page.Endpoints[0].Matched {
			t.Errorf("after a replay: %+v", page.Endpoints)
		}
		page = explained{}
		s.Must(apptest.Call{Path: path + "?endpoint=" + gone.ID.String()}, &page)
		if len(page.Endpoints) != 1 || page.Endpoints[0].Reason != "deleted" {
			t.Errorf("a deleted endpoint: %+v", page.Endpoints)
		}
		for query, field := range map[string]string{"?endpoint=nothing-here": "endpoint", "?cursor=x": "cursor", "?limit=0": "limit"} {
			if r := s.Call(apptest.Call{Path: path + query}); r.Status < 400 || r.Status > 422 || !strings.Contains(string(r.Body), field) {
				t.Errorf("%s: %d %s", query, r.Status, r.Body)
			}
		}
		_, other := s.NewTenant("other", godwit.ScopeRead)
		if r := s.Call(apptest.Call{Path: path, Key: other}); r.Status != http.StatusNotFound {
			t.Errorf("another tenant's event: %d %s", r.Status, r.Body)
		}
	})
}
