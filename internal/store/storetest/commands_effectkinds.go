package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// try applies one effect and returns its result, or its error.
func try[R any](f *commands, effect command.EffectWith[R]) (result R, err error) {
	return Apply(f.ctx, f.cs, f.now, effect)
}

// tried applies an effect without a result and checks its error.
func (f *commands) tried(effect command.EffectWith[command.Nothing], want error) {
	f.t.Helper()
	_, err := try(f, effect)
	f.is(err, want)
}

func effectChangeEndpoint(t *testing.T, f *commands) {
	e := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	e.URL, e.Metadata, e.Version = "https://moved.example/", godwit.Metadata{"team": []byte(`"billing"`)}, 2
	f.tried(store.ChangeEndpoint{Endpoint: e}, nil)
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), e)
	f.tried(store.ChangeEndpoint{Endpoint: e}, store.ErrConflict)
	theirs := *e
	theirs.TenantID, theirs.Version = f.newTenant(), 3
	f.tried(store.ChangeEndpoint{Endpoint: &theirs}, store.ErrNotFound)
	gone := *e
	gone.Status, gone.StatusAt, gone.Version = godwit.EndpointDeleted, f.now, 3
	f.tried(store.ChangeEndpoint{Endpoint: &gone}, nil)
	gone.Version = 4
	f.tried(store.ChangeEndpoint{Endpoint: &gone}, store.ErrNotFound)
}

func effectIssueSecret(t *testing.T, f *commands) {
	old, fresh := makeSecret(f.fixture, f.endpoint), makeSecret(f.fixture, f.endpoint)
	f.must(IssueSecret(f.ctx, f.s, old, store.Expiry{}))
	fresh.CreatedAt = f.now.Add(time.Second)
	issue := store.IssueSecret{TenantID: f.tenant, Secret: fresh, Others: store.Expiry{At: f.now.Add(time.Hour)}}
	stranger := issue
	stranger.TenantID = f.newTenant()
	f.tried(stranger, store.ErrNotFound)
	f.tried(issue, nil)
	old.ExpiresAt = f.now.Add(time.Hour)
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{*fresh, *old})
	f.tried(issue, store.ErrConflict)
	removeEndpoint(f.fixture, f.endpoint)
	issue.Secret = makeSecret(f.fixture, f.endpoint)
	f.tried(issue, store.ErrNotFound)
}

