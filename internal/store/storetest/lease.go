package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var leaseCases = []testCase{
	{"a free shard is taken", leaseFree},
	{"a held shard is not taken", leaseHeld},
	{"an expired one is taken over with its claims", leaseExpired},
	{"an owner who comes again gets a new epoch", leaseAgain},
	{"limits", leaseLimit},
	{"renew", leaseRenew},
	{"release", leaseRelease},
	{"holders", leaseHolders},
}

func byShard(t testing.TB, leases []godwit.Lease) map[int]godwit.Lease {
	t.Helper()
	m := map[int]godwit.Lease{}
	for _, l := range leases {
		if _, twice := m[l.Shard]; twice || l.Shard < 0 || l.Shard >= godwit.Shards {
			t.Fatalf("shard %d is listed twice or does not exist", l.Shard)
		}
		m[l.Shard] = l
	}
	return m
}

func leaseFree(t *testing.T, f *fixture) {
	leases := byShard(t, f.acquire(owner))
	if len(leases) != godwit.Shards {
		t.Fatalf("got %d shards, want all %d", len(leases), godwit.Shards)
	}
	for _, l := range leases {
		if l.Owner != owner || l.Epoch <= 0 || !l.ExpiresAt.Equal(f.now.Add(ttl)) {
			t.Fatalf("lease is %+v", l)
		}
	}
}

func leaseHeld(t *testing.T, f *fixture) {
	f.tick(ttl - time.Microsecond)
	leases := got(f.s.Acquire(f.ctx, "node-b", f.now, ttl, godwit.Shards))(t)
	if len(leases) != 0 {
		t.Errorf("node-b got %d shards that node-a holds", len(leases))
	}
}

func leaseExpired(t *testing.T, f *fixture) {
	id := f.acceptOne()
	f.claimOne(f.endpoint)
	old := f.epoch(f.endpoint)
	f.tick(ttl)
	leases := byShard(t, f.acquire("node-b"))
	if len(leases) != godwit.Shards {
		t.Fatalf("node-b got %d shards", len(leases))
	}
	if f.epoch(f.endpoint) <= old {
		t.Errorf("epoch went from %d to %d", old, f.epoch(f.endpoint))
	}
	if w := f.claimOne(f.endpoint); w.Delivery.ID != id {
		t.Errorf("claimed %v", w.Delivery.ID)
	}
}

func leaseAgain(t *testing.T, f *fixture) {
	id := f.acceptOne()
	f.claimOne(f.endpoint)
	old := f.epoch(f.endpoint)
	f.tick(time.Second) // the lease has not expired
	if leases := f.acquire(owner); len(leases) != godwit.Shards {
		t.Fatalf("got %d shards of its own", len(leases))
	}
	if f.epoch(f.endpoint) <= old {
		t.Errorf("epoch went from %d to %d", old, f.epoch(f.endpoint))
	}
	w := f.claimOne(f.endpoint)
	if w.Delivery.ID != id {
		t.Errorf("claimed %v", w.Delivery.ID)
	}
	f.record(f.attempted(w, godwit.DeliveryAccepted))
}

func leaseLimit(t *testing.T, f *fixture) {
	f.must(f.s.Release(f.ctx, f.acquire(owner), f.now))
	a := byShard(t, got(f.s.Acquire(f.ctx, "a", f.now, ttl, 20))(t))
	if len(a) != 20 {
		t.Fatalf("a got %d shards, limit 20", len(a))
	}
	b := byShard(t, got(f.s.Acquire(f.ctx, "b", f.now, ttl, godwit.Shards))(t))
	if len(b) != godwit.Shards-20 {
		t.Fatalf("b got %d shards, %d were free", len(b), godwit.Shards-20)
	}
	for s := range a {
		if _, both := b[s]; both {
			t.Errorf("shard %d has two owners", s)
		}
	}
	f.must(f.s.Release(f.ctx, []godwit.Lease{b[firstOf(b)]}, f.now))
	again := byShard(t, got(f.s.Acquire(f.ctx, "a", f.now, ttl, 20))(t))
	if len(again) != 20 {
		t.Fatalf("a got %d shards, limit 20", len(again))
	}
	for s := range again {
		if _, own := a[s]; !own {
			t.Errorf("shard %d was taken before a's own", s)
		}
	}
	if none := got(f.s.Acquire(f.ctx, "c", f.now, ttl, 0))(t); len(none) != 0 {
		t.Errorf("got %d shards, limit 0", len(none))
	}
}

