package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
)

// An environment keeps its events for a shorter time than the server, within the server's bounds; others are not affected.
func TestEnvironmentRetention(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		hands := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		o.Clock = hands
		p := newPlatform(t, o)
		change := func(body string) *apptest.Response {
			return p.Call(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: body})
		}
		for _, body := range []string{
			`{"retention_events_seconds":3599}`, `{"retention_events_seconds":2592001}`, `{"retention_dead_letters_seconds":2592001}`, `{"retention_events_seconds":-1}`,
		} {
			if r := change(body); r.Status != 422 && r.Status != 400 {
				t.Errorf("%s: %d %s", body, r.Status, r.Body)
			} else if strings.Contains(body, "2592001") && !strings.Contains(string(r.Body), "2592000") {
				t.Errorf("the bound is not named: %s", r.Body)
			}
		}
		p.want(200, change(`{"retention_events_seconds":86400,"retention_dead_letters_seconds":172800}`))
		p.want(201, p.put("", "/v1/tenants/customer", `{"name":"Customer"}`))

		// The service description promises upstreams that dead letters are kept for 30 days.
		p.want(201, p.put("customer", "/v1/sources/shop", `{"scheme":"github"}`))
		var description struct{ Version string }
		p.Call(apptest.Call{Path: "/.well-known/webhook-service"}).JSON(t, &description)
		p.want(201, p.as("customer", apptest.Call{Path: "/v1/sources/shop/acknowledgments", Body: apptest.Fields{"version": description.Version, "by": "the shop"}}))
		inForce := func() string {
			var source struct {
				Mode string `json:"mode_in_force"`
			}
			p.want(200, p.as("customer", apptest.Call{Path: "/v1/sources/shop"})).JSON(t, &source)
			return source.Mode
		}
		if mode := inForce(); mode != "pass-through" {
			t.Errorf("with a retention shorter than promised, the mode is %s", mode)
		}
		p.want(200, change(`{"retention_dead_letters_seconds":0}`))
		if mode := inForce(); mode != "store-and-forward" {
			t.Errorf("with the server's retention, the mode is %s", mode)
		}
		p.want(200, change(`{"retention_dead_letters_seconds":172800}`))
		sink := apptest.NewSink(t)
		sink.Script("/refuses", apptest.Status(http.StatusUnprocessableEntity))
		for _, path := range []string{"/", "/refuses"} {
			p.want(201, p.as("customer", apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": sink.URL(path), "patterns": []string{"a" + strings.Trim(path, "/")}}}))
		}
		post := func(tenant string, call apptest.Call) string {
			var event struct{ ID string }
			if tenant == "" {
				p.Must(call, &event)
			} else {
				p.want(202, p.as(tenant, call)).JSON(t, &event)
			}
			return event.ID
		}
		event := apptest.Call{Path: "/v1/events?type=a", Body: `{}`}
		ours, theirs := post("customer", event), post("", event)
		refused := post("customer", apptest.Call{Path: "/v1/events?type=arefuses", Body: `{}`})
		sink.Wait(2)
		letters := func() int {
			var list struct{ Items []any }
			p.want(200, p.as("customer", apptest.Call{Path: "/v1/dead-letters"})).JSON(t, &list)
			return len(list.Items)
		}
		for letters() == 0 {
		}
		status := func(id string) int { return p.as("customer", apptest.Call{Path: "/v1/events/" + id}).Status }
		until := func(what string, holds func() bool) {
			for start := hands.Now(); !holds(); p.Advance(time.Minute) {
				if hands.Now().Sub(start) > 24*time.Hour {
					t.Fatalf("not within a day: %s", what)
				}
			}
		}
		p.Advance(23 * time.Hour)
		if status(ours) != 200 {
			t.Error("an event is gone before its time")
		}
		p.Advance(61 * time.Minute)
		until("events go", func() bool { return status(ours) == 404 && status(refused) == 404 })
		if letters() != 1 {
			t.Error("the dead letter went with its event")
		}
		until("dead letters stay for a day more", func() bool { return hands.Now().Sub(time.Date(2026, 3, 3, 11, 50, 0, 0, time.UTC)) > 0 })
		if letters() != 1 {
			t.Error("the dead letter is gone before its time")
		}
		until("dead letters go", func() bool { return letters() == 0 })
		p.Must(apptest.Call{Path: "/v1/events/" + theirs}, nil)
	})
}
