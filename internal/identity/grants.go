package identity

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Grant says what the members of a group may do: everything on this server, or some scopes in an environment or in some of its tenants.
type Grant struct {
	Group       string
	Admin       bool
	Environment string // id or uid
	Tenants     []string
	Scopes      []godwit.Scope
}

// Grants are the content of the grants file.
type Grants []Grant

// A Place is where a person may act: the server, an environment, or a tenant.
type Place struct {
	Environment string // id or uid; "" is the server
	Tenant      string // id or uid; "" is the environment
	Scopes      []godwit.Scope
}

// For returns the places of a person in these groups. Scopes of several groups at the same place add up. An administrator of the server has no other place.
func (g Grants) For(groups []string) []Place {
	var places []Place
	add := func(environment, tenant string, scopes []godwit.Scope) {
		i := slices.IndexFunc(places, func(p Place) bool { return p.Environment == environment && p.Tenant == tenant })
		if i < 0 {
			i = len(places)
			places = append(places, Place{Environment: environment, Tenant: tenant})
		}
		places[i].Scopes = MergeScopes(places[i].Scopes, scopes)
	}
	for _, grant := range g {
		switch {
		case !slices.Contains(groups, grant.Group):
		case grant.Admin:
			return []Place{{Scopes: slices.Clone(godwit.AllScopes)}}
		case len(grant.Tenants) == 0:
			add(grant.Environment, "", grant.Scopes)
		default:
			for _, tenant := range grant.Tenants {
				add(grant.Environment, tenant, grant.Scopes)
			}
		}
	}
	return places
}

// MergeScopes returns the scopes that are in a or b, in the order of godwit.AllScopes.
func MergeScopes(a, b []godwit.Scope) []godwit.Scope {
	var all []godwit.Scope
	for _, s := range godwit.AllScopes {
		if slices.Contains(a, s) || slices.Contains(b, s) {
			all = append(all, s)
		}
	}
	return all
}

// grantsFile is the form of the grants file.
type grantsFile struct {
	Grants []yaml.Node `yaml:"grants"`
}

type grantEntry struct {
	Group       yaml.Node   `yaml:"group"`
	Admin       yaml.Node   `yaml:"admin"`
	Environment yaml.Node   `yaml:"environment"`
	Tenants     []yaml.Node `yaml:"tenants"`
	Scopes      []yaml.Node `yaml:"scopes"`
}

const maxGrantsFile = 1 << 20

// ReadGrants reads the grants file.
func ReadGrants(path string) (Grants, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("oidc-grants: %w", err)
	}
	g, err := ParseGrants(path, text)
	if err != nil {
		return nil, fmt.Errorf("oidc-grants: %w", err)
	}
	return g, nil
}

// ParseGrants reads grants. Errors name the file and the line of each mistake.
func ParseGrants(path string, text []byte) (Grants, error) {
	if len(text) > maxGrantsFile {
		return nil, fmt.Errorf("%s: must be at most %d bytes", path, maxGrantsFile)
	}
	var f grantsFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: must be one document", path)
	}
	p := grantParser{path: path}
	if len(f.Grants) == 0 {
		return nil, fmt.Errorf("%s: grants: must have at least one entry, such as {group: operators, admin: true}", path)
	}
	grants := make(Grants, len(f.Grants))
	for i := range f.Grants {
		grants[i] = p.grant(i, &f.Grants[i])
	}
	return grants, errors.Join(p.errs...)
}

type grantParser struct {
	path string
	errs []error
}

func (p *grantParser) bad(line int, field, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s: %s", p.path, line, field, fmt.Sprintf(format, args...)))
}

func (p *grantParser) grant(i int, n *yaml.Node) (g Grant) {
	at := fmt.Sprintf("grants[%d]", i)
	if !p.knownKeys(at, n) {
		return g
	}
	var e grantEntry
	if err := n.Decode(&e); err != nil {
		p.bad(n.Line, at, "%v", err)
		return g
	}
	g.Group = p.text(at+".group", &e.Group)
	if e.Group.Kind == 0 {
		p.bad(n.Line, at+".group", "must be given")
	}
	if e.Admin.Kind != 0 {
		if err := e.Admin.Decode(&g.Admin); err != nil || !g.Admin {
			p.bad(e.Admin.Line, at+".admin", "must be true; leave it out otherwise")
		}
		if e.Environment.Kind != 0 || len(e.Tenants) > 0 || len(e.Scopes) > 0 {
			p.bad(n.Line, at, "admin grants everything on the server: leave environment, tenants and scopes out")
		}
		return g
	}
	if e.Environment.Kind == 0 {
		p.bad(n.Line, at, "must have admin: true, or an environment")
	} else {
		g.Environment = p.text(at+".environment", &e.Environment)
	}
	for j := range e.Tenants {
		g.Tenants = append(g.Tenants, p.text(fmt.Sprintf("%s.tenants[%d]", at, j), &e.Tenants[j]))
	}
	for i := 0; i < len(n.Content) && len(e.Tenants) == 0; i += 2 {
		if key := n.Content[i]; key.Value == "tenants" {
			p.bad(key.Line, at+".tenants", "must name at least one tenant; leave it out to grant the whole environment")
		}
	}
	if len(e.Scopes) == 0 {
		p.bad(n.Line, at+".scopes", "must have at least one scope: %s", grantableScopes())
	}
	for j := range e.Scopes {
		g.Scopes = append(g.Scopes, p.scope(fmt.Sprintf("%s.scopes[%d]", at, j), &e.Scopes[j]))
	}
	return g
}

// knownKeys refuses keys that have no meaning, which yaml does not do below a node.
func (p *grantParser) knownKeys(at string, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		p.bad(n.Line, at, "must be a mapping with group, and admin or environment")
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains([]string{"group", "admin", "environment", "tenants", "scopes"}, key.Value) {
			p.bad(key.Line, at, "unknown key %q; there are group, admin, environment, tenants and scopes", key.Value)
			return false
		}
	}
	return true
}

func (p *grantParser) text(at string, n *yaml.Node) string {
	var s string
	if n.Kind == 0 {
		return ""
	}
	if err := n.Decode(&s); err != nil || s == "" || n.Tag == "!!null" {
		p.bad(n.Line, at, "must be a text that is not empty")
	}
	return s
}

func (p *grantParser) scope(at string, n *yaml.Node) godwit.Scope {
	s := godwit.Scope(p.text(at, n))
	switch {
	case s == godwit.ScopeAdmin || s == godwit.ScopeMetrics:
		p.bad(n.Line, at, "%s concerns the whole server; use admin: true", s)
	case s != "" && !slices.Contains(godwit.AllScopes, s):
		p.bad(n.Line, at, "%q is no scope; there are %s", s, grantableScopes())
	}
	return s
}

func grantableScopes() string {
	var names []string
	for _, s := range godwit.AllScopes {
		if s != godwit.ScopeAdmin && s != godwit.ScopeMetrics {
			names = append(names, string(s))
		}
	}
	return strings.Join(names, ", ")
}

// Groups lists the groups that have a grant, each once.
func (g Grants) Groups() []string {
	var names []string
	for _, grant := range g {
		names = append(names, grant.Group)
	}
	slices.SortFunc(names, cmp.Compare)
	return slices.Compact(names)
}
