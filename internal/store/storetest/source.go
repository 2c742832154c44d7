package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var sourceCases = []testCase{
	{"receipt", sourceReceipt},
	{"create, read, update", sourceMembers},
	{"names are unique in a tenant", sourceNames},
	{"found from outside", sourceOutside},
	{"listed and counted", sourceList},
	{"deleted", sourceDeleted},
	{"sealed values", sourceSealed},
	{"acknowledgments", sourceAcknowledgments},
	{"rejections are bounded and swept", sourceRejections},
	{"what an event carries", sourceCarried},
}

func makeSource(f *fixture, name string) *godwit.Source {
	return &godwit.Source{
		ID: mint[godwit.SourceID](f.now), TenantID: f.tenant, Name: name, Scheme: "github", Mode: godwit.PassThrough,
		Status: godwit.SourceActive, CreatedAt: f.now, UpdatedAt: f.now, Version: 1,
	}
}

func newSource(f *fixture, name string) *godwit.Source {
	f.t.Helper()
	s := makeSource(f, name)
	f.must(f.s.CreateSource(f.ctx, s))
	return s
}

func sourceMembers(t *testing.T, f *fixture) {
	bare := newSource(f, "bare")
	same(t, "bare", got(f.s.Source(f.ctx, f.tenant, bare.ID))(t), bare)

	full := makeSource(f, "full")
	full.Description, full.Scheme, full.Adopt, full.Mode = "A <partner> & \u2603", "eds", true, godwit.StoreAndForward
	full.Settings = godwit.SourceSettings{WebhookID: "w", EndToEnd: "origin", PutAgreement: "https://agreed.example/"}
	full.Sealed = []byte{0, 0xff, 1}
	full.Credentials = []godwit.CredentialInfo{
		{ID: "sec_1", Hint: "abcd", CreatedAt: f.now, ExpiresAt: f.now.Add(time.Hour)}, {ID: "sec_2", PublicKey: "AAAA", CreatedAt: f.now},
	}
	full.EventType = godwit.TypeRule{Fixed: "a.b", Header: "X-Type", Member: "data.type"}
	full.Keep = []string{"Ce-Id", "X-Trace"}
	f.must(f.s.CreateSource(f.ctx, full))
	f.is(f.s.CreateSource(f.ctx, full), store.ErrConflict)
	same(t, "full", got(f.s.Source(f.ctx, f.tenant, full.ID))(t), full)

	next := *bare
	next.ID, next.Version, next.UpdatedAt, next.Status = full.ID, 2, f.tick(time.Second), godwit.SourcePaused
	next.Name, next.Scheme = "renamed", full.Scheme
	f.must(f.s.UpdateSource(f.ctx, &next))
	f.is(f.s.UpdateSource(f.ctx, &next), store.ErrConflict)
	same(t, "with everything taken away", got(f.s.Source(f.ctx, f.tenant, full.ID))(t), &next)

	stranger := f.newTenant()
	_, err := f.s.Source(f.ctx, stranger, full.ID)
	f.is(err, store.ErrNotFound)
	next.TenantID, next.Version = stranger, 3
	f.is(f.s.UpdateSource(f.ctx, &next), store.ErrNotFound)
}

func sourceNames(t *testing.T, f *fixture) {
	first, second := newSource(f, "stripe"), newSource(f, "github")
	f.is(f.s.CreateSource(f.ctx, makeSource(f, "stripe")), store.ErrConflict)
	second.Name, second.Version = "stripe", 2
	f.is(f.s.UpdateSource(f.ctx, second), store.ErrConflict)
	first.Status, first.Version = godwit.SourceDeleted, 2
	f.must(f.s.UpdateSource(f.ctx, first))
	f.must(f.s.UpdateSource(f.ctx, second)) // the name is free again
	f.tenant = f.newTenant()
	newSource(f, "stripe")
}

func sourceOutside(t *testing.T, f *fixture) {
	tenant := godwit.Tenant{ID: mint[godwit.TenantID](f.now), Code: "X2M8KD", Name: "acme", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &tenant))
	f.tenant = tenant.ID
	s := newSource(f, "stripe")
	same(t, "by its id", got(f.s.SourceAt(f.ctx, s.ID))(t), s)
	same(t, "by its name", got(f.s.SourceNamed(f.ctx, "X2M8KD", "stripe"))(t), s)
	nowhere := func(account, name string) {
		t.Helper()
		if _, err := f.s.SourceNamed(f.ctx, account, name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q %q gave %v", account, name, err)
		}
	}
	nowhere("X2M8KD", "Stripe")
	nowhere("X2M8KE", "stripe")
	nowhere("", "stripe")
	got(RemoveTenant(f.ctx, f.s, tenant.ID, f.tick(time.Second)))(t)
	nowhere("X2M8KD", "stripe")
	_, err := f.s.SourceAt(f.ctx, s.ID)
	f.is(err, store.ErrNotFound)
	_, err = f.s.SourceAt(f.ctx, mint[godwit.SourceID](f.now))
	f.is(err, store.ErrNotFound)
}

