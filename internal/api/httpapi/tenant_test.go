package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// TestTenantHeader: in every API an administrator's event is stored for the tenant that Godwit-Tenant names. Keys without
// the scope admin, and values that are not a tenant's id, are refused, and nothing is stored.
func TestTenantHeader(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	other, reader := srv.NewTenant("other", godwit.ScopeRead)
	producer := srv.NewKey(srv.Tenant, godwit.ScopeIngest)
	command := func(key, tenant string) string {
		var who struct {
			Caller struct {
				Actor string `json:"actor_id"`
			} `json:"caller"`
		}
		srv.Must(apptest.Call{Path: "/ids/v1/registry", Key: key}, &who)
		now := time.Now()
		return fmt.Sprintf(`{"command_id":%q,"tenant_id":%q,"actor_id":%q,"intent":{"entity":"event","action":"publish"},`+
			`"args":{"type":"order.paid","data":{}},"issued_at":%q}`, godwit.NewCommandID(now), tenant, who.Caller.Actor, now.Format(time.RFC3339))
	}
	events := 0
	stored := func() int {
		var list struct {
			Items []struct{} `json:"items"`
		}
		srv.Must(apptest.Call{Path: "/v1/events", Key: reader}, &list)
		return len(list.Items)
	}
	for _, api := range []struct {
		name, path string
		body       func(key string) string
	}{
		{"native", "/v1/events", func(string) string { return `{"type":"order.paid","data":{}}` }},
		{"ojs", "/ojs/v1/events", func(string) string { return `{"type":"order.paid","source":"ojs://shop","data":{}}` }},
		{"cybercube", "/api/v1/webhooks/events", func(string) string {
			return `{"type":"project.created","data":{"object":{"id":"p_1","object":"project","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}}}`
		}},
		{"ids", "/ids/v1/commands", func(key string) string { return command(key, other.String()) }},
	} {
		t.Run(api.name, func(t *testing.T) {
			call := func(key, tenant string) *apptest.Response {
				return srv.Call(apptest.Call{Path: api.path, Key: key, Body: api.body(key), Header: map[string]string{httpapi.TenantHeader: tenant}})
			}
			if got := call(producer, other.String()); got.Status != 403 {
				t.Errorf("a key without admin: %d %s", got.Status, got.Body)
			}
			if got := call(srv.Key, ""); got.Status != 400 {
				t.Errorf("no name of a tenant: %d %s", got.Status, got.Body)
			}
			if got := call(srv.Key, "other"); got.Status != 404 {
				t.Errorf("an unknown uid: %d %s", got.Status, got.Body)
			}
			if got := call(srv.Key, godwit.NewTenantID(time.Now()).String()); got.Status != 404 {
				t.Errorf("an unknown tenant: %d %s", got.Status, got.Body)
			}
			if n := stored(); n != events {
				t.Fatalf("refused requests stored %d events", n-events)
			}
			if got := call(srv.Key, other.String()); got.Status/100 != 2 {
				t.Fatalf("an administrator: %d %s", got.Status, got.Body)
			}
			if events++; stored() != events {
				t.Errorf("the event is not in the tenant that the header names")
			}
		})
	}
}
