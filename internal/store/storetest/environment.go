package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var environmentCases = []testCase{
	{"the first one is there", environmentDefault},
	{"create, update, list", environmentMembers},
	{"lends settings", environmentLends},
	{"shares event types", environmentTypes},
	{"lists what its tenants have", environmentLists},
	{"delete", environmentDelete},
	{"signing keys", environmentKeys},
}

func makeEnvironment(f *fixture, uid string) *godwit.Environment {
	return &godwit.Environment{ID: mint[godwit.EnvironmentID](f.now), UID: uid, Name: "The " + uid, Version: 1, CreatedAt: f.now, UpdatedAt: f.now}
}

func environmentDefault(t *testing.T, f *fixture) {
	want := &godwit.Environment{ID: godwit.DefaultEnvironment, UID: "default", Name: "Default", Version: 1}
	want.Live = true
	same(t, "environment", got(f.s.Environment(f.ctx, godwit.DefaultEnvironment))(t), want)
	same(t, "by uid", got(f.s.EnvironmentByUID(f.ctx, "default"))(t), want)
	home := got(f.s.Tenant(f.ctx, godwit.HomeOf(godwit.DefaultEnvironment)))(t)
	if !home.Home || home.EnvironmentID != godwit.DefaultEnvironment {
		t.Errorf("its home is %+v", home)
	}
	for _, n := range got(f.s.ListTenants(f.ctx, store.TenantFilter{}, store.Page{Limit: 10}))(t) {
		if n.Home {
			t.Errorf("a list of tenants shows a home: %+v", n)
		}
	}
}

func environmentMembers(t *testing.T, f *fixture) {
	want := []godwit.Environment{*got(f.s.Environment(f.ctx, godwit.DefaultEnvironment))(t)}
	retries := 3
	for _, uid := range []string{"production", "staging", "team-a"} {
		f.tick(time.Second)
		e := makeEnvironment(f, uid)
		e.EnvironmentSettings = godwit.EnvironmentSettings{Live: true, RequireIdempotencyKey: true, Validation: godwit.ValidateStrict,
			AlertEmails: []string{"ops@example.com"}, Profile: "ojs", Policy: godwit.PolicyOverrides{MaxRetries: &retries}}
		e.Portal = godwit.Portal{AllowedOrigins: []string{"https://app.example.com"}, Theme: godwit.Theme{
			Light: godwit.Palette{Accent: "#0a66c2"}, Radius: new(int), Words: godwit.ThemeWords{Title: "Größe"}}}
		f.must(f.s.CreateEnvironment(f.ctx, e))
		same(t, "environment", got(f.s.Environment(f.ctx, e.ID))(t), e)
		want = append([]godwit.Environment{*e}, want...)
	}
	f.is(f.s.CreateEnvironment(f.ctx, makeEnvironment(f, "staging")), store.ErrConflict)
	f.is(f.s.CreateEnvironment(f.ctx, &want[0]), store.ErrConflict)

	e := &want[1]
	e.UID, e.Name, e.EnvironmentSettings, e.Portal, e.UpdatedAt = "stage", "Größe", godwit.EnvironmentSettings{}, godwit.Portal{}, f.tick(time.Minute)
	f.must(f.s.UpdateEnvironment(f.ctx, e))
	same(t, "version", e.Version, int64(2))
	same(t, "updated", got(f.s.EnvironmentByUID(f.ctx, "stage"))(t), e)
	stale := *e
	stale.Version = 1
	f.is(f.s.UpdateEnvironment(f.ctx, &stale), store.ErrConflict)
	stale = *e
	stale.UID = "production"
	f.is(f.s.UpdateEnvironment(f.ctx, &stale), store.ErrConflict)
	f.is(f.s.UpdateEnvironment(f.ctx, makeEnvironment(f, "unknown")), store.ErrNotFound)
	_, err := f.s.EnvironmentByUID(f.ctx, "staging")
	f.is(err, store.ErrNotFound)
	same(t, "environments", pages(t, func(e *godwit.Environment) [16]byte { return e.ID }, func(p store.Page) ([]godwit.Environment, error) {
		return f.s.ListEnvironments(f.ctx, p)
	}), want)
}

