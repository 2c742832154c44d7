package command

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

// findCounter counts lookups.
type findCounter struct {
	Store
	finds atomic.Int64
}

func (s *findCounter) Find(ctx context.Context, tenant, key string) (*Record, error) {
	s.finds.Add(1)
	return s.Store.Find(ctx, tenant, key)
}

// A new key is reserved without a lookup; a repeat is looked up and not executed again, also by a process that has not seen
// the key.
func TestNewKeysAreNotLookedUp(t *testing.T) {
	r := newRig(t)
	var counted *findCounter
	count := func(cfg *Config) { counted = &findCounter{Store: cfg.Store}; cfg.Store = counted }
	stop := r.run(count)
	var c counter
	r.register(Declaration{}, &c)
	if a := r.submit(); a.Decision != FirstSeen || counted.finds.Load() != 0 {
		t.Errorf("%s after %d lookups", a.Decision, counted.finds.Load())
	}
	if a := r.submit(); a.Decision != DuplicateReplayed || counted.finds.Load() != 1 {
		t.Errorf("a repeat: %s after %d lookups", a.Decision, counted.finds.Load())
	}
	stop()
	r.run(count)
	if a := r.submit(); a.Decision != DuplicateReplayed || c.n.Load() != 1 {
		t.Errorf("a repeat at another process: %s, executed %d times", a.Decision, c.n.Load())
	}
}

// A record that was made to look free is not replaced, also by a process that has not seen its key.
func TestRecordMadeToLookFreeIsNotReplaced(t *testing.T) {
	trace.Covers(t, "IDS-SEC-2")
	r := newRig(t)
	var c counter
	r.register(Declaration{}, &c)
	r.submit()
	r.store.mu.Lock()
	for _, rec := range r.store.records {
		rec.ExpiresAt = r.now.Add(-time.Hour)
	}
	r.store.mu.Unlock()
	for range 2 {
		r.run()
		r.refused(StoreIntegrity)
	}
	if c.n.Load() != 1 {
		t.Errorf("executed %d times", c.n.Load())
	}
}

// While unseen keys turn out to be taken, keys are looked up, more of them each time. The memory is bounded.
func TestSeenKeys(t *testing.T) {
	k := newSeenKeys()
	n := 0
	fresh := func() bool { n++; return k.isNew("t1", fmt.Sprint(n)) }
	if !fresh() || k.isNew("t1", "1") || !k.isNew("t2", "1") {
		t.Error("a key is new the first time only, for each tenant")
	}
	for _, want := range []int{8, 24, 56} {
		k.wasTaken()
		for i := range want {
			if fresh() {
				t.Fatalf("after a taken key, %d of %d keys were looked up", i, want)
			}
		}
		if !fresh() {
			t.Fatalf("more than %d keys were looked up", want)
		}
	}
	k.wasNew()
	k.wasTaken()
	for range 8 {
		fresh()
	}
	if !fresh() {
		t.Error("a key that was new did not end the lookups")
	}
	for range 3 * maxSeen {
		fresh()
	}
	if len(k.now)+len(k.past) > 2*maxSeen {
		t.Errorf("%d keys are remembered", len(k.now)+len(k.past))
	}
	if k.isNew("t1", fmt.Sprint(n)) {
		t.Error("the last key was forgotten")
	}
}