func effectRevokeSecret(t *testing.T, f *commands) {
	other := makeSecret(f.fixture, f.newEndpoint())
	f.must(IssueSecret(f.ctx, f.s, other, store.Expiry{}))
	// Times are relative to now; the test revokes the first secret. -1 means no end.
	type secret struct{ begins, ends time.Duration }
	for name, c := range map[string]struct {
		secrets []secret
		want    error
	}{
		"beside another":                   {[]secret{{0, -1}, {0, -1}}, nil},
		"the only one":                     {[]secret{{0, -1}}, store.ErrConflict},
		"the only one with an end":         {[]secret{{0, 5}}, store.ErrConflict},
		"the only one that has begun":      {[]secret{{0, -1}, {1, -1}}, store.ErrConflict},
		"the only one that has not ended":  {[]secret{{-5, -1}, {-5, 0}}, store.ErrConflict},
		"beside one that begins now":       {[]secret{{-5, -1}, {0, 1}}, nil},
		"not begun, beside one that has":   {[]secret{{1, -1}, {0, -1}}, nil},
		"not begun, and none has":          {[]secret{{1, -1}, {2, -1}}, nil},
		"ends now":                         {[]secret{{-5, 0}, {0, -1}}, store.ErrConflict},
		"ended before":                     {[]secret{{-5, -3}, {0, -1}}, store.ErrConflict},
		"ends later":                       {[]secret{{-5, 1}, {0, -1}}, nil},
		"ends later, beside one that will": {[]secret{{-5, 1}, {-5, 1}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			endpoint := f.newEndpoint()
			var all []godwit.Secret
			for i, c := range c.secrets {
				s := makeSecret(f.fixture, endpoint)
				s.CreatedAt = f.now.Add(-time.Duration(i) * time.Second) // listed in this order
				s.NotBefore = f.now.Add(c.begins * time.Microsecond)
				if c.ends != -1 {
					s.ExpiresAt = f.now.Add(c.ends * time.Microsecond)
				}
				f.must(IssueSecret(f.ctx, f.s, s, store.Expiry{}))
				all = append(all, *s)
			}
			revoke := store.RevokeSecret{TenantID: f.tenant, EndpointID: endpoint, SecretID: all[0].ID, Now: f.now}
			for what, wrong := range map[string]store.RevokeSecret{
				"stranger":                {TenantID: mint[godwit.TenantID](f.now), EndpointID: endpoint, SecretID: all[0].ID, Now: f.now},
				"unknown":                 {TenantID: f.tenant, EndpointID: endpoint, SecretID: mint[godwit.SecretID](f.now), Now: f.now},
				"of another endpoint":     {TenantID: f.tenant, EndpointID: endpoint, SecretID: other.ID, Now: f.now},
				"under another endpoint":  {TenantID: f.tenant, EndpointID: other.EndpointID, SecretID: all[0].ID, Now: f.now},
				"under no known endpoint": {TenantID: f.tenant, EndpointID: mint[godwit.EndpointID](f.now), SecretID: all[0].ID, Now: f.now},
			} {
				if _, err := try(f, wrong); err == nil {
					t.Errorf("%s: revoked", what)
				} else {
					f.is(err, store.ErrNotFound)
				}
			}
			f.tried(revoke, c.want)
			if c.want == nil {
				all[0].ExpiresAt = f.now
			}
			same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, endpoint))(t), all)
			removeEndpoint(f.fixture, endpoint)
			f.tried(revoke, store.ErrNotFound)
		})
	}
	same(t, "another endpoint's", got(f.s.Secrets(f.ctx, f.tenant, other.EndpointID))(t), []godwit.Secret{*other})
}

