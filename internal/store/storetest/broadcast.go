package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var broadcastCases = []testCase{
	{"is stored, and completed in parts", broadcastParts},
	{"a part that comes twice is stored once", broadcastPartTwice},
	{"a part may leave deliveries to a fan-out", broadcastLater},
	{"a repeat finds the record", broadcastRepeat},
	{"are bounded and listed", broadcastLists},
	{"without work is complete", broadcastNothing},
	{"are swept with the events of their time", broadcastSweep},
}

// newBroadcast makes a broadcast for so many new tenants, newest first.
func newBroadcast(f *fixture, tenants int) *store.NewBroadcast {
	f.t.Helper()
	n := &store.NewBroadcast{
		Broadcast: godwit.Broadcast{
			ID: mint[godwit.BroadcastID](f.now), EnvironmentID: godwit.DefaultEnvironment, Principal: mint[godwit.KeyID](f.now),
			Type: "order.paid", ContentType: "application/json", All: true, Tenants: tenants, CreatedAt: f.now,
		},
		Event: &godwit.Event{
			Type: "order.paid", ContentType: "application/json", Body: []byte(`{"total":42}`), Attributes: map[string]string{"region": "eu"},
			KeptHeaders: []godwit.KeptHeader{{Name: "ce-id", Value: "1"}},
		},
		MaxOpen: 2,
	}
	n.Event.Principal = n.Principal
	for range tenants {
		f.tick(time.Millisecond)
		n.Work = append([]godwit.TenantID{f.newTenant()}, n.Work...)
	}
	return n
}

func createBroadcast(f *fixture, n *store.NewBroadcast) {
	f.t.Helper()
	if existing := got(f.s.CreateBroadcast(f.ctx, n))(f.t); existing != nil {
		f.t.Fatalf("existing record %+v", existing)
	}
}

// eventFor makes the event of a broadcast for a tenant.
func eventFor(f *fixture, n *store.NewBroadcast, tenant godwit.TenantID) *godwit.Event {
	e := *n.Event
	e.ID, e.TenantID, e.Key, e.CreatedAt = mint[godwit.EventID](f.now), tenant, "key-1", f.now
	return &e
}

// broadcastPart makes the accept of an event for each of some tenants.
func broadcastPart(f *fixture, n *store.NewBroadcast, from, to int) store.Accept {
	a := store.Accept{Broadcast: &store.BroadcastPart{ID: n.ID, From: from, To: to, Last: to == len(n.Work)}}
	for _, tenant := range n.Work[from:to] {
		e := eventFor(f, n, tenant)
		a.Events = append(a.Events, store.NewEvent{Event: e})
		a.Broadcast.Items = append(a.Broadcast.Items, godwit.BroadcastItem{TenantID: tenant, EventID: e.ID})
	}
	return a
}

func broadcastItems(f *fixture, filter store.BroadcastFilter) []godwit.BroadcastItem {
	f.t.Helper()
	return pages(f.t, func(i *godwit.BroadcastItem) [16]byte { return i.TenantID }, func(p store.Page) ([]godwit.BroadcastItem, error) {
		return f.s.ListBroadcastItems(f.ctx, filter, p)
	})
}

