package catalogue

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An Event is an event to check against the catalogue.
type Event struct {
	Type        string
	ContentType string
	Payload     []byte
}

// Check returns what in an event does not match its tenant's catalogue, at the level that the tenant has chosen. Fields of
// the payload begin with "data"; "type" is the type itself. For tenants without validation it returns nothing at once.
func (c *Catalogue) Check(ctx context.Context, t *godwit.Tenant, e Event) ([]godwit.FieldError, error) {
	if t.Validation == godwit.ValidateNone {
		return nil, nil
	}
	if err := c.fresh(ctx); err != nil {
		return nil, fmt.Errorf("look for changed event types: %w", err)
	}
	entry, err := c.find(ctx, t, e.Type)
	if err != nil {
		return nil, err
	}
	switch {
	case !entry.listed && t.Validation == godwit.ValidateStrict:
		return []godwit.FieldError{{Field: "type", Detail: "is not in the tenant's catalogue of event types"}}, nil
	case entry.schema == nil:
		return nil, nil
	case !isJSON(e.ContentType):
		return []godwit.FieldError{{Field: "data", Detail: "must be JSON: events of this type are held against a schema"}}, nil
	}
	fields := entry.schema.Check(e.Payload)
	for i := range fields {
		fields[i].Field = Join("data", fields[i].Field)
	}
	return fields, nil
}

// Owns reports whether the tenant has an event type of its own with this name.
func (c *Catalogue) Owns(ctx context.Context, t *godwit.Tenant, name string) (bool, error) {
	if t.OwnTypes == 0 {
		return false, nil
	}
	if err := c.fresh(ctx); err != nil {
		return false, fmt.Errorf("look for changed event types: %w", err)
	}
	entry, err := c.own(ctx, t, name)
	return err == nil && entry.listed, err
}

func (c *Catalogue) own(ctx context.Context, t *godwit.Tenant, name string) (*loaded, error) {
	return c.cache.get(cacheKey{t.ID, name}, c.now(), func() (*loaded, error) { return c.load(ctx, t.ID, name) })
}

// find returns the compiled entry of a tenant's own type or else of the one that its environment shares. Shared types are compiled once for all
// tenants, and most tenants have no other.
func (c *Catalogue) find(ctx context.Context, t *godwit.Tenant, name string) (entry *loaded, err error) {
	if t.OwnTypes > 0 {
		entry, err = c.own(ctx, t, name)
		if err != nil || entry.listed {
			return entry, err
		}
	}
	home := godwit.HomeOf(t.EnvironmentID)
	return c.cache.get(cacheKey{home, name}, c.now(), func() (*loaded, error) { return c.load(ctx, home, name) })
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// loaded is the compiled form of a type's entry.
type loaded struct {
	listed bool
	schema *Schema // nil allows any payload
}

func (c *Catalogue) load(ctx context.Context, tenant godwit.TenantID, name string) (*loaded, error) {
	entry, err := c.store.EventType(ctx, tenant, name)
	if errors.Is(err, store.ErrNotFound) {
		return &loaded{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find event type: %w", err)
	}
	schema, err := inForce(entry)
	if err != nil {
		return nil, fmt.Errorf("compile stored schema: %w", errors.New(err.Error())) // a stored schema is not a field of this request
	}
	return &loaded{listed: true, schema: schema}, nil
}

type cacheKey struct {
	tenant godwit.TenantID
	name   string
}

// cache holds types for seconds, including types that are not listed.
type cache struct {
	max int
	ttl time.Duration

	mu      sync.RWMutex
	entries map[cacheKey]*cached
	drops   uint64 // counts invalidations; an entry that was loaded before one is not kept after it
}

type cached struct {
	entry      *loaded
	freshUntil time.Time
	refreshing atomic.Bool
}

// get returns an entry and loads it if it is unknown or stale. While one caller refreshes an entry, the others use the old
// one for at most one more ttl, so that they do not all wait for the store.
func (c *cache) get(k cacheKey, now time.Time, load func() (*loaded, error)) (*loaded, error) {
	c.mu.RLock()
	known, drops := c.entries[k], c.drops
	c.mu.RUnlock()
	if known != nil {
		if now.Before(known.freshUntil) {
			return known.entry, nil
		}
		if !known.refreshing.CompareAndSwap(false, true) && now.Before(known.freshUntil.Add(c.ttl)) {
			return known.entry, nil
		}
		defer known.refreshing.Store(false)
	}
	entry, err := load()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops == drops {
		c.makeRoom(k, now)
		c.entries[k] = &cached{entry: entry, freshUntil: now.Add(c.ttl)}
	}
	return entry, nil
}

// makeRoom removes stale entries if the cache is full, and then arbitrary ones until there is room for one more.
func (c *cache) makeRoom(k cacheKey, now time.Time) {
	if _, known := c.entries[k]; known || len(c.entries) < c.max {
		return
	}
	for other, e := range c.entries {
		if !now.Before(e.freshUntil) {
			delete(c.entries, other)
		}
	}
	for other := range c.entries {
		if len(c.entries) < c.max {
			return
		}
		delete(c.entries, other)
	}
}

func (c *cache) drop(k cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	delete(c.entries, k)
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	clear(c.entries)
}
