package storetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

var acceptCases = []testCase{
	{"stores the event and its deliveries", acceptStores},
	{"keeps bodies byte for byte", acceptBodies},
	{"keeps every member of an event", acceptMembers},
	{"an event without endpoints", acceptNoEndpoints},
	{"an empty batch", acceptEmptyBatch},
	{"a delivery that is claimed at once", acceptClaimed},
	{"a claim under a lost lease is stored unclaimed", acceptStaleClaim},
	{"a key is honoured across batches", acceptReplayAcross},
	{"a key is honoured inside one batch", acceptReplayInside},
	{"several events under one key", acceptManyUnderOneKey},
	{"an expired key is free again", acceptExpired},
	{"a key in progress is not overwritten", acceptInProgress},
	{"a key belongs to its principal", acceptComposite},
	{"committing again is safe", acceptAgain},
	{"an event gains deliveries", acceptMoreDeliveries},
}

func acceptStores(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	e := f.makeEvent()
	n := f.fanOut(e, f.endpoint, other)
	n.Deliveries[1].Trigger = godwit.TriggerTest
	f.tick(time.Second) // the batch is committed later than the event arrived
	c := f.commit(&store.Batch{Accepts: []store.Accept{{Events: []store.NewEvent{n}}}})
	if c.Existing[0] != nil || len(c.Fenced) != 0 {
		t.Fatalf("commit found %+v", c)
	}
	same(t, "event", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
	for i, d := range n.Deliveries {
		same(t, "delivery", f.delivery(d.ID), &godwit.Delivery{
			ID: d.ID, TenantID: f.tenant, EventID: e.ID, EndpointID: d.EndpointID, Status: godwit.DeliveryPending,
			DueAt: e.CreatedAt, CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt,
			Run: godwit.Run{Trigger: []godwit.Trigger{godwit.TriggerAccept, godwit.TriggerTest}[i]}, EventType: e.Type,
		})
	}
	if due, ok := f.waiting(f.endpoint); !ok || !due.Equal(e.CreatedAt) {
		t.Fatalf("endpoint waits: %v, due %v", ok, due)
	}
}

func acceptBodies(t *testing.T, f *fixture) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, body := range map[string][]byte{
		"nil":          nil,
		"empty":        {},
		"nul":          {0},
		"every byte":   every,
		"invalid utf8": {0xff, 0xfe, 0xc3, 0x28},
		"quotes":       []byte(`'";--\` + "\x00\r\n"),
		"one megabyte": bytes.Repeat(every, 4096),
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			e := f.makeEvent()
			e.Body = body
			f.accept(f.fanOut(e, f.endpoint))
			if read := got(f.s.Event(f.ctx, f.tenant, e.ID))(t); !bytes.Equal(read.Body, body) {
				t.Errorf("body has %d bytes after reading, %d were stored, or they differ", len(read.Body), len(body))
			}
			if w := f.claimOne(f.endpoint); !bytes.Equal(w.Event.Body, body) {
				t.Error("claimed body differs")
			}
		})
	}
}

func acceptMembers(t *testing.T, f *fixture) {
	e := f.makeEvent()
	e.Type = "order.item.added"
	e.Key = `odd "key" \ with spaces; and 'quotes'`
	e.ContentType = "application/cloudevents+json; charset=utf-8"
	e.Attributes = map[string]string{"region": "eu", "größe": "XL ☃", "empty": "", "nul": "a\x01b"}
	e.Principal = mint[godwit.KeyID](f.now)
	e.CreatedAt = f.now.Add(-3 * time.Microsecond)
	f.accept(f.fanOut(e, f.endpoint))
	same(t, "event", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
	same(t, "claimed event", f.claimOne(f.endpoint).Event, e)

	empty := f.makeEvent()
	empty.Attributes = map[string]string{}
	f.accept(f.fanOut(empty))
	if read := got(f.s.Event(f.ctx, f.tenant, empty.ID))(t); len(read.Attributes) != 0 {
		t.Errorf("attributes are %v, none were stored", read.Attributes)
	}
	zone := f.makeEvent()
	zone.CreatedAt = f.now.In(time.FixedZone("somewhere", 5*3600+1800)).Add(999 * time.Nanosecond)
	f.accept(f.fanOut(zone))
	read := got(f.s.Event(f.ctx, f.tenant, zone.ID))(t)
	if d := read.CreatedAt.Sub(zone.CreatedAt).Abs(); d > time.Microsecond || read.CreatedAt.Location() != time.UTC {
		t.Errorf("time is %v, stored was %v", read.CreatedAt, zone.CreatedAt)
	}
}

func acceptNoEndpoints(t *testing.T, f *fixture) {
	e := f.makeEvent()
	f.accept(f.fanOut(e))
	same(t, "event", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
	ds := got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant, EventID: e.ID}, store.Page{Limit: 10}))(t)
	if len(ds) != 0 {
		t.Errorf("event has deliveries %v", ds)
	}
}

func acceptEmptyBatch(t *testing.T, f *fixture) {
	if c := f.commit(&store.Batch{}); len(c.Existing) != 0 || len(c.Fenced) != 0 {
		t.Errorf("commit found %+v", c)
	}
}

func acceptClaimed(t *testing.T, f *fixture) {
	n := f.fanOut(f.makeEvent(), f.endpoint)
	n.Deliveries[0].ClaimEpoch = f.epoch(f.endpoint)
	f.accept(n)
	if _, ok := f.waiting(f.endpoint); ok {
		t.Error("a claimed delivery waits to be claimed")
	}
	if c := f.claim(f.endpoint, 10); len(c.Work) != 0 || !c.NextDue.IsZero() {
		t.Errorf("claimed again: %+v", c)
	}
	d := f.delivery(n.Deliveries[0].ID)
	f.record(f.attempted(godwit.Work{Delivery: *d, Event: n.Event}, godwit.DeliveryAccepted))
	if d := f.delivery(d.ID); d.Status != godwit.DeliveryAccepted {
		t.Errorf("delivery is %s", d.Status)
	}
}

func acceptStaleClaim(t *testing.T, f *fixture) {
	n := f.fanOut(f.makeEvent(), f.endpoint)
	n.Deliveries[0].ClaimEpoch = f.epoch(f.endpoint)
	f.tick(time.Hour)
	f.acquire("node-b")
	f.accept(n)
	if _, ok := f.waiting(f.endpoint); !ok {
		t.Fatal("the new owner does not see the delivery")
	}
	if w := f.claimOne(f.endpoint); w.Delivery.ID != n.Deliveries[0].ID {
		t.Errorf("claimed %v", w.Delivery.ID)
	}
}

func makeRecord(f *fixture, key string) *godwit.IdempotencyRecord {
	r := &godwit.IdempotencyRecord{
		ID: godwit.IdempotencyID(godwit.KeyID(f.tenant), "POST /v1/events", key), TenantID: f.tenant,
		Response:  &godwit.StoredResponse{Status: 202, ContentType: "application/json", Location: "/v1/events/1", Body: []byte("{\"n\":1}\x00")},
		CreatedAt: f.now, ExpiresAt: f.now.Add(24 * time.Hour),
	}
	copy(r.Fingerprint[:], "fingerprint of "+key)
	return r
}

func keyedAccept(f *fixture, r *godwit.IdempotencyRecord) (store.Accept, godwit.EventID) {
	n := f.fanOut(f.makeEvent(), f.endpoint)
	if r != nil {
		r.EventID = n.Event.ID
	}
	return store.Accept{Events: []store.NewEvent{n}, Record: r}, n.Event.ID
}

func (f *fixture) stored(id godwit.EventID, want bool) {
	f.t.Helper()
	_, err := f.s.Event(f.ctx, f.tenant, id)
	if want {
		f.is(err, nil)
	} else {
		f.is(err, store.ErrNotFound)
	}
}

func acceptReplayAcross(t *testing.T, f *fixture) {
	first, firstID := keyedAccept(f, makeRecord(f, "k"))
	if c := f.commit(&store.Batch{Accepts: []store.Accept{first}}); c.Existing[0] != nil {
		t.Fatalf("first found %+v", c.Existing[0])
	}
	same(t, "record", got(f.s.Recorded(f.ctx, first.Record.ID, f.now))(t), first.Record)
	f.tick(time.Hour)
	repeat := makeRecord(f, "k")
	repeat.Response.Body = []byte("another answer")
	second, secondID := keyedAccept(f, repeat)
	other, otherID := keyedAccept(f, makeRecord(f, "another key"))
	c := f.commit(&store.Batch{Accepts: []store.Accept{second, other}})
	same(t, "existing", c.Existing, []*godwit.IdempotencyRecord{first.Record, nil})
	f.stored(firstID, true)
	f.stored(secondID, false)
	f.stored(otherID, true)
	ds := got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant}, store.Page{Limit: 10}))(t)
	if len(ds) != 2 {
		t.Errorf("%d deliveries, want those of two events", len(ds))
	}
}

func acceptReplayInside(t *testing.T, f *fixture) {
	a, aID := keyedAccept(f, makeRecord(f, "k"))
	b, bID := keyedAccept(f, makeRecord(f, "k"))
	b.Record.Response.Body = []byte("second")
	plain, plainID := keyedAccept(f, nil)
	c := f.commit(&store.Batch{Accepts: []store.Accept{a, plain, b}})
	same(t, "existing", c.Existing, []*godwit.IdempotencyRecord{nil, nil, a.Record})
	f.stored(aID, true)
	f.stored(bID, false)
	f.stored(plainID, true)
}

func acceptManyUnderOneKey(t *testing.T, f *fixture) {
	make5 := func() (a store.Accept) {
		for range 5 {
			a.Events = append(a.Events, f.fanOut(f.makeEvent(), f.endpoint))
		}
		a.Record = makeRecord(f, "bulk")
		a.Record.EventID = a.Events[0].Event.ID
		return a
	}
	first, second := make5(), make5()
	f.commit(&store.Batch{Accepts: []store.Accept{first}})
	c := f.commit(&store.Batch{Accepts: []store.Accept{second}})
	same(t, "existing", c.Existing, []*godwit.IdempotencyRecord{first.Record})
	for i := range 5 {
		f.stored(first.Events[i].Event.ID, true)
		f.stored(second.Events[i].Event.ID, false)
	}
}

func acceptExpired(t *testing.T, f *fixture) {
	trace.Covers(t, "IKH-EXP-1")
	first, _ := keyedAccept(f, makeRecord(f, "k"))
	f.commit(&store.Batch{Accepts: []store.Accept{first}})

	f.now = first.Record.ExpiresAt.Add(-time.Microsecond)
	early, earlyID := keyedAccept(f, makeRecord(f, "k"))
	if c := f.commit(&store.Batch{Accepts: []store.Accept{early}}); c.Existing[0] == nil {
		t.Error("the key was free before its window ended")
	}
	f.stored(earlyID, false)

	f.now = first.Record.ExpiresAt
	late, lateID := keyedAccept(f, makeRecord(f, "k"))
	if c := f.commit(&store.Batch{Accepts: []store.Accept{late}}); c.Existing[0] != nil {
		t.Error("the key was not free after its window")
	}
	f.stored(lateID, true)
	same(t, "record", got(f.s.Recorded(f.ctx, late.Record.ID, f.now))(t), late.Record)

	f.now = late.Record.ExpiresAt
	f.sweepAll(store.Sweep{})
	if _, err := f.s.Recorded(f.ctx, late.Record.ID, base); err == nil {
		t.Error("the record is there after the purge")
	}
}

func acceptInProgress(t *testing.T, f *fixture) {
	held := makeRecord(f, "k")
	held.Response, held.ExpiresAt = nil, f.now.Add(time.Minute)
	if r := got(f.s.Reserve(f.ctx, held))(t); r != nil {
		t.Fatalf("reserve found %+v", r)
	}
	a, id := keyedAccept(f, makeRecord(f, "k"))
	c := f.commit(&store.Batch{Accepts: []store.Accept{a}})
	same(t, "existing", c.Existing, []*godwit.IdempotencyRecord{held})
	f.stored(id, false)
}

func acceptComposite(t *testing.T, f *fixture) {
	trace.Covers(t, "IKH-SEC-6", "IKH-SEC-7")
	id := func(principal godwit.KeyID, operation string) [32]byte {
		return godwit.IdempotencyID(principal, operation, "one key")
	}
	mine, theirs := mint[godwit.KeyID](f.now), mint[godwit.KeyID](f.now)
	ids := [][32]byte{id(mine, "POST /v1/events"), id(theirs, "POST /v1/events"), id(mine, "POST /v1/endpoints")}
	for _, recordID := range ids {
		r := makeRecord(f, "")
		r.ID = recordID
		r.Response.Body = recordID[:]
		a, event := keyedAccept(f, r)
		if c := f.commit(&store.Batch{Accepts: []store.Accept{a}}); c.Existing[0] != nil {
			t.Fatal("another principal's or operation's key was taken for this one's")
		}
		f.stored(event, true)
	}
	for _, recordID := range ids {
		if r := got(f.s.Recorded(f.ctx, recordID, f.now))(t); !bytes.Equal(r.Response.Body, recordID[:]) {
			t.Error("one principal's key gives another's answer")
		}
	}
}

func acceptAgain(t *testing.T, f *fixture) {
	keyed, keyedID := keyedAccept(f, makeRecord(f, "k"))
	plain, plainID := keyedAccept(f, nil)
	keyed.Events[0].Deliveries[0].ClaimEpoch = f.epoch(f.endpoint)
	plain.Events[0].Deliveries[0].ClaimEpoch = f.epoch(f.endpoint)
	notice := makeNotice(f)
	b := &store.Batch{Accepts: []store.Accept{keyed, plain}, Notices: []godwit.Notice{notice}}
	f.commit(b)
	same(t, "existing", f.commit(b).Existing, []*godwit.IdempotencyRecord{nil, nil})
	f.stored(keyedID, true)
	f.stored(plainID, true)
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 2 {
		t.Errorf("%d deliveries are pending, want 2", n)
	}

	d := f.delivery(plain.Events[0].Deliveries[0].ID)
	results := &store.Batch{Results: []store.Result{f.attempted(godwit.Work{Delivery: *d, Event: plain.Events[0].Event}, godwit.DeliveryAccepted)}}
	if c := f.commit(results); len(c.Fenced) != 0 {
		t.Fatal("first was fenced")
	}
	same(t, "fenced", f.commit(results).Fenced, []int{0})
	if as := got(f.s.Attempts(f.ctx, f.tenant, d.ID))(t); len(as) != 1 {
		t.Errorf("%d attempts recorded, one was made", len(as))
	}
}

func acceptMoreDeliveries(t *testing.T, f *fixture) {
	e := f.makeEvent()
	first := f.fanOut(e, f.endpoint)
	f.accept(first)
	other := f.newEndpoint()
	changed := *e
	changed.Body = []byte("something else")
	second := f.fanOut(&changed, other)
	second.Deliveries = append(second.Deliveries, first.Deliveries[0])
	f.accept(second)
	same(t, "event", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
	if ds := listDeliveries(f, store.DeliveryFilter{EventID: e.ID}); len(ds) != 2 {
		t.Errorf("event has %d deliveries, want 2", len(ds))
	}
	same(t, "claimed event", f.claimOne(other).Event, e)
	f.claimOne(f.endpoint)
}