func broadcastParts(t *testing.T, f *fixture) {
	n := newBroadcast(f, 3)
	skipped := godwit.BroadcastItem{TenantID: f.tenant, Reason: godwit.SkipInvalid, Detail: "data.total must be a number"} // the oldest tenant
	n.Skips, n.Skipped, n.Tenants = []godwit.BroadcastItem{skipped}, 1, 4
	createBroadcast(f, n)
	same(t, "broadcast", *got(f.s.Broadcast(f.ctx, n.EnvironmentID, n.ID))(t), n.Broadcast)
	_, err := f.s.Broadcast(f.ctx, godwit.EnvironmentID{1}, n.ID)
	f.is(err, store.ErrNotFound)
	same(t, "work", *got(f.s.BroadcastWork(f.ctx, n.ID))(t), store.BroadcastWork{Broadcast: n.Broadcast, Event: n.Event, Work: n.Work})
	same(t, "open", got(f.s.OpenBroadcasts(f.ctx, godwit.BroadcastID{}, 10))(t), []store.OpenBroadcast{{ID: n.ID}})

	first, last := broadcastPart(f, n, 0, 2), broadcastPart(f, n, 2, 3)
	first.Broadcast.Deliveries = 5
	first.Broadcast.Items[1] = godwit.BroadcastItem{TenantID: n.Work[1], Reason: godwit.SkipDeleted}
	first.Events = first.Events[:1]
	if c := f.commit(&store.Batch{Accepts: []store.Accept{first}}); len(c.Moved) != 0 {
		t.Fatal("the first part was not stored")
	}
	n.Accepted, n.Skipped, n.Deliveries = 1, 2, 5
	same(t, "after the first part", *got(f.s.Broadcast(f.ctx, n.EnvironmentID, n.ID))(t), n.Broadcast)
	same(t, "open", got(f.s.OpenBroadcasts(f.ctx, godwit.BroadcastID{}, 10))(t), []store.OpenBroadcast{{ID: n.ID, Done: 2}})
	same(t, "open after it", len(got(f.s.OpenBroadcasts(f.ctx, n.ID, 10))(t)), 0)

	f.tick(time.Second)
	f.commit(&store.Batch{Accepts: []store.Accept{last}})
	n.Accepted, n.CompletedAt = 2, f.now
	same(t, "complete", *got(f.s.Broadcast(f.ctx, n.EnvironmentID, n.ID))(t), n.Broadcast)
	_, err = f.s.BroadcastWork(f.ctx, n.ID)
	f.is(err, store.ErrNotFound)
	same(t, "open at the end", len(got(f.s.OpenBroadcasts(f.ctx, godwit.BroadcastID{}, 10))(t)), 0)

	same(t, "items", broadcastItems(f, store.BroadcastFilter{ID: n.ID}), slices.Concat(first.Broadcast.Items, last.Broadcast.Items, n.Skips))
	same(t, "skipped", broadcastItems(f, store.BroadcastFilter{ID: n.ID, Skipped: true}), []godwit.BroadcastItem{first.Broadcast.Items[1], skipped})
	e := got(f.s.Event(f.ctx, n.Work[0], first.Events[0].Event.ID))(t)
	same(t, "event", e, first.Events[0].Event)
}

// A repeated part, after a commit with an unknown outcome or by another node, stores no second event.
func broadcastPartTwice(t *testing.T, f *fixture) {
	n := newBroadcast(f, 3)
	createBroadcast(f, n)
	f.commit(&store.Batch{Accepts: []store.Accept{broadcastPart(f, n, 0, 2)}})
	other := f.makeEvent()
	again, more := broadcastPart(f, n, 0, 2), broadcastPart(f, n, 0, 3)
	c := f.commit(&store.Batch{Accepts: []store.Accept{{Events: []store.NewEvent{{Event: other}}}, again, more}})
	same(t, "moved", c.Moved, []int{1, 2})
	for _, tenant := range n.Work {
		want := 1
		if tenant == n.Work[2] {
			want = 0
		}
		if events := got(f.s.ListEvents(f.ctx, store.EventFilter{TenantID: tenant}, store.Page{Limit: 10}))(t); len(events) != want {
			t.Errorf("a tenant has %d events, want %d", len(events), want)
		}
	}
	last := broadcastPart(f, n, 2, 3)
	f.commit(&store.Batch{Accepts: []store.Accept{last}})
	if c := f.commit(&store.Batch{Accepts: []store.Accept{last}}); len(c.Moved) != 1 {
		t.Error("the last part was stored twice")
	}
}

func broadcastLater(t *testing.T, f *fixture) {
	n := newBroadcast(f, 0)
	n.Work, n.Tenants = []godwit.TenantID{f.tenant}, 1
	createBroadcast(f, n)
	part := broadcastPart(f, n, 0, 1)
	part.Events[0].Later = []godwit.EndpointID{f.endpoint, f.newEndpoint()}
	f.commit(&store.Batch{Accepts: []store.Accept{part}})
	fan := got(f.s.Fanout(f.ctx, part.Events[0].Event.ID))(t)
	same(t, "fan-out", *fan, part.Events[0].Fanout())

	again := newBroadcast(f, 0)
	again.Work, again.Tenants = []godwit.TenantID{f.tenant}, 1
	createBroadcast(f, again)
	inline := broadcastPart(f, again, 0, 1)
	inline.Events[0].Deliveries = f.fanOut(inline.Events[0].Event, f.endpoint).Deliveries
	inline.Events[0].Deliveries[0].ClaimEpoch = f.epoch(f.endpoint)
	f.commit(&store.Batch{Accepts: []store.Accept{inline}})
	if c := f.claim(f.endpoint, 10); len(c.Work) != 0 {
		t.Error("a delivery that came claimed was claimed again")
	}
	w := godwit.Work{Event: inline.Events[0].Event, Delivery: *f.delivery(inline.Events[0].Deliveries[0].ID)}
	f.record(f.attempted(w, godwit.DeliveryAccepted))
}

