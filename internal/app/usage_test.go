package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// An environment's key sees what each of its tenants used, a tenant's key its own, an administrator everything.
func TestUsageIsShownToItsOwners(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		sink := apptest.NewSink(t)
		ids := map[string]string{}
		for i, uid := range []string{"customer-1", "customer-2"} {
			var made struct{ ID string }
			p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": uid, "name": uid}})).JSON(t, &made)
			ids[uid] = made.ID
			for range i { // the second has an endpoint
				p.want(201, p.as(uid, apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": sink.URL("/")}}))
			}
			for range i + 1 {
				p.want(202, p.as(uid, apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"n":1}`}))
			}
		}
		type usage struct {
			Items []struct {
				TenantID  string `json:"tenant_id"`
				TenantUID string `json:"tenant_uid"`
				Total     struct {
					Events, Deliveries int64
					BytesAccepted      int64 `json:"bytes_accepted"`
				}
				Days []struct{ Day string }
			}
			NextCursor string `json:"next_cursor"`
		}
		var all usage
		p.want(200, p.as("", apptest.Call{Path: "/v1/usage"})).JSON(t, &all)
		if len(all.Items) != 2 || all.Items[0].TenantUID != "customer-2" || all.Items[1].TenantID != ids["customer-1"] || len(all.Items[0].Days) == 0 {
			t.Fatalf("usage of the environment is %+v", all)
		}
		if one := all.Items[1].Total; one.Events != 1 || one.Deliveries != 0 || one.BytesAccepted != 7 {
			t.Errorf("usage of the first is %+v", one)
		}
		if two := all.Items[0].Total; two.Deliveries != 2 {
			t.Errorf("usage of the second is %+v", two)
		}
		var page usage
		p.want(200, p.as("", apptest.Call{Path: "/v1/usage?limit=1"})).JSON(t, &page)
		if len(page.Items) != 1 || page.NextCursor == "" {
			t.Fatalf("first page is %+v", page)
		}
		var rest usage
		p.want(200, p.as("", apptest.Call{Path: "/v1/usage?limit=1&cursor=" + page.NextCursor})).JSON(t, &rest)
		if len(rest.Items) != 1 || rest.Items[0].TenantUID != "customer-1" || rest.NextCursor != "" {
			t.Errorf("second page is %+v", rest)
		}

		only := func(what, want string, r *apptest.Response) {
			t.Helper()
			var got usage
			p.want(200, r).JSON(t, &got)
			if len(got.Items) != 1 || got.Items[0].TenantUID != want {
				t.Errorf("%s: %+v", what, got)
			}
		}
		only("a chosen tenant", "customer-1", p.as("", apptest.Call{Path: "/v1/usage?tenant_id=customer-1"}))
		only("acting for a tenant", "customer-1", p.as("customer-1", apptest.Call{Path: "/v1/usage"}))
		tenant, err := godwit.ParseTenantID(ids["customer-2"])
		if err != nil {
			t.Fatal(err)
		}
		own := p.NewKey(tenant, godwit.ScopeRead)
		only("the tenant's own key", "customer-2", p.Call(apptest.Call{Path: "/v1/usage", Key: own}))
		p.want(404, p.Call(apptest.Call{Path: "/v1/usage?tenant_id=" + ids["customer-1"], Key: own}))
		only("an administrator", "customer-1", p.Call(apptest.Call{Path: "/v1/usage?tenant_id=" + ids["customer-1"]}))
		var of apptest.Fields
		p.want(200, p.Call(apptest.Call{Path: "/v1/usage", Header: map[string]string{"Godwit-Tenant": p.Tenant.String()}})).JSON(t, &of)
		if items, _ := of["items"].([]any); len(items) != 0 {
			t.Errorf("an administrator that names its own tenant, which used nothing, sees %v", items)
		}
		for _, c := range []struct {
			what   string
			events int64
			r      *apptest.Response
		}{
			{"the environment", 3, p.as("", apptest.Call{Path: "/v1/usage/total"})},
			{"a chosen tenant", 2, p.as("", apptest.Call{Path: "/v1/usage/total?tenant_id=customer-2"})},
			{"the tenant's own key", 2, p.Call(apptest.Call{Path: "/v1/usage/total", Key: own})},
			{"an administrator", 3, p.Call(apptest.Call{Path: "/v1/usage/total"})},
		} {
			var sum struct {
				Total struct{ Events int64 }
				Days  []struct{ Events int64 }
			}
			p.want(200, c.r).JSON(t, &sum)
			if sum.Total.Events != c.events || len(sum.Days) == 0 {
				t.Errorf("sum for %s: %+v, want %d events", c.what, sum, c.events)
			}
		}
		p.want(400, p.as("", apptest.Call{Path: "/v1/usage/total?from=x"}))
		var foreign usage
		p.want(200, p.as("", apptest.Call{Path: "/v1/usage?tenant_id=" + p.Tenant.String()})).JSON(t, &foreign)
		if len(foreign.Items) != 0 {
			t.Errorf("a tenant of another environment is shown: %+v", foreign)
		}

		tomorrow := time.Now().AddDate(0, 0, 2).UTC().Format(time.DateOnly)
		var none usage
		p.want(200, p.as("", apptest.Call{Path: "/v1/usage?from=" + tomorrow + "&to=" + tomorrow})).JSON(t, &none)
		if len(none.Items) != 0 {
			t.Errorf("usage of a day to come: %+v", none)
		}
		for _, query := range []string{"from=x", "to=2026-13-01", "from=2026-02-02&to=2026-02-01", "from=2020-01-01&to=2026-01-01"} {
			p.want(400, p.as("", apptest.Call{Path: "/v1/usage?" + query}))
		}

		c, err := client.New(p.URL, p.key)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for u, err := range c.Usage(t.Context(), client.UsageQuery{Tenant: "customer-1", From: time.Now().AddDate(0, 0, -1), To: time.Now().AddDate(0, 0, 1)}) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, fmt.Sprintf("%s %d %d", u.TenantUID, u.Total.Events, len(u.Days)))
		}
		if len(seen) != 1 || seen[0] != "customer-1 1 1" {
			t.Errorf("the client sees %q", seen)
		}
		if sum, err := c.UsageTotal(t.Context(), client.UsageQuery{}); err != nil || sum.Total.Events != 3 {
			t.Errorf("the client sees in total %+v (%v)", sum, err)
		}
	})
}
