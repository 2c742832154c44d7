package command

import (
	"hash/maphash"
	"sync"
)

// seenKeys tells which keys have to be looked up before they are reserved. The reservation alone decides whether a key is
// free; a lookup spares a repeat the attempt to reserve. A key that this process has not seen lately is nearly always new, so
// that a lookup would find nothing.
type seenKeys struct {
	mu        sync.Mutex
	seed      maphash.Seed
	now, past map[uint64]struct{} // two generations of hashes

	// After a key that was taken although it had not been seen, the next submissions look their keys up, more of them after
	// each further such key: the repeats then come from a time or from a process that this one does not know.
	lookups, penalty int
}

const (
	maxSeen       = 1 << 15 // keys of a generation
	maxLookupsDue = 1 << 12
)

func newSeenKeys() *seenKeys {
	return &seenKeys{seed: maphash.MakeSeed(), now: map[uint64]struct{}{}}
}

// isNew reports whether a key can be reserved without a lookup, and remembers the key.
func (k *seenKeys) isNew(tenant, key string) bool {
	hash := maphash.Comparable(k.seed, RecordID{tenant, key})
	k.mu.Lock()
	defer k.mu.Unlock()
	_, lately := k.now[hash]
	_, before := k.past[hash]
	if !lately {
		if len(k.now) >= maxSeen {
			k.now, k.past = map[uint64]struct{}{}, k.now
		}
		k.now[hash] = struct{}{}
	}
	if k.lookups > 0 {
		k.lookups--
		return false
	}
	return !lately && !before
}

// wasTaken tells that isNew was wrong.
func (k *seenKeys) wasTaken() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.penalty = min(2*k.penalty+8, maxLookupsDue)
	k.lookups = k.penalty
}

// wasNew tells that isNew was right.
func (k *seenKeys) wasNew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.penalty = 0
}