func broadcastRepeat(t *testing.T, f *fixture) {
	n := newBroadcast(f, 1)
	n.Record = &godwit.IdempotencyRecord{
		ID: [32]byte{1}, TenantID: godwit.HomeOf(n.EnvironmentID), Fingerprint: [32]byte{2}, CreatedAt: f.now, ExpiresAt: f.now.Add(ttl),
		Response: &godwit.StoredResponse{Status: 202, ContentType: "application/json", Location: "/there", Body: []byte("{}")},
	}
	createBroadcast(f, n)
	again := newBroadcast(f, 1)
	record := *n.Record
	record.CreatedAt = f.now
	again.Record = &record
	same(t, "record", got(f.s.CreateBroadcast(f.ctx, again))(t), n.Record)
	_, err := f.s.Broadcast(f.ctx, again.EnvironmentID, again.ID)
	f.is(err, store.ErrNotFound)
	f.tick(ttl) // the window is over
	record.CreatedAt, record.ExpiresAt = f.now, f.now.Add(ttl)
	createBroadcast(f, again)
	same(t, "record of the second", got(f.s.Recorded(f.ctx, record.ID, f.now))(t), &record)
}

func broadcastLists(t *testing.T, f *fixture) {
	other := makeEnvironment(f, "staging")
	f.must(f.s.CreateEnvironment(f.ctx, other))
	var want []godwit.Broadcast
	for range 2 {
		n := newBroadcast(f, 1)
		createBroadcast(f, n)
		want = append([]godwit.Broadcast{n.Broadcast}, want...)
	}
	refused := newBroadcast(f, 1)
	refused.Record = &godwit.IdempotencyRecord{ID: [32]byte{1}, CreatedAt: f.now, ExpiresAt: f.now.Add(ttl), Response: &godwit.StoredResponse{Status: 202}}
	_, err := f.s.CreateBroadcast(f.ctx, refused)
	f.is(err, store.ErrLimit)
	_, err = f.s.Recorded(f.ctx, refused.Record.ID, f.now)
	f.is(err, store.ErrNotFound)
	elsewhere := newBroadcast(f, 1)
	elsewhere.EnvironmentID = other.ID
	createBroadcast(f, elsewhere)
	same(t, "broadcasts", pages(t, func(b *godwit.Broadcast) [16]byte { return b.ID }, func(p store.Page) ([]godwit.Broadcast, error) {
		return f.s.ListBroadcasts(f.ctx, godwit.DefaultEnvironment, p)
	}), want)
}

func broadcastNothing(t *testing.T, f *fixture) {
	n := newBroadcast(f, 0)
	n.CompletedAt = f.now
	n.MaxOpen = 0
	createBroadcast(f, n)
	same(t, "broadcast", *got(f.s.Broadcast(f.ctx, n.EnvironmentID, n.ID))(t), n.Broadcast)
	same(t, "open", len(got(f.s.OpenBroadcasts(f.ctx, godwit.BroadcastID{}, 10))(t)), 0)
}

func broadcastSweep(t *testing.T, f *fixture) {
	complete, open := newBroadcast(f, 5), newBroadcast(f, 1)
	createBroadcast(f, complete)
	createBroadcast(f, open)
	f.commit(&store.Batch{Accepts: []store.Accept{broadcastPart(f, complete, 0, 5)}})
	if n := f.sweepAll(store.Sweep{EventsBefore: complete.CreatedAt, Limit: 2}).Broadcasts; n != 0 {
		t.Errorf("%d broadcasts were swept too early", n)
	}
	f.tick(time.Hour)
	if n := f.sweepAll(store.Sweep{EventsBefore: f.now, Limit: 2}).Broadcasts; n != 1 {
		t.Errorf("%d broadcasts were swept, want 1", n)
	}
	_, err := f.s.Broadcast(f.ctx, complete.EnvironmentID, complete.ID)
	f.is(err, store.ErrNotFound)
	same(t, "items", len(broadcastItems(f, store.BroadcastFilter{ID: complete.ID})), 0)
	same(t, "the open one", *got(f.s.Broadcast(f.ctx, open.EnvironmentID, open.ID))(t), open.Broadcast)
}
