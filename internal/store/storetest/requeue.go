package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var requeueCases = []testCase{
	{"a pending one is made due", requeuePending},
	{"a claimed one is left alone", requeueClaimed},
	{"a finished one starts a new run", requeueFinished},
	{"a dead one leaves the dead letters", requeueDead},
	{"a swept one is restored", requeueSwept},
	{"those of some statuses alone", requeueOnly},
	{"many at once, with unknown and repeated ids", requeueMany},
}

func (f *fixture) requeue(ids ...godwit.DeliveryID) []godwit.Delivery {
	f.t.Helper()
	return got(f.s.Requeue(f.ctx, store.Requeue{
		TenantID: f.tenant, Deliveries: ids, Trigger: godwit.TriggerReplay, Actor: "key_7", Now: f.now,
	}))(f.t)
}

func requeuePending(t *testing.T, f *fixture) {
	id := f.acceptOne()
	waiting := f.finish(godwit.DeliveryPending)
	f.tick(time.Second)
	ds := f.requeue(id)
	want := waiting
	want.DueAt, want.UpdatedAt = f.now, f.now
	same(t, "requeued", ds, []godwit.Delivery{want})
	same(t, "stored", f.delivery(id), &want)
	same(t, "claimed", f.claimOne(f.endpoint).Delivery, want)
}

func requeueClaimed(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	f.tick(time.Second)
	if ds := f.requeue(id); len(ds) != 0 {
		t.Errorf("requeued %+v", ds)
	}
	same(t, "delivery", f.delivery(id), &w.Delivery)
	f.record(f.attempted(w, godwit.DeliveryAccepted)) // its claim is still valid
}

func requeueFinished(t *testing.T, f *fixture) {
	for _, status := range []godwit.DeliveryStatus{
		godwit.DeliveryAccepted, godwit.DeliveryCancelled, godwit.DeliveryTerminal, godwit.DeliveryExhausted,
	} {
		t.Run(string(status), func(t *testing.T) {
			f := f.in(t)
			id := f.acceptOne()
			ended := f.finish(status)
			f.tick(time.Hour)
			want := ended
			want.Status, want.Reason, want.DueAt, want.UpdatedAt = godwit.DeliveryPending, "", f.now, f.now
			want.Run = godwit.Run{Trigger: godwit.TriggerReplay, Actor: "key_7"}
			same(t, "requeued", f.requeue(id), []godwit.Delivery{want})
			w := f.claimOne(f.endpoint)
			same(t, "claimed", w.Delivery, want)
			r := f.attempted(w, godwit.DeliveryAccepted)
			f.record(r)
			if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 2 || as[1].N != 2 {
				t.Errorf("attempts over both runs: %+v", as)
			}
		})
	}
}

func requeueDead(t *testing.T, f *fixture) {
	id := f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	keep := f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	f.requeue(id)
	_, err := f.s.DeadLetter(f.ctx, f.tenant, id)
	f.is(err, store.ErrNotFound)
	got(f.s.DeadLetter(f.ctx, f.tenant, keep))(t)
	again := f.finish(godwit.DeliveryExhausted)
	if dl := got(f.s.DeadLetter(f.ctx, f.tenant, id))(t); dl.Delivery.Status != again.Status || dl.Delivery.Attempts != 2 {
		t.Errorf("dead letter of the second run is %+v", dl)
	}
}