func sourceList(t *testing.T, f *fixture) {
	var want []godwit.Source
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.tick(time.Second)
		want = append([]godwit.Source{*newSource(f, name)}, want...)
	}
	list := pages(t, func(s *godwit.Source) [16]byte { return s.ID }, func(p store.Page) ([]godwit.Source, error) {
		return f.s.ListSources(f.ctx, store.SourceFilter{TenantID: f.tenant}, p)
	})
	same(t, "sources", list, want)
	if n := got(f.s.CountSources(f.ctx, f.tenant))(t); n != 5 {
		t.Errorf("counted %d", n)
	}
	if n := got(f.s.CountSources(f.ctx, f.newTenant()))(t); n != 0 {
		t.Errorf("a stranger counts %d", n)
	}
}

func sourceDeleted(t *testing.T, f *fixture) {
	s := newSource(f, "gone")
	s.Status, s.Version = godwit.SourceDeleted, 2
	f.must(f.s.UpdateSource(f.ctx, s))
	_, err := f.s.Source(f.ctx, f.tenant, s.ID)
	f.is(err, store.ErrNotFound)
	_, err = f.s.SourceAt(f.ctx, s.ID)
	f.is(err, store.ErrNotFound)
	s.Version = 3
	f.is(f.s.UpdateSource(f.ctx, s), store.ErrNotFound)
	if list := got(f.s.ListSources(f.ctx, store.SourceFilter{TenantID: f.tenant}, store.Page{Limit: 5}))(t); len(list) != 0 {
		t.Errorf("listed %v", list)
	}
	if n := got(f.s.CountSources(f.ctx, f.tenant))(t); n != 0 {
		t.Errorf("counted %d", n)
	}
}

func sourceSealed(t *testing.T, f *fixture) {
	s := makeSource(f, "sealed")
	s.Sealed = []byte{7, 7}
	f.must(f.s.CreateSource(f.ctx, s))
	e := fullEndpoint(f)
	secret := makeSecret(f, e.ID)
	f.must(f.s.CreateEndpoint(f.ctx, e, secret))
	rows := sealedRows(f)
	if len(rows) != 3 {
		t.Fatalf("%d sealed values, want those of endpoint, secret and source", len(rows))
	}
	row := rows[s.ID.String()]
	same(t, "sealed", row.Sealed, s.Sealed)
	f.must(f.s.ReplaceSealed(f.ctx, row, []byte("new")))
	f.is(f.s.ReplaceSealed(f.ctx, row, []byte("newer")), store.ErrConflict)
	s.Sealed, s.Version = []byte("new"), 2
	same(t, "source", got(f.s.Source(f.ctx, f.tenant, s.ID))(t), s)
}

func sourceAcknowledgments(t *testing.T, f *fixture) {
	s, other := newSource(f, "one"), newSource(f, "other")
	var want []godwit.Acknowledgment
	for i := range 5 {
		f.tick(time.Second)
		a := godwit.Acknowledgment{
			ID: mint[godwit.AcknowledgmentID](f.now), TenantID: f.tenant, SourceID: s.ID, Version: "v" + string(rune('1'+i)),
			Terms: []byte(`{"x":1}`), By: "Ada of Partner Inc.", Actor: "key_1", At: f.now,
		}
		f.must(f.s.AddAcknowledgment(f.ctx, &a))
		f.is(f.s.AddAcknowledgment(f.ctx, &a), store.ErrConflict)
		want = append([]godwit.Acknowledgment{a}, want...)
	}
	list := pages(t, func(a *godwit.Acknowledgment) [16]byte { return a.ID }, func(p store.Page) ([]godwit.Acknowledgment, error) {
		return f.s.ListAcknowledgments(f.ctx, f.tenant, s.ID, p)
	})
	same(t, "acknowledgments", list, want)
	for name, none := range map[string][]godwit.Acknowledgment{
		"of another source": got(f.s.ListAcknowledgments(f.ctx, f.tenant, other.ID, store.Page{Limit: 5}))(t),
		"of a stranger":     got(f.s.ListAcknowledgments(f.ctx, f.newTenant(), s.ID, store.Page{Limit: 5}))(t),
	} {
		if len(none) != 0 {
			t.Errorf("%s: %v", name, none)
		}
	}
}