func firstOf(m map[int]godwit.Lease) int {
	for s := range godwit.Shards {
		if _, ok := m[s]; ok {
			return s
		}
	}
	return -1
}

func leaseRenew(t *testing.T, f *fixture) {
	held := f.acquire(owner)
	f.tick(ttl / 2)
	renewed := byShard(t, got(f.s.Renew(f.ctx, held, f.now, ttl))(t))
	if len(renewed) != len(held) {
		t.Fatalf("%d of %d leases renewed", len(renewed), len(held))
	}
	for _, l := range held {
		r := renewed[l.Shard]
		if r.Epoch != l.Epoch || r.Owner != owner || !r.ExpiresAt.Equal(f.now.Add(ttl)) {
			t.Fatalf("renewed lease is %+v", r)
		}
	}
	f.tick(ttl - time.Microsecond)
	if stolen := got(f.s.Acquire(f.ctx, "node-b", f.now, ttl, godwit.Shards))(t); len(stolen) != 0 {
		t.Fatalf("%d renewed shards were taken", len(stolen))
	}
	f.tick(time.Microsecond)
	taken := byShard(t, got(f.s.Acquire(f.ctx, "node-b", f.now, ttl, 10))(t))
	still := byShard(t, got(f.s.Renew(f.ctx, held, f.now, ttl))(t))
	if len(taken) != 10 || len(still) != godwit.Shards-10 {
		t.Fatalf("%d taken, %d still held", len(taken), len(still))
	}
	for s := range taken {
		if _, both := still[s]; both {
			t.Errorf("shard %d has two owners", s)
		}
	}
}

func leaseRelease(t *testing.T, f *fixture) {
	held := f.acquire(owner)
	id := f.acceptOne()
	late := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	f.must(f.s.Release(f.ctx, held, f.now))
	_, err := f.s.ClaimDue(f.ctx, store.Claim{EndpointID: f.endpoint, Epoch: f.epoch(f.endpoint), Now: f.now, Limit: 5})
	f.is(err, store.ErrFenced)
	if _, ok := f.waiting(f.endpoint); !ok {
		t.Error("claims were not released")
	}
	if still := got(f.s.Renew(f.ctx, held, f.now, ttl))(t); len(still) != 0 {
		t.Errorf("%d released leases were renewed", len(still))
	}
	c := f.commit(&store.Batch{Results: []store.Result{late}})
	same(t, "fenced", c.Fenced, []int{0})
	before := f.epoch(f.endpoint)
	if leases := f.acquire("node-b"); len(leases) != godwit.Shards || f.epoch(f.endpoint) <= before {
		t.Fatalf("node-b got %d shards, epoch went from %d to %d", len(leases), before, f.epoch(f.endpoint))
	}
	f.must(f.s.Release(f.ctx, held, f.now)) // another node has the lease by now: no effect
	if w := f.claimOne(f.endpoint); w.Delivery.ID != id {
		t.Errorf("claimed %v", w.Delivery.ID)
	}
}

func leaseHolders(t *testing.T, f *fixture) {
	b := godwit.Node{Name: "node-b", Instance: "0b", Holder: "process 12 on b.example"}
	if err := f.s.ClaimNode(f.ctx, b); err != nil {
		t.Fatal(err)
	}
	nodes := got(f.s.Holders(f.ctx))(t)
	if len(nodes) != 1 || nodes[0] != (godwit.Node{Name: owner}) { // the owner of the fixture is one of an earlier release
		t.Errorf("holders are %+v", nodes)
	}
	f.tick(ttl)
	f.acquire(b.Owner())
	nodes = got(f.s.Holders(f.ctx))(t)
	if len(nodes) != 1 || nodes[0] != b || nodes[0].String() != "node-b (process 12 on b.example)" {
		t.Errorf("holders are %+v", nodes)
	}
}
