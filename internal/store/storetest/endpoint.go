package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var endpointCases = []testCase{
	{"is created within a limit", endpointWithinLimit},
	{"keeps every member", endpointMembers},
	{"codes", endpointCodes},
	{"uids", endpointUIDs},
	{"metadata is kept to the byte", endpointMetadata},
	{"an update needs the next version", endpointVersion},
	{"deleted ones are hidden", endpointDeleted},
	{"list, filtered and paged", endpointList},
	{"load as the engine needs it", endpointLoad},
	{"belongs to its tenant", endpointTenant},
}

func ptr[T any](v T) *T { return &v }

func fullEndpoint(f *fixture) *godwit.Endpoint {
	e := f.makeEndpoint()
	e.URL = "https://receiver.example/hook?x=%20&y='\""
	e.Method, e.Profile, e.Description = "PUT", "cybercube", "Größe \"quoted\""
	e.Patterns = []string{"order.*", "invoice.paid"}
	e.Filter = godwit.Filter{"region": {"eu", "us"}, "size": {""}}
	e.Policy = godwit.PolicyOverrides{
		BaseSeconds: ptr(0.5), CapSeconds: ptr(60.0), MaxRetries: ptr(0), MaxElapsedSeconds: ptr(3600.0), TimeoutSeconds: ptr(5.5),
		Concurrency: ptr(4), RatePerSecond: ptr(10.0), Burst: ptr(20), HoldScope: ptr("event"), DisableAfter: ptr(3), CircuitAfter: ptr(7),
		DedupWindowSeconds: ptr(86400.0), KeyMinLength: ptr(30), KeyMaxLength: ptr(40), KeyAlphabet: ptr("hex"), Statuses: map[string]string{"404": "transient"}, MultiStatus: ptr(true),
		Agreement: &godwit.Agreement{Document: "https://example.com/agreement", VisibleToBoth: true},
	}
	e.Metadata = godwit.Metadata{
		"team": []byte(`"billing"`), "empty": []byte(`""`), "none": []byte(`null`), "tags": []byte(`["<b>&","\u2028"]`),
		"exact": []byte(`{"z":1.10,"a":12345678901234567890,"z":1e2}`),
	}
	e.Content = godwit.ContentFilter{"body": []byte(`{"z":{"$gte":1.10},"a":["<b>","\u0000"]}`), "$or": []byte(`[ {"type":"order.paid"} ]`)}
	e.Sealed = []byte{0, 1, 2, 0xff}
	e.SealedInfo = godwit.SealedInfo{HeaderNames: []string{"X-A", "X-B"}, AuthKind: godwit.AuthBearer}
	e.Status, e.StatusReason, e.StatusAt = godwit.EndpointPaused, "maintenance", f.now.Add(-time.Minute)
	e.ReenableAt = f.now.Add(time.Hour)
	e.CreatedAt, e.UpdatedAt = f.now.Add(-time.Hour), f.now.Add(time.Microsecond)
	return e
}

func endpointMembers(t *testing.T, f *fixture) {
	for name, e := range map[string]*godwit.Endpoint{"full": fullEndpoint(f), "bare": f.makeEndpoint()} {
		f.must(f.s.CreateEndpoint(f.ctx, e, nil))
		same(t, name, got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t), e)
		f.is(f.s.CreateEndpoint(f.ctx, e, nil), store.ErrConflict)
	}
	empty := f.makeEndpoint()
	empty.Patterns, empty.Filter, empty.Metadata, empty.Sealed = []string{}, godwit.Filter{}, godwit.Metadata{}, []byte{}
	f.must(f.s.CreateEndpoint(f.ctx, empty, nil))
	e := got(f.s.Endpoint(f.ctx, f.tenant, empty.ID))(t)
	if len(e.Patterns)+len(e.Filter)+len(e.Metadata)+len(e.Sealed) != 0 {
		t.Errorf("empty members came back as %+v", e)
	}
}

