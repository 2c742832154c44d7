package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var claimCases = []testCase{
	{"takes what is due, earliest first", claimOrder},
	{"tells what is due next", claimNextDue},
	{"is bounded by bytes", claimBytes},
	{"keeps to its endpoint", claimEndpoint},
	{"is fenced", claimFenced},
	{"serves several endpoints", claimSeveral},
	{"of several endpoints is bounded for each", claimSeveralBounded},
	{"of several endpoints is fenced for each", claimSeveralFenced},
	{"what memory does not know is reclaimed", claimReclaim},
	{"endpoints due", claimEndpointsDue},
	{"due times set by a clock that was ahead are brought back", claimBringBack},
}

// ClaimOne claims due deliveries of one endpoint.
func ClaimOne(ctx context.Context, s interface {
	ClaimDue(ctx context.Context, claims []store.Claim) ([]store.Claimed, error)
}, c store.Claim) (*store.Claimed, error) {
	list, err := s.ClaimDue(ctx, []store.Claim{c})
	if err != nil {
		return nil, err
	}
	return &list[0], list[0].Err
}

// acceptAt stores one event for each offset, created at that time.
func acceptAt(f *fixture, offsets ...time.Duration) []godwit.DeliveryID {
	f.t.Helper()
	var ids []godwit.DeliveryID
	for _, d := range offsets {
		e := f.makeEvent()
		e.CreatedAt = f.now.Add(d)
		n := f.fanOut(e, f.endpoint)
		f.accept(n)
		ids = append(ids, n.Deliveries[0].ID)
	}
	return ids
}

func claimed(c *store.Claimed) []godwit.DeliveryID {
	var ids []godwit.DeliveryID
	for _, w := range c.Work {
		ids = append(ids, w.Delivery.ID)
	}
	return ids
}

func claimOrder(t *testing.T, f *fixture) {
	ids := acceptAt(f, -1*time.Second, -3*time.Second, -2*time.Second, time.Second)
	same(t, "first claim", claimed(f.claim(f.endpoint, 2)), []godwit.DeliveryID{ids[1], ids[2]})
	same(t, "second claim", claimed(f.claim(f.endpoint, 2)), []godwit.DeliveryID{ids[0]})
	same(t, "third claim", len(f.claim(f.endpoint, 2).Work), 0)
	f.tick(time.Second)
	c := f.claim(f.endpoint, 2)
	same(t, "later claim", claimed(c), []godwit.DeliveryID{ids[3]})
	w := c.Work[0]
	same(t, "delivery", &w.Delivery, f.delivery(ids[3]))
	same(t, "event", w.Event, got(f.s.Event(f.ctx, f.tenant, w.Delivery.EventID))(t))
}

func claimNextDue(t *testing.T, f *fixture) {
	if c := f.claim(f.endpoint, 2); len(c.Work) != 0 || !c.NextDue.IsZero() {
		t.Errorf("empty endpoint gave %+v", c)
	}
	acceptAt(f, -3*time.Second, -2*time.Second, time.Second, 2*time.Second)
	if c := f.claim(f.endpoint, 1); !c.NextDue.Equal(f.now.Add(-2 * time.Second)) {
		t.Errorf("next is due %v: what could not be claimed counts", c.NextDue)
	}
	if c := f.claim(f.endpoint, 10); len(c.Work) != 1 || !c.NextDue.Equal(f.now.Add(time.Second)) {
		t.Errorf("claimed %d, next is due %v", len(c.Work), c.NextDue)
	}
	f.tick(time.Minute)
	if c := f.claim(f.endpoint, 10); len(c.Work) != 2 || !c.NextDue.IsZero() {
		t.Errorf("claimed %d, next is due %v", len(c.Work), c.NextDue)
	}
}

