package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var usageCases = []testCase{
	{"counts what a batch stores", usageCounts},
	{"a repeated batch counts once", usageRepeated},
	{"a repeat that kept its claim counts once", usageKeptClaim},
	{"refused accepts and results count nothing", usageRefused},
	{"deliveries of a fan-out count when they are made", usageFanout},
	{"days and tenants are apart", usageApart},
	{"an accept may have events of several tenants", usageSeveralTenants},
	{"is kept for deleted tenants", usageOfDeleted},
	{"is swept", usageSwept},
	{"waiting deliveries are counted up to a bound", usageWaiting},
}

// used returns the usage of the fixture's tenant on all days.
func (f *fixture) used() godwit.Usage {
	f.t.Helper()
	list := got(f.s.ListUsage(f.ctx, store.UsageFilter{Tenant: f.tenant, From: time.Unix(0, 0), To: f.now.AddDate(2, 0, 0)}, store.Page{Limit: 10}))(f.t)
	switch len(list) {
	case 0:
		return godwit.Usage{}
	case 1:
		return godwit.TotalUsage(list[0].Days)
	}
	f.t.Fatalf("usage of %d tenants: %+v", len(list), list)
	return godwit.Usage{}
}

func usageCounts(t *testing.T, f *fixture) {
	same(t, "usage before", f.used(), godwit.Usage{})
	n := f.fanOut(f.makeEvent(), f.endpoint, f.newEndpoint())
	size := int64(len(n.Event.Body))
	quiet := f.makeEvent()
	f.accept(n, store.NewEvent{Event: quiet})
	want := godwit.Usage{Events: 2, Deliveries: 2, BytesAccepted: 2 * size}
	same(t, "accepted", f.used(), want)

	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryPending)
	r.BytesSent = 100
	f.record(r)
	want.Attempts, want.BytesSent = 1, 100
	same(t, "first attempt", f.used(), want)
	f.tick(2 * time.Minute)
	f.record(store.Result{Delivery: f.claimOne(f.endpoint).Delivery, Epoch: f.epoch(f.endpoint)}) // returned without an attempt
	same(t, "returned", f.used(), want)

	// Accepts and results in one batch.
	f.tick(2 * time.Minute)
	r = f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	r.BytesSent = 200
	more := f.fanOut(f.makeEvent(), f.endpoint)
	f.commit(&store.Batch{Accepts: []store.Accept{{Events: []store.NewEvent{more}}}, Results: []store.Result{r}})
	want.Add(godwit.Usage{Events: 1, Deliveries: 1, BytesAccepted: size, Attempts: 1, BytesSent: 200})
	same(t, "both", f.used(), want)
}

func usageRepeated(t *testing.T, f *fixture) {
	plain := f.fanOut(f.makeEvent(), f.endpoint)
	keyed, _ := keyedAccept(f, makeRecord(f, "key"))
	f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	r.BytesSent = 7
	b := &store.Batch{Now: f.now, Accepts: []store.Accept{{Events: []store.NewEvent{plain}}, keyed}, Results: []store.Result{r}}
	f.commit(b)
	once := f.used()
	if once.Events != 3 || once.Attempts != 1 || once.BytesSent != 7 {
		t.Fatalf("usage is %+v", once)
	}
	f.commit(b)
	f.commit(b)
	same(t, "repeated", f.used(), once)

	// A stored event that gains a delivery.
	again := plain
	again.Deliveries = append(again.Deliveries[:1:1], f.fanOut(plain.Event, f.newEndpoint()).Deliveries...)
	f.accept(again)
	once.Deliveries++
	same(t, "with one more delivery", f.used(), once)
}

func usageKeptClaim(t *testing.T, f *fixture) {
	f.acceptOne()
	w := f.claimOne(f.endpoint)
	r := f.attempted(w, godwit.DeliveryPending)
	r.KeepClaim = true
	f.record(r)
	f.record(r)
	same(t, "attempts", f.used().Attempts, int64(1))
	second := f.attempted(godwit.Work{Delivery: r.Delivery, Event: w.Event}, godwit.DeliveryAccepted)
	f.record(second)
	same(t, "attempts", f.used().Attempts, int64(2))
}

func usageRefused(t *testing.T, f *fixture) {
	first, _ := keyedAccept(f, makeRecord(f, "key"))
	other, _ := keyedAccept(f, makeRecord(f, "key"))
	f.commit(&store.Batch{Accepts: []store.Accept{first, other}}) // the second has the key of the first
	once := f.used()
	same(t, "events", once.Events, int64(1))
	other, _ = keyedAccept(f, makeRecord(f, "key"))
	f.commit(&store.Batch{Accepts: []store.Accept{other}})
	same(t, "a known key", f.used(), once)

	f.acceptOne()
	once = f.used()
	w := f.claim(f.endpoint, 10).Work
	late := f.attempted(w[0], godwit.DeliveryAccepted)
	late.Epoch++
	f.commit(&store.Batch{Results: []store.Result{late}})
	same(t, "a fenced result", f.used(), once)
}

func usageFanout(t *testing.T, f *fixture) {
	fan, events := newFanout(f)
	same(t, "before the first part", f.used().Deliveries, int64(0))
	part := &store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[0], 0, 2)}}
	f.commit(part)
	f.commit(part)
	same(t, "after the first part", f.used().Deliveries, int64(2))
	f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[0], 2, 3)}})
	f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[1], 3, 6)}})
	used := f.used()
	if used.Deliveries != 6 || used.Events != 2 {
		t.Errorf("usage is %+v", used)
	}
}

