package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

var tenantCases = []testCase{
	{"create, update, list", tenantMembers},
	{"codes", tenantCodes},
	{"uids", tenantUIDs},
	{"delete takes keys and endpoints along", tenantDelete},
}

func tenantMembers(t *testing.T, f *fixture) {
	want := []godwit.Tenant{*got(f.s.Tenant(f.ctx, f.tenant))(t)}
	for range 4 {
		f.tick(time.Second)
		n := godwit.Tenant{ID: mint[godwit.TenantID](f.now), Name: "Größe & \"Söhne\"", RequireIdempotencyKey: true, CreatedAt: f.now,
			Code: profile.NewCode(), AlertEmails: []string{"ops@example.com", "\"a b\"@example.com"}, Validation: godwit.ValidateStrict,
			Limits: godwit.TenantLimits{EventsPerSecond: 1, Burst: 2, Endpoints: 3, PayloadBytes: 4, WaitingDeliveries: 5, EndpointCreationsPerMinute: 6}}
		f.must(f.s.CreateTenant(f.ctx, &n))
		same(t, "tenant", got(f.s.Tenant(f.ctx, n.ID))(t), &n)
		want = append([]godwit.Tenant{n}, want...)
	}
	f.is(f.s.CreateTenant(f.ctx, &want[0]), store.ErrConflict)
	want[1].Name, want[1].RequireIdempotencyKey = "new name", false
	want[1].AlertEmails, want[1].Validation, want[1].Limits = nil, godwit.ValidateKnown, godwit.TenantLimits{}
	f.must(f.s.UpdateTenant(f.ctx, &want[1]))
	same(t, "updated", got(f.s.Tenant(f.ctx, want[1].ID))(t), &want[1])
	want[1].AlertEmails, want[1].Validation = []string{"new@example.com"}, godwit.ValidateNone
	want[1].Limits.Endpoints = 7
	f.must(f.s.UpdateTenant(f.ctx, &want[1]))
	same(t, "updated again", got(f.s.Tenant(f.ctx, want[1].ID))(t), &want[1])
	same(t, "tenants", pages(t, func(n *godwit.Tenant) [16]byte { return n.ID }, func(p store.Page) ([]godwit.Tenant, error) {
		return f.s.ListTenants(f.ctx, store.TenantFilter{}, p)
	}), want)
	_, err := f.s.Tenant(f.ctx, mint[godwit.TenantID](f.now))
	f.is(err, store.ErrNotFound)
	f.is(f.s.UpdateTenant(f.ctx, &godwit.Tenant{ID: mint[godwit.TenantID](f.now)}), store.ErrNotFound)
}

func tenantCodes(t *testing.T, f *fixture) {
	n := godwit.Tenant{ID: mint[godwit.TenantID](f.now), Code: "ABCDEF", Name: "first", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &n))
	twin := godwit.Tenant{ID: mint[godwit.TenantID](f.now), Code: "ABCDEF", Name: "second", CreatedAt: f.now}
	f.is(f.s.CreateTenant(f.ctx, &twin), store.ErrConflict)
	_, err := f.s.Tenant(f.ctx, twin.ID)
	f.is(err, store.ErrNotFound)
	f.newTenant() // like the fixture's, it has no code: that is no conflict
	update := n
	update.Code = "222222"
	f.must(f.s.UpdateTenant(f.ctx, &update))
	same(t, "code after an update", got(f.s.Tenant(f.ctx, n.ID))(t).Code, "ABCDEF")
	got(RemoveTenant(f.ctx, f.s, n.ID, f.now))(t)
	f.is(f.s.CreateTenant(f.ctx, &twin), store.ErrConflict) // users may still have the old code
}

