package identity

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestGrantsNameTheirMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "at least one entry",
		"grants: []":                            "at least one entry",
		"other: 1":                              "other",
		"grants:\n  - group: a":                 "g.yaml:2: grants[0]: must have admin: true, or an environment",
		"grants:\n  - {admin: true}":            "g.yaml:2: grants[0].group: must be given",
		"grants:\n  - {group: a, admin: false}": "grants[0].admin: must be true",
		"grants:\n  - {group: a, admin: true, scopes: [read]}":                          "leave environment, tenants and scopes out",
		"grants:\n  - {group: a, environment: e, scopes: [wirte]}":                      `g.yaml:2: grants[0].scopes[0]: "wirte" is no scope`,
		"grants:\n  - {group: a, environment: e, scopes: [admin]}":                      "use admin: true",
		"grants:\n  - {group: a, environment: e}":                                       "grants[0].scopes: must have at least one scope",
		"grants:\n  - {group: a, environment: e, scopes: [read], tenant: x}":            `unknown key "tenant"`,
		"grants:\n  - {group: a, environment: e, scopes: [read], tenants: []}":          "g.yaml:2: grants[0].tenants: must name at least one tenant",
		"grants:\n  - group: a\n    environment: e\n    scopes: [read]\n    tenants:\n": "g.yaml:5: grants[0].tenants: must name at least one tenant",
		"grants:\n  - text": "must be a mapping",
	} {
		if _, err := ParseGrants("g.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestGrantsOfSeveralGroupsAddUp(t *testing.T) {
	g, err := ParseGrants("g.yaml", []byte(`grants:
  - {group: a, environment: e, scopes: [manage]}
  - {group: b, environment: e, scopes: [read]}
  - {group: b, environment: e, tenants: [x, y], scopes: [audit]}
  - {group: root, admin: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	if places := g.For([]string{"c"}); len(places) != 0 {
		t.Errorf("places without a grant: %v", places)
	}
	places := g.For([]string{"b", "a"})
	if len(places) != 3 || len(places[0].Scopes) != 2 || places[0].Scopes[0] != godwit.ScopeRead || places[2].Tenant != "y" {
		t.Errorf("places: %v", places)
	}
	if places := g.For([]string{"a", "root"}); len(places) != 1 || places[0].Environment != "" || len(places[0].Scopes) != len(godwit.AllScopes) {
		t.Errorf("places of an administrator: %v", places)
	}
}
