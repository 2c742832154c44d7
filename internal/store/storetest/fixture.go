package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// base is the start of a fixture's clock, in whole microseconds, the precision of every backend.
var base = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

const (
	owner = "node-a"
	ttl   = 30 * time.Second
)

// A fixture is a store in which node-a holds all shards, with one tenant that has one endpoint. Its methods are those that cases
// of many nouns use; helpers for one noun are functions in the file of that noun.
type fixture struct {
	t        testing.TB
	ctx      context.Context
	s        store.Store
	now      time.Time
	tenant   godwit.TenantID
	endpoint godwit.EndpointID
	epochs   map[int]int64
}

func newFixture(t testing.TB, open Open) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: t.Context(), s: open(t), now: base, epochs: map[int]int64{}}
	f.acquire(owner)
	f.tenant = f.newTenant()
	f.endpoint = f.newEndpoint()
	return f
}

// mint makes an id of any kind.
func mint[I ~[16]byte](now time.Time) I {
	var mintEvent func(time.Time) godwit.EventID = godwit.NewID
	return I(mintEvent(now))
}

// in returns the fixture for a subtest.
func (f *fixture) in(t testing.TB) *fixture {
	sub := *f
	sub.t = t
	return &sub
}

// tick moves the clock.
func (f *fixture) tick(d time.Duration) time.Time {
	f.now = f.now.Add(d)
	return f.now
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// is fails the test unless err is want; nil means no error.
func (f *fixture) is(err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Fatalf("error is %v, want %v", err, want)
	}
}

// got returns the value of a call that must succeed.
func got[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// same compares a stored value with the value read. Times are equal only in UTC and to the microsecond.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// acquire gives all shards to the owner.
func (f *fixture) acquire(owner string) []godwit.Lease {
	f.t.Helper()
	leases := got(TakeAll(f.ctx, f.s, owner))(f.t)
	for _, l := range leases {
		f.epochs[l.Shard] = l.Epoch
	}
	return leases
}

// epoch returns the epoch of the lease of the endpoint's shard.
func (f *fixture) epoch(id godwit.EndpointID) int64 { return f.epochs[id.Shard()] }

func (f *fixture) newTenant() godwit.TenantID {
	f.t.Helper()
	tenant := godwit.Tenant{ID: mint[godwit.TenantID](f.now), Name: "acme", CreatedAt: f.now}
	f.must(f.s.CreateTenant(f.ctx, &tenant))
	return tenant.ID
}

func (f *fixture) makeEndpoint() *godwit.Endpoint {
	return &godwit.Endpoint{
		ID: mint[godwit.EndpointID](f.now), TenantID: f.tenant, URL: "https://receiver.example/hook", Method: "POST",
		Profile: "eds", Patterns: []string{"*"}, Status: godwit.EndpointActive,
		StatusAt: f.now, CreatedAt: f.now, UpdatedAt: f.now, Version: 1,
	}
}

func (f *fixture) newEndpoint() godwit.EndpointID {
	f.t.Helper()
	e := f.makeEndpoint()
	f.must(f.s.CreateEndpoint(f.ctx, e, nil))
	return e.ID
}

func (f *fixture) makeEvent() *godwit.Event {
	return &godwit.Event{
		ID: mint[godwit.EventID](f.now), TenantID: f.tenant, Type: "order.paid", Key: "key-1",
		ContentType: "application/json", Body: []byte(`{"total":42}`), CreatedAt: f.now,
	}
}

// fanOut makes unclaimed deliveries of an event.
func (f *fixture) fanOut(e *godwit.Event, endpoints ...godwit.EndpointID) store.NewEvent {
	n := store.NewEvent{Event: e}
	for _, id := range endpoints {
		n.Deliveries = append(n.Deliveries, store.NewDelivery{
			ID: mint[godwit.DeliveryID](f.now), EndpointID: id, Trigger: godwit.TriggerAccept,
		})
	}
	return n
}

func (f *fixture) commit(b *store.Batch) *store.Committed {
	f.t.Helper()
	if b.Now.IsZero() {
		b.Now = f.now
	}
	c := got(f.s.Commit(f.ctx, b))(f.t)
	if len(c.Existing) != len(b.Accepts) {
		f.t.Fatalf("Existing has %d entries for %d accepts", len(c.Existing), len(b.Accepts))
	}
	return c
}

// accept stores events, each in an accept of its own.
func (f *fixture) accept(events ...store.NewEvent) {
	f.t.Helper()
	b := &store.Batch{}
	for _, e := range events {
		b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{e}})
	}
	f.commit(b)
}

// acceptOne stores a new event for the fixture's endpoint and returns its delivery.
func (f *fixture) acceptOne() godwit.DeliveryID {
	f.t.Helper()
	n := f.fanOut(f.makeEvent(), f.endpoint)
	f.accept(n)
	return n.Deliveries[0].ID
}

