package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var sweepCases = []testCase{
	{"nothing to do", sweepNothing},
	{"finished events go", sweepEvents},
	{"pending ones end exhausted", sweepPending},
	{"claimed ones wait", sweepClaimed},
	{"attempts", sweepAttempts},
	{"dead letters", sweepDeadLetters},
	{"notices", sweepNotices},
	{"idempotency records", sweepRecords},
	{"idempotency records behind longer-lived ones", sweepRecordsBehind},
	{"deliveries of deleted endpoints are cancelled", sweepCancelled},
	{"is bounded", sweepBounded},
	{"of an environment", sweepEnvironment},
}

// sweepAll sweeps until nothing expired is left and sums up the counts.
func (f *fixture) sweepAll(s store.Sweep) store.Swept {
	f.t.Helper()
	s.Now = f.now
	if s.Limit == 0 {
		s.Limit = 100
	}
	var sum store.Swept
	for range 1000 {
		n := got(f.s.Sweep(f.ctx, s))(f.t)
		sum.Events += n.Events
		sum.Deliveries += n.Deliveries
		sum.Attempts += n.Attempts
		sum.DeadLetters += n.DeadLetters
		sum.Records += n.Records
		sum.Notices += n.Notices
		sum.Rejections += n.Rejections
		sum.Broadcasts += n.Broadcasts
		sum.Expired += n.Expired
		sum.Cancelled += n.Cancelled
		if !n.More {
			return sum
		}
	}
	f.t.Fatal("the sweep does not come to an end")
	return sum
}

func sweepNothing(t *testing.T, f *fixture) {
	f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	f.acceptOne()
	f.commit(&store.Batch{Notices: []godwit.Notice{makeNotice(f)}})
	a, _ := keyedAccept(f, makeRecord(f, "k"))
	f.commit(&store.Batch{Accepts: []store.Accept{a}})
	for _, s := range []store.Sweep{
		{}, // zero times keep everything
		{EventsBefore: base, AttemptsBefore: base, DeadLettersBefore: base, NoticesBefore: base},
	} {
		same(t, "swept", f.sweepAll(s), store.Swept{})
	}
}

func sweepEvents(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	old := f.fanOut(f.makeEvent(), f.endpoint, other)
	f.accept(old)
	f.record(f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted))
	got(f.s.Cancel(f.ctx, f.tenant, old.Deliveries[1].ID, f.now))(t)
	lone := f.makeEvent()
	f.accept(f.fanOut(lone))
	cut := f.tick(time.Hour)
	young := f.acceptOne()
	f.finish(godwit.DeliveryAccepted)

	n := f.sweepAll(store.Sweep{EventsBefore: cut})
	if n.Events != 2 || n.Deliveries != 2 || n.Expired != 0 {
		t.Errorf("swept %+v, want 2 events and 2 deliveries", n)
	}
	f.stored(old.Event.ID, false)
	f.stored(lone.ID, false)
	for _, d := range old.Deliveries {
		_, err := f.s.Delivery(f.ctx, f.tenant, d.ID)
		f.is(err, store.ErrNotFound)
	}
	if ds := listDeliveries(f, store.DeliveryFilter{}); len(ds) != 1 || ds[0].ID != young {
		t.Errorf("deliveries left: %+v", ds)
	}
	if as := got(f.s.Attempts(f.ctx, f.tenant, young))(t); len(as) != 1 {
		t.Errorf("%d attempts of what stays", len(as))
	}
	same(t, "swept again", f.sweepAll(store.Sweep{EventsBefore: cut}), store.Swept{})
}

