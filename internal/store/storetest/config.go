package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A store of one process has no versions; these cases then show only that it reports none.
var configCases = []testCase{
	{"every change raises the version", configChanges},
	{"a batch of another version is not stored", configBehind},
	{"a claim tells the version", configClaim},
	{"chosen endpoints", endpointsChosen},
}

// version returns the config version, or ends the test if the store has none.
func (f *fixture) version() int64 {
	f.t.Helper()
	v := got(f.s.ConfigVersion(f.ctx))(f.t)
	if v == 0 {
		changes := got(f.s.ConfigChanges(f.ctx, 0))(f.t)
		same(f.t, "changes of a store without versions", *changes, store.ConfigChanges{})
		f.t.SkipNow()
	}
	return v
}

func configChanges(t *testing.T, f *fixture) {
	key, kept := makeKey(f), makeEventType(f, "order.paid")
	f.must(f.s.CreateKey(f.ctx, key))
	e := f.makeEndpoint()
	endpoint := store.ConfigChange{Kind: store.ConfigEndpoint, TenantID: f.tenant, ID: e.ID}
	first := &godwit.Secret{ID: mint[godwit.SecretID](f.now), EndpointID: e.ID, TenantID: f.tenant, Algorithm: "hmac-sha256", CreatedAt: f.now, NotBefore: f.now}
	session := makeSession(f)
	f.must(f.s.CreateSession(f.ctx, session))
	environment := got(f.s.Environment(f.ctx, godwit.DefaultEnvironment))(t)
	start := f.version()
	last := start
	var all []store.ConfigChange
	for _, step := range []struct {
		what   string
		change func() error
		want   []store.ConfigChange
	}{
		{"nothing", func() error { return nil }, nil},
		{"create an endpoint with a secret", func() error { return f.s.CreateEndpoint(f.ctx, e, first) }, []store.ConfigChange{endpoint, endpoint}},
		{"update an endpoint", func() error { e.Version++; return f.s.UpdateEndpoint(f.ctx, e) }, []store.ConfigChange{endpoint}},
		{"refused update", func() error { e := *e; f.is(f.s.UpdateEndpoint(f.ctx, &e), store.ErrConflict); return nil }, nil},
		{"disable by the engine", func() error {
			_, err := f.s.Commit(f.ctx, &store.Batch{Now: f.now, Changes: []store.EndpointChange{{EndpointID: e.ID, Disable: "gone"}}})
			return err
		}, []store.ConfigChange{endpoint}},
		{"add a key of an environment", func() error {
			home := godwit.HomeOf(godwit.DefaultEnvironment)
			return f.s.AddFirstKey(f.ctx, &godwit.Secret{ID: mint[godwit.SecretID](f.now), TenantID: home, EndpointID: godwit.EndpointID(home), Algorithm: "ed25519", CreatedAt: f.now, NotBefore: f.now})
		}, []store.ConfigChange{{Kind: store.ConfigEnvironment, ID: godwit.DefaultEnvironment}}},
		{"revoke a key", func() error { return f.s.RevokeKey(f.ctx, f.tenant, key.ID, f.now) },
			[]store.ConfigChange{{Kind: store.ConfigKey, TenantID: f.tenant, ID: key.ID}}},
		{"update a tenant", func() error { return f.s.UpdateTenant(f.ctx, &godwit.Tenant{ID: f.tenant, Name: "new", Version: 1}) },
			[]store.ConfigChange{{Kind: store.ConfigTenant, TenantID: f.tenant, ID: f.tenant}}},
		// The tenant has the number of its event types.
		{"put an event type", func() error { return f.s.PutEventType(f.ctx, kept) },
			[]store.ConfigChange{{Kind: store.ConfigEventType, TenantID: f.tenant, Name: "order.paid"}, {Kind: store.ConfigTenant, TenantID: f.tenant, ID: f.tenant}}},
		{"put it again", func() error { return f.s.PutEventType(f.ctx, kept) },
			[]store.ConfigChange{{Kind: store.ConfigEventType, TenantID: f.tenant, Name: "order.paid"}}},
		{"delete an event type", func() error { return f.s.DeleteEventType(f.ctx, f.tenant, "order.paid", 0) },
			[]store.ConfigChange{{Kind: store.ConfigEventType, TenantID: f.tenant, Name: "order.paid"}, {Kind: store.ConfigTenant, TenantID: f.tenant, ID: f.tenant}}},
		{"update an environment", func() error { return f.s.UpdateEnvironment(f.ctx, environment) },
			[]store.ConfigChange{{Kind: store.ConfigEnvironment, ID: environment.ID}, {Kind: store.ConfigTenant, TenantID: godwit.HomeOf(environment.ID), ID: environment.ID}}},
		{"use a session", func() error { return f.s.UseSession(f.ctx, session.ID, f.now.Add(time.Second), f.now.Add(time.Hour)) }, nil},
		{"end a session", func() error { return f.s.EndSession(f.ctx, f.tenant, session.ID) },
			[]store.ConfigChange{{Kind: store.ConfigSession, TenantID: f.tenant, ID: session.ID}}},
		{"accept an event", func() error { f.acceptOne(); return nil }, nil},
	} {
		f.must(step.change())
		changes := got(f.s.ConfigChanges(f.ctx, last))(t)
		same(t, step.what, changes.List, step.want)
		raised := store.ConfigDistance(last, changes.Version)
		if (raised != 0) != (step.want != nil) || raised > 1 || changes.Unknown {
			t.Errorf("%s raised the version by %d; unknown: %t", step.what, raised, changes.Unknown)
		}
		last = f.version()
		all = append(all, step.want...)
	}
	changes := got(f.s.ConfigChanges(f.ctx, start))(t)
	same(t, "all changes", changes.List, all)
	same(t, "version", changes.Version, last)
	for what, version := range map[string]int64{"an unknown version": start + 1, "a later one": last + 1, "an early one": 1} {
		changes := got(f.s.ConfigChanges(f.ctx, version))(t)
		same(t, what, *changes, store.ConfigChanges{Version: last, Unknown: true})
	}
}