func environmentLends(t *testing.T, f *fixture) {
	e := makeEnvironment(f, "staging")
	e.RequireIdempotencyKey, e.Validation, e.AlertEmails, e.Profile = true, godwit.ValidateKnown, []string{"ops@example.com"}, "ojs"
	f.must(f.s.CreateEnvironment(f.ctx, e))
	own := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "own", CreatedAt: f.now, AlertEmails: []string{"a@example.com"}}
	f.must(f.s.CreateTenant(f.ctx, &own))
	e.Lend(&own)
	same(t, "own settings", got(f.s.Tenant(f.ctx, own.ID))(t), &own)

	lent := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "lent", CreatedAt: f.now, Inherits: godwit.LentSettings}
	f.must(f.s.CreateTenant(f.ctx, &lent))
	e.Lend(&lent)
	same(t, "lent settings", got(f.s.Tenant(f.ctx, lent.ID))(t), &lent)
	e.RequireIdempotencyKey, e.Validation, e.AlertEmails = false, godwit.ValidateStrict, nil
	f.must(f.s.UpdateEnvironment(f.ctx, e))
	e.Lend(&lent)
	same(t, "after a change", got(f.s.Tenant(f.ctx, lent.ID))(t), &lent)

	lent.Inherits, lent.RequireIdempotencyKey = []godwit.Setting{godwit.SettingValidation}, true
	f.must(f.s.UpdateTenant(f.ctx, &lent))
	same(t, "one of them", got(f.s.Tenant(f.ctx, lent.ID))(t), &lent)
	list := got(f.s.ListTenants(f.ctx, store.TenantFilter{Environment: e.ID}, store.Page{Limit: 5}))(t)
	if len(list) != 2 || list[0].Validation != godwit.ValidateStrict && list[1].Validation != godwit.ValidateStrict {
		t.Errorf("tenants are %+v", list)
	}
}

func environmentTypes(t *testing.T, f *fixture) {
	e := makeEnvironment(f, "staging")
	f.must(f.s.CreateEnvironment(f.ctx, e))
	n := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "acme", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &n))
	of := func(tenant godwit.TenantID, name string) *godwit.EventType {
		return &godwit.EventType{TenantID: tenant, Name: name, CreatedAt: f.now, UpdatedAt: f.now}
	}
	types := func() int { return got(f.s.Tenant(f.ctx, n.ID))(t).OwnTypes }
	home := godwit.HomeOf(e.ID)
	shared := of(home, "order.paid")
	f.must(f.s.PutEventType(f.ctx, shared))
	f.must(f.s.PutEventType(f.ctx, shared)) // again
	f.is(f.s.PutEventType(f.ctx, of(n.ID, "order.paid")), store.ErrConflict)
	f.must(f.s.PutEventType(f.ctx, of(f.tenant, "order.paid"))) // a tenant of another environment
	same(t, "types of its own", types(), 0)
	own := of(n.ID, "order.lost")
	f.must(f.s.PutEventType(f.ctx, own))
	f.must(f.s.PutEventType(f.ctx, own))
	f.is(f.s.PutEventType(f.ctx, of(home, "order.lost")), store.ErrConflict)
	same(t, "types of its own", types(), 1)
	f.must(f.s.DeleteEventType(f.ctx, n.ID, "order.lost", 0))
	same(t, "types of its own", types(), 0)
	f.must(f.s.PutEventType(f.ctx, of(home, "order.lost")))
	f.is(f.s.PutEventType(f.ctx, of(mint[godwit.TenantID](f.now), "order.paid")), store.ErrNotFound)
}

