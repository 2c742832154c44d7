package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// An Action is what a change does.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
	// Check puts an object again that shows no difference, since it has secrets that only the server can compare.
	Check Action = "check"
)

// A Change makes one object as the files describe it.
type Change struct {
	Action Action
	Address
	At          Position // of the object; no file for a deletion
	Differences []Difference
	// Changed is set by a run: whether the server changed the object.
	Changed bool

	want *Object
	have *Found
	body map[string]any
}

// A Plan is the way from the server to the files.
type Plan struct {
	Changes []*Change
	// Same counts the objects that are as the files describe them.
	Same int
	// Notes are for the user: values that were not compared.
	Notes []string
	// Whole environments, as they will be, by uid.
	environments map[string]map[string]any
}

// Options of a plan.
type Options struct {
	// Environment is the uid of the environment that the files leave open. Defaults to that of the API key, or else to the server's first.
	Environment string
	// Prune deletes what the files do not have, of the lists that they have: endpoints with a uid, sources and event types of a tenant
	// whose list is in the files; tenants with a uid and shared event types of an environment that is in the files itself, with that list.
	Prune   bool
	Secrets Secrets
}

// MakePlan reads the server and compares it with the files.
func MakePlan(ctx context.Context, s *Server, f *Files, o Options) (*Plan, error) {
	usual, err := s.Environments(ctx)
	if err != nil {
		return nil, err
	}
	if o.Environment != "" {
		usual = s.uid(o.Environment)
	}
	if err := f.setEnvironment(usual); err != nil {
		return nil, err
	}
	if err := f.known(s); err != nil {
		return nil, err
	}
	for _, uid := range f.uses() {
		if s.found[Address{Kind: environments, ID: uid}] == nil {
			continue // it will be created
		}
		if err := s.Read(ctx, uid, f.scope(uid)); err != nil {
			return nil, err
		}
	}
	p := &planner{Plan: &Plan{environments: map[string]map[string]any{}}, s: s, f: f, o: o}
	p.compare()
	if o.Prune {
		p.prune()
	}
	slices.SortStableFunc(p.Changes, func(a, b *Change) int { return a.phase() - b.phase() })
	return p.Plan, p.faults.err()
}

// known refuses environments that neither the files nor the server have.
func (f *Files) known(s *Server) error {
	var faults Faults
	reported := map[string]bool{}
	for _, o := range f.Objects {
		owner := Address{Kind: environments, ID: o.Environment}
		if o.Kind == environments || s.found[owner] != nil || f.byName[owner] != nil || reported[o.Environment] {
			continue
		}
		reported[o.Environment] = true
		at, named := f.named[o.Environment]
		if !named {
			at = o.At
		}
		faults.add(at, "there is no environment %q: describe it under environments, or name another", o.Environment)
	}
	return faults.err()
}

// scope says what must be read of an environment.
func (f *Files) scope(environment string) scope {
	want := scope{ownTypes: func(tenant string) bool { return f.sections[section{eventTypes, environment, tenant}] }}
	for s := range f.sections {
		if s.environment != environment {
			continue
		}
		want.types = want.types || s.kind == eventTypes && s.tenant == ""
		want.tenants = want.tenants || s.kind == tenants
		want.endpoints = want.endpoints || s.kind == endpoints
		want.sources = want.sources || s.kind == sources
	}
	return want
}

type planner struct {
	*Plan
	s      *Server
	f      *Files
	o      Options
	faults Faults
}

// environment returns an environment as it will be.
func (p *planner) environment(uid string) map[string]any {
	if known, ok := p.environments[uid]; ok {
		return known
	}
	a := Address{Kind: environments, ID: uid}
	var document map[string]any
	if o := p.f.byName[a]; o != nil {
		document = o.document
	} else if have := p.s.found[a]; have != nil {
		document = have.document
	}
	p.environments[uid] = document
	return document
}

// compare finds what to create and to update.
func (p *planner) compare() {
	for _, o := range p.f.Objects {
		have := p.s.found[o.Address]
		if have == nil {
			p.create(o)
			continue
		}
		found := differences(o, have, p.environment(o.Environment))
		body, lacks := p.o.Secrets.resolve(o, o.Kind.creation)
		switch {
		case len(found) > 0:
			p.report(o, lacks, "to change it, all its secrets are needed: the server cannot show them, and would remove those that are not sent")
			p.add(&Change{Action: Update, Differences: found, want: o, have: have, body: body})
		case len(lacks) > 0:
			p.Same++
			p.Notes = append(p.Notes, fmt.Sprintf("%s: %s: its secrets were not compared: %s", o.At, o.Address, lacks[0].why))
		case o.hasSealed():
			p.add(&Change{Action: Check, want: o, have: have, body: body})
		default:
			p.Same++
		}
	}
}

func (p *planner) create(o *Object) {
	body, lacks := p.o.Secrets.resolve(o, nil)
	p.report(o, lacks, "")
	c := &Change{Action: Create, want: o, body: body}
	for name, value := range o.document {
		if o.secret(name) {
			value = hidden{}
		}
		c.Differences = append(c.Differences, Difference{Path: name, After: value})
	}
	slices.SortFunc(c.Differences, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	p.add(c)
}

// report adds a fault for each secret that is not there.
func (p *planner) report(o *Object, lacks []missing, why string) {
	if why != "" {
		why = "; " + why
	}
	for _, m := range lacks {
		p.faults.add(o.node.find(m.path), "%s: %s: %s%s", o.Address, strings.Join(m.path, "."), m.why, why)
	}
}

func (p *planner) add(c *Change) {
	c.Address, c.At = c.want.Address, c.want.At
	p.Changes = append(p.Changes, c)
}

// secret reports whether a member must not be shown.
func (o *Object) secret(name string) bool {
	return o.Kind == endpoints && (name == "secret" || slices.Contains(sealed, name)) || o.Kind == sources && name == "credentials"
}

// hasSealed reports whether only the server can compare the object whole.
func (o *Object) hasSealed() bool {
	return o.Kind == endpoints && slices.ContainsFunc(sealed, func(name string) bool { return o.document[name] != nil })
}

// prune finds what to delete.
func (p *planner) prune() {
	var gone []*Change
	for a, have := range p.s.found {
		if a.Kind == environments || p.f.byName[a] != nil || !p.f.sections[section{a.Kind, a.Environment, a.Tenant}] {
			continue
		}
		if a.Tenant == "" && p.f.byName[Address{Kind: environments, ID: a.Environment}] == nil {
			continue // the environment itself must be in the files
		}
		gone = append(gone, &Change{Action: Delete, Address: a, have: have})
	}
	slices.SortFunc(gone, func(a, b *Change) int { return strings.Compare(a.Address.String(), b.Address.String()) })
	p.Changes = append(p.Changes, gone...)
}

// phase orders changes: what others depend on first, deletions last.
func (c *Change) phase() int {
	order := map[*Kind]int{environments: 0, eventTypes: 1, tenants: 2, endpoints: 3, sources: 3}[c.Kind]
	if c.Kind == eventTypes && c.Tenant != "" {
		order = 3
	}
	if c.Action == Delete {
		return 10 - order // a tenant's own before the tenant
	}
	return order
}

// Count counts the changes with an action.
func (p *Plan) Count(a Action) (n int) {
	for _, c := range p.Changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

// DeletedTenants counts the tenants that would be deleted.
func (p *Plan) DeletedTenants() (n int) {
	for _, c := range p.Changes {
		if c.Action == Delete && c.Kind == tenants {
			n++
		}
	}
	return n
}
