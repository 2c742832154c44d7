package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var deliveryCases = []testCase{
	{"list, filtered and paged", deliveryList},
	{"list is stable while new ones come", deliveryStable},
	{"belongs to its tenant", deliveryTenant},
	{"cancel", deliveryCancel},
	{"cancel many", deliveryCancelMany},
	{"list those of an event to some endpoints", deliveryTo},
	{"count pending", deliveryCount},
	{"list by type and by whether it was tried", deliveryTyped},
	{"tells the type of its event", deliveryType},
}

func deliveryKey(d *godwit.Delivery) [16]byte { return d.ID }

func listDeliveries(f *fixture, filter store.DeliveryFilter) []godwit.Delivery {
	f.t.Helper()
	filter.TenantID = f.tenant
	return pages(f.t, deliveryKey, func(p store.Page) ([]godwit.Delivery, error) {
		return f.s.ListDeliveries(f.ctx, filter, p)
	})
}

func deliveryList(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	statuses := []godwit.DeliveryStatus{
		godwit.DeliveryAccepted, godwit.DeliveryTerminal, godwit.DeliveryExhausted, godwit.DeliveryPending,
	}
	var all []godwit.Delivery
	var events []*godwit.Event
	for i := range 9 {
		f.tick(time.Second)
		e := f.makeEvent()
		n := f.fanOut(e, f.endpoint, other)
		f.accept(n)
		events = append(events, e)
		f.record(f.attempted(f.claimOne(f.endpoint), statuses[i%4]))
		for _, d := range n.Deliveries {
			all = append(all, *f.delivery(d.ID))
		}
	}
	cancelled := got(f.s.Cancel(f.ctx, f.tenant, all[17].ID, f.now))(t)
	all[17] = *cancelled
	for name, c := range map[string]struct {
		filter store.DeliveryFilter
		keep   func(d *godwit.Delivery) bool
	}{
		"all":      {store.DeliveryFilter{}, func(*godwit.Delivery) bool { return true }},
		"event":    {store.DeliveryFilter{EventID: events[4].ID}, func(d *godwit.Delivery) bool { return d.EventID == events[4].ID }},
		"endpoint": {store.DeliveryFilter{EndpointID: other}, func(d *godwit.Delivery) bool { return d.EndpointID == other }},
		"event and endpoint": {store.DeliveryFilter{EventID: events[4].ID, EndpointID: other},
			func(d *godwit.Delivery) bool { return d.EventID == events[4].ID && d.EndpointID == other }},
		"accepted":  {store.DeliveryFilter{Status: godwit.DeliveryAccepted}, func(d *godwit.Delivery) bool { return d.Status == godwit.DeliveryAccepted }},
		"pending":   {store.DeliveryFilter{Status: godwit.DeliveryPending}, func(d *godwit.Delivery) bool { return d.Status == godwit.DeliveryPending }},
		"terminal":  {store.DeliveryFilter{Status: godwit.DeliveryTerminal}, func(d *godwit.Delivery) bool { return d.Status == godwit.DeliveryTerminal }},
		"exhausted": {store.DeliveryFilter{Status: godwit.DeliveryExhausted}, func(d *godwit.Delivery) bool { return d.Status == godwit.DeliveryExhausted }},
		"cancelled": {store.DeliveryFilter{Status: godwit.DeliveryCancelled}, func(d *godwit.Delivery) bool { return d.Status == godwit.DeliveryCancelled }},
		"endpoint and status": {store.DeliveryFilter{EndpointID: f.endpoint, Status: godwit.DeliveryTerminal},
			func(d *godwit.Delivery) bool {
				return d.EndpointID == f.endpoint && d.Status == godwit.DeliveryTerminal
			}},
		"endpoint and pending": {store.DeliveryFilter{EndpointID: other, Status: godwit.DeliveryPending},
			func(d *godwit.Delivery) bool { return d.EndpointID == other && d.Status == godwit.DeliveryPending }},
		"pending since": {store.DeliveryFilter{Status: godwit.DeliveryPending, Since: events[4].CreatedAt}, func(d *godwit.Delivery) bool {
			return d.Status == godwit.DeliveryPending && !d.CreatedAt.Before(events[4].CreatedAt)
		}},
		"event and status": {store.DeliveryFilter{EventID: events[1].ID, Status: godwit.DeliveryTerminal},
			func(d *godwit.Delivery) bool { return d.EventID == events[1].ID && d.Status == godwit.DeliveryTerminal }},
		"since": {store.DeliveryFilter{Since: events[3].CreatedAt}, func(d *godwit.Delivery) bool { return !d.CreatedAt.Before(events[3].CreatedAt) }},
		"until": {store.DeliveryFilter{Until: events[3].CreatedAt}, func(d *godwit.Delivery) bool { return d.CreatedAt.Before(events[3].CreatedAt) }},
		"between": {store.DeliveryFilter{Since: events[2].CreatedAt, Until: events[5].CreatedAt, EndpointID: other}, func(d *godwit.Delivery) bool {
			return d.EndpointID == other && !d.CreatedAt.Before(events[2].CreatedAt) && d.CreatedAt.Before(events[5].CreatedAt)
		}},
		"unknown event": {store.DeliveryFilter{EventID: mint[godwit.EventID](f.now)}, func(*godwit.Delivery) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			want := map[godwit.DeliveryID]godwit.Delivery{}
			for _, d := range all {
				if c.keep(&d) {
					want[d.ID] = d
				}
			}
			found := map[godwit.DeliveryID]godwit.Delivery{}
			for _, d := range listDeliveries(f, c.filter) {
				found[d.ID] = d
			}
			same(t, "deliveries", found, want)
			if c.filter.EventID.IsZero() {
				c.filter.TenantID = f.tenant
				same(t, "counted", got(f.s.CountDeliveries(f.ctx, c.filter, 100))(t), len(want))
				same(t, "counted up to a bound", got(f.s.CountDeliveries(f.ctx, c.filter, 2))(t), min(len(want), 2))
			}
		})
	}
}