// An environment lists what all its tenants have, and nothing of other tenants or of deleted ones.
func environmentLists(t *testing.T, f *fixture) {
	e := makeEnvironment(f, "staging")
	f.must(f.s.CreateEnvironment(f.ctx, e))
	newSource(f, "foreign") // the fixture's tenant belongs to another environment
	var endpoints []godwit.Endpoint
	var sources []godwit.Source
	var last godwit.TenantID
	for i := range 3 {
		n := godwit.Tenant{ID: mint[godwit.TenantID](f.tick(time.Second)), EnvironmentID: e.ID, Name: "acme", CreatedAt: f.now}
		f.must(f.s.CreateTenant(f.ctx, &n))
		f.tenant, last = n.ID, n.ID
		for range 2 {
			f.tick(time.Second)
			endpoint := fullEndpoint(f)
			f.must(f.s.CreateEndpoint(f.ctx, endpoint, nil))
			endpoints = append([]godwit.Endpoint{*endpoint}, endpoints...)
			sources = append([]godwit.Source{*newSource(f, fmt.Sprintf("source-%d-%d", i, len(sources)))}, sources...)
		}
	}
	compare := func() {
		t.Helper()
		same(t, "endpoints", pages(t, func(e *godwit.Endpoint) [16]byte { return e.ID }, func(p store.Page) ([]godwit.Endpoint, error) {
			return f.s.ListEndpoints(f.ctx, store.EndpointFilter{Environment: e.ID}, p)
		}), endpoints)
		same(t, "sources", pages(t, func(s *godwit.Source) [16]byte { return s.ID }, func(p store.Page) ([]godwit.Source, error) {
			return f.s.ListSources(f.ctx, store.SourceFilter{Environment: e.ID}, p)
		}), sources)
	}
	compare()
	paused := got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{Environment: e.ID, Status: godwit.EndpointDisabled}, store.Page{Limit: 9}))(t)
	if len(paused) != 0 {
		t.Errorf("listed %v", paused)
	}
	got(RemoveTenant(f.ctx, f.s, last, f.tick(time.Second)))(t)
	endpoints, sources = endpoints[2:], sources[2:]
	compare()
}

func environmentDelete(t *testing.T, f *fixture) {
	e := makeEnvironment(f, "staging")
	f.must(f.s.CreateEnvironment(f.ctx, e))
	n := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "acme", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &n))
	endpoint := fullEndpoint(f)
	endpoint.TenantID = n.ID
	f.must(f.s.CreateEndpoint(f.ctx, endpoint, makeSecret(f, endpoint.ID)))
	if !got(f.s.LoadEndpoint(f.ctx, endpoint.ID))(t).Test {
		t.Error("an endpoint of an environment that is not live is not for tests")
	}
	f.must(f.s.LoadEndpoints(f.ctx, func(l *store.LoadedEndpoint) error {
		same(t, "is for tests", l.Test, l.Endpoint.TenantID == n.ID)
		return nil
	}))
	home := godwit.HomeOf(e.ID)
	f.must(f.s.PutEventType(f.ctx, &godwit.EventType{TenantID: home, Name: "order.paid", CreatedAt: f.now, UpdatedAt: f.now}))
	f.tenant = home
	key := makeKey(f)
	f.must(f.s.CreateKey(f.ctx, key))
	e.DeletedAt = f.tick(time.Minute)
	f.is(f.s.DeleteEnvironment(f.ctx, e), store.ErrConflict) // it has a tenant
	got(RemoveTenant(f.ctx, f.s, n.ID, f.now))(t)
	_, err := RemoveTenant(f.ctx, f.s, home, f.now)
	f.is(err, store.ErrNotFound) // a home goes with its environment alone
	stale := *e
	stale.Version = 7
	f.is(f.s.DeleteEnvironment(f.ctx, &stale), store.ErrConflict)
	f.must(f.s.DeleteEnvironment(f.ctx, e))
	f.is(f.s.DeleteEnvironment(f.ctx, e), store.ErrNotFound)
	_, err = f.s.Environment(f.ctx, e.ID)
	f.is(err, store.ErrNotFound)
	_, err = f.s.Tenant(f.ctx, home)
	f.is(err, store.ErrNotFound)
	if k := got(f.s.KeyByHash(f.ctx, key.Hash))(t); k.LiveAt(f.now) {
		t.Error("a key of the environment still works")
	}
	f.must(f.s.CreateEnvironment(f.ctx, makeEnvironment(f, "staging"))) // the uid is free
	lost := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "nowhere", CreatedAt: f.now}
	f.is(f.s.CreateTenant(f.ctx, &lost), store.ErrNotFound)
}

