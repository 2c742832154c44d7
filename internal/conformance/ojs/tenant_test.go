package ojs

import (
	"reflect"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestTenants(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		b, keyB := r.NewTenant("other", godwit.AllScopes...)
		r.sink.Script("/a", apptest.Status(404))
		mine := r.subscribe("/a", []string{"job.*"})
		body := object{"url": r.sink.URL("/b"), "events": []string{"*"}, "tenant_id": r.Tenant.String()}
		theirs := r.made(r.send(t, 201, apptest.Call{Key: keyB, Path: subscriptionsPath + "?tenant_id=" + r.Tenant.String(), Body: body, Header: map[string]string{"X-Tenant-ID": r.Tenant.String()}}))
		ev := r.publish("job.done")
		r.settle()
		d := r.delivery(ev, mine)

		t.Run("each has its own", func(t *testing.T) {
			trace.Covers(t, "OJS-TEN-1")
			a, b := r.send(t, 200, apptest.Call{Path: subscriptionsPath}), r.send(t, 200, apptest.Call{Key: keyB, Path: subscriptionsPath})
			if !occurs(a, mine.id) || occurs(a, theirs.id) || occurs(b, mine.id) || !occurs(b, theirs.id) || a["total"] != 1.0 || b["total"] != 1.0 {
				t.Errorf("lists %v and %v", a, b)
			}
			deliveries := r.send(t, 200, apptest.Call{Key: keyB, Path: deliveriesPath + "?event_type=job.done"})
			if len(deliveries["deliveries"].([]any)) != 0 {
				t.Errorf("deliveries %v", deliveries)
			}
		})
		t.Run("and hears of nothing else", func(t *testing.T) {
			trace.Covers(t, "OJS-TEN-2", "OJS-TEN-5")
			for _, req := range r.sink.Requests("/b") {
				if req.Header.Get("X-OJS-Event-Type") == "job.done" {
					t.Error("it crossed over")
				}
			}
			before := len(r.sink.Requests("/a"))
			posted := r.Post(apptest.Call{Key: keyB, Path: eventsPath, Body: envelope("job.theirs", object{"tenant_id": r.Tenant.String()})})
			r.sink.WaitFor("/b", "their event", func(seen []apptest.Request) bool {
				for _, req := range seen {
					if req.Header.Get("X-OJS-Event-Type") == "job.theirs" {
						return true
					}
				}
				return false
			})
			r.settle()
			if n := len(r.sink.Requests("/a")); n != before {
				t.Error("it crossed over")
			}
			if _, err := r.App.Store().Event(t.Context(), b, posted); err != nil {
				t.Errorf("it is not theirs: %v", err)
			}
			if _, err := r.App.Store().Event(t.Context(), r.Tenant, posted); err == nil {
				t.Error("it is ours too")
			}
		})
		t.Run("by credentials alone", func(t *testing.T) {
			trace.Covers(t, "OJS-TEN-3")
			r.send(t, 404, apptest.Call{Path: theirs.at("")})
			if got := r.send(t, 200, apptest.Call{Key: keyB, Path: theirs.at("")}); got["id"] != theirs.id || hasKey(got, "tenant_id") {
				t.Errorf("%v", got)
			}
		})
		t.Run("others' ids are nobody's", func(t *testing.T) {
			trace.Covers(t, "OJS-TEN-4")
			before, requests := r.read(mine), len(r.requests(mine))
			for _, c := range []apptest.Call{
				{Path: mine.at("")}, {Method: "PATCH", Path: mine.at(""), Body: `{"active":false}`}, {Method: "PUT", Path: mine.at(""), Body: `{"active":false}`},
				{Method: "POST", Path: mine.at("/test")}, {Method: "POST", Path: mine.at("/rotate-secret")}, {Method: "DELETE", Path: mine.at("")},
				{Path: deliveriesPath + "/" + d.ID}, {Method: "POST", Path: deliveriesPath + "/" + d.ID + "/retry"},
			} {
				c.Key = keyB
				if got := r.send(t, 404, c); got["error"].(object)["code"] != "not_found" {
					t.Errorf("%s %s: %v", c.Method, c.Path, got)
				}
			}
			if list := r.send(t, 200, apptest.Call{Key: keyB, Path: deliveriesPath + "?subscription_id=" + mine.id}); len(list["deliveries"].([]any)) != 0 {
				t.Errorf("%v", list)
			}
			if after := r.read(mine); !reflect.DeepEqual(after, before) {
				t.Errorf("it is %v, was %v", after, before)
			}
			r.publish("job.again")
			got := r.requests(mine)
			if len(got) != requests+1 {
				t.Fatalf("%d requests, want %d", len(got), requests+1)
			}
			signed(t, got[len(got)-1], mine.secret)
		})
	})
}
