package storetest

import (
	"errors"
	"sync"
	"testing"

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

func nodeKept(t *testing.T, f *fixture) {
	first, second := process("first"), process("second")
	f.is(f.s.KeepNode(f.ctx, first), store.ErrFenced)
	f.must(f.s.ClaimNode(f.ctx, first))
	f.must(f.s.KeepNode(f.ctx, first))
	f.is(f.s.KeepNode(f.ctx, second), store.ErrFenced)
	f.must(f.s.KeepNode(f.ctx, first))
}

// Leases belong to a name, or to a name and an instance. Other names that start alike keep theirs.
func nodeFreesLeases(t *testing.T, f *fixture) {
	f.tick(ttl) // all leases have expired
	var freed []godwit.Lease
	for _, earlier := range []string{owner, owner + " earlier"} {
		freed = append(freed, got(f.s.Acquire(f.ctx, earlier, f.now, ttl, 3))(t)...)
	}
	for _, other := range []string{owner + "b", owner + "b earlier", "node"} {
		got(f.s.Acquire(f.ctx, other, f.now, ttl, 3))(t)
	}
	got(f.s.Acquire(f.ctx, "rest", f.now, ttl, godwit.Shards))(t)

	f.must(f.s.ClaimNode(f.ctx, process("first")))
	free := byShard(t, got(f.s.Acquire(f.ctx, "next", f.now, ttl, godwit.Shards))(t))
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
			if err := f.s.KeepNode(f.ctx, first); err != nil {
				t.Errorf("heartbeat: %v", err)
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
	f.must(f.s.KeepNode(f.ctx, first))
	f.is(beside.KeepNode(f.ctx, second), store.ErrFenced)
}

func nodeLost(t *testing.T, f *fixture, b Nodes) {
	first, second := process("first"), process("second")
	f.must(f.s.ClaimNode(f.ctx, first))
	f.s = b.Reopen(t, f.s)
	f.must(f.s.ClaimNode(f.ctx, second))
	f.must(f.s.KeepNode(f.ctx, second))
	f.is(f.s.KeepNode(f.ctx, first), store.ErrFenced)
}