// claim claims deliveries and sets their types from their events, as reads return them.
func (f *fixture) claim(id godwit.EndpointID, limit int) *store.Claimed {
	f.t.Helper()
	c := got(ClaimOne(f.ctx, f.s, store.Claim{EndpointID: id, Epoch: f.epoch(id), Now: f.now, Limit: limit}))(f.t)
	for i := range c.Work {
		c.Work[i].Delivery.EventType = c.Work[i].Event.Type
	}
	return c
}

// claimOne claims the only due delivery.
func (f *fixture) claimOne(id godwit.EndpointID) godwit.Work {
	f.t.Helper()
	c := f.claim(id, 10)
	if len(c.Work) != 1 {
		f.t.Fatalf("claimed %d deliveries, want 1", len(c.Work))
	}
	return c.Work[0]
}

// attempted returns the result of an attempt made now: the delivery's new state and its attempt.
func (f *fixture) attempted(w godwit.Work, status godwit.DeliveryStatus) store.Result {
	d := w.Delivery
	d.Attempts++
	d.Run.Attempts++
	if d.Run.FirstAt.IsZero() {
		d.Run.FirstAt = f.now
	}
	d.Status, d.UpdatedAt, d.LastStatus = status, f.now, 503
	v := godwit.Verdict{Outcome: godwit.Transient, Reason: godwit.ReasonStatus, Class: godwit.ClassApplication}
	switch status {
	case godwit.DeliveryAccepted:
		v = godwit.Verdict{Outcome: godwit.Accepted, Reason: godwit.ReasonAccepted}
		d.LastStatus = 200
	case godwit.DeliveryTerminal:
		v.Outcome = godwit.Terminal
		d.LastStatus = 422
	}
	d.Reason = v.Reason
	a := &godwit.Attempt{
		ID: mint[godwit.AttemptID](f.now), DeliveryID: d.ID, TenantID: d.TenantID, EventID: d.EventID,
		EndpointID: d.EndpointID, N: d.Attempts, Trigger: godwit.TriggerRetry, StartedAt: f.now,
		Duration: 12345 * time.Microsecond, URL: "https://receiver.example/hook", Status: d.LastStatus, Verdict: v,
	}
	if status == godwit.DeliveryPending {
		d.DueAt = f.now.Add(time.Minute)
		a.NextAt = d.DueAt
	}
	r := store.Result{Delivery: d, Attempt: a, Epoch: f.epoch(d.EndpointID)}
	if status.Dead() {
		r.Event, r.LastDetail = w.Event, "answered 422"
	}
	return r
}

// finish claims the due delivery of the fixture's endpoint and ends it with the status.
func (f *fixture) finish(status godwit.DeliveryStatus) godwit.Delivery {
	f.t.Helper()
	r := f.attempted(f.claimOne(f.endpoint), status)
	f.record(r)
	return r.Delivery
}

// record commits results that must not be fenced.
func (f *fixture) record(results ...store.Result) {
	f.t.Helper()
	c := f.commit(&store.Batch{Results: results})
	if len(c.Fenced) != 0 {
		f.t.Fatalf("results %v were fenced", c.Fenced)
	}
}

func (f *fixture) delivery(id godwit.DeliveryID) *godwit.Delivery {
	f.t.Helper()
	return got(f.s.Delivery(f.ctx, f.tenant, id))(f.t)
}

// waiting returns when the endpoint's next unclaimed delivery is due, and whether there is one. It claims nothing.
func (f *fixture) waiting(id godwit.EndpointID) (time.Time, bool) {
	f.t.Helper()
	due := got(f.s.EndpointsDue(f.ctx, []int{id.Shard()}))(f.t)
	i := slices.IndexFunc(due, func(d store.EndpointDue) bool { return d.EndpointID == id })
	if i < 0 {
		return time.Time{}, false
	}
	return due[i].NextDue, true
}

// pages reads a whole list in pages of two and checks that it is newest first and has no duplicates.
func pages[T any](t testing.TB, id func(*T) [16]byte, list func(store.Page) ([]T, error)) []T {
	t.Helper()
	var all []T
	p := store.Page{Limit: 2}
	for {
		page, err := list(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > p.Limit {
			t.Fatalf("page has %d items, limit is %d", len(page), p.Limit)
		}
		for i := range page {
			k := id(&page[i])
			if p.After != [16]byte{} && slices.Compare(k[:], p.After[:]) >= 0 {
				t.Fatalf("list is not newest first: %x follows %x", k, p.After)
			}
			p.After = k
		}
		all = append(all, page...)
		if len(page) < p.Limit {
			return all
		}
	}
}
