package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/receiver"
)

// Callers is how many try at once.
const Callers = 50

// RunConcurrency tests fifty concurrent callers: one holds each key, one takes over each crashed one, and a value is new for
// one.
func RunConcurrency(t *testing.T, open func(t *testing.T) receiver.Store) {
	t.Run("one of fifty reserves a key", func(t *testing.T) { testOneHolder(t, open(t)) })
	t.Run("one of fifty takes a crashed key over", func(t *testing.T) { testOneSuccessor(t, open(t)) })
	t.Run("a value is new for one of fifty", func(t *testing.T) { testOneFirst(t, open(t)) })
	t.Run("an ended context is an error, not an answer", func(t *testing.T) { testEnded(t, open(t)) })
}

// atOnce calls the function Callers times, all together.
func atOnce(call func(i int)) {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(Callers)
	for i := range Callers {
		done.Go(func() {
			ready.Done()
			<-begin
			call(i)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
}

func testOneHolder(t *testing.T, s receiver.Store) {
	for round := range 10 {
		scope := fmt.Sprint("round", round)
		var holders, completed atomic.Int32
		atOnce(func(i int) {
			h := hold(scope, fmt.Sprint("token", i))
			found, err := s.Reserve(t.Context(), reserve(h, Start))
			if err != nil {
				t.Errorf("reserve: %v", err)
				return
			}
			if found.State != receiver.Reserved {
				return
			}
			holders.Add(1)
			if ok, err := s.Complete(t.Context(), h, completion(Start)); err != nil || !ok {
				t.Errorf("complete: %t, %v", ok, err)
				return
			}
			completed.Add(1)
		})
		if holders.Load() != 1 || completed.Load() != 1 {
			t.Fatalf("round %d: %d holders, %d completed", round, holders.Load(), completed.Load())
		}
	}
}

func testOneSuccessor(t *testing.T, s receiver.Store) {
	for round := range 10 {
		scope := fmt.Sprint("round", round)
		dead := hold(scope, "dead")
		mustReserve(t, s, reserve(dead, Start), receiver.Reserved)
		var holders atomic.Int32
		atOnce(func(i int) {
			if i == 0 { // the dead one comes back, too late
				if ok, err := s.Complete(t.Context(), hold(scope, "deadly"), completion(Start)); ok || err != nil {
					t.Errorf("completed by who never held: %t, %v", ok, err)
				}
			}
			found, err := s.Reserve(t.Context(), reserve(hold(scope, fmt.Sprint("token", i)), Start.Add(lease)))
			if err != nil {
				t.Errorf("reserve: %v", err)
			} else if found.State == receiver.Reserved {
				holders.Add(1)
			}
		})
		if holders.Load() != 1 {
			t.Fatalf("round %d: %d holders", round, holders.Load())
		}
		mustComplete(t, s, dead, completion(Start.Add(lease)), false)
	}
}

func testOneFirst(t *testing.T, s receiver.Store) {
	for round := range 10 {
		var first atomic.Int32
		atOnce(func(int) {
			fresh, err := s.Remember(t.Context(), ScopeOf(fmt.Sprint("nonce", round)), Start.Add(lease), Start)
			if err != nil {
				t.Errorf("remember: %v", err)
			} else if fresh {
				first.Add(1)
			}
		})
		if first.Load() != 1 {
			t.Fatalf("round %d: new for %d", round, first.Load())
		}
	}
}

// testEnded: a store that cannot be reached must not answer like one that knows nothing. A store in memory can always be
// reached.
func testEnded(t *testing.T, s receiver.Store) {
	found, err := s.Reserve(closed(), reserve(hold("k", "a"), Start))
	if _, memory := s.(*receiver.Memory); memory {
		return
	}
	if err == nil {
		t.Fatalf("reserve answered %d although it could not ask", found.State)
	}
}
