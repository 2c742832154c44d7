package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Most deliveries are claimed together with their event. A backend may store them differently until their first result;
// callers see no difference.
var handoverCases = []testCase{
	{"is a pending delivery like any other", handoverSeen},
	{"is with the engine", handoverHeld},
	{"every kind of first result", handoverResult},
	{"is recorded once", handoverOnce},
	{"a claim is kept within a batch", handoverKept},
	{"ends with its lease", handoverLease},
	{"is reclaimed", handoverReclaim},
	{"a repeated commit changes nothing", handoverRepeated},
	{"an event gains deliveries", handoverGains},
}

// handOver stores an event with claimed deliveries.
func handOver(f *fixture, e *godwit.Event, endpoints ...godwit.EndpointID) store.NewEvent {
	f.t.Helper()
	n := f.fanOut(e, endpoints...)
	for i := range n.Deliveries {
		n.Deliveries[i].ClaimEpoch = f.epoch(n.Deliveries[i].EndpointID)
	}
	f.accept(n)
	return n
}

// handedOver returns the initial state of an event's delivery.
func handedOver(f *fixture, n store.NewEvent, i int) godwit.Delivery {
	d, e := n.Deliveries[i], n.Event
	return godwit.Delivery{
		ID: d.ID, TenantID: f.tenant, EventID: e.ID, EndpointID: d.EndpointID, Status: godwit.DeliveryPending,
		DueAt: e.CreatedAt, CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt, Run: godwit.Run{Trigger: d.Trigger}, EventType: e.Type,
	}
}

func handoverSeen(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	var all []godwit.Delivery // newest first
	for i := range 6 {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Type = []string{"order.paid", "order.sent"}[i%2]
		n := f.fanOut(e, f.endpoint, other)
		n.Deliveries[1].Trigger = godwit.TriggerTest
		if i%3 != 0 { // some wait, so that both kinds are mixed
			n.Deliveries[0].ClaimEpoch, n.Deliveries[1].ClaimEpoch = f.epoch(f.endpoint), f.epoch(other)
		}
		f.accept(n)
		all = append([]godwit.Delivery{handedOver(f, n, 0), handedOver(f, n, 1)}, all...)
	}
	for _, d := range all {
		same(t, "delivery", f.delivery(d.ID), &d)
		if as := got(f.s.Attempts(f.ctx, f.tenant, d.ID))(t); len(as) != 0 {
			t.Errorf("attempts are %+v, none was made", as)
		}
	}
	tried, untried := true, false
	middle := all[6]
	for name, c := range map[string]struct {
		filter store.DeliveryFilter
		keep   func(*godwit.Delivery) bool
	}{
		"all":      {store.DeliveryFilter{}, func(*godwit.Delivery) bool { return true }},
		"pending":  {store.DeliveryFilter{Status: godwit.DeliveryPending}, func(*godwit.Delivery) bool { return true }},
		"accepted": {store.DeliveryFilter{Status: godwit.DeliveryAccepted}, func(*godwit.Delivery) bool { return false }},
		"endpoint": {store.DeliveryFilter{EndpointID: other}, func(d *godwit.Delivery) bool { return d.EndpointID == other }},
		"event":    {store.DeliveryFilter{EventID: middle.EventID}, func(d *godwit.Delivery) bool { return d.EventID == middle.EventID }},
		"event and endpoint": {store.DeliveryFilter{EventID: middle.EventID, EndpointID: other}, func(d *godwit.Delivery) bool {
			return d.EventID == middle.EventID && d.EndpointID == other
		}},
		"type": {store.DeliveryFilter{EventType: "order.sent", Status: godwit.DeliveryPending}, func(d *godwit.Delivery) bool {
			return d.EventType == "order.sent"
		}},
		"untried": {store.DeliveryFilter{Tried: &untried}, func(*godwit.Delivery) bool { return true }},
		"tried":   {store.DeliveryFilter{Tried: &tried}, func(*godwit.Delivery) bool { return false }},
		"since":   {store.DeliveryFilter{Since: middle.CreatedAt}, func(d *godwit.Delivery) bool { return !d.CreatedAt.Before(middle.CreatedAt) }},
		"until":   {store.DeliveryFilter{Until: middle.CreatedAt}, func(d *godwit.Delivery) bool { return d.CreatedAt.Before(middle.CreatedAt) }},
	} {
		t.Run(name, func(t *testing.T) {
			want, found := map[godwit.DeliveryID]godwit.Delivery{}, map[godwit.DeliveryID]godwit.Delivery{}
			for _, d := range all {
				if c.keep(&d) {
					want[d.ID] = d
				}
			}
			for _, d := range listDeliveries(f.in(t), c.filter) { // listDeliveries also checks the order of the pages
				found[d.ID] = d
			}
			same(t, "deliveries", found, want)
		})
	}
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 6 {
		t.Errorf("%d are pending, want 6", n)
	}
	stranger := f.newTenant()
	_, err := f.s.Delivery(f.ctx, stranger, all[0].ID)
	f.is(err, store.ErrNotFound)
	if ds := got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: stranger}, store.Page{Limit: 5}))(t); len(ds) != 0 {
		t.Errorf("a stranger lists %v", ds)
	}
}