func deliveryStable(t *testing.T, f *fixture) {
	for range 4 {
		f.tick(time.Second)
		f.acceptOne()
	}
	first := got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant}, store.Page{Limit: 2}))(t)
	f.tick(time.Second)
	f.acceptOne()
	second := got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant}, store.Page{After: first[1].ID, Limit: 2}))(t)
	if len(second) != 2 || !second[0].CreatedAt.Equal(first[1].CreatedAt.Add(-time.Second)) {
		t.Errorf("second page after a newcomer: %+v", second)
	}
}

func deliveryTenant(t *testing.T, f *fixture) {
	id := f.acceptOne()
	d := f.finish(godwit.DeliveryTerminal)
	stranger := f.newTenant()
	_, err := f.s.Delivery(f.ctx, stranger, id)
	f.is(err, store.ErrNotFound)
	_, err = f.s.Attempts(f.ctx, stranger, id)
	f.is(err, store.ErrNotFound)
	_, err = f.s.Cancel(f.ctx, stranger, id, f.now)
	f.is(err, store.ErrNotFound)
	_, err = f.s.DeadLetter(f.ctx, stranger, id)
	f.is(err, store.ErrNotFound)
	for _, filter := range []store.DeliveryFilter{{}, {EventID: d.EventID}, {EndpointID: f.endpoint}, {Status: d.Status}} {
		filter.TenantID = stranger
		if ds := got(f.s.ListDeliveries(f.ctx, filter, store.Page{Limit: 5}))(t); len(ds) != 0 {
			t.Errorf("a stranger lists %v", ds)
		}
	}
	if ds := got(f.s.Requeue(f.ctx, store.Requeue{TenantID: stranger, Deliveries: []godwit.DeliveryID{id}, Now: f.now}))(t); len(ds) != 0 {
		t.Errorf("a stranger requeued %v", ds)
	}
	same(t, "delivery", f.delivery(id), &d)
	_, err = f.s.Delivery(f.ctx, f.tenant, mint[godwit.DeliveryID](f.now))
	f.is(err, store.ErrNotFound)
	_, err = f.s.Attempts(f.ctx, f.tenant, mint[godwit.DeliveryID](f.now))
	f.is(err, store.ErrNotFound)
}

