package native

import (
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// keysWithout makes a key for each scope that does not open the route.
func (h *harness) keysWithout(need access) map[godwit.Scope]string {
	tokens := map[godwit.Scope]string{}
	for _, s := range godwit.AllScopes {
		if !slices.Contains(need, s) {
			_, tokens[s] = h.mint(h.tenant.ID, s)
		}
	}
	return tokens
}