func claimBytes(t *testing.T, f *fixture) {
	var total int
	for i, size := range []int{100, 100, 100, 5000, 10, 0} {
		e := f.makeEvent()
		e.Body = make([]byte, size)
		e.CreatedAt = f.now.Add(time.Duration(i) * time.Microsecond)
		f.accept(f.fanOut(e, f.endpoint))
		total++
	}
	f.tick(time.Second)
	claim := func(maxBytes int) int {
		c := got(ClaimOne(f.ctx, f.s, store.Claim{
			EndpointID: f.endpoint, Epoch: f.epoch(f.endpoint), Now: f.now, Limit: 100, MaxBytes: maxBytes,
		}))(t)
		total -= len(c.Work)
		if (total > 0) == c.NextDue.IsZero() {
			t.Errorf("%d are left, next is due %v", total, c.NextDue)
		}
		return len(c.Work)
	}
	for i, step := range []struct{ max, want int }{{250, 2}, {250, 1}, {250, 1}, {0, 2}} {
		if n := claim(step.max); n != step.want {
			t.Errorf("claim %d took %d deliveries, want %d", i, n, step.want)
		}
	}
}

func claimEndpoint(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	f.accept(f.fanOut(f.makeEvent(), f.endpoint, other))
	if w := f.claimOne(f.endpoint); w.Delivery.EndpointID != f.endpoint {
		t.Error("claimed another endpoint's delivery")
	}
	if _, ok := f.waiting(other); !ok {
		t.Error("the other endpoint's delivery is gone")
	}
	if w := f.claimOne(other); w.Delivery.EndpointID != other {
		t.Error("claimed another endpoint's delivery")
	}
}

func claimFenced(t *testing.T, f *fixture) {
	f.acceptOne()
	old := store.Claim{EndpointID: f.endpoint, Epoch: f.epoch(f.endpoint), Now: f.now, Limit: 10}
	f.tick(time.Hour)
	f.acquire("node-b")
	for _, epoch := range []int64{old.Epoch, 0, f.epoch(f.endpoint) + 1} {
		old.Epoch = epoch
		_, err := ClaimOne(f.ctx, f.s, old)
		f.is(err, store.ErrFenced)
	}
	f.claimOne(f.endpoint)
}

// claimAll claims for endpoints in one transaction, up to limit and maxBytes for each.
func claimAll(f *fixture, limit, maxBytes int, endpoints ...godwit.EndpointID) []store.Claimed {
	f.t.Helper()
	var claims []store.Claim
	for _, id := range endpoints {
		claims = append(claims, store.Claim{EndpointID: id, Epoch: f.epoch(id), Now: f.now, Limit: limit, MaxBytes: maxBytes})
	}
	return got(f.s.ClaimDue(f.ctx, claims))(f.t)
}

func claimSeveral(t *testing.T, f *fixture) {
	if all := claimAll(f, 10, 0); len(all) != 0 {
		t.Errorf("no claims gave %+v", all)
	}
	other, idle := f.newEndpoint(), f.newEndpoint()
	first := f.endpoint
	ids := acceptAt(f, -1*time.Second, -3*time.Second, -2*time.Second, time.Second)
	f.endpoint = other
	others := acceptAt(f, -4*time.Second, -5*time.Second)
	all := claimAll(f, 2, 0, first, idle, other)
	same(t, "first endpoint", claimed(&all[0]), []godwit.DeliveryID{ids[1], ids[2]})
	same(t, "deliveries of the idle endpoint", len(all[1].Work), 0)
	same(t, "other endpoint", claimed(&all[2]), []godwit.DeliveryID{others[1], others[0]})
	same(t, "next of the first", all[0].NextDue, f.now.Add(-1*time.Second))
	same(t, "next of the idle", all[1].NextDue, time.Time{})
	same(t, "next of the other", all[2].NextDue, time.Time{})
	for i := range all {
		if all[i].Err != nil {
			t.Errorf("claim %d: %v", i, all[i].Err)
		}
		for _, w := range all[i].Work {
			w.Delivery.EventType = w.Event.Type
			same(t, "delivery", &w.Delivery, f.delivery(w.Delivery.ID))
			same(t, "event", w.Event, got(f.s.Event(f.ctx, f.tenant, w.Delivery.EventID))(t))
			f.record(f.attempted(w, godwit.DeliveryAccepted)) // it is claimed
		}
	}
}

