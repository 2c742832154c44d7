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
		if !slices.Contains(need, s) {
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
