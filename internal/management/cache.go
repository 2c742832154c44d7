package management

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// callerCache caches the callers of tokens for seconds, and the tenants that they act for for minutes. It is bounded and holds only live
// callers, so that a flood of invented tokens displaces none of them.
type callerCache struct {
	max       int
	ttl       time.Duration // of tokens
	tenantTTL time.Duration // of tenants that callers act for

	mu      sync.RWMutex
	entries map[callerKey]*cachedCaller
	drops   uint64 // counts invalidations: a caller loaded before one is not cached after it
}

// A callerKey is the hash of a token and, for callers that act for a tenant other than their key's, how they named it.
type callerKey struct {
	hash        [32]byte
	environment godwit.EnvironmentID // in which a uid is looked up
	named       string
}

type cachedCaller struct {
	caller     *Caller
	freshUntil time.Time
	refreshing atomic.Bool
}

func newCallerCache(size int, ttl, tenantTTL time.Duration) *callerCache {
	return &callerCache{max: size, ttl: ttl, tenantTTL: tenantTTL, entries: map[callerKey]*cachedCaller{}}
}

func (c *callerCache) ttlOf(key *callerKey) time.Duration {
	if key.named != "" {
		return c.tenantTTL
	}
	return c.ttl
}

// get returns the cached caller, and loads it if it is unknown or stale. While one request refreshes an entry, others use
// the stale one for at most one more ttl, so that they do not all wait for the store.
func (c *callerCache) get(key callerKey, now time.Time, load func() (*Caller, error)) (*Caller, error) {
	c.mu.RLock()
	entry := c.entries[key]
	drops := c.drops
	c.mu.RUnlock()
	if entry != nil {
		if now.Before(entry.freshUntil) {
			return entry.caller, nil
		}
		if !entry.refreshing.CompareAndSwap(false, true) && now.Before(entry.freshUntil.Add(c.ttlOf(&key))) {
			return entry.caller, nil
		}
		defer entry.refreshing.Store(false)
	}
	caller, err := load()
	if err != nil {
		if entry != nil && errors.Is(err, problem.Unauthorized) {
			c.dropKey(key.hash)
		}
		return nil, err
	}
	c.put(key, &cachedCaller{caller: caller, freshUntil: now.Add(c.ttlOf(&key))}, drops, now)
	return caller, nil
}

func (c *callerCache) put(key callerKey, entry *cachedCaller, drops uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops != drops {
		return
	}
	if _, known := c.entries[key]; !known && len(c.entries) >= c.max {
		c.makeRoom(now)
	}
	c.entries[key] = entry
}

// makeRoom looks at a few arbitrary entries and removes the stale ones, or else one of them.
func (c *callerCache) makeRoom(now time.Time) {
	const look = 32
	n := 0
	for key, e := range c.entries {
		if !now.Before(e.freshUntil) {
			delete(c.entries, key)
		}
		if n++; n == look {
			break
		}
	}
	for key := range c.entries {
		if len(c.entries) < c.max {
			return
		}
		delete(c.entries, key)
	}
}

func (c *callerCache) dropKey(hash [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for key := range c.entries {
		if key.hash == hash {
			delete(c.entries, key)
		}
	}
}

func (c *callerCache) dropTenant(id godwit.TenantID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for key, e := range c.entries {
		if e.caller.Tenant.ID == id {
			delete(c.entries, key)
		}
	}
}

// dropKeyID removes the callers with a key.
func (c *callerCache) dropKeyID(id godwit.KeyID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for key, e := range c.entries {
		if e.caller.Key.ID == id {
			delete(c.entries, key)
		}
	}
}

// dropSession removes the callers with a session.
func (c *callerCache) dropSession(id godwit.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for key, e := range c.entries {
		if e.caller.Session != nil && e.caller.Session.ID == id {
			delete(c.entries, key)
		}
	}
}

func (c *callerCache) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	clear(c.entries)
}
