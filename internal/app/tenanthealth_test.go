package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

type tenantList struct {
	Items []struct {
		UID    string
		Health *struct {
			Endpoints      struct{ Disabled, Paused, Open, Failing, Healthy int }
			Waiting        int
			LastAcceptedAt string `json:"last_accepted_at"`
		}
	}
	NextCursor string `json:"next_cursor"`
}

// A list of tenants is searched by a part of the name or uid, and says how each does.
func TestTenantsAreSearchedWithTheirHealth(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p, sink := newPlatform(t, o), apptest.NewSink(t)
		for i, name := range []string{"Ärzte Nord", "ACME Shoes", "acme hats", "Other 100%"} {
			p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": fmt.Sprintf("customer-%d", i), "name": name}}))
		}
		list := func(query string) (out tenantList) {
			t.Helper()
			p.want(200, p.as("", apptest.Call{Path: "/v1/tenants?" + query})).JSON(t, &out)
			return out
		}
		for search, want := range map[string]string{
			"acme": "customer-2 customer-1", "CUSTOMER-3": "customer-3", "%25": "customer-3", "_": "", "rzte": "customer-0", "nothing": "", "hat": "customer-2",
		} {
			var uids []string
			for _, item := range list("search=" + search).Items {
				uids = append(uids, item.UID)
			}
			if got := strings.Join(uids, " "); got != want {
				t.Errorf("%s: found %q, want %q", search, got, want)
			}
		}
		if l := list("limit=2"); l.Items[0].Health != nil || l.NextCursor == "" {
			t.Errorf("without health: %+v", l)
		}

		// One endpoint is fine, one fails, one is paused with a delivery that waits.
		sink.Script("/failing", apptest.Status(422))
		for _, e := range []string{"fine", "failing", "paused"} {
			p.want(201, p.as("customer-1", apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"uid": e, "url": sink.URL("/" + e), "policy": apptest.Fields{"disable_after": 0}}}))
		}
		p.want(200, p.as("customer-1", apptest.Call{Method: http.MethodPost, Path: "/v1/endpoints/paused/pause"}))
		p.want(202, p.as("customer-1", apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`}))
		sink.WaitOn("/fine", 1)
		sink.WaitOn("/failing", 1)
		p.WaitRecorded("the health of the tenant", func() bool {
			h := list("search=shoes&health=true").Items[0].Health
			return h.Endpoints.Failing == 1 && h.LastAcceptedAt != "" && h.Waiting == 1
		}, func() string { return fmt.Sprintf("%+v", *list("search=shoes&health=true").Items[0].Health) })
		h := list("search=shoes&health=true").Items[0].Health
		if h.Endpoints.Healthy != 1 || h.Endpoints.Paused != 1 || h.Endpoints.Open != 0 || h.Endpoints.Disabled != 0 {
			t.Errorf("endpoints: %+v", h.Endpoints)
		}
		if all := list("health=true"); len(all.Items) != 4 || all.Items[0].Health.Waiting != 0 || all.Items[0].Health.LastAcceptedAt != "" {
			t.Errorf("all: %+v", all)
		}
		p.want(400, p.as("", apptest.Call{Path: "/v1/tenants?search="}))
	})
}

// A source tells when it last received an authentic request, without a write for each.
func TestSourceTellsWhenItReceived(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		var source struct {
			ID     string
			Issued struct{ Secret string }
		}
		s.Must(apptest.Call{Path: "/v1/sources", Body: apptest.Fields{"name": "shop", "scheme": "bearer", "event_type": apptest.Fields{"fixed": "shop.told"}}}, &source)
		s.Endpoint(apptest.NewSink(t).URL("/"))
		last := func() (at string, version int64) {
			var list struct {
				Items []struct {
					LastReceivedAt string `json:"last_received_at"`
					Version        int64
				}
			}
			s.Must(apptest.Call{Path: "/v1/sources"}, &list)
			return list.Items[0].LastReceivedAt, list.Items[0].Version
		}
		send := func(i int, secret string) int {
			return s.Call(apptest.Call{Path: "/in/" + source.ID, Key: secret, Body: `{}`, Header: map[string]string{"Idempotency-Key": fmt.Sprintf(`"the-key-of-request-%d"`, i)}}).Status
		}
		send(0, "not the secret")
		if at, _ := last(); at != "" {
			t.Errorf("a forged request counts: %s", at)
		}
		if status := send(1, source.Issued.Secret); status >= 300 {
			t.Fatalf("status %d", status)
		}
		first, version := last()
		if first == "" || version != 1 {
			t.Errorf("received at %q, version %d", first, version)
		}
		send(2, source.Issued.Secret)
		if at, _ := last(); at != first {
			t.Errorf("a second request within the minute was written: %s, %s", first, at)
		}
	})
}