func endpointUIDs(t *testing.T, f *fixture) {
	e := fullEndpoint(f)
	e.UID = "billing"
	f.must(f.s.CreateEndpoint(f.ctx, e, nil))
	same(t, "by its uid", got(f.s.EndpointByUID(f.ctx, f.tenant, "billing"))(t), e)
	same(t, "by its id", got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t), e)
	for _, uid := range []string{"Billing", "bill", ""} { // others have none
		_, err := f.s.EndpointByUID(f.ctx, f.tenant, uid)
		f.is(err, store.ErrNotFound)
	}
	stranger := f.in(t)
	stranger.tenant = f.newTenant()
	_, err := f.s.EndpointByUID(f.ctx, stranger.tenant, "billing")
	f.is(err, store.ErrNotFound)
	theirs := stranger.makeEndpoint() // unique in the tenant alone
	theirs.UID = "billing"
	f.must(f.s.CreateEndpoint(f.ctx, theirs, nil))

	twin := f.makeEndpoint()
	twin.UID = "billing"
	f.is(f.s.CreateEndpoint(f.ctx, twin, makeSecret(f, twin.ID)), store.ErrConflict)
	twin.UID = "orders"
	f.must(f.s.CreateEndpoint(f.ctx, twin, makeSecret(f, twin.ID)))
	twin.UID, twin.Version = "billing", twin.Version+1
	f.is(f.s.UpdateEndpoint(f.ctx, twin), store.ErrConflict)
	twin.UID = "shipping"
	f.must(f.s.UpdateEndpoint(f.ctx, twin))
	same(t, "after an update", got(f.s.EndpointByUID(f.ctx, f.tenant, "shipping"))(t), twin)
	_, err = f.s.EndpointByUID(f.ctx, f.tenant, "orders")
	f.is(err, store.ErrNotFound)

	removeEndpoint(f, e.ID)
	_, err = f.s.EndpointByUID(f.ctx, f.tenant, "billing")
	f.is(err, store.ErrNotFound)
	late := f.makeEndpoint()
	late.UID = "billing" // it is free again
	f.must(f.s.CreateEndpoint(f.ctx, late, nil))
}

func endpointCodes(t *testing.T, f *fixture) {
	e := fullEndpoint(f)
	e.Code = "X2M8KD"
	f.must(f.s.CreateEndpoint(f.ctx, e, nil))
	same(t, "by its code", got(f.s.EndpointByCode(f.ctx, f.tenant, "X2M8KD"))(t), e)
	same(t, "by its id", got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t), e)
	for _, code := range []string{"X2M8KE", "x2m8kd", ""} { // others have none
		_, err := f.s.EndpointByCode(f.ctx, f.tenant, code)
		f.is(err, store.ErrNotFound)
	}
	stranger := f.in(t)
	stranger.tenant = f.newTenant()
	_, err := f.s.EndpointByCode(f.ctx, stranger.tenant, "X2M8KD")
	f.is(err, store.ErrNotFound)

	for _, f := range []*fixture{f, stranger} { // codes are unique across tenants
		twin := f.makeEndpoint()
		twin.Code = "X2M8KD"
		f.is(f.s.CreateEndpoint(f.ctx, twin, makeSecret(f, twin.ID)), store.ErrConflict)
		_, err := f.s.Endpoint(f.ctx, f.tenant, twin.ID)
		f.is(err, store.ErrNotFound)
		twin.Code = ""
		f.must(f.s.CreateEndpoint(f.ctx, twin, makeSecret(f, twin.ID)))
	}

	update := *e
	update.Code, update.Version = "222222", 2
	f.must(f.s.UpdateEndpoint(f.ctx, &update))
	same(t, "code after an update", got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t).Code, "X2M8KD")
	same(t, "loaded code", got(f.s.LoadEndpoint(f.ctx, e.ID))(t).Endpoint.Code, "X2M8KD")

	removeEndpoint(f, e.ID)
	_, err = f.s.EndpointByCode(f.ctx, f.tenant, "X2M8KD")
	f.is(err, store.ErrNotFound)
	late := f.makeEndpoint()
	late.Code = "X2M8KD" // users may still have the old code
	f.is(f.s.CreateEndpoint(f.ctx, late, nil), store.ErrConflict)
}

