package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// TakeAll gives all shards to the owner, also those of live nodes, and releases all claims.
func TakeAll(ctx context.Context, s store.Leases, owner string) ([]godwit.Lease, error) {
	n := godwit.Node{Name: strings.ReplaceAll(owner, " ", "-")}
	c, err := s.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	var held []godwit.Lease
	for _, l := range c.Leases {
		if !l.Free || l.Owner == n.Owner() {
			held = append(held, l)
		}
	}
	if err := s.Release(ctx, held, false); err != nil {
		return nil, err
	}
	taken, err := s.Take(ctx, n, time.Hour, godwit.Shards)
	if err != nil {
		return nil, err
	}
	return taken, s.ReleaseClaims(ctx, taken)
}

// A hand is a clock that a test moves.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) time() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// RunLeases tests the ownership of shards. open returns an empty store whose leases use the given clock.
func RunLeases(t *testing.T, open func(t testing.TB, now func() time.Time) store.Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, f *fixture, h *hand)
	}{
		{"free shards are taken, others are not", leaseTake},
		{"an expired lease is taken over with its claims", leaseExpired},
		{"a beat extends all leases", leaseBeat},
		{"a beat tells of nodes and leases", leaseCluster},
		{"a released lease is free at once, and fenced", leaseRelease},
		{"claims of the own epoch stay", leaseOwnClaims},
		{"nodes that take at once share", leaseTogether},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &hand{now: base}
			f := newFixture(t, func(t testing.TB) store.Store { return open(t, h.time) })
			c.test(t, f, h)
		})
	}
}

func node(name string) godwit.Node { return godwit.Node{Name: name, Instance: "1"} }

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

// take takes shards, which become the fixture's, and releases older claims.
func (f *fixture) take(n godwit.Node, limit int) []godwit.Lease {
	f.t.Helper()
	taken := got(f.s.Take(f.ctx, n, ttl, limit))(f.t)
	f.must(f.s.ReleaseClaims(f.ctx, taken))
	for _, l := range taken {
		f.epochs[l.Shard] = l.Epoch
	}
	return taken
}

func leaseTake(t *testing.T, f *fixture, h *hand) {
	if taken := f.take(node("b"), godwit.Shards); len(taken) != 0 {
		t.Fatalf("took %d shards of a live node", len(taken))
	}
	h.advance(time.Hour)
	if none := f.take(node("b"), 0); len(none) != 0 {
		t.Errorf("took %d shards, limit 0", len(none))
	}
	b, c := byShard(t, f.take(node("b"), 20)), byShard(t, f.take(node("c"), godwit.Shards))
	if len(b) != 20 || len(c) != godwit.Shards-20 {
		t.Fatalf("b took %d shards, c %d", len(b), len(c))
	}
	for shard, l := range b {
		if _, both := c[shard]; both || l.Owner != "b 1" || l.Epoch != 2 {
			t.Errorf("b has %+v, c %+v", l, c[shard])
		}
	}
	if again := f.take(node("b"), godwit.Shards); len(again) != 0 {
		t.Errorf("b took %d shards a second time", len(again))
	}
}

func leaseExpired(t *testing.T, f *fixture, h *hand) {
	b := node("b")
	h.advance(time.Hour)
	f.take(b, godwit.Shards)
	id := f.acceptOne()
	late := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	h.advance(ttl - time.Microsecond)
	if taken := f.take(node("c"), godwit.Shards); len(taken) != 0 {
		t.Fatalf("%d leases were taken before they expired", len(taken))
	}
	expiry := h.time().Add(time.Microsecond)
	h.advance(time.Second)
	for _, l := range f.take(node("c"), godwit.Shards) {
		if l.Clean && f.s.ReleaseClaims(f.ctx, nil) != nil || !l.FreeSince.Equal(expiry) {
			t.Fatalf("the lease is %+v, it expired at %v", l, expiry)
		}
	}
	same(t, "fenced", f.commit(&store.Batch{Results: []store.Result{late}}).Fenced, []int{0})
	if w := f.claimOne(f.endpoint); w.Delivery.ID != id {
		t.Errorf("claimed %v", w.Delivery.ID)
	}
}

func leaseBeat(t *testing.T, f *fixture, h *hand) {
	b := node("b")
	h.advance(time.Hour)
	held := f.take(b, godwit.Shards)
	for range 3 {
		h.advance(ttl - time.Microsecond)
		got(f.s.Beat(f.ctx, store.Beat{Node: b, TTL: ttl}))(t)
	}
	h.advance(2 * ttl) // expired, but no other node has noticed
	c := got(f.s.Beat(f.ctx, store.Beat{Node: b, TTL: ttl}))(t)
	for i, l := range c.Leases {
		if l.Owner != b.Owner() || l.Epoch != held[i].Epoch || l.Free {
			t.Fatalf("after an extension the lease is %+v, before it was %+v", l, held[i])
		}
	}
	if taken := f.take(node("c"), godwit.Shards); len(taken) != 0 {
		t.Fatalf("%d extended leases were taken", len(taken))
	}
	h.advance(ttl)
	taken := byShard(t, f.take(node("c"), 10))
	c = got(f.s.Beat(f.ctx, store.Beat{Node: b, TTL: ttl}))(t)
	for _, l := range c.Leases {
		if _, lost := taken[l.Shard]; lost != (l.Owner == "c 1") || l.Free {
			t.Errorf("c took %v, and the lease is %+v", lost, l)
		}
	}
}

