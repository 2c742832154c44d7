package native

import (
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// The maker of a portal link must have the scopes of every route that the link's capability opens, or the link would be a way around them.
func TestCapabilitiesNeedTheScopesOfTheirRoutes(t *testing.T) {
	h := newHarness(t)
	opened := map[godwit.Capability]bool{}
	for pattern, need := range h.api.patterns {
		if len(need.Capabilities) == len(godwit.AllCapabilities) { // the session itself
			continue
		}
		for _, c := range need.Capabilities {
			opened[c] = true
			if !slices.ContainsFunc(c.Needs(), func(s godwit.Scope) bool { return slices.Contains(need.Need, s) }) {
				t.Errorf("%s opens %s, which needs one of %v; a link with it needs %v", c, pattern, need.Need, c.Needs())
			}
		}
	}
	if len(opened) != len(godwit.AllCapabilities) {
		t.Errorf("routes name the capabilities %v", opened)
	}
}
