package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// changeTries bounds how often a change is made anew because another request created or changed the object meanwhile. Each further try
// means that another request succeeded, so the bound is reached only if that many write one object at the same time.
const changeTries = 50

// raced reports whether a creation failed because another request created the object first.
func raced(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, problem.Conflict)
}

// errUnchanged reports that an object is already as a change would make it. Its version does not grow then.
var errUnchanged = errors.New("nothing to change")

// expect refuses a request whose expectation of an object does not hold.
func expect(m godwit.Match, version int64) error {
	if m.Holds(version) {
		return nil
	}
	if version == 0 {
		return problem.PreconditionFailed.With("there is no such object, and the request expects one")
	}
	return problem.PreconditionFailed.With("the object has the version %d now; read it again", version)
}

// Put creates the endpoint with a uid, or replaces the settings of the one that there is; named may also be its id. The secret is nil if
// the endpoint was there: what only a creation uses (algorithm, secret, paused) then has no effect.
func (es *Endpoints) Put(ctx context.Context, t *godwit.Tenant, named string, n NewEndpoint, m godwit.Match) (*godwit.Endpoint, *IssuedSecret, error) {
	for try := 1; ; try++ {
		e, err := es.Resolve(ctx, t.ID, named)
		if err == nil {
			e, err = es.replace(ctx, t, e, n, m)
			if errors.Is(err, store.ErrNotFound) && try < changeTries {
				continue // it was deleted meanwhile
			}
			return e, nil, err
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, nil, err
		}
		if checkUID("id", named) != nil {
			return nil, nil, err // an id of ours, or text that names nothing
		}
		if err := expect(m, 0); err != nil {
			return nil, nil, err
		}
		n.UID = named
		e, issued, err := es.Create(ctx, t, n)
		if err == nil || try == changeTries || !raced(err) {
			return e, issued, err
		}
	}
}

// replace gives an endpoint other settings. Members of the specification that are secret are removed if they are not given.
func (es *Endpoints) replace(ctx context.Context, t *godwit.Tenant, found *godwit.Endpoint, n NewEndpoint, m godwit.Match) (*godwit.Endpoint, error) {
	return es.change(ctx, found.TenantID, found.ID, m, func(e *godwit.Endpoint) error {
		next := n
		next.UID, next.Profile = cmp.Or(n.UID, e.UID), cmp.Or(n.Profile, e.Profile)
		next.setDefaults(t)
		spec := next.EndpointSpec
		if spec.Profile != e.Profile {
			return fieldError("profile", "is fixed when an endpoint is created; create another one")
		}
		if _, err := es.rules.validate(&spec); err != nil {
			return err
		}
		before, err := es.sealer.open(e)
		if err != nil {
			return err
		}
		if equalSpecs(before, &spec) {
			return errUnchanged
		}
		if err := es.uidFree(ctx, e, spec.UID); err != nil {
			return err
		}
		if err := es.checkSigners(ctx, e, spec.Signing); err != nil {
			return err
		}
		return es.sealer.apply(e, &spec)
	})
}

// equalSpecs compares specifications; a list or map that is empty equals one that is missing.
func equalSpecs(a, b *EndpointSpec) bool {
	normal := func(s EndpointSpec) EndpointSpec {
		if len(s.Filter) == 0 {
			s.Filter = nil
		}
		if len(s.Content) == 0 {
			s.Content = nil
		}
		if len(s.Headers) == 0 {
			s.Headers = nil
		}
		if len(s.Metadata) == 0 {
			s.Metadata = nil
		}
		if len(s.Policy.Statuses) == 0 {
			s.Policy.Statuses = nil
		}
		return s
	}
	return reflect.DeepEqual(normal(*a), normal(*b))
}

// uidFree refuses the uid of another endpoint. The store does so too, where two requests pass each other.
func (es *Endpoints) uidFree(ctx context.Context, e *godwit.Endpoint, uid string) error {
	if uid == "" || uid == e.UID {
		return nil
	}
	other, err := es.store.EndpointByUID(ctx, e.TenantID, uid)
	switch {
	case err == nil && other.ID != e.ID: // it may be this one, stored by a request that was interrupted
		return problem.Conflict.With("there is an endpoint with the uid %q already in this tenant", uid)
	case err == nil, errors.Is(err, store.ErrNotFound):
		return nil
	}
	return fmt.Errorf("find uid: %w", err)
}

// Put creates the tenant with a uid, or replaces the settings of the one that there is; named may also be its id. made reports whether
// it was created.
func (ts *Tenants) Put(ctx context.Context, environment godwit.EnvironmentID, named string, spec TenantSpec, m godwit.Match) (t *godwit.Tenant, made bool, err error) {
	for try := 1; ; try++ {
		t, err = ts.Find(ctx, environment, named)
		switch {
		case err == nil && t.EnvironmentID != environment:
			return nil, false, store.ErrNotFound
		case err == nil:
			t, err = ts.Update(ctx, t.ID, m, func(s *TenantSpec) error {
				uid := cmp.Or(spec.UID, s.UID)
				*s, s.UID = spec, uid
				return nil
			})
			if errors.Is(err, store.ErrNotFound) && try < changeTries {
				continue // it was deleted meanwhile
			}
			return t, false, err
		case !errors.Is(err, store.ErrNotFound) || checkUID("id", named) != nil:
			return nil, false, err
		}
		if err := expect(m, 0); err != nil {
			return nil, false, err
		}
		spec.UID = named
		t, err = ts.Create(ctx, environment, spec)
		if err == nil || try == changeTries || !raced(err) {
			return t, err == nil, err
		}
	}
}

func equalTenants(a, b *godwit.Tenant) bool {
	normal := func(t godwit.Tenant) godwit.Tenant {
		if len(t.AlertEmails) == 0 {
			t.AlertEmails = nil
		}
		t.Inherits = slices.Sorted(slices.Values(t.Inherits)) // a set; nil if it is empty
		return t
	}
	return reflect.DeepEqual(normal(*a), normal(*b))
}

// Put creates the environment with a uid, or replaces the settings of the one that there is; named may also be its id. made reports
// whether it was created.
func (es *Environments) Put(ctx context.Context, named string, spec EnvironmentSpec, m godwit.Match) (e *godwit.Environment, made bool, err error) {
	for try := 1; ; try++ {
		e, err = es.Get(ctx, named)
		switch {
		case err == nil:
			e, err = es.Update(ctx, e.ID.String(), m, func(s *EnvironmentSpec) error {
				uid := cmp.Or(spec.UID, s.UID)
				*s, s.UID = spec, uid
				return nil
			})
			if errors.Is(err, store.ErrNotFound) && try < changeTries {
				continue // it was deleted meanwhile
			}
			return e, false, err
		case !errors.Is(err, store.ErrNotFound) || checkUID("id", named) != nil:
			return nil, false, err
		}
		if err := expect(m, 0); err != nil {
			return nil, false, err
		}
		spec.UID = named
		e, err = es.Create(ctx, spec)
		if err == nil || try == changeTries || !raced(err) {
			return e, err == nil, err
		}
	}
}