func handoverHeld(t *testing.T, f *fixture) {
	n := handOver(f, f.makeEvent(), f.endpoint)
	id := n.Deliveries[0].ID
	_, err := f.s.Cancel(f.ctx, f.tenant, id, f.now)
	f.is(err, store.ErrConflict)
	_, err = f.s.Cancel(f.ctx, f.newTenant(), id, f.now)
	f.is(err, store.ErrNotFound)
	if ds := f.requeue(id); len(ds) != 0 {
		t.Errorf("requeued %+v", ds)
	}
	if c := f.claim(f.endpoint, 5); len(c.Work) != 0 || !c.NextDue.IsZero() {
		t.Errorf("claimed %+v", c)
	}
	f.tick(30 * 24 * time.Hour)
	if sum := f.sweepAll(store.Sweep{EventsBefore: f.now, AttemptsBefore: f.now}); sum.Events != 0 || sum.Expired != 0 {
		t.Errorf("swept %+v from under the engine", sum)
	}
	want := handedOver(f, n, 0)
	same(t, "delivery", f.delivery(id), &want)
	f.record(f.attempted(godwit.Work{Delivery: want, Event: n.Event}, godwit.DeliveryAccepted))
	if sum := f.sweepAll(store.Sweep{EventsBefore: f.now}); sum.Events != 1 || sum.Deliveries != 1 {
		t.Errorf("swept %+v, want the event with its delivery", sum)
	}
	_, err = f.s.Delivery(f.ctx, f.tenant, id)
	f.is(err, store.ErrNotFound)
}

func handoverResult(t *testing.T, f *fixture) {
	for _, status := range []godwit.DeliveryStatus{
		godwit.DeliveryAccepted, godwit.DeliveryPending, godwit.DeliveryTerminal, godwit.DeliveryExhausted,
	} {
		t.Run(string(status), func(t *testing.T) {
			f := f.in(t)
			endpoint := f.newEndpoint()
			n := handOver(f, f.makeEvent(), endpoint, f.endpoint)
			f.tick(time.Second)
			r := f.attempted(godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event}, status)
			r.Attempt.Trigger, r.Attempt.Trace.Proto = godwit.TriggerAccept, "HTTP/2.0"
			f.record(r)
			same(t, "delivery", f.delivery(r.Delivery.ID), &r.Delivery)
			same(t, "attempts", got(f.s.Attempts(f.ctx, f.tenant, r.Delivery.ID))(t), []godwit.Attempt{*r.Attempt})
			if ds := listDeliveries(f, store.DeliveryFilter{EventID: n.Event.ID}); len(ds) != 2 {
				t.Errorf("the event has %d deliveries, want 2", len(ds))
			}
			log := attemptLog(f, store.AttemptFilter{EndpointID: endpoint}, 5)
			same(t, "log", log, []store.LoggedAttempt{{Attempt: *r.Attempt, EventType: n.Event.Type, Run: 1, Final: status}})
			if status.Dead() {
				same(t, "dead letter", got(f.s.DeadLetter(f.ctx, f.tenant, r.Delivery.ID))(t).Delivery, r.Delivery)
			}
			if status != godwit.DeliveryPending {
				return
			}
			f.now = r.Delivery.DueAt
			w := f.claimOne(endpoint)
			same(t, "claimed", w.Delivery, r.Delivery)
			again := f.attempted(w, godwit.DeliveryAccepted)
			f.record(again)
			same(t, "attempts", got(f.s.Attempts(f.ctx, f.tenant, r.Delivery.ID))(t), []godwit.Attempt{*r.Attempt, *again.Attempt})
		})
	}
	t.Run("given back", func(t *testing.T) {
		f := f.in(t)
		endpoint := f.newEndpoint()
		n := handOver(f, f.makeEvent(), endpoint)
		back := handedOver(f, n, 0)
		back.DueAt = f.now.Add(time.Minute)
		f.record(store.Result{Delivery: back, Epoch: f.epoch(endpoint)})
		same(t, "delivery", f.delivery(back.ID), &back)
		f.now = back.DueAt
		same(t, "claimed", f.claimOne(endpoint).Delivery, back)
	})
}