func sweepPending(t *testing.T, f *fixture) {
	e := f.makeEvent()
	other := f.newEndpoint()
	n := f.fanOut(e, f.endpoint, other)
	f.accept(n)
	f.record(f.attempted(f.claimOne(f.endpoint), godwit.DeliveryPending))
	id := n.Deliveries[0].ID
	want := *f.delivery(id)
	cut := f.tick(24 * time.Hour)
	sum := f.sweepAll(store.Sweep{EventsBefore: cut})
	if sum.Events != 1 || sum.Expired != 2 {
		t.Errorf("swept %+v, want 1 event, 2 expired", sum)
	}
	f.stored(e.ID, false)
	want.Expire(f.now)
	dl := got(f.s.DeadLetter(f.ctx, f.tenant, id))(t)
	same(t, "delivery", dl.Delivery, want)
	same(t, "event", dl.Event, e)
	if !dl.DeadAt.Equal(f.now) {
		t.Errorf("dead at %v, want %v", dl.DeadAt, f.now)
	}
	got(f.s.DeadLetter(f.ctx, f.tenant, n.Deliveries[1].ID))(t)
	if c := f.claim(f.endpoint, 5); len(c.Work) != 0 || !c.NextDue.IsZero() {
		t.Errorf("an expired delivery can be claimed: %+v", c)
	}
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 1 {
		t.Errorf("%d attempts of the dead letter, want 1", len(as))
	}
	same(t, "delivery as its dead letter keeps it", f.delivery(id), &want)
}

func sweepClaimed(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	cut := f.tick(24 * time.Hour)
	if n := f.sweepAll(store.Sweep{EventsBefore: cut}); n.Events != 0 || n.Expired != 0 {
		t.Errorf("swept %+v while an attempt was under way", n)
	}
	f.record(f.attempted(w, godwit.DeliveryAccepted))
	if n := f.sweepAll(store.Sweep{EventsBefore: cut}); n.Events != 1 || n.Deliveries != 1 {
		t.Errorf("swept %+v, want the event", n)
	}
	_, err := f.s.Delivery(f.ctx, f.tenant, id)
	f.is(err, store.ErrNotFound)
}

func sweepAttempts(t *testing.T, f *fixture) {
	id := f.acceptOne()
	waiting := f.finish(godwit.DeliveryPending)
	f.now = waiting.DueAt
	cut := f.now
	second := f.finish(godwit.DeliveryAccepted)
	if n := f.sweepAll(store.Sweep{AttemptsBefore: cut}); n.Attempts != 1 {
		t.Errorf("swept %+v, want 1 attempt", n)
	}
	as := got(f.s.Attempts(f.ctx, f.tenant, id))(t)
	if len(as) != 1 || as[0].N != 2 {
		t.Errorf("attempts left: %+v", as)
	}
	same(t, "delivery", f.delivery(id), &second)
}

func sweepDeadLetters(t *testing.T, f *fixture) {
	old := f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	cut := f.tick(time.Hour)
	young := f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	if n := f.sweepAll(store.Sweep{DeadLettersBefore: cut}); n.DeadLetters != 1 || n.Deliveries != 0 {
		t.Errorf("swept %+v, want 1 dead letter", n)
	}
	_, err := f.s.DeadLetter(f.ctx, f.tenant, old)
	f.is(err, store.ErrNotFound)
	got(f.s.DeadLetter(f.ctx, f.tenant, young))(t)
	if d := f.delivery(old); d.Status != godwit.DeliveryTerminal {
		t.Errorf("delivery is %s", d.Status)
	}
	if ds := f.requeue(old); len(ds) != 1 { // its event is still there
		t.Errorf("requeued %+v", ds)
	}
}

func sweepNotices(t *testing.T, f *fixture) {
	f.commit(&store.Batch{Notices: []godwit.Notice{makeNotice(f), makeNotice(f)}})
	cut := f.tick(time.Hour)
	young := makeNotice(f)
	f.commit(&store.Batch{Notices: []godwit.Notice{young}})
	if n := f.sweepAll(store.Sweep{NoticesBefore: cut}); n.Notices != 2 {
		t.Errorf("swept %+v, want 2 notices", n)
	}
	same(t, "notices", got(f.s.ListNotices(f.ctx, f.tenant, false, store.Page{Limit: 5}))(t), []godwit.Notice{young})
}