func endpointMetadata(t *testing.T, f *fixture) {
	e := f.makeEndpoint()
	e.Metadata = godwit.Metadata{
		"text": []byte(`"a\u0062 <b>&\u2028 \ud83d\ude00 é"`), "number": []byte(`-0.10e+5`), "big": []byte(`123456789012345678901234567890`),
		"null": []byte(`null`), "flag": []byte(`true`), "list": []byte(`[1, [ ], {"a":null}]`), "": []byte(`{}`), "a.b \"c\" é": []byte(`0`),
		"object": []byte("{\"z\": 1,\n\t\"a\": {\"deep\": [\"\"]}, \"z\": 2}"),
	}
	f.must(f.s.CreateEndpoint(f.ctx, e, nil))
	same(t, "metadata", got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t).Metadata, e.Metadata)
	e.Metadata, e.Version = godwit.Metadata{"only": []byte(`[ ]`)}, 2
	f.must(f.s.UpdateEndpoint(f.ctx, e))
	same(t, "updated metadata", got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t).Metadata, e.Metadata)
}

func endpointVersion(t *testing.T, f *fixture) {
	old := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	e := fullEndpoint(f)
	e.ID, e.Profile, e.CreatedAt = old.ID, old.Profile, old.CreatedAt
	for _, version := range []int64{0, 1, 3} {
		e.Version = version
		f.is(f.s.UpdateEndpoint(f.ctx, e), store.ErrConflict)
	}
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), old)
	e.Version = 2
	f.must(f.s.UpdateEndpoint(f.ctx, e))
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), e)
	f.is(f.s.UpdateEndpoint(f.ctx, e), store.ErrConflict)

	bare := f.makeEndpoint()
	bare.ID, bare.CreatedAt, bare.Version = e.ID, e.CreatedAt, 3
	f.must(f.s.UpdateEndpoint(f.ctx, bare))
	same(t, "endpoint with everything taken away", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), bare)

	fixed := *bare
	fixed.Profile, fixed.CreatedAt, fixed.Version = "ojs", f.now.Add(time.Hour), 4
	f.must(f.s.UpdateEndpoint(f.ctx, &fixed))
	bare.Version = 4
	same(t, "members that are fixed at creation", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), bare)

	unknown := f.makeEndpoint()
	unknown.Version = 2
	f.is(f.s.UpdateEndpoint(f.ctx, unknown), store.ErrNotFound)
}

// removeEndpoint deletes an endpoint as the API does.
func removeEndpoint(f *fixture, id godwit.EndpointID) {
	f.t.Helper()
	e := got(f.s.Endpoint(f.ctx, f.tenant, id))(f.t)
	e.Status, e.StatusAt, e.UpdatedAt = godwit.EndpointDeleted, f.now, f.now
	e.Version++
	f.must(f.s.UpdateEndpoint(f.ctx, e))
}

func endpointDeleted(t *testing.T, f *fixture) {
	e := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	removeEndpoint(f, f.endpoint)
	_, err := f.s.Endpoint(f.ctx, f.tenant, f.endpoint)
	f.is(err, store.ErrNotFound)
	_, err = f.s.Secrets(f.ctx, f.tenant, f.endpoint)
	f.is(err, store.ErrNotFound)
	e.Version = 3
	f.is(f.s.UpdateEndpoint(f.ctx, e), store.ErrNotFound)
	if es := got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{TenantID: f.tenant}, store.Page{Limit: 5}))(t); len(es) != 0 {
		t.Errorf("deleted endpoints are listed: %+v", es)
	}
	if n := got(f.s.CountEndpoints(f.ctx, f.tenant))(t); n != 0 {
		t.Errorf("%d endpoints are counted", n)
	}
	if le := got(f.s.LoadEndpoint(f.ctx, f.endpoint))(t); le.Endpoint.Status != godwit.EndpointDeleted {
		t.Errorf("loaded %+v", le.Endpoint)
	}
	f.must(f.s.LoadEndpoints(f.ctx, func(*store.LoadedEndpoint) error { t.Error("a deleted endpoint was loaded"); return nil }))
	f.commit(&store.Batch{Changes: []store.EndpointChange{
		{EndpointID: f.endpoint, Disable: "gone"}, {EndpointID: f.endpoint, MoveFrom: e.URL, MoveTo: "https://new.example"},
	}})
	if le := got(f.s.LoadEndpoint(f.ctx, f.endpoint))(t); le.Endpoint.Status != godwit.EndpointDeleted || le.Endpoint.URL != e.URL {
		t.Errorf("a deleted endpoint was changed: %+v", le.Endpoint)
	}
}