func handoverOnce(t *testing.T, f *fixture) {
	n := handOver(f, f.makeEvent(), f.endpoint)
	r := f.attempted(godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event}, godwit.DeliveryAccepted)
	unknown := r
	unknown.Delivery.ID = mint[godwit.DeliveryID](f.now)
	elsewhere := r
	elsewhere.Delivery.TenantID = f.newTenant()
	old, none := r, r
	old.Epoch--
	none.Epoch = 0
	for _, refused := range []store.Result{unknown, elsewhere, old, none} {
		same(t, "fenced", f.commit(&store.Batch{Results: []store.Result{refused}}).Fenced, []int{0})
	}
	f.record(r)
	_, err := f.s.Delivery(f.ctx, f.tenant, unknown.Delivery.ID)
	f.is(err, store.ErrNotFound)
	same(t, "fenced", f.commit(&store.Batch{Results: []store.Result{r}}).Fenced, []int{0})
	same(t, "delivery", f.delivery(r.Delivery.ID), &r.Delivery)
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 0 {
		t.Errorf("%d are pending", n)
	}
}

func handoverKept(t *testing.T, f *fixture) {
	n := handOver(f, f.makeEvent(), f.endpoint)
	first := f.attempted(godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event}, godwit.DeliveryPending)
	first.KeepClaim = true
	second := f.attempted(godwit.Work{Delivery: first.Delivery, Event: n.Event}, godwit.DeliveryPending)
	second.KeepClaim = true
	old := []store.Result{first, second}
	for i := range old {
		old[i].Epoch--
	}
	same(t, "both fenced", f.commit(&store.Batch{Results: old}).Fenced, []int{0, 1})
	f.record(first, second)
	if c := f.claim(f.endpoint, 5); len(c.Work) != 0 {
		t.Errorf("a kept claim was claimed: %+v", c)
	}
	third := f.attempted(godwit.Work{Delivery: second.Delivery, Event: n.Event}, godwit.DeliveryAccepted)
	f.record(third)
	same(t, "delivery", f.delivery(third.Delivery.ID), &third.Delivery)
	same(t, "attempts", got(f.s.Attempts(f.ctx, f.tenant, third.Delivery.ID))(t),
		[]godwit.Attempt{*first.Attempt, *second.Attempt, *third.Attempt})
}

func handoverLease(t *testing.T, f *fixture) {
	for name, end := range map[string]func(f *fixture){
		"taken over": func(f *fixture) { f.tick(time.Hour); f.acquire("node-b") },
		"same node":  func(f *fixture) { f.acquire("node-b") },
		"released": func(f *fixture) {
			f.must(f.s.Release(f.ctx, f.acquire("node-b"), false))
			f.tick(time.Hour)
			f.acquire("node-b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.tick(time.Hour)
			f.acquire("node-b")
			other := f.newEndpoint()
			endpoint := f.newEndpoint()
			n := handOver(f, f.makeEvent(), endpoint, other)
			late := f.attempted(godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event}, godwit.DeliveryAccepted)
			done := f.attempted(godwit.Work{Delivery: handedOver(f, n, 1), Event: n.Event}, godwit.DeliveryAccepted)
			f.record(done)
			end(f)
			same(t, "fenced", f.commit(&store.Batch{Results: []store.Result{late}}).Fenced, []int{0})
			w := f.claimOne(endpoint)
			same(t, "claimed", w, godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event})
			if c := f.claim(other, 5); len(c.Work) != 0 {
				t.Errorf("a finished one came back: %+v", c)
			}
			r := f.attempted(w, godwit.DeliveryAccepted)
			f.record(r)
			same(t, "delivery", f.delivery(r.Delivery.ID), &r.Delivery)
		})
	}
}