func effectRequeue(t *testing.T, f *commands) {
	var dead []godwit.DeliveryID // newest first
	for range 5 {
		dead = append([]godwit.DeliveryID{f.die("order.paid")}, dead...)
	}
	spared := f.die("order.sent")
	requeue := func(q store.RequeueDead) *store.RequeuedDead {
		t.Helper()
		q.Actor, q.Now = "key_7", f.now
		result := got(try(f, q))(t)
		if result == nil {
			t.Fatal("no result")
		}
		for _, d := range result.Deliveries {
			same(t, "run", d.Run, godwit.Run{Trigger: godwit.TriggerReplay, Actor: "key_7"})
			same(t, "stored", *f.delivery(d.ID), d)
			if d.Status != godwit.DeliveryPending || !d.DueAt.Equal(f.now) {
				t.Errorf("requeued %+v", d)
			}
		}
		return result
	}
	filter := store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.paid"}
	page := store.Page{Limit: 2}
	var sent []godwit.DeliveryID
	for i, want := range []store.RequeuedDead{{Seen: 2, Last: dead[1], More: true}, {Seen: 2, Last: dead[3], More: true}, {Seen: 1, Last: dead[4]}} {
		r := requeue(store.RequeueDead{Filter: filter, Page: page})
		for _, d := range r.Deliveries {
			sent = append(sent, d.ID)
		}
		page.After = r.Last
		r.Deliveries = nil
		same(t, "page", *r, want)
		if i == 0 {
			filter.Replayed = true // still only open ones
		}
	}
	same(t, "requeued", sent, dead)
	same(t, "once more", requeue(store.RequeueDead{Filter: filter, Page: store.Page{Limit: 9}}), &store.RequeuedDead{})
	stranger := store.DeadLetterFilter{TenantID: f.newTenant()}
	same(t, "a stranger's", requeue(store.RequeueDead{Filter: stranger, Page: store.Page{Limit: 9}}), &store.RequeuedDead{})
	open := got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant}, store.Page{Limit: 9}))(t)
	if len(open) != 1 || open[0].Delivery.ID != spared {
		t.Errorf("open: %+v", open)
	}

	// A dead letter whose event was swept is restored, too.
	f.tick(24 * time.Hour)
	f.sweepAll(store.Sweep{EventsBefore: f.now})
	r := requeue(store.RequeueDead{Filter: store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.sent"}, Page: store.Page{Limit: 9}})
	if len(r.Deliveries) != 1 || r.Seen != 1 || r.Deliveries[0].ID != spared || r.Deliveries[0].EventType != "order.sent" {
		t.Errorf("requeued %+v", r)
	}
}

func effectRequeueDeliveries(t *testing.T, f *commands) {
	id := f.die("order.again")
	q := store.Requeue{TenantID: f.tenant, Deliveries: []godwit.DeliveryID{id}, Trigger: godwit.TriggerReplay, Actor: "key_7", Now: f.now}
	made := got(try(f, q))(t)
	if len(made) != 1 || made[0].ID != id || made[0].Status != godwit.DeliveryPending {
		t.Fatalf("requeued %+v", made)
	}
	same(t, "run", f.delivery(id).Run, godwit.Run{Trigger: godwit.TriggerReplay, Actor: "key_7"})
	q.TenantID = f.newTenant()
	if made := got(try(f, q))(t); len(made) != 0 {
		t.Errorf("a stranger requeued %+v", made)
	}
}

func effectPurge(t *testing.T, f *commands) {
	var dead []godwit.DeliveryID
	for range 5 {
		dead = append([]godwit.DeliveryID{f.die("order.paid")}, dead...)
	}
	kept := f.die("order.sent")
	left := func() (ids []godwit.DeliveryID) {
		t.Helper()
		for _, l := range got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant, Replayed: true}, store.Page{Limit: 99}))(t) {
			ids = append(ids, l.Delivery.ID)
		}
		return ids
	}
	purge := func(filter store.DeadLetterFilter, limit int) store.PurgedDead {
		t.Helper()
		result := got(try(f, store.PurgeDead{Filter: filter, Limit: limit}))(t)
		if result == nil {
			t.Fatal("no result")
		}
		return *result
	}
	f.requeue(dead[4])
	before := f.delivery(dead[0])
	filter := store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.paid"}
	// Each dead letter of this test has a different endpoint.
	counted := func(filter store.DeadLetterFilter, limit int) map[godwit.EndpointID]int {
		t.Helper()
		counts := map[godwit.EndpointID]int{}
		for _, c := range got(f.s.CountDeadLetters(f.ctx, filter, limit))(t) {
			counts[c.EndpointID] += c.Count
		}
		return counts
	}
	oneEach := func(ids ...godwit.DeliveryID) map[godwit.EndpointID]int {
		t.Helper()
		counts := map[godwit.EndpointID]int{}
		for _, id := range ids {
			counts[f.delivery(id).EndpointID]++
		}
		return counts
	}
	same(t, "the first, counted", counted(filter, 3), oneEach(dead[0], dead[1], dead[2]))
	same(t, "open ones, counted", counted(filter, 9), oneEach(dead[:4]...))
	same(t, "those of another tenant, counted", len(counted(store.DeadLetterFilter{TenantID: f.newTenant(), Replayed: true}, 9)), 0)
	same(t, "a stranger's", purge(store.DeadLetterFilter{TenantID: f.newTenant(), Replayed: true}, 9), store.PurgedDead{})
	same(t, "the first", purge(filter, 3), store.PurgedDead{Purged: 3, More: true})
	same(t, "left", left(), []godwit.DeliveryID{kept, dead[3], dead[4]})
	same(t, "the rest that is open", purge(filter, 3), store.PurgedDead{Purged: 1})
	same(t, "left", left(), []godwit.DeliveryID{kept, dead[4]})
	filter.Replayed = true
	same(t, "the replayed one", purge(filter, 3), store.PurgedDead{Purged: 1})
	same(t, "left", left(), []godwit.DeliveryID{kept})
	same(t, "delivery", f.delivery(dead[0]), before)
}