func sourceRejections(t *testing.T, f *fixture) {
	s, other := newSource(f, "one"), newSource(f, "other")
	add := func(source godwit.SourceID) godwit.Rejection {
		f.tick(time.Second)
		j := godwit.Rejection{
			ID: mint[godwit.RejectionID](f.now), TenantID: f.tenant, SourceID: source, Status: 401, Code: "not-authentic", Reason: "mismatch",
			Detail: "Signature mismatch", RemoteAddr: "192.0.2.1", Method: "POST", Size: 12, Headers: []string{"Content-Type", "Signature"}, At: f.now,
		}
		f.must(f.s.AddRejection(f.ctx, &j, 3))
		return j
	}
	kept := add(other.ID)
	var all []godwit.Rejection
	for range 5 {
		all = append([]godwit.Rejection{add(s.ID)}, all...)
	}
	list := func(source godwit.SourceID) []godwit.Rejection {
		return pages(t, func(j *godwit.Rejection) [16]byte { return j.ID }, func(p store.Page) ([]godwit.Rejection, error) {
			return f.s.ListRejections(f.ctx, f.tenant, source, p)
		})
	}
	same(t, "the newest three", list(s.ID), all[:3])
	same(t, "of another source", list(other.ID), []godwit.Rejection{kept})
	if list := got(f.s.ListRejections(f.ctx, f.newTenant(), s.ID, store.Page{Limit: 5}))(t); len(list) != 0 {
		t.Errorf("a stranger lists %v", list)
	}
	if n := f.sweepAll(store.Sweep{RejectionsBefore: all[1].At}); n.Rejections != 2 {
		t.Errorf("swept %d, want that of the other source and the oldest", n.Rejections)
	}
	same(t, "after the sweep", list(s.ID), all[:2])
}

// sourceCarried: an event's headers and origin are kept in its dead letter and restored from it.
func sourceCarried(t *testing.T, f *fixture) {
	e := f.makeEvent()
	e.KeptHeaders = []godwit.KeptHeader{{Name: "Ce-Id", Value: `a "b" \ <&>`}, {Name: "X-Twice", Value: "1"}, {Name: "X-Twice", Value: "2"}}
	e.Origin = godwit.Origin{Source: mint[godwit.SourceID](f.now), Principal: "src_0/x"}
	f.accept(f.fanOut(e, f.endpoint))
	same(t, "read", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
	work := f.claimOne(f.endpoint)
	same(t, "claimed", work.Event, e)
	ranged := got(f.s.EventsAfter(f.ctx, store.EventRange{TenantID: f.tenant, Limit: 5}))(t)
	same(t, "in a range", ranged, []godwit.Event{*e})

	f.tick(time.Second)
	f.record(f.attempted(work, godwit.DeliveryTerminal))
	letter := got(f.s.DeadLetter(f.ctx, f.tenant, work.Delivery.ID))(t)
	same(t, "dead letter", letter.Event, e)
	f.tick(48 * time.Hour)
	f.sweepAll(store.Sweep{EventsBefore: f.now})
	f.stored(e.ID, false)
	got(f.s.Requeue(f.ctx, store.Requeue{TenantID: f.tenant, Deliveries: []godwit.DeliveryID{work.Delivery.ID}, Trigger: godwit.TriggerReplay, Now: f.now}))(t)
	same(t, "restored", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)

	only := f.makeEvent()
	only.Origin = godwit.Origin{Source: mint[godwit.SourceID](f.now)}
	plain := f.makeEvent()
	f.accept(f.fanOut(only), f.fanOut(plain))
	same(t, "an origin alone", got(f.s.Event(f.ctx, f.tenant, only.ID))(t), only)
	same(t, "nothing", got(f.s.Event(f.ctx, f.tenant, plain.ID))(t), plain)
}

func sourceReceipt(t *testing.T, f *fixture) {
	src := newSource(f, "shop")
	read := func() time.Time { return got(f.s.Source(f.ctx, f.tenant, src.ID))(t).LastReceivedAt }
	same(t, "before the first", read().IsZero(), true)
	f.must(f.s.ReceivedAt(f.ctx, src.ID, f.now))
	f.must(f.s.ReceivedAt(f.ctx, src.ID, f.now.Add(-time.Hour)))
	same(t, "the latest", read().Equal(f.now), true)
	src.Version++
	src.Description = "changed"
	f.must(f.s.UpdateSource(f.ctx, src))
	same(t, "after a change", read().Equal(f.now), true)
	swept := func() int { return int(got(f.s.Sweep(f.ctx, store.Sweep{Now: f.now, Limit: 100}))(t).Receipts) }
	same(t, "swept", swept(), 0)
	src.Version++
	src.Status = godwit.SourceDeleted
	f.must(f.s.UpdateSource(f.ctx, src))
	same(t, "swept with its source", swept(), 1)
	f.must(f.s.ReceivedAt(f.ctx, src.ID, f.now.Add(time.Hour))) // a request that was under way
	same(t, "swept later", swept(), 0)
}