func deliveryCancel(t *testing.T, f *fixture) {
	id := f.acceptOne()
	before := f.delivery(id)
	f.tick(time.Second)
	d := got(f.s.Cancel(f.ctx, f.tenant, id, f.now))(t)
	want := *before
	want.Cancel(godwit.ReasonCancelled, f.now)
	same(t, "cancelled", d, &want)
	same(t, "stored", f.delivery(id), &want)
	if c := f.claim(f.endpoint, 5); len(c.Work) != 0 || !c.NextDue.IsZero() {
		t.Errorf("a cancelled delivery was claimed: %+v", c)
	}
	_, err := f.s.DeadLetter(f.ctx, f.tenant, id)
	f.is(err, store.ErrNotFound)
	_, err = f.s.Cancel(f.ctx, f.tenant, id, f.now)
	f.is(err, store.ErrConflict)

	f.acceptOne()
	w := f.claimOne(f.endpoint)
	_, err = f.s.Cancel(f.ctx, f.tenant, w.Delivery.ID, f.now)
	f.is(err, store.ErrConflict)
	f.record(f.attempted(w, godwit.DeliveryAccepted))
	_, err = f.s.Cancel(f.ctx, f.tenant, w.Delivery.ID, f.now)
	f.is(err, store.ErrConflict)
	_, err = f.s.Cancel(f.ctx, f.tenant, mint[godwit.DeliveryID](f.now), f.now)
	f.is(err, store.ErrNotFound)
}

func deliveryCount(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	for range 5 {
		f.accept(f.fanOut(f.makeEvent(), f.endpoint, other))
	}
	acceptAt(f, time.Hour)
	for _, w := range f.claim(f.endpoint, 2).Work {
		f.record(f.attempted(w, godwit.DeliveryAccepted))
	}
	f.claim(f.endpoint, 1) // claimed ones are pending, too
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 4 {
		t.Errorf("%d are pending, want 4", n)
	}
	if n := got(f.s.CountPending(f.ctx, other))(t); n != 5 {
		t.Errorf("%d are pending for the other endpoint, want 5", n)
	}
	if n := got(f.s.CountPending(f.ctx, mint[godwit.EndpointID](f.now)))(t); n != 0 {
		t.Errorf("%d are pending for an unknown endpoint", n)
	}
}

func deliveryTyped(t *testing.T, f *fixture) {
	var all []godwit.Delivery
	for i := range 12 {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Type = []string{"order.paid", "order.sent", "order"}[i%3]
		n := f.fanOut(e, f.endpoint)
		f.accept(n)
		if i%4 != 0 {
			f.record(f.attempted(f.claimOne(f.endpoint), []godwit.DeliveryStatus{
				"", godwit.DeliveryAccepted, godwit.DeliveryPending, godwit.DeliveryTerminal}[i%4]))
		}
		if i == 8 {
			got(f.s.Cancel(f.ctx, f.tenant, n.Deliveries[0].ID, f.now))(t) // ended without an attempt
		} else if i%4 == 0 {
			f.claimOne(f.endpoint) // claimed, and not tried yet
		}
		d := f.delivery(n.Deliveries[0].ID)
		if d.EventType != e.Type {
			t.Fatalf("delivery of %s says %q", e.Type, d.EventType)
		}
		all = append(all, *d)
	}
	yes, no := true, false
	for name, c := range map[string]struct {
		filter store.DeliveryFilter
		keep   func(d *godwit.Delivery) bool
	}{
		"type":       {store.DeliveryFilter{EventType: "order.sent"}, func(d *godwit.Delivery) bool { return d.EventType == "order.sent" }},
		"exactly":    {store.DeliveryFilter{EventType: "order"}, func(d *godwit.Delivery) bool { return d.EventType == "order" }},
		"no pattern": {store.DeliveryFilter{EventType: "order.*"}, func(d *godwit.Delivery) bool { return false }},
		"tried":      {store.DeliveryFilter{Tried: &yes}, func(d *godwit.Delivery) bool { return d.Attempts > 0 }},
		"untried":    {store.DeliveryFilter{Tried: &no}, func(d *godwit.Delivery) bool { return d.Attempts == 0 }},
		"pending and tried": {store.DeliveryFilter{Status: godwit.DeliveryPending, Tried: &yes}, func(d *godwit.Delivery) bool {
			return d.Status == godwit.DeliveryPending && d.Attempts > 0
		}},
		"pending and untried": {store.DeliveryFilter{Status: godwit.DeliveryPending, Tried: &no, EndpointID: f.endpoint},
			func(d *godwit.Delivery) bool { return d.Status == godwit.DeliveryPending && d.Attempts == 0 }},
		"type and status": {store.DeliveryFilter{EventType: "order.paid", Status: godwit.DeliveryTerminal}, func(d *godwit.Delivery) bool {
			return d.EventType == "order.paid" && d.Status == godwit.DeliveryTerminal
		}},
		"type and time": {store.DeliveryFilter{EventType: "order.paid", Since: all[4].CreatedAt, Until: all[10].CreatedAt}, func(d *godwit.Delivery) bool {
			return d.EventType == "order.paid" && !d.CreatedAt.Before(all[4].CreatedAt) && d.CreatedAt.Before(all[10].CreatedAt)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []godwit.Delivery
			for i := len(all) - 1; i >= 0; i-- {
				if c.keep(&all[i]) {
					want = append(want, all[i])
				}
			}
			if found := listDeliveries(f.in(t), c.filter); len(found)+len(want) > 0 {
				same(t, "deliveries", found, want)
			}
		})
	}
}