func requeueSwept(t *testing.T, f *fixture) {
	e := f.makeEvent()
	e.Attributes = map[string]string{"a": "b"}
	other := f.newEndpoint()
	n := f.fanOut(e, f.endpoint, other)
	f.accept(n)
	f.record(f.attempted(f.claimOne(f.endpoint), godwit.DeliveryTerminal))
	f.record(f.attempted(f.claimOne(other), godwit.DeliveryTerminal))
	id := n.Deliveries[0].ID
	before := f.delivery(id)
	f.tick(30 * 24 * time.Hour)
	sweep := store.Sweep{EventsBefore: f.now.Add(-time.Hour)}
	f.sweepAll(sweep)
	f.stored(e.ID, false)
	same(t, "delivery as its dead letter keeps it", f.delivery(id), before)

	for i, d := range n.Deliveries { // both of the event's deliveries are restored, one after the other
		ds := f.requeue(d.ID)
		if len(ds) != 1 || ds[0].Status != godwit.DeliveryPending || !ds[0].DueAt.Equal(f.now) || ds[0].Attempts != 1 {
			t.Fatalf("requeued %d: %+v", i, ds)
		}
		same(t, "event", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
		_, err := f.s.DeadLetter(f.ctx, f.tenant, d.ID)
		f.is(err, store.ErrNotFound)
	}
	f.sweepAll(sweep) // the run has just begun
	w := f.claimOne(f.endpoint)
	same(t, "claimed event", w.Event, e)
	f.claimOne(other)
	if ds := listDeliveries(f, store.DeliveryFilter{EventID: e.ID}); len(ds) != 2 {
		t.Errorf("restored event lists %d deliveries, want 2", len(ds))
	}
	r := f.attempted(w, godwit.DeliveryAccepted)
	f.record(r)
	same(t, "delivery", f.delivery(id), &r.Delivery)
}

func requeueOnly(t *testing.T, f *fixture) {
	all := []godwit.DeliveryStatus{
		godwit.DeliveryPending, godwit.DeliveryAccepted, godwit.DeliveryTerminal, godwit.DeliveryExhausted, godwit.DeliveryCancelled,
	}
	only := []godwit.DeliveryStatus{godwit.DeliveryPending, godwit.DeliveryExhausted}
	ids := map[godwit.DeliveryStatus]godwit.DeliveryID{}
	var ask []godwit.DeliveryID
	for _, status := range all {
		ids[status] = f.acceptOne()
		f.finish(status)
		ask = append(ask, ids[status])
	}
	f.tick(time.Second)
	again := func() []godwit.DeliveryID {
		t.Helper()
		var made []godwit.DeliveryID
		for _, d := range got(f.s.Requeue(f.ctx, store.Requeue{
			TenantID: f.tenant, Deliveries: ask, Trigger: godwit.TriggerManual, Actor: "src_7", Now: f.now, Only: only,
		}))(t) {
			made = append(made, d.ID)
		}
		return made
	}
	if made := again(); len(made) != 2 || !slices.Contains(made, ids[godwit.DeliveryPending]) || !slices.Contains(made, ids[godwit.DeliveryExhausted]) {
		t.Errorf("made due: %v of %v", made, ids)
	}
	for _, status := range all {
		want := status
		if status == godwit.DeliveryExhausted {
			want = godwit.DeliveryPending
		}
		if d := f.delivery(ids[status]); d.Status != want {
			t.Errorf("one that was %s is %s", status, d.Status)
		}
	}
	got(f.s.DeadLetter(f.ctx, f.tenant, ids[godwit.DeliveryTerminal]))(t) // it is still open

	// The same applies to deliveries that exist only as dead letters.
	for _, w := range f.claim(f.endpoint, 2).Work {
		f.record(f.attempted(w, godwit.DeliveryTerminal))
	}
	f.tick(30 * 24 * time.Hour)
	f.sweepAll(store.Sweep{EventsBefore: f.now.Add(-time.Hour)})
	if made := again(); len(made) != 0 {
		t.Errorf("swept deliveries made due: %v", made)
	}
	if events := got(f.s.ListEvents(f.ctx, store.EventFilter{TenantID: f.tenant}, store.Page{Limit: 9}))(t); len(events) != 0 {
		t.Errorf("%d events were brought back for nothing", len(events))
	}
	only = []godwit.DeliveryStatus{godwit.DeliveryTerminal}
	if made := again(); len(made) != 3 {
		t.Errorf("terminal deliveries made due: %v", made)
	}
}

func requeueMany(t *testing.T, f *fixture) {
	var ids []godwit.DeliveryID
	for range 50 {
		f.acceptOne()
	}
	for i, w := range f.claim(f.endpoint, 50).Work {
		ids = append(ids, w.Delivery.ID)
		if i < 40 {
			f.record(f.attempted(w, godwit.DeliveryTerminal))
		}
	}
	ask := append([]godwit.DeliveryID{mint[godwit.DeliveryID](f.now), ids[0]}, ids...)
	ds := f.requeue(ask...)
	found := map[godwit.DeliveryID]int{}
	for _, d := range ds {
		found[d.ID]++
	}
	if len(ds) != 40 || len(found) != 40 {
		t.Errorf("%d deliveries were made due, %d different ones; want 40", len(ds), len(found))
	}
	if c := f.claim(f.endpoint, 100); len(c.Work) != 40 {
		t.Errorf("claimed %d, want 40", len(c.Work))
	}
	if ds := f.requeue(); len(ds) != 0 {
		t.Errorf("requeued %v of none", ds)
	}
}