// The keys of an environment are rows of their own, whatever the number of endpoints that it signs for.
func environmentKeys(t *testing.T, f *fixture) {
	e, other := makeEnvironment(f, "staging"), makeEnvironment(f, "other")
	f.must(f.s.CreateEnvironment(f.ctx, e))
	f.must(f.s.CreateEnvironment(f.ctx, other))
	home, holder := godwit.HomeOf(e.ID), godwit.KeysOf(e.ID)
	key := func(of *godwit.Environment) *godwit.Secret {
		f.tick(time.Second)
		return &godwit.Secret{
			ID: mint[godwit.SecretID](f.now), EndpointID: godwit.KeysOf(of.ID), TenantID: godwit.HomeOf(of.ID), Algorithm: "ed25519", Sealed: []byte{1, 2},
			PublicKey: []byte{3, 4}, CreatedAt: f.now, NotBefore: f.now,
		}
	}
	first := key(e)
	f.must(f.s.AddFirstKey(f.ctx, first))
	f.is(f.s.AddFirstKey(f.ctx, key(e)), store.ErrConflict)
	f.is(f.s.AddFirstKey(f.ctx, key(makeEnvironment(f, "unknown"))), store.ErrNotFound)
	foreign := key(other)
	f.must(f.s.AddFirstKey(f.ctx, foreign))
	same(t, "keys", got(f.s.EnvironmentKeys(f.ctx, e.ID))(t), []godwit.Secret{*first})
	same(t, "keys of all", got(f.s.EnvironmentKeys(f.ctx, godwit.EnvironmentID{}))(t), []godwit.Secret{*foreign, *first})
	same(t, "as secrets", got(f.s.Secrets(f.ctx, home, holder))(t), []godwit.Secret{*first})

	second := key(e)
	f.must(IssueSecret(f.ctx, f.s, second, store.Expiry{At: f.now.Add(time.Hour)}))
	first.ExpiresAt = f.now.Add(time.Hour)
	same(t, "after a rotation", got(f.s.EnvironmentKeys(f.ctx, e.ID))(t), []godwit.Secret{*second, *first})
	same(t, "of another environment", got(f.s.EnvironmentKeys(f.ctx, other.ID))(t), []godwit.Secret{*foreign})
	public := *second
	public.Sealed = nil
	same(t, "public key", got(f.s.PublicKey(f.ctx, second.ID))(t), &public)

	// An endpoint that the environment signs for is loaded with it.
	tenant := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "acme", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &tenant))
	f.tenant = tenant.ID
	endpoint := f.makeEndpoint()
	endpoint.Signing = godwit.SigningEnvironment
	f.must(f.s.CreateEndpoint(f.ctx, endpoint, nil))
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, tenant.ID, endpoint.ID))(t), endpoint)
	loaded := got(f.s.LoadEndpoint(f.ctx, endpoint.ID))(t)
	same(t, "loaded", loaded.Environment, e.ID)
	same(t, "without secrets", len(loaded.Secrets), 0)
	f.must(f.s.LoadEndpoints(f.ctx, func(l *store.LoadedEndpoint) error {
		if l.Endpoint.ID == endpoint.ID {
			same(t, "loaded with all", l.Environment, e.ID)
		} else if !l.Environment.IsZero() {
			t.Errorf("%+v has an environment", l)
		}
		return nil
	}))
	endpoint.Signing, endpoint.Version = godwit.SigningOwn, 2
	f.must(f.s.UpdateEndpoint(f.ctx, endpoint))
	same(t, "updated", got(f.s.LoadEndpoint(f.ctx, endpoint.ID))(t).Environment, godwit.EnvironmentID{})

	// The keys end with the environment.
	gone := got(f.s.Environment(f.ctx, other.ID))(t)
	gone.DeletedAt = f.tick(time.Second)
	f.must(f.s.DeleteEnvironment(f.ctx, gone))
	same(t, "keys of a deleted environment", len(got(f.s.EnvironmentKeys(f.ctx, other.ID))(t)), 0)
	for _, k := range got(f.s.PublicKeys(f.ctx, f.now, godwit.SecretID{}, 10))(t) {
		if k.ID == foreign.ID {
			t.Error("the key of a deleted environment has not ended")
		}
	}
	_, err := f.s.Secrets(f.ctx, godwit.HomeOf(other.ID), godwit.KeysOf(other.ID))
	f.is(err, store.ErrNotFound)
	f.is(f.s.AddFirstKey(f.ctx, key(other)), store.ErrNotFound)
}