// Every read of a delivery returns its type, even if only its dead letter is left.
func deliveryType(t *testing.T, f *fixture) {
	e := f.makeEvent()
	e.Type = "invoice.overdue"
	n := f.fanOut(e, f.endpoint)
	f.accept(n)
	id := n.Deliveries[0].ID
	check := func(when string, d *godwit.Delivery) {
		t.Helper()
		if d.EventType != e.Type {
			t.Errorf("%s: type is %q, want %q", when, d.EventType, e.Type)
		}
	}
	check("pending", f.delivery(id))
	check("cancelled", got(f.s.Cancel(f.ctx, f.tenant, id, f.now))(t))
	check("requeued", &f.requeue(id)[0])
	f.finish(godwit.DeliveryTerminal)
	check("dead", f.delivery(id))
	check("dead letter", &got(f.s.DeadLetter(f.ctx, f.tenant, id))(t).Delivery)
	f.tick(24 * time.Hour)
	f.sweepAll(store.Sweep{EventsBefore: f.now})
	f.stored(e.ID, false)
	check("swept", f.delivery(id))
	check("requeued from its dead letter", &f.requeue(id)[0])
}

func deliveryCancelMany(t *testing.T, f *fixture) {
	ids := []godwit.DeliveryID{f.acceptOne()}
	claimed := f.claimOne(f.endpoint)
	for range 3 {
		f.tick(time.Second)
		ids = append(ids, f.acceptOne())
	}
	f.tick(time.Second)
	foreign := got(f.s.CancelMany(f.ctx, f.newTenant(), ids, f.now))(t)
	same(t, "cancelled for a stranger", len(foreign), 0)
	ended := got(f.s.CancelMany(f.ctx, f.tenant, append(ids, ids[1], mint[godwit.DeliveryID](f.now)), f.now))(t)
	same(t, "cancelled", len(ended), 3)
	for i := range ended {
		if d := f.delivery(ended[i].ID); d.Status != godwit.DeliveryCancelled || d.Reason != godwit.ReasonCancelled || ended[i].Status != d.Status {
			t.Errorf("cancelled: %+v, stored: %+v", ended[i], d)
		}
	}
	same(t, "the claimed one", f.delivery(claimed.Delivery.ID).Status, godwit.DeliveryPending)
	same(t, "cancelled again", len(got(f.s.CancelMany(f.ctx, f.tenant, ids, f.now))(t)), 0)
}

func deliveryTo(t *testing.T, f *fixture) {
	second, third := f.newEndpoint(), f.newEndpoint()
	e := f.makeEvent()
	f.accept(f.fanOut(e, f.endpoint, second, third))
	f.acceptOne()
	found := listDeliveries(f, store.DeliveryFilter{EventID: e.ID, Endpoints: []godwit.EndpointID{second, f.endpoint, f.newEndpoint()}})
	if len(found) != 2 || found[0].EndpointID == third || found[1].EndpointID == third || found[0].EventID != e.ID {
		t.Errorf("deliveries to two of three endpoints: %+v", found)
	}
	same(t, "to no endpoint", len(listDeliveries(f, store.DeliveryFilter{EventID: e.ID, Endpoints: []godwit.EndpointID{}})), 0)
}