func configBehind(t *testing.T, f *fixture) {
	version := f.version()
	event := f.fanOut(f.makeEvent(), f.endpoint)
	claimed := f.fanOut(f.makeEvent(), f.endpoint)
	claimed.Deliveries[0].ClaimEpoch = f.epoch(f.endpoint)
	batch := func(version int64) *store.Batch {
		return &store.Batch{Now: f.now, ConfigVersion: version, Accepts: []store.Accept{
			{Events: []store.NewEvent{event}}, {Events: []store.NewEvent{claimed}},
		}}
	}
	second := f.newEndpoint()
	for what, b := range map[string]*store.Batch{
		"with a claim": batch(version), "a later version": batch(version + 1<<20),
		"without a claim": {Now: f.now, ConfigVersion: version, Accepts: []store.Accept{{Events: []store.NewEvent{event}}}},
		"of an old event": {Now: f.now.Add(time.Hour), ConfigVersion: version, Accepts: []store.Accept{{Events: []store.NewEvent{event}}}},
	} {
		if c := got(f.s.Commit(f.ctx, b))(t); !c.Behind {
			t.Errorf("%s: stored", what)
		}
	}
	_, err := f.s.Event(f.ctx, f.tenant, event.Event.ID)
	f.is(err, store.ErrNotFound)
	if c := got(f.s.Commit(f.ctx, batch(f.version())))(t); c.Behind {
		t.Error("the store's own version was refused")
	}
	same(t, "stored", got(f.s.Event(f.ctx, f.tenant, event.Event.ID))(t).ID, event.Event.ID)
	// A batch without a version is stored by any.
	if c := f.commit(&store.Batch{Accepts: []store.Accept{{Events: []store.NewEvent{f.fanOut(f.makeEvent(), second)}}}}); c.Behind {
		t.Error("a batch without a version was refused")
	}
}

func configClaim(t *testing.T, f *fixture) {
	before := f.version()
	f.acceptOne()
	same(t, "version", f.claim(f.endpoint, 1).ConfigVersion, before)
	f.newEndpoint()
	same(t, "version of an empty claim", f.claim(f.endpoint, 1).ConfigVersion, f.version())
}

func endpointsChosen(t *testing.T, f *fixture) {
	one, two := f.newEndpoint(), f.newEndpoint()
	gone := got(f.s.Endpoint(f.ctx, f.tenant, two))(t)
	gone.Status, gone.Version = godwit.EndpointDeleted, gone.Version+1
	f.must(f.s.UpdateEndpoint(f.ctx, gone))
	f.newEndpoint()
	list := got(f.s.LoadChosen(f.ctx, []godwit.EndpointID{one, mint[godwit.EndpointID](f.now), two}))(t)
	found := map[godwit.EndpointID]store.LoadedEndpoint{}
	for _, e := range list {
		found[e.Endpoint.ID] = *e
	}
	same(t, "chosen", found, map[godwit.EndpointID]store.LoadedEndpoint{
		one: *got(f.s.LoadEndpoint(f.ctx, one))(t), two: *got(f.s.LoadEndpoint(f.ctx, two))(t),
	})
}