func sweepRecords(t *testing.T, f *fixture) {
	short, long := makeRecord(f, "short"), makeRecord(f, "long")
	short.ExpiresAt = f.now.Add(time.Minute)
	a, _ := keyedAccept(f, short)
	b, _ := keyedAccept(f, long)
	f.commit(&store.Batch{Accepts: []store.Accept{a, b}})
	f.tick(time.Minute)
	if n := f.sweepAll(store.Sweep{}); n.Records != 1 {
		t.Errorf("swept %+v, want 1 record", n)
	}
	got(f.s.Recorded(f.ctx, long.ID, f.now))(t)
	_, err := f.s.Recorded(f.ctx, short.ID, base)
	f.is(err, store.ErrNotFound)
}

// Nonces live for minutes, keys of relayed events for weeks.
func sweepRecordsBehind(t *testing.T, f *fixture) {
	b := &store.Batch{}
	var short []*godwit.IdempotencyRecord
	for i := range 40 {
		r := makeRecord(f, fmt.Sprint("record ", i))
		if r.ExpiresAt = f.now.Add(30 * 24 * time.Hour); i >= 30 {
			r.ExpiresAt = f.now.Add(time.Minute)
			short = append(short, r)
		}
		a, _ := keyedAccept(f, r)
		b.Accepts = append(b.Accepts, a)
	}
	f.commit(b)
	f.tick(time.Minute)
	if n := f.sweepAll(store.Sweep{Limit: 5}); n.Records != int64(len(short)) {
		t.Errorf("swept %+v, want %d records", n, len(short))
	}
	for _, r := range short {
		_, err := f.s.Recorded(f.ctx, r.ID, base)
		f.is(err, store.ErrNotFound)
	}
}

func sweepCancelled(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	n := f.fanOut(f.makeEvent(), f.endpoint, other)
	f.accept(n)
	f.acceptOne()
	before := *f.delivery(n.Deliveries[0].ID)
	claimed := f.claim(f.endpoint, 1).Work[0]
	removeEndpoint(f, f.endpoint)
	f.tick(time.Minute)
	if sum := f.sweepAll(store.Sweep{}); sum.Cancelled != 1 || sum.Events != 0 {
		t.Errorf("swept %+v, want 1 cancelled", sum)
	}
	f.record(store.Result{Delivery: claimed.Delivery, Epoch: f.epoch(f.endpoint)})
	if sum := f.sweepAll(store.Sweep{}); sum.Cancelled != 1 {
		t.Errorf("swept %+v, want the one that was claimed", sum)
	}
	want := before
	want.Cancel(godwit.ReasonEndpointDeleted, f.now)
	same(t, "delivery", f.delivery(n.Deliveries[0].ID), &want)
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 0 {
		t.Errorf("%d are pending", n)
	}
	if n := got(f.s.CountPending(f.ctx, other))(t); n != 1 {
		t.Errorf("%d are pending for the living endpoint", n)
	}
}

func sweepBounded(t *testing.T, f *fixture) {
	b := &store.Batch{}
	for i := range 60 {
		e := f.makeEvent()
		n := f.fanOut(e)
		if i%2 == 0 {
			n = f.fanOut(e, f.endpoint)
		}
		b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{n}})
	}
	f.commit(b)
	cut := f.tick(time.Hour)
	first := got(f.s.Sweep(f.ctx, store.Sweep{Now: f.now, EventsBefore: cut, Limit: 10}))(t)
	if !first.More || first.Events == 0 || first.Events > 30 {
		t.Errorf("first sweep did %+v, limit 10", first)
	}
	rest := f.sweepAll(store.Sweep{EventsBefore: cut, Limit: 10})
	if first.Events+rest.Events != 60 || first.Expired+rest.Expired != 30 {
		t.Errorf("swept %+v and %+v, want 60 events and 30 expired", first, rest)
	}
}