func claimSeveralBounded(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	for i, size := range []int{100, 100, 100} {
		e := f.makeEvent()
		e.Body = make([]byte, size)
		e.CreatedAt = f.now.Add(time.Duration(i-9) * time.Second)
		f.accept(f.fanOut(e, f.endpoint))
	}
	large := f.makeEvent()
	large.Body = make([]byte, 5000)
	f.accept(f.fanOut(large, other))
	all := claimAll(f, 100, 250, other, f.endpoint)
	if n := len(all[0].Work); n != 1 {
		t.Errorf("claimed %d of the endpoint with a large event, want 1", n)
	}
	if n := len(all[1].Work); n != 2 || all[1].NextDue.IsZero() {
		t.Errorf("claimed %d of the endpoint with small events, next is due %v; want 2 of 3", n, all[1].NextDue)
	}
}

func claimSeveralFenced(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	for other.Shard() == f.endpoint.Shard() {
		other = f.newEndpoint()
	}
	f.accept(f.fanOut(f.makeEvent(), f.endpoint, other))
	claims := []store.Claim{
		{EndpointID: f.endpoint, Epoch: f.epoch(f.endpoint) + 1, Now: f.now, Limit: 10},
		{EndpointID: other, Epoch: f.epoch(other), Now: f.now, Limit: 10},
	}
	all := got(f.s.ClaimDue(f.ctx, claims))(t)
	f.is(all[0].Err, store.ErrFenced)
	if len(all[0].Work) != 0 {
		t.Error("a fenced claim took a delivery")
	}
	if all[1].Err != nil || len(all[1].Work) != 1 {
		t.Errorf("the claim beside a fenced one gave %d deliveries and %v", len(all[1].Work), all[1].Err)
	}
	f.claimOne(f.endpoint)
}

func claimReclaim(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	ids := acceptAt(f, -2*time.Second, -1*time.Second, 0, time.Hour)
	f.accept(f.fanOut(f.makeEvent(), other))
	f.claim(f.endpoint, 10)
	f.claimOne(other)
	f.tick(time.Second)
	reclaim := func(epoch int64, held ...godwit.DeliveryID) int {
		return got(f.s.Reclaim(f.ctx, f.endpoint, epoch, held, f.now))(t)
	}
	for _, epoch := range []int64{0, f.epoch(f.endpoint) + 1} {
		if n := reclaim(epoch); n != 0 {
			t.Errorf("reclaimed %d under epoch %d", n, epoch)
		}
	}
	if n := reclaim(f.epoch(f.endpoint), ids[0], ids[3], mint[godwit.DeliveryID](f.now)); n != 2 {
		t.Errorf("reclaimed %d, want 2", n)
	}
	for _, id := range ids[1:3] {
		if d := f.delivery(id); !d.DueAt.Equal(f.now) {
			t.Errorf("reclaimed delivery is due %v", d.DueAt)
		}
	}
	if c := f.claim(f.endpoint, 10); len(c.Work) != 2 {
		t.Errorf("claimed %d, want the 2 that were reclaimed", len(c.Work))
	}
	if n := reclaim(f.epoch(f.endpoint), ids[:3]...); n != 0 {
		t.Errorf("reclaimed %d that are held", n)
	}
	if _, ok := f.waiting(other); ok {
		t.Error("another endpoint's claim was taken back")
	}
}