func tenantUIDs(t *testing.T, f *fixture) {
	staging := makeEnvironment(f, "staging")
	f.must(f.s.CreateEnvironment(f.ctx, staging))
	n := godwit.Tenant{ID: mint[godwit.TenantID](f.now), UID: "acme-1", Name: "first", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &n))
	same(t, "environment, version", []any{n.EnvironmentID, n.Version}, []any{godwit.DefaultEnvironment, int64(1)})
	same(t, "by uid", got(f.s.TenantByUID(f.ctx, godwit.DefaultEnvironment, "acme-1"))(t), &n)
	twin := godwit.Tenant{ID: mint[godwit.TenantID](f.now), UID: "acme-1", Name: "second", CreatedAt: f.now}
	f.is(f.s.CreateTenant(f.ctx, &twin), store.ErrConflict)
	twin.EnvironmentID = staging.ID
	f.must(f.s.CreateTenant(f.ctx, &twin)) // another environment
	staging.Lend(&twin)
	same(t, "by uid in another environment", got(f.s.TenantByUID(f.ctx, staging.ID, "acme-1"))(t), &twin)
	for _, uid := range []string{"", "ACME-1", "acme"} { // the fixture's tenant has no uid
		_, err := f.s.TenantByUID(f.ctx, godwit.DefaultEnvironment, uid)
		f.is(err, store.ErrNotFound)
	}
	third := godwit.Tenant{ID: mint[godwit.TenantID](f.now), UID: "acme-3", Name: "third", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &third))
	third.UID = "acme-1"
	f.is(f.s.UpdateTenant(f.ctx, &third), store.ErrConflict)
	third.UID = "acme-4"
	f.must(f.s.UpdateTenant(f.ctx, &third))
	same(t, "after an update", got(f.s.TenantByUID(f.ctx, godwit.DefaultEnvironment, "acme-4"))(t), &third)
	third.Version--
	f.is(f.s.UpdateTenant(f.ctx, &third), store.ErrConflict)

	list := got(f.s.ListTenants(f.ctx, store.TenantFilter{Environment: staging.ID}, store.Page{Limit: 5}))(t)
	same(t, "tenants of an environment", list, []godwit.Tenant{twin})
	for text, want := range map[string][]string{
		"HIR": {"third"}, "acme-4": {"third"}, "d\nacme": nil, "%": nil, "_": nil, "no such": nil, "": nil,
	} {
		var names []string
		for _, n := range got(f.s.ListTenants(f.ctx, store.TenantFilter{Environment: godwit.DefaultEnvironment, Text: text}, store.Page{Limit: 5}))(t) {
			names = append(names, n.Name)
		}
		if text == "" {
			if len(names) < 2 {
				t.Errorf("an empty text finds %q", names)
			}
			continue
		}
		same(t, "tenants with "+text, names, want)
	}
	got(RemoveTenant(f.ctx, f.s, n.ID, f.now))(t)
	again := godwit.Tenant{ID: mint[godwit.TenantID](f.now), UID: "acme-1", Name: "again", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &again)) // a uid is free after its tenant was deleted
	lost := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: mint[godwit.EnvironmentID](f.now), Name: "nowhere", CreatedAt: f.now}
	f.is(f.s.CreateTenant(f.ctx, &lost), store.ErrNotFound)
}

func tenantDelete(t *testing.T, f *fixture) {
	second := f.newEndpoint()
	gone := f.newEndpoint()
	removeEndpoint(f, gone)
	key := makeKey(f)
	f.must(f.s.CreateKey(f.ctx, key))
	revoked := makeKey(f)
	revoked.RevokedAt = f.now.Add(-time.Hour)
	f.must(f.s.CreateKey(f.ctx, revoked))

	doomed, endpoint := f.tenant, f.endpoint
	f.tenant = f.newTenant()
	neighbour := f.newEndpoint()
	neighbourKey := makeKey(f)
	f.must(f.s.CreateKey(f.ctx, neighbourKey))

	f.tick(time.Minute)
	ids := got(RemoveTenant(f.ctx, f.s, doomed, f.now))(t)
	if len(ids) != 2 || !slices.Contains(ids, endpoint) || !slices.Contains(ids, second) {
		t.Errorf("deleted endpoints %v, want %v and %v", ids, endpoint, second)
	}
	_, err := f.s.Tenant(f.ctx, doomed)
	f.is(err, store.ErrNotFound)
	_, err = f.s.Endpoint(f.ctx, doomed, endpoint)
	f.is(err, store.ErrNotFound)
	le := got(f.s.LoadEndpoint(f.ctx, endpoint))(t)
	if le.Endpoint.Status != godwit.EndpointDeleted || !le.Endpoint.StatusAt.Equal(f.now) || le.Endpoint.Version != 2 {
		t.Errorf("endpoint is %+v", le.Endpoint)
	}
	if k := got(f.s.KeyByHash(f.ctx, key.Hash))(t); !k.RevokedAt.Equal(f.now) {
		t.Errorf("key was revoked at %v", k.RevokedAt)
	}
	if k := got(f.s.KeyByHash(f.ctx, revoked.Hash))(t); !k.RevokedAt.Equal(revoked.RevokedAt) {
		t.Errorf("time of an earlier revocation became %v", k.RevokedAt)
	}
	got(f.s.Tenant(f.ctx, f.tenant))(t)
	got(f.s.Endpoint(f.ctx, f.tenant, neighbour))(t)
	if k := got(f.s.KeyByHash(f.ctx, neighbourKey.Hash))(t); !k.RevokedAt.IsZero() {
		t.Error("another tenant's key was revoked")
	}
	if ts := got(f.s.ListTenants(f.ctx, store.TenantFilter{}, store.Page{Limit: 5}))(t); len(ts) != 1 || ts[0].ID != f.tenant {
		t.Errorf("tenants are %v", ts)
	}
	_, err = RemoveTenant(f.ctx, f.s, doomed, f.now)
	f.is(err, store.ErrNotFound)
	f.is(f.s.UpdateTenant(f.ctx, &godwit.Tenant{ID: doomed, Name: "again"}), store.ErrNotFound)
}