func effectRemoveTenant(t *testing.T, f *commands) {
	second := f.newEndpoint()
	gone := f.newEndpoint()
	removeEndpoint(f.fixture, gone)
	doomed := f.tenant
	f.tenant = f.newTenant()
	neighbour := f.newEndpoint()
	ids := got(try(f, store.RemoveTenant{ID: doomed, Now: f.now}))(t)
	if len(ids) != 2 || !slices.Contains(ids, f.endpoint) || !slices.Contains(ids, second) {
		t.Errorf("deleted endpoints %v", ids)
	}
	_, err := f.s.Tenant(f.ctx, doomed)
	f.is(err, store.ErrNotFound)
	got(f.s.Endpoint(f.ctx, f.tenant, neighbour))(t)
	_, err = try(f, store.RemoveTenant{ID: doomed, Now: f.now})
	f.is(err, store.ErrNotFound)
	if ids := got(try(f, store.RemoveTenant{ID: f.newTenant(), Now: f.now}))(t); len(ids) != 0 {
		t.Errorf("a tenant without endpoints had %v", ids)
	}
}

func effectPublish(t *testing.T, f *commands) {
	second := f.newEndpoint()
	e := f.makeEvent()
	e.CommandID, e.Attributes = "cmd_1", map[string]string{"a": "b"}
	n := f.fanOut(e, f.endpoint, second)
	n.Deliveries[1].ClaimEpoch = f.epoch(second) // the delivery is stored unclaimed all the same
	quiet := f.makeEvent()
	quiet.CommandID = "cmd_2"
	f.tried(store.Publish{Events: []store.NewEvent{n, {Event: quiet}}}, nil)
	f.tried(store.Publish{Events: []store.NewEvent{n}}, nil)
	f.tried(store.Publish{}, nil)
	same(t, "usage", f.used(), godwit.Usage{Events: 2, Deliveries: 2, BytesAccepted: int64(len(e.Body) + len(quiet.Body))})
	for _, want := range []*godwit.Event{e, quiet} {
		same(t, "event", got(f.s.Event(f.ctx, f.tenant, want.ID))(t), want)
	}
	for i, id := range []godwit.EndpointID{f.endpoint, second} {
		w := f.claimOne(id)
		same(t, "claimed event", w.Event, e)
		same(t, "claimed delivery", w.Delivery.ID, n.Deliveries[i].ID)
		f.fixture.record(f.attempted(w, godwit.DeliveryTerminal))
		same(t, "dead letter's event", got(f.s.DeadLetter(f.ctx, f.tenant, w.Delivery.ID))(t).Event, e)
	}
	wide := f.makeEvent()
	later := store.NewEvent{Event: wide, Later: []godwit.EndpointID{f.endpoint, second}}
	f.tried(store.Publish{Events: []store.NewEvent{later}}, nil)
	same(t, "event with a fan-out", got(f.s.Event(f.ctx, f.tenant, wide.ID))(t), wide)
	same(t, "fan-out", *got(f.s.Fanout(f.ctx, wide.ID))(t), later.Fanout())
	same(t, "deliveries before the fan-out", got(f.s.CountPending(f.ctx, second))(t), int64(0))
	many := make([]store.NewEvent, 25)
	for i := range many {
		e := f.makeEvent()
		e.ID = mint[godwit.EventID](f.tick(time.Millisecond))
		many[i] = f.fanOut(e, second)
	}
	f.tried(store.Publish{Events: many}, nil)
	same(t, "pending", got(f.s.CountPending(f.ctx, second))(t), int64(25))
	f.s = f.b.Reopen(t, f.s).(store.Store)
	f.acquire(owner)
	same(t, "claimed after a restart", len(f.claim(second, 100).Work), 25)
}
