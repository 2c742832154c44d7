package management

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// callerCache caches the callers of tokens for seconds. It is bounded and holds only live callers, so that a flood of
// invented tokens displaces none of them.
type callerCache struct {
	max int
	ttl time.Duration

	mu      sync.RWMutex
	entries map[[32]byte]*cachedCaller
	drops   uint64 // counts invalidations: a caller loaded before one is not cached after it
}

type cachedCaller struct {
	caller     *Caller
	freshUntil time.Time
	refreshing atomic.Bool
}

func newCallerCache(size int, ttl time.Duration) *callerCache {
	return &callerCache{max: size, ttl: ttl, entries: map[[32]byte]*cachedCaller{}}
}

// get returns the cached caller, and loads it if it is unknown or stale. While one request refreshes an entry, others use
// the stale one for at most one more ttl, so that they do not all wait for the store.
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

// makeRoom removes stale entries, or else an arbitrary one.
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

// dropKeyID removes the callers with a key.
func (c *callerCache) dropKeyID(id godwit.KeyID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for hash, e := range c.entries {
		if e.caller.Key.ID == id {
			delete(c.entries, hash)
		}
	}
}

func (c *callerCache) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	clear(c.entries)
}
