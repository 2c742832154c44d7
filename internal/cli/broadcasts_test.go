package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestBroadcasts(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	sink := apptest.NewSink(t)
	u := at(t, srv)
	srv.Endpoint(sink.URL("/"))
	srv.NewTenant("quiet", godwit.ScopeRead)
	r := srv.Call(apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`, Header: map[string]string{"Godwit-Tenant": "*"}})
	var answer struct{ ID string }
	if err := json.Unmarshal(r.Body, &answer); err != nil || r.Status != 202 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	u.has([]string{"broadcasts", "list"}, answer.ID, "order.paid", "ended")
	u.has([]string{"broadcasts", "get", answer.ID}, answer.ID, "accepted", "ended_at")
	u.has([]string{"broadcasts", "tenants", answer.ID}, srv.Tenant.String(), "evt_")
	if stdout := u.has([]string{"broadcasts", "tenants", answer.ID, "--skipped"}); strings.Contains(stdout, "evt_") {
		t.Errorf("skipped: %s", stdout)
	}
}