func claimEndpointsDue(t *testing.T, f *fixture) {
	if due := got(f.s.EndpointsDue(f.ctx, []int{0, 1, 2, 3}))(t); len(due) != 0 {
		t.Errorf("empty store gave %v", due)
	}
	want := map[godwit.EndpointID]time.Time{}
	shards := map[int]bool{}
	for i := range 20 {
		id := f.newEndpoint()
		for j := range 3 {
			e := f.makeEvent()
			e.CreatedAt = f.now.Add(time.Duration((i*7+j*5)%11) * time.Second)
			f.accept(f.fanOut(e, id))
			if old, ok := want[id]; !ok || e.CreatedAt.Before(old) {
				want[id] = e.CreatedAt
			}
		}
		shards[id.Shard()] = true
	}
	check := func(shards []int) {
		t.Helper()
		found := map[godwit.EndpointID]time.Time{}
		for _, d := range got(f.s.EndpointsDue(f.ctx, shards))(t) {
			if _, twice := found[d.EndpointID]; twice {
				t.Errorf("%v is listed twice", d.EndpointID)
			}
			found[d.EndpointID] = d.NextDue
		}
		expected := map[godwit.EndpointID]time.Time{}
		for id, due := range want {
			if slices.Contains(shards, id.Shard()) {
				expected[id] = due
			}
		}
		same(t, "endpoints due", found, expected)
	}
	var all []int
	for s := range godwit.Shards {
		all = append(all, s)
	}
	check(all)
	for s := range shards {
		check([]int{s})
	}
	check(nil)
	for id := range want { // claimed and finished ones do not count
		f.tick(time.Minute)
		for _, w := range f.claim(id, 2).Work {
			f.record(f.attempted(w, godwit.DeliveryAccepted))
		}
		rest := f.claim(id, 10)
		if len(rest.Work) != 1 {
			t.Fatalf("%d are left, want 1", len(rest.Work))
		}
		delete(want, id)
		break
	}
	check(all)
}

// claimBringBack stores a retry and a new delivery while the clock is a day ahead, and then sets the clock back.
func claimBringBack(t *testing.T, f *fixture) {
	const day = 24 * time.Hour
	right := f.acceptOne()
	held := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryPending)
	held.Delivery.DueAt = f.now.Add(3 * time.Hour) // a delay that a receiver asked for: longer than the schedule, but valid
	f.record(held)
	f.tick(day)
	retry := f.acceptOne()
	w := f.claim(f.endpoint, 10).Work
	for i := range w {
		if w[i].Delivery.ID == retry {
			f.record(f.attempted(w[i], godwit.DeliveryPending)) // due in a minute
		} else {
			back := store.Result{Delivery: w[i].Delivery, Epoch: f.epoch(f.endpoint)}
			back.Delivery.DueAt = f.now.Add(-day).Add(2 * time.Hour)
			f.record(back)
		}
	}
	fresh := f.acceptOne()
	before := f.delivery(right)
	f.tick(-day)
	late := []store.Lateness{{EndpointID: f.endpoint, After: f.now.Add(time.Hour), Latest: f.now.Add(4 * time.Hour)}}
	if n := got(f.s.BringBack(f.ctx, f.now, late))(t); n != 2 {
		t.Errorf("%d due times were brought back, want 2", n)
	}
	same(t, "delivery with a right due time", f.delivery(right), before)
	same(t, "retry is due", f.delivery(retry).DueAt, f.now.Add(time.Minute))
	same(t, "first attempt of its run", f.delivery(retry).Run.FirstAt, f.now)
	same(t, "new delivery is due", f.delivery(fresh).DueAt, f.now)
	same(t, "first attempt of the new delivery", f.delivery(fresh).Run.FirstAt, time.Time{})
	if n := got(f.s.BringBack(f.ctx, f.now, late))(t); n != 0 {
		t.Errorf("%d due times were brought back again", n)
	}
	same(t, "claimable now", claimed(f.claim(f.endpoint, 10)), []godwit.DeliveryID{fresh})
}