func endpointList(t *testing.T, f *fixture) {
	all := []godwit.Endpoint{*got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)}
	for i := range 6 {
		f.tick(time.Second)
		e := fullEndpoint(f)
		e.Status = []godwit.EndpointStatus{godwit.EndpointActive, godwit.EndpointPaused, godwit.EndpointDisabled}[i%3]
		f.must(f.s.CreateEndpoint(f.ctx, e, nil))
		all = append([]godwit.Endpoint{*e}, all...)
	}
	for _, status := range []godwit.EndpointStatus{"", godwit.EndpointActive, godwit.EndpointPaused, godwit.EndpointDisabled} {
		var want []godwit.Endpoint
		for _, e := range all {
			if status == "" || e.Status == status {
				want = append(want, e)
			}
		}
		found := pages(t, func(e *godwit.Endpoint) [16]byte { return e.ID }, func(p store.Page) ([]godwit.Endpoint, error) {
			return f.s.ListEndpoints(f.ctx, store.EndpointFilter{TenantID: f.tenant, Status: status}, p)
		})
		same(t, "endpoints "+string(status), found, want)
	}
	if n := got(f.s.CountEndpoints(f.ctx, f.tenant))(t); n != len(all) {
		t.Errorf("%d endpoints are counted, want %d", n, len(all))
	}
	f.tick(time.Second)
	named := fullEndpoint(f)
	named.Status = godwit.EndpointActive
	named.URL, named.UID, named.Description = "https://hooks.example.org/Acme_42?x=1", "ware%house", "Orders of Zoë"
	f.must(f.s.CreateEndpoint(f.ctx, named, nil))
	for text, want := range map[string]int{"ORG/acme_4": 1, "e%H": 1, "orders OF": 1, "Zoë": 1, "acme%42": 0, "acmex42": 0} {
		found := got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{TenantID: f.tenant, Text: text}, store.Page{Limit: 9}))(t)
		same(t, "endpoints with "+text, len(found), want)
		of := got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{Environment: godwit.DefaultEnvironment, Text: text}, store.Page{Limit: 9}))(t)
		same(t, "endpoints of the environment with "+text, len(of), want)
	}
	same(t, "active and healthy", len(got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{TenantID: f.tenant, Text: "acme", Health: store.HealthHealthy}, store.Page{Limit: 9}))(t)), 1)
}