func handoverReclaim(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	n := handOver(f, f.makeEvent(), f.endpoint, f.endpoint, other)
	lost, held := n.Deliveries[0].ID, n.Deliveries[1].ID
	f.tick(time.Second)
	reclaim := func(epoch int64) int {
		return got(f.s.Reclaim(f.ctx, f.endpoint, epoch, []godwit.DeliveryID{held}, f.now))(t)
	}
	if n := reclaim(f.epoch(f.endpoint) + 1); n != 0 {
		t.Errorf("reclaimed %d under another epoch", n)
	}
	if n := reclaim(f.epoch(f.endpoint)); n != 1 {
		t.Errorf("reclaimed %d, want 1", n)
	}
	if n := reclaim(f.epoch(f.endpoint)); n != 0 {
		t.Errorf("reclaimed %d again", n)
	}
	w := f.claimOne(f.endpoint)
	if w.Delivery.ID != lost || !w.Delivery.DueAt.Equal(f.now) {
		t.Errorf("claimed %+v", w.Delivery)
	}
	f.record(f.attempted(godwit.Work{Delivery: handedOver(f, n, 1), Event: n.Event}, godwit.DeliveryAccepted))
	if _, ok := f.waiting(other); ok {
		t.Error("another endpoint's claim was taken back")
	}
}

func handoverRepeated(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	n := f.fanOut(f.makeEvent(), f.endpoint, other)
	n.Deliveries[0].ClaimEpoch, n.Deliveries[1].ClaimEpoch = f.epoch(f.endpoint), f.epoch(other)
	b := &store.Batch{Now: f.now, Accepts: []store.Accept{{Events: []store.NewEvent{n}}}}
	f.commit(b)
	f.commit(b)
	r := f.attempted(godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event}, godwit.DeliveryAccepted)
	f.record(r)
	f.commit(b)
	same(t, "delivery", f.delivery(r.Delivery.ID), &r.Delivery)
	same(t, "deliveries", len(listDeliveries(f, store.DeliveryFilter{})), 2)
	for i, id := range []godwit.EndpointID{f.endpoint, other} {
		if n := got(f.s.CountPending(f.ctx, id))(t); n != int64(i) {
			t.Errorf("%d are pending for endpoint %d", n, i)
		}
		if c := f.claim(id, 5); len(c.Work) != 0 {
			t.Errorf("claimed %+v", c)
		}
	}
	f.record(f.attempted(godwit.Work{Delivery: handedOver(f, n, 1), Event: n.Event}, godwit.DeliveryAccepted))
}

func handoverGains(t *testing.T, f *fixture) {
	n := handOver(f, f.makeEvent(), f.endpoint)
	other, third := f.newEndpoint(), f.newEndpoint()
	more := handOver(f, n.Event, other)
	waits := f.fanOut(n.Event, third)
	f.accept(waits)
	if ds := listDeliveries(f, store.DeliveryFilter{EventID: n.Event.ID}); len(ds) != 3 {
		t.Errorf("the event has %d deliveries, want 3", len(ds))
	}
	for _, id := range []godwit.EndpointID{f.endpoint, other} {
		if c := f.claim(id, 5); len(c.Work) != 0 {
			t.Errorf("claimed %+v", c)
		}
	}
	f.record(
		f.attempted(godwit.Work{Delivery: handedOver(f, more, 0), Event: n.Event}, godwit.DeliveryTerminal),
		f.attempted(godwit.Work{Delivery: handedOver(f, n, 0), Event: n.Event}, godwit.DeliveryAccepted),
		f.attempted(f.claimOne(third), godwit.DeliveryAccepted))
	f.tick(time.Hour)
	if sum := f.sweepAll(store.Sweep{EventsBefore: f.now}); sum.Events != 1 || sum.Deliveries != 3 {
		t.Errorf("swept %+v, want the event with all of its deliveries", sum)
	}
	if ds := f.requeue(more.Deliveries[0].ID); len(ds) != 1 {
		t.Errorf("requeued %+v", ds)
	}
}
