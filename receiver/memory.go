package receiver

import (
	"context"
	"errors"
	"sync"
	"time"
)

// MemoryOptions limit a store in memory.
type MemoryOptions struct {
	// Max is how many keys and nonces are remembered at most; beyond it new ones are refused (503), because forgetting one
	// would let a duplicate through. Defaults to 1,000,000.
	Max int
}

// Memory is a store in this process: for tests, and for receivers that run as one process and may forget at a restart. It drops
// expired entries as it goes.
type Memory struct {
	max int

	mu     sync.Mutex
	keys   map[Digest]memoryKey
	values map[Digest]time.Time
	expiry expiries
}

type memoryKey struct {
	fingerprint Digest
	token       string
	until       time.Time
	completed   bool
	outcome     Outcome
}

// ErrFull is returned by a store in memory that has reached its limit.
var ErrFull = errors.New("store is full")

// NewMemory makes a store in memory.
func NewMemory(o MemoryOptions) *Memory {
	if o.Max <= 0 {
		o.Max = 1_000_000
	}
	return &Memory{max: o.Max, keys: map[Digest]memoryKey{}, values: map[Digest]time.Time{}}
}

// Len is the number of keys and nonces that are remembered.
func (s *Memory) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) + len(s.values)
}

// Reserve implements [Store].
func (s *Memory) Reserve(_ context.Context, r Reserve) (Reservation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(r.Now, 4)
	held, known := s.keys[r.Scope]
	if known && held.until.After(r.Now) {
		if held.completed {
			return Reservation{Completed, held.fingerprint, held.outcome}, nil
		}
		return Reservation{State: InProgress, Fingerprint: held.fingerprint}, nil
	}
	if !known && s.full(r.Now) {
		return Reservation{}, ErrFull
	}
	s.keys[r.Scope] = memoryKey{fingerprint: r.Fingerprint, token: r.Token, until: r.LeaseUntil}
	s.expiry.push(expiry{r.LeaseUntil, r.Scope, false})
	return Reservation{State: Reserved}, nil
}

// Complete implements [Store].
func (s *Memory) Complete(_ context.Context, h Hold, c Completion) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.keys[h.Scope]
	if !ok || held.token != h.Token || held.completed {
		return false, nil
	}
	held.completed, held.outcome, held.until = true, c.Outcome, c.Until
	s.keys[h.Scope] = held
	s.expiry.push(expiry{c.Until, h.Scope, false})
	return true, nil
}

// Release implements [Store].
func (s *Memory) Release(_ context.Context, h Hold) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, ok := s.keys[h.Scope]; ok && held.token == h.Token && !held.completed {
		delete(s.keys, h.Scope)
	}
	return nil
}

// Remember implements [Store].
func (s *Memory) Remember(_ context.Context, value Digest, until, now time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now, 4)
	known, ok := s.values[value]
	if ok && known.After(now) {
		return false, nil
	}
	if !ok && s.full(now) {
		return false, ErrFull
	}
	s.values[value] = until
	s.expiry.push(expiry{until, value, true})
	return true, nil
}

// Purge implements [Store].
func (s *Memory) Purge(_ context.Context, now time.Time, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweep(now, limit), nil
}

// full reports whether nothing can be added, even after dropping all expired entries.
func (s *Memory) full(now time.Time) bool {
	if len(s.keys)+len(s.values) < s.max {
		return false
	}
	s.sweep(now, s.max)
	return len(s.keys)+len(s.values) >= s.max
}

// sweep drops at most limit expired entries. An entry whose expiry was extended stays: its later expiry is queued as well.
func (s *Memory) sweep(now time.Time, limit int) (dropped int) {
	for dropped < limit && len(s.expiry) > 0 && !s.expiry[0].until.After(now) {
		e := s.expiry.pop()
		if e.value {
			if until, ok := s.values[e.id]; ok && !until.After(now) {
				delete(s.values, e.id)
				dropped++
			}
			continue
		}
		if held, ok := s.keys[e.id]; ok && !held.until.After(now) {
			delete(s.keys, e.id)
			dropped++
		}
	}
	return dropped
}

type expiry struct {
	until time.Time
	id    Digest
	value bool
}

// expiries is a heap ordered by expiry. It does not use container/heap, which would put every entry into an interface.
type expiries []expiry

func (e *expiries) push(x expiry) {
	h := append(*e, x)
	for at := len(h) - 1; at > 0; {
		parent := (at - 1) / 2
		if !h[at].until.Before(h[parent].until) {
			break
		}
		h[at], h[parent] = h[parent], h[at]
		at = parent
	}
	*e = h
}

func (e *expiries) pop() expiry {
	h := *e
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for at := 0; ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(h); child++ {
			if h[child].until.Before(h[least].until) {
				least = child
			}
		}
		if least == at {
			break
		}
		h[at], h[least] = h[least], h[at]
		at = least
	}
	*e = h
	return first
}
