package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestTenants(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	second := srv.NewKey(srv.Tenant, godwit.AllScopes...) // older than what it approves
	u := newUser(t)
	u.stdin = second
	u.must("login", srv.URL, "--name", "second")
	u.stdin = srv.Key
	u.must("login", srv.URL, "--name", "first")

	made := decode(t, u.has([]string{"tenants", "create", "acme", "--event-validation", "known", "--alert-emails", "a@example.com,b@example.com", "--json"}))
	id := made["id"].(string)
	if made["event_validation"] != "known" || len(made["alert_emails"].([]any)) != 2 {
		t.Errorf("made %v", made)
	}
	u.has([]string{"tenants", "list"}, id, "acme")
	u.has([]string{"tenants", "update", id, "--name", "other", "--require-idempotency-key"}, "name                     other", "require_idempotency_key  true")
	u.has([]string{"tenants", "update", id, "--no-require-idempotency-key"}, "require_idempotency_key  false")
	limited := decode(t, u.has([]string{"tenants", "update", id, "--limits", "events_per_second=100,burst=500", "--limits", "endpoints=2", "--json"}))
	if limits := limited["limits"].(map[string]any); len(limits) != 3 || limits["burst"] != 500.0 || limits["endpoints"] != 2.0 {
		t.Errorf("limits are %v", limits)
	}
	u.refused([]string{"tenants", "update", id, "--limits", "events=1"}, "events")
	u.has([]string{"endpoints", "create", "http://127.0.0.1:9/", "--tenant", id}, "sub_")
	u.has([]string{"endpoints", "list"}, "no endpoints")

	u.refused([]string{"tenants", "delete", id, "--yes"}, "--approver-context")
	u.refused([]string{"tenants", "delete", id, "--yes", "--approver-context", "third"}, "no context")
	u.refused([]string{"tenants", "delete", id, "--yes", "--approver-context", "first"}, "approve with context first")
	u.has([]string{"tenants", "get", id}, id)
	u.has([]string{"tenants", "delete", id, "--yes", "--approver-context", "second"}, "deleted "+id)
	u.refused([]string{"tenants", "get", id}, "404")
}

func TestEnvironments(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	u.has([]string{"environments", "list"}, "default")
	made := decode(t, u.has([]string{"environments", "create", "staging", "--name", "Staging", "--no-live", "--event-validation", "strict", "--json"}))
	if made["uid"] != "staging" || made["live"] != false || made["event_validation"] != "strict" {
		t.Errorf("made %v", made)
	}
	u.has([]string{"environments", "update", "staging", "--name", "Rehearsal", "--endpoint-profile", "ojs", "--limits", "endpoints=7"}, "Rehearsal", "ojs", "endpoints  7")
	u.has([]string{"environments", "get", made["id"].(string)}, "Rehearsal")
	u.refused([]string{"environments", "delete", "staging"}, "--yes")
	u.has([]string{"environments", "delete", "staging", "--yes"}, "deleted staging")
	u.refused([]string{"environments", "get", "staging"}, "404")
	u.has([]string{"tenants", "create", "acme", "--uid", "customer-1"}, "customer-1")
	if made := decode(t, u.has([]string{"environments", "create", "demo", "--json"})); made["name"] != "demo" {
		t.Errorf("made %v", made)
	}
	u.has([]string{"tenants", "create", "there", "--uid", "there", "--environment", "demo"}, "there")
	u.has([]string{"endpoints", "create", "https://example.com/", "--environment", "demo", "--tenant", "there"}, "sub_")
	u.has([]string{"endpoints", "list", "--environment", "demo"}, "https://example.com/")
	u.refused([]string{"tenants", "get", "there"}, "404")
	var issued struct{ Token string }
	srv.Must(apptest.Call{Path: "/v1/keys", Header: map[string]string{"Godwit-Environment": "demo"}, Body: `{"name":"a","scopes":["read","manage"]}`}, &issued)
	other := newUser(t)
	other.stdin = issued.Token
	other.must("login", srv.URL, "--name", "demo")
	other.has([]string{"whoami"}, "environment  demo")
	other.has([]string{"tenants", "list"}, "there")
	u2 := newUser(t)
	u2.stdin = srv.Key
	u2.must("login", srv.URL, "--name", "ops", "--environment", "demo")
	u2.has([]string{"tenants", "get", "there"}, "there")
	u2.has([]string{"context", "list"}, "demo")
}

func TestSourcesNoticesAndTypes(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	made := decode(t, u.has([]string{"sources", "create", "gh", "--scheme", "github", "--adopt", "--keep-headers", "X-GitHub-Event", "--json"}))
	id, secret := made["id"].(string), made["issued"].(map[string]any)["secret"].(string)
	if made["adopt"] != true || secret == "" {
		t.Errorf("made %v", made)
	}
	if stdout := u.has([]string{"sources", "get", id}, "github"); strings.Contains(stdout, secret) {
		t.Error("a source shows its secret")
	}
	u.has([]string{"sources", "pause", id}, "paused")
	u.has([]string{"sources", "resume", id}, "active")
	u.has([]string{"sources", "update", id, "--name", "hub", "--no-adopt", "--json"}, `"name":"hub"`, `"adopt":false`)
	u.has([]string{"sources", "rotate", id, "--overlap", "1h"}, "issued:", "secret")
	srv.Call(apptest.Call{Method: http.MethodPost, Path: made["path"].(string), Body: "forged"})
	u.has([]string{"sources", "rejections", id}, "not-authentic", "401")
	u.has([]string{"sources", "acknowledgments", id}, "no acknowledgments")
	u.refused([]string{"sources", "acknowledge", id, "--version", "1", "--by", "me"}, "acknowledge source", "409")
	u.has([]string{"sources", "list", "--json"}, id)
	u.has([]string{"sources", "delete", id, "--yes"}, "deleted "+id)
	u.has([]string{"sources", "list"}, "no sources")

	u.has([]string{"notices", "list", "--open"}, "no notices")
	u.refused([]string{"notices", "acknowledge", "ntc_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"}, "404")

	srv.Must(apptest.Call{Method: http.MethodPut, Path: "/v1/event-types/order.paid", Body: `{"description":"paid","schema":{"type":"object"}}`}, nil)
	u.has([]string{"types", "list"}, "order.paid  version 1  paid")
	if stdout := u.has([]string{"types", "list", "--json"}, `"order.paid"`); !strings.HasPrefix(stdout, "[") {
		t.Errorf("as JSON: %s", stdout)
	}
	u.has([]string{"types", "get", "order.paid"}, "versions:", "schema")
	u.has([]string{"types", "delete", "order.paid", "--yes"}, "deleted order.paid")
	u.has([]string{"types", "list"}, "no event types")
}
