package management

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// callerCache remembers who tokens belong to, for seconds. It is bounded, and holds live callers only: a flood of made-up
// tokens pushes none of them out.
type callerCache struct {
	max int
	ttl time.Duration

	mu      sync.RWMutex
	entries map[[32]byte]*cachedCaller
	drops   uint64 // counts invalidations: what was loaded before one is not kept after it
}

type cachedCaller struct {
	caller     *Caller
	freshUntil time.Time
	refreshing atomic.Bool
}

func newCallerCache(size int, ttl time.Duration) *callerCache {
	return &callerCache{max: size, ttl: ttl, entries: map[[32]byte]*cachedCaller{}}
}

// get returns the caller, loading it when it is not known or not fresh. While one request refreshes an entry, others go on
// with what is known, for one more ttl at most: no crowd waits for the store.
func (c *callerCache) get(hash [32]byte, now time.Time, load func() (*Caller, error)) (*Caller, error) {
	c.mu.RLock()
	entry := c.entries[hash]
	drops := c.drops
	c.mu.RUnlock()
	if entry != nil {
		if now.Before(entry.freshUntil) {
			return entry.caller, nil
		}
		if !entry.refreshing.CompareAndSwap(false, true) && now.Before(entry.freshUntil.Add(c.ttl)) {
			return entry.caller, nil
		}
		defer entry.refreshing.Store(false)
	}
	caller, err := load()
	if err != nil {
		if entry != nil && errors.Is(err, problem.Unauthorized) {
			c.dropKey(hash)
		}
		return nil, err
	}
	c.put(hash, &cachedCaller{caller: caller, freshUntil: now.Add(c.ttl)}, drops, now)
	return caller, nil
}

func (c *callerCache) put(hash [32]byte, entry *cachedCaller, drops uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops != drops {
		return
	}
	if _, known := c.entries[hash]; !known && len(c.entries) >= c.max {
		c.makeRoom(now)
	}
	c.entries[hash] = entry
}

// makeRoom removes what is stale, or else one entry, whichever comes first.
func (c *callerCache) makeRoom(now time.Time) {
	for hash, e := range c.entries {
		if !now.Before(e.freshUntil) {
			delete(c.entries, hash)
		}
	}
	for hash := range c.entries {
		if len(c.entries) < c.max {
			return
		}
		delete(c.entries, hash)
	}
}

func (c *callerCache) dropKey(hash [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	delete(c.entries, hash)
}

func (c *callerCache) dropTenant(id godwit.TenantID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for hash, e := range c.entries {
		if e.caller.Tenant.ID == id {
			delete(c.entries, hash)
		}
	}
}