func endpointLoad(t *testing.T, f *fixture) {
	account := godwit.Tenant{ID: mint[godwit.TenantID](f.now), Code: "ACME22", Name: "coded", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &account))
	bareID, bareTenant := f.endpoint, f.tenant
	f.tenant = account.ID
	e := fullEndpoint(f)
	s := makeSecret(f, e.ID)
	f.must(f.s.CreateEndpoint(f.ctx, e, s))
	second := makeSecret(f, e.ID)
	second.ID = mint[godwit.SecretID](f.tick(time.Second))
	f.must(IssueSecret(f.ctx, f.s, second, store.Expiry{}))
	h := makeHealth(f)
	h.EndpointID = e.ID
	f.commit(&store.Batch{Health: []godwit.Health{h}})
	want := &store.LoadedEndpoint{Endpoint: *e, Secrets: []godwit.Secret{*second, *s}, Health: h, Account: "ACME22"}
	same(t, "loaded", got(f.s.LoadEndpoint(f.ctx, e.ID))(t), want)

	bare := &store.LoadedEndpoint{
		Endpoint: *got(f.s.Endpoint(f.ctx, bareTenant, bareID))(t), Health: godwit.Health{EndpointID: bareID},
	}
	all := map[godwit.EndpointID]*store.LoadedEndpoint{}
	f.must(f.s.LoadEndpoints(f.ctx, func(le *store.LoadedEndpoint) error { all[le.Endpoint.ID] = le; return nil }))
	if len(all) != 2 {
		t.Fatalf("loaded %d endpoints, want 2", len(all))
	}
	same(t, "loaded with all", all[e.ID], want)
	same(t, "bare one", all[bareID].Endpoint, bare.Endpoint)
	same(t, "bare one's health", all[bareID].Health, bare.Health)
	if len(all[bareID].Secrets) != 0 || all[bareID].Account != "" {
		t.Errorf("an endpoint without secrets, of a tenant without a code, has %v and %q", all[bareID].Secrets, all[bareID].Account)
	}

	stop := errors.New("stop")
	f.is(f.s.LoadEndpoints(f.ctx, func(*store.LoadedEndpoint) error { return stop }), stop)
	// fn may use the store.
	f.must(f.s.LoadEndpoints(f.ctx, func(le *store.LoadedEndpoint) error {
		_, err := f.s.Health(f.ctx, le.Endpoint.ID)
		return err
	}))
	_, err := f.s.LoadEndpoint(f.ctx, mint[godwit.EndpointID](f.now))
	f.is(err, store.ErrNotFound)
}

func endpointTenant(t *testing.T, f *fixture) {
	stranger := f.newTenant()
	_, err := f.s.Endpoint(f.ctx, stranger, f.endpoint)
	f.is(err, store.ErrNotFound)
	if es := got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{TenantID: stranger}, store.Page{Limit: 5}))(t); len(es) != 0 {
		t.Errorf("a stranger lists %v", es)
	}
	if n := got(f.s.CountEndpoints(f.ctx, stranger))(t); n != 0 {
		t.Errorf("a stranger counts %d", n)
	}
	e := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	e.TenantID, e.Version = stranger, 2
	f.is(f.s.UpdateEndpoint(f.ctx, e), store.ErrNotFound)
	got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	if es := got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{}, store.Page{Limit: 5}))(t); len(es) != 0 {
		t.Errorf("a filter without a tenant lists %v", es)
	}
}

// endpointWithinLimit counts a tenant's endpoints that are not deleted.
func endpointWithinLimit(t *testing.T, f *fixture) {
	most := got(f.s.CountEndpoints(f.ctx, f.tenant))(t) + 1
	first, second := f.makeEndpoint(), f.makeEndpoint()
	f.must(f.s.CreateEndpointWithin(f.ctx, first, makeSecret(f, first.ID), most))
	f.is(f.s.CreateEndpointWithin(f.ctx, second, nil, most), store.ErrLimit)
	first.Status, first.Version = godwit.EndpointDeleted, first.Version+1
	f.must(f.s.UpdateEndpoint(f.ctx, first))
	f.must(f.s.CreateEndpointWithin(f.ctx, second, nil, most))
}

// However many nodes create endpoints of a tenant at the same moment, there are no more than the limit.
func concurrentCreation(t *testing.T, f *fixture) {
	const most = 5
	before := got(f.s.CountEndpoints(f.ctx, f.tenant))(t)
	together(t, 20, func(int) error {
		e := f.makeEndpoint()
		if err := f.s.CreateEndpointWithin(f.ctx, e, nil, before+most); !errors.Is(err, store.ErrLimit) {
			return err
		}
		return nil
	})
	same(t, "endpoints", got(f.s.CountEndpoints(f.ctx, f.tenant))(t), before+most)
}