func leaseCluster(t *testing.T, f *fixture, h *hand) {
	b := godwit.Node{Name: "b", Instance: "1", Holder: "process 7 on b.example", Address: "http://b.example", Version: "1.2.3", Schema: 9}
	f.must(f.s.ClaimNode(f.ctx, b))
	load := godwit.NodeLoad{Shards: 3, Held: 2, InFlight: 1, Lag: 1500 * time.Millisecond}
	h.advance(time.Minute)
	beat := got(f.s.Beat(f.ctx, store.Beat{Node: b, TTL: ttl, State: godwit.NodeLeaving, Load: load}))(t)
	h.advance(ttl)
	for what, c := range map[string]*godwit.Cluster{"beat": beat, "later": got(f.s.Cluster(f.ctx))(t)} {
		if len(c.Members) != 2 || len(c.Leases) != godwit.Shards {
			t.Fatalf("%s: the cluster is %+v", what, c)
		}
		m := c.Members[0]
		left := map[string]time.Duration{"beat": ttl}[what]
		if m.Left != left || m.Alive != (left > 0) || m.StartedAt.IsZero() || !m.SeenAt.Equal(base.Add(time.Minute)) || !c.Now.Equal(m.SeenAt) && m.Alive {
			t.Errorf("%s: the node is %+v at %v", what, m, c.Now)
		}
		m.Alive, m.Left, m.StartedAt, m.SeenAt = false, 0, time.Time{}, time.Time{}
		same(t, what, m, godwit.Member{Node: b, State: godwit.NodeLeaving, Load: load})
		for i, l := range c.Leases {
			if l.Shard != i || l.Owner != owner+" " || l.Free {
				t.Fatalf("%s: lease %d is %+v", what, i, l)
			}
		}
	}
	stopping := got(f.s.Beat(f.ctx, store.Beat{Node: b, TTL: ttl, State: godwit.NodeStopping}))(t)
	running := got(f.s.Beat(f.ctx, store.Beat{Node: b, TTL: ttl}))(t)
	if before, m := stopping.Members[0], running.Members[0]; before.State != godwit.NodeStopping || m.State != godwit.NodeRunning {
		t.Errorf("the node was %+v and is %+v", before, m)
	}
}

func leaseRelease(t *testing.T, f *fixture, h *hand) {
	h.advance(time.Hour)
	held := f.take(node("b"), godwit.Shards)
	id := f.acceptOne()
	late := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	for shard := range 2 {
		f.must(f.s.Release(f.ctx, held[shard:shard+1], shard == 0))
	}
	h.advance(time.Second)
	two := byShard(t, f.take(node("c"), godwit.Shards))
	if len(two) != 2 || two[0].Epoch != held[0].Epoch+2 || !two[0].FreeSince.Equal(h.time().Add(-time.Second)) || !two[0].Clean {
		t.Fatalf("c took %+v", two)
	}
	f.must(f.s.Release(f.ctx, held, false))
	_, err := ClaimOne(f.ctx, f.s, store.Claim{EndpointID: f.endpoint, Epoch: held[f.endpoint.Shard()].Epoch, Now: f.now, Limit: 5})
	f.is(err, store.ErrFenced)
	for _, l := range got(f.s.Beat(f.ctx, store.Beat{Node: node("b"), TTL: ttl}))(t).Leases {
		if _, of := two[l.Shard]; of == l.Free || !of && l.Owner != "" {
			t.Errorf("after a release the lease is %+v", l)
		}
	}
	f.take(node("c"), godwit.Shards)
	same(t, "fenced", f.commit(&store.Batch{Results: []store.Result{late}}).Fenced, []int{0})
	f.must(f.s.Release(f.ctx, held, true)) // another node has the leases by now: no effect
	if w := f.claimOne(f.endpoint); w.Delivery.ID != id {
		t.Errorf("claimed %v", w.Delivery.ID)
	}
}

func leaseOwnClaims(t *testing.T, f *fixture, h *hand) {
	h.advance(time.Hour)
	held := f.take(node("b"), godwit.Shards)
	f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	f.must(f.s.ReleaseClaims(f.ctx, held))
	f.record(r)
}

func leaseTogether(t *testing.T, f *fixture, h *hand) {
	for range 5 {
		h.advance(time.Hour)
		var mu sync.Mutex
		owners := map[int]string{}
		together(t, 8, func(i int) error {
			n := node("node" + string(rune('a'+i)))
			for range 3 {
				leases, err := f.s.Take(f.ctx, n, ttl, 4)
				if err != nil && !store.Passing(err) { // a node that waits too long for its turn tries again
					return err
				}
				mu.Lock()
				for _, l := range leases {
					if other, held := owners[l.Shard]; held {
						t.Errorf("shard %d is held by %s and %s", l.Shard, other, l.Owner)
					}
					owners[l.Shard] = l.Owner
				}
				mu.Unlock()
			}
			return nil
		})
		for _, l := range f.take(node("last"), godwit.Shards) {
			if other, held := owners[l.Shard]; held {
				t.Errorf("shard %d is held by %s and %s", l.Shard, other, l.Owner)
			}
		}
	}
}
