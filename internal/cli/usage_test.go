package cli

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

func TestUsage(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	u.has([]string{"usage"}, "no usage")
	u.has([]string{"tenants", "create", "acme", "--uid", "customer-1"}, "customer-1")
	for _, tenant := range []string{"customer-1", "customer-1", srv.Tenant.String()} {
		if r := srv.Call(apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"n":1}`, Header: map[string]string{"Godwit-Tenant": tenant}}); r.Status != 202 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	u.has([]string{"usage"}, "TENANT", "customer-1", srv.Tenant.String())
	u.has([]string{"usage", "list", "--limit", "1"}, "customer-1")
	u.has([]string{"usage", "--json"}, `"total":{"events":2,`, `"total":{"events":1,`)
	if out := u.has([]string{"usage", "--tenant", "customer-1", "--json"}, `"total":{"events":2,`); strings.Contains(out, srv.Tenant.String()) {
		t.Errorf("--tenant shows another: %s", out)
	}
	u.has([]string{"usage", "--by", "day"}, "DAY", "total            3 ")
	u.has([]string{"usage", "--by", "day", "--tenant", "customer-1"}, "total            2 ")
	u.has([]string{"usage", "--by", "day", "--json"}, `{"day":"20`)
	u.has([]string{"usage", "--from", "2020-01-01", "--to", "2020-01-31"}, "no usage")
	u.refused([]string{"usage", "--from", "yesterday"}, "list usage", "from")
	u.refused([]string{"usage", "--by", "day", "--from", "yesterday"}, "add up usage", "from")
	u.refused([]string{"usage", "--by", "day", "--watch"}, "--watch")
}
