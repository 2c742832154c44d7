package receiver_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/storetest"
)

func newMemory(*testing.T) receiver.Store { return receiver.NewMemory(receiver.MemoryOptions{}) }

func TestMemory(t *testing.T) { storetest.Run(t, newMemory) }

func TestMemoryConcurrency(t *testing.T) {
	trace.Covers(t, "IKH-RSP-7")
	storetest.RunConcurrency(t, newMemory)
}

// TestMemoryIsBounded: it refuses rather than forgets, and takes again what has room.
func TestMemoryIsBounded(t *testing.T) {
	s, now := receiver.NewMemory(receiver.MemoryOptions{Max: 10}), storetest.Start
	reserve := func(i int, now time.Time) error {
		h := receiver.Hold{Scope: storetest.ScopeOf(fmt.Sprint(i)), Token: "t"}
		_, err := s.Reserve(t.Context(), receiver.Reserve{Hold: h, Now: now, LeaseUntil: now.Add(time.Minute)})
		return err
	}
	for i := range 10 {
		if err := reserve(i, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := reserve(10, now); !errors.Is(err, receiver.ErrFull) {
		t.Errorf("beyond the bound: %v", err)
	}
	if err := reserve(3, now); err != nil {
		t.Errorf("a known key: %v", err)
	}
	if _, err := s.Remember(t.Context(), storetest.ScopeOf("n"), now.Add(time.Minute), now); !errors.Is(err, receiver.ErrFull) {
		t.Errorf("a nonce beyond the bound: %v", err)
	}
	if err := reserve(10, now.Add(time.Minute)); err != nil {
		t.Errorf("after all have expired: %v", err)
	}
	if n, err := s.Purge(t.Context(), now.Add(2*time.Minute), 100); err != nil || s.Len() != 0 {
		t.Errorf("purged %d, %v; %d left", n, err, s.Len())
	}
}
