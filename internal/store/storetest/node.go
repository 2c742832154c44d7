package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var nodeCases = []testCase{
	{"a claimed name is kept", nodeKept},
	{"a claim frees the leases of the name", nodeFreesLeases},
}

// process returns a process that runs under the name of the fixture's node.
func process(instance string) godwit.Node {
	return godwit.Node{Name: owner, Instance: instance, Holder: instance + " process"}
}

// beat sends a beat of a process.
func beat(f *fixture, s store.Store, n godwit.Node) error {
	_, err := s.Beat(f.ctx, store.Beat{Node: n, TTL: ttl})
	return err
}

func nodeKept(t *testing.T, f *fixture) {
	first, second := process("first"), process("second")
	f.must(f.s.ClaimNode(f.ctx, first))
	f.must(beat(f, f.s, first))
	f.is(beat(f, f.s, second), store.ErrFenced)
	f.must(beat(f, f.s, first))
}

// Leases belong to a name, or to a name and an instance. Other names that start alike keep theirs.
func nodeFreesLeases(t *testing.T, f *fixture) {
	f.must(f.s.Release(f.ctx, f.acquire(owner), true))
	take := func(name, instance string, n int) []godwit.Lease {
		return got(f.s.Take(f.ctx, godwit.Node{Name: name, Instance: instance}, time.Hour, n))(t)
	}
	freed := take(owner, "", 3)
	for _, other := range []string{owner + "b", "node"} {
		take(other, "earlier", 3)
	}
	take("rest", "", godwit.Shards)

	f.must(f.s.ClaimNode(f.ctx, process("first")))
	free := byShard(t, take("next", "", godwit.Shards))
	if len(free) != len(freed) {
		t.Errorf("%d shards are free, want %d", len(free), len(freed))
	}
	for _, l := range freed {
		if next, ok := free[l.Shard]; !ok || next.Epoch <= l.Epoch {
			t.Errorf("shard %d was held with epoch %d and is now %+v", l.Shard, l.Epoch, next)
		}
	}
}

// Nodes configures the suite of node names for a backend.
type Nodes struct {
	Open Open
	// Beside opens the data of a store for another process. It returns s itself if only one process can serve the data.
	Beside func(t testing.TB, s store.Store) store.Store
	// Reopen closes a store and opens its data again, as a restarted process would.
	Reopen func(t testing.TB, s store.Store) store.Store
}

// RunNodes tests who has a node's name when several processes want it.
func RunNodes(t *testing.T, b Nodes) {
	t.Run("a live process keeps its name", func(t *testing.T) {
		f := newFixture(t, b.Open)
		nodeTaken(t, f, b.Beside(t, f.s))
	})
	t.Run("a process that has ended loses its name", func(t *testing.T) {
		nodeLost(t, newFixture(t, b.Open), b)
	})
}

func nodeTaken(t *testing.T, f *fixture, beside store.Store) {
	first, second := process("first"), process("second")
	f.must(f.s.ClaimNode(f.ctx, first))
	claimed := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		for {
			if err := beat(f, f.s, first); err != nil {
				t.Errorf("beat: %v", err)
				return
			}
			select {
			case <-claimed:
				return
			default:
			}
		}
	})
	err := beside.ClaimNode(f.ctx, second)
	close(claimed)
	beating.Wait()
	taken, ok := errors.AsType[*store.NodeTaken](err)
	if !ok {
		t.Fatalf("the claim of a second process: %v", err)
	}
	same(t, "holder", *taken, store.NodeTaken{Name: first.Name, Holder: first.Holder})
	f.must(beat(f, f.s, first))
	f.is(beat(f, beside, second), store.ErrFenced)
}

func nodeLost(t *testing.T, f *fixture, b Nodes) {
	first, second := process("first"), process("second")
	f.must(f.s.ClaimNode(f.ctx, first))
	f.s = b.Reopen(t, f.s)
	f.must(f.s.ClaimNode(f.ctx, second))
	f.must(beat(f, f.s, second))
	f.is(beat(f, f.s, first), store.ErrFenced)
}
