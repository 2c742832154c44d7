package native

import (
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// keysWithout makes a key for each scope that does not permit the route.
func (h *harness) keysWithout(need access) map[godwit.Scope]string {
	tokens := map[godwit.Scope]string{}
	for _, s := range godwit.AllScopes {
		if !slices.Contains(need.Need, s) {
			_, tokens[s] = h.mint(h.tenant.ID, s)
		}
	}
	return tokens
}

// Metrics cover all tenants: an administrator may grant the scope to other keys, the manager of a tenant may not.
func TestWhoMayGrantMetrics(t *testing.T) {
	h := newHarness(t)
	for scope, want := range map[godwit.Scope]int{godwit.ScopeManage: 403, godwit.ScopeAdmin: 201} {
		_, token := h.mint(h.tenant.ID, scope)
		if a := h.do(call{method: "POST", path: "/v1/keys", token: token, body: `{"name":"prometheus","scopes":["metrics"]}`}); a.status != want {
			t.Errorf("a key with %s grants metrics: %d %s", scope, a.status, a.body)
		}
	}
}

// A key shows which principals made it, so that an administrator can see why it may not approve a command.
func TestKeyShowsItsMakers(t *testing.T) {
	h := newHarness(t)
	root, token := h.mint(h.tenant.ID, godwit.ScopeManage)
	type view struct {
		ID, Principal, Token string
		MadeBy               []string `json:"made_by"`
	}
	var first, second, shown view
	h.do(call{method: "POST", path: "/v1/keys", token: token, body: `{"name":"first","scopes":["manage"]}`}).want(201).into(&first)
	h.do(call{method: "POST", path: "/v1/keys", token: first.Token, body: `{"name":"second","scopes":["manage"]}`}).want(201).into(&second)
	h.do(call{method: "GET", path: "/v1/keys/" + second.ID, token: token}).want(200).into(&shown)
	if !slices.Equal(first.MadeBy, []string{root.Principal.String()}) || !slices.Equal(shown.MadeBy, []string{root.Principal.String(), first.Principal}) {
		t.Errorf("made by %v and %v", first.MadeBy, shown.MadeBy)
	}
	h.do(call{method: "GET", path: "/v1/keys/" + root.ID.String(), token: token}).want(200).into(&shown)
	if shown.MadeBy == nil || len(shown.MadeBy) != 0 {
		t.Errorf("the operator's key is made by %v", shown.MadeBy)
	}
}