func usageApart(t *testing.T, f *fixture) {
	first := godwit.DayOf(f.now)
	f.accept(store.NewEvent{Event: f.makeEvent()})
	f.tick(24 * time.Hour)
	f.accept(store.NewEvent{Event: f.makeEvent()}, store.NewEvent{Event: f.makeEvent()})
	f.tick(24 * time.Hour)
	other := f.newTenant()
	e := f.makeEvent()
	e.TenantID = other
	f.accept(store.NewEvent{Event: e}, store.NewEvent{Event: f.makeEvent()})

	list := got(f.s.ListUsage(f.ctx, store.UsageFilter{From: first, To: first.AddDate(0, 0, 1)}, store.Page{Limit: 10}))(t)
	size := int64(len(e.Body))
	same(t, "two days", list, []godwit.TenantUsage{{TenantID: f.tenant, Days: []godwit.DayUsage{
		{Day: first, Usage: godwit.Usage{Events: 1, BytesAccepted: size}},
		{Day: first.AddDate(0, 0, 1), Usage: godwit.Usage{Events: 2, BytesAccepted: 2 * size}},
	}}})
	same(t, "sum", got(f.s.SumUsage(f.ctx, store.UsageFilter{From: first.AddDate(0, 0, 1), To: first.AddDate(0, 0, 5)}))(t), []godwit.DayUsage{
		{Day: first.AddDate(0, 0, 1), Usage: godwit.Usage{Events: 2, BytesAccepted: 2 * size}},
		{Day: first.AddDate(0, 0, 2), Usage: godwit.Usage{Events: 2, BytesAccepted: 2 * size}},
	})
	same(t, "sum of one", got(f.s.SumUsage(f.ctx, store.UsageFilter{From: first, To: first.AddDate(0, 0, 5), Tenant: other}))(t), []godwit.DayUsage{
		{Day: first.AddDate(0, 0, 2), Usage: godwit.Usage{Events: 1, BytesAccepted: size}},
	})
	all := store.UsageFilter{From: first, To: first.AddDate(0, 0, 2), Environment: godwit.DefaultEnvironment}
	page := got(f.s.ListUsage(f.ctx, all, store.Page{Limit: 1}))(t)
	if len(page) != 1 || page[0].TenantID != other {
		t.Fatalf("first page: %+v", page)
	}
	page = got(f.s.ListUsage(f.ctx, all, store.Page{Limit: 5, After: page[0].TenantID}))(t)
	if len(page) != 1 || page[0].TenantID != f.tenant || godwit.TotalUsage(page[0].Days).Events != 4 {
		t.Fatalf("second page: %+v", page)
	}
	all.Environment = mint[godwit.EnvironmentID](f.now)
	same(t, "of another environment", len(got(f.s.ListUsage(f.ctx, all, store.Page{Limit: 5}))(t)), 0)
	same(t, "sum of another environment", len(got(f.s.SumUsage(f.ctx, all))(t)), 0)
}

func usageSeveralTenants(t *testing.T, f *fixture) {
	other := f.newTenant()
	accept, _ := keyedAccept(f, makeRecord(f, "key"))
	e := f.makeEvent()
	e.TenantID = other
	accept.Events = append(accept.Events, store.NewEvent{Event: e}, store.NewEvent{Event: f.makeEvent()})
	f.commit(&store.Batch{Accepts: []store.Accept{accept}})
	f.commit(&store.Batch{Accepts: []store.Accept{accept}})
	same(t, "events of the first", f.used().Events, int64(2))
	day := godwit.DayOf(f.now)
	same(t, "of the other", got(f.s.SumUsage(f.ctx, store.UsageFilter{Tenant: other, From: day, To: day}))(t),
		[]godwit.DayUsage{{Day: day, Usage: godwit.Usage{Events: 1, BytesAccepted: int64(len(e.Body))}}})
}

func usageOfDeleted(t *testing.T, f *fixture) {
	f.accept(store.NewEvent{Event: f.makeEvent()})
	got(RemoveTenant(f.ctx, f.s, f.tenant, f.now))(t)
	same(t, "events", f.used().Events, int64(1))
}

func usageSwept(t *testing.T, f *fixture) {
	f.accept(store.NewEvent{Event: f.makeEvent()})
	f.tick(24 * time.Hour)
	f.accept(store.NewEvent{Event: f.makeEvent()})
	swept := got(f.s.Sweep(f.ctx, store.Sweep{Now: f.now, UsageBefore: f.now, Limit: 100}))(t)
	if swept.Usage != 1 || f.used().Events != 1 {
		t.Errorf("swept %+v, left %+v", swept, f.used())
	}
}

func usageWaiting(t *testing.T, f *fixture) {
	count := func(what string, upTo, want int) {
		t.Helper()
		same(t, what, got(f.s.CountWaiting(f.ctx, f.tenant, upTo))(t), want)
	}
	count("none", 10, 0)
	second := f.newEndpoint()
	held := f.fanOut(f.makeEvent(), second)
	held.Deliveries[0].ClaimEpoch = f.epoch(second) // the engine holds it from the beginning
	f.accept(f.fanOut(f.makeEvent(), f.endpoint), f.fanOut(f.makeEvent(), f.endpoint, second), held)
	other := f.newTenant()
	count("all", 10, 4)
	count("up to a bound", 3, 3)
	f.record(f.attempted(f.claim(f.endpoint, 1).Work[0], godwit.DeliveryAccepted))
	f.claim(f.endpoint, 1)
	count("one is finished, one is claimed", 10, 3)
	same(t, "of another tenant", got(f.s.CountWaiting(f.ctx, other, 10))(t), 0)
}
