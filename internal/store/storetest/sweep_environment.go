package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// sweepEnvironment: what the tenants of an environment have, and that alone, goes earlier; what still waits for delivery stays.
func sweepEnvironment(t *testing.T, f *fixture) {
	elsewhere := f.acceptOne()
	f.finish(godwit.DeliveryAccepted)
	e := makeEnvironment(f, "staging")
	f.must(f.s.CreateEnvironment(f.ctx, e))
	var tenants []*fixture
	for range 2 {
		in := *f
		n := godwit.Tenant{ID: mint[godwit.TenantID](f.now), EnvironmentID: e.ID, Name: "acme", CreatedAt: f.now}
		f.must(f.s.CreateTenant(f.ctx, &n))
		in.tenant = n.ID
		in.endpoint = in.newEndpoint()
		tenants = append(tenants, &in)
	}
	first, second := tenants[0], tenants[1]
	ended := []godwit.DeliveryID{first.acceptOne()}
	first.finish(godwit.DeliveryAccepted)
	dead := first.acceptOne()
	first.finish(godwit.DeliveryTerminal)
	waits := first.acceptOne()
	first.finish(godwit.DeliveryPending)
	for range 3 {
		ended = append(ended, second.acceptOne())
		second.finish(godwit.DeliveryAccepted)
	}
	held := second.acceptOne()
	work := second.claimOne(second.endpoint)
	cut := f.tick(time.Hour)
	first.now, second.now = cut, cut
	young := first.acceptOne()
	// The one that waits is due as well.
	for _, w := range first.claim(first.endpoint, 2).Work {
		status := godwit.DeliveryAccepted
		if w.Delivery.ID == waits {
			status = godwit.DeliveryPending
		}
		first.record(first.attempted(w, status))
	}

	gone := func(in *fixture, id godwit.DeliveryID) {
		t.Helper()
		_, err := f.s.Delivery(f.ctx, in.tenant, id)
		f.is(err, store.ErrNotFound)
		_, err = f.s.Attempts(f.ctx, in.tenant, id)
		f.is(err, store.ErrNotFound)
	}
	sum := f.sweepEnvironment(store.EnvironmentSweep{Environment: e.ID, EventsBefore: cut})
	if sum.Events != 5 || sum.Deliveries != 5 || sum.Attempts != 4 || sum.DeadLetters+sum.Expired != 0 {
		t.Errorf("swept %+v, want five events, one of them with a dead letter that keeps its attempt", sum)
	}
	gone(first, ended[0])
	for _, id := range ended[1:] {
		gone(second, id)
	}
	letter := got(f.s.DeadLetter(f.ctx, first.tenant, dead))(t)
	if as := got(f.s.Attempts(f.ctx, first.tenant, dead))(t); len(as) != 1 || len(letter.Event.Body) == 0 {
		t.Errorf("the dead letter has %d attempts and the event %+v", len(as), letter.Event)
	}
	first.delivery(waits)
	first.delivery(young)
	f.delivery(elsewhere)
	second.record(second.attempted(work, godwit.DeliveryAccepted))
	second.delivery(held)
	if sum := f.sweepEnvironment(store.EnvironmentSweep{Environment: e.ID, EventsBefore: cut, DeadLettersBefore: cut}); sum.Events != 1 || sum.DeadLetters != 1 || sum.Attempts != 2 {
		t.Errorf("swept %+v, want the dead letter, and the event that was held", sum)
	}
	_, err := f.s.DeadLetter(f.ctx, first.tenant, dead)
	f.is(err, store.ErrNotFound)
	gone(first, dead)
	same(t, "swept again", f.sweepEnvironment(store.EnvironmentSweep{Environment: e.ID, EventsBefore: cut, DeadLettersBefore: cut}), store.Swept{})
}

// sweepEnvironment sweeps an environment in steps of one row until nothing expired is left, and sums up the counts.
func (f *fixture) sweepEnvironment(s store.EnvironmentSweep) (sum store.Swept) {
	f.t.Helper()
	s.Limit = 1
	for range 1000 {
		n := got(f.s.SweepEnvironment(f.ctx, s))(f.t)
		sum.Events += n.Events
		sum.Deliveries += n.Deliveries
		sum.Attempts += n.Attempts
		sum.DeadLetters += n.DeadLetters
		sum.Expired += n.Expired
		if s.From = n.Next; !n.More {
			return sum
		}
	}
	f.t.Fatal("the sweep does not come to an end")
	return sum
}
