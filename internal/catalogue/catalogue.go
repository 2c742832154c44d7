package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
	"github.com/godwit-hq/godwit/internal/jsonschema/compat"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Limits of a tenant's entries.
const (
	MaxTypes       = 1000
	MaxDescription = 1000 // characters
	MaxExample     = 64 << 10
	maxHistory     = 128 << 10 // bytes of all schema versions of a type; the oldest are dropped first
)

// Config holds a Catalogue's dependencies and settings.
type Config struct {
	Store store.EventTypes
	Now   func() time.Time
	// Fresh returns once this node has dropped the entries from its cache that another node changed more than half a second ago;
	// see package changes. Defaults to nothing.
	Fresh func(ctx context.Context) error
	// Changed is called after a tenant got or lost a type: callers hold the number of a tenant's types. Defaults to nothing.
	Changed func(tenant godwit.TenantID)
	// TTL is how long a cached entry is used without asking the store. Without Fresh, a change by another process takes that
	// long to reach this one. Defaults to 3 s.
	TTL time.Duration
	// CacheSize bounds the cached types of all tenants. Defaults to 4096.
	CacheSize int
}

// Catalogue manages the event types of tenants. It is safe for concurrent use.
type Catalogue struct {
	store   store.EventTypes
	now     func() time.Time
	cache   *cache
	fresh   func(context.Context) error
	changed func(godwit.TenantID)

	putting sync.Mutex // held between reading an entry and storing its next version
}

// New makes a Catalogue.
func New(cfg Config) (*Catalogue, error) {
	if cfg.Store == nil || cfg.Now == nil {
		return nil, errors.New("catalogue: store and now are required")
	}
	if cfg.Fresh == nil {
		cfg.Fresh = func(context.Context) error { return nil }
	}
	if cfg.Changed == nil {
		cfg.Changed = func(godwit.TenantID) {}
	}
	if cfg.TTL == 0 {
		cfg.TTL = 3 * time.Second
	}
	if cfg.CacheSize == 0 {
		cfg.CacheSize = 4096
	}
	return &Catalogue{
		store: cfg.Store, now: func() time.Time { return cfg.Now().Truncate(time.Microsecond) },
		fresh: cfg.Fresh, changed: cfg.Changed, cache: &cache{max: cfg.CacheSize, ttl: cfg.TTL, entries: map[cacheKey]*cached{}},
	}, nil
}

// A Draft is a tenant's description of an event type.
type Draft struct {
	Description string
	Deprecated  bool
	Example     json.RawMessage // nil: none
	Schema      json.RawMessage // nil keeps the schema in force
	// Compatibility is what later versions must keep to. Empty keeps what is in force; the first version defaults to none.
	Compatibility compat.Direction
	// Force stores a schema that is not compatible with the one in force.
	Force bool
}

// Put stores an entry. A schema that differs from the one in force becomes the next version. An entry that is as the draft describes it stays, and
// so does its version. made reports whether there was no entry before.
func (c *Catalogue) Put(ctx context.Context, tenant godwit.TenantID, name string, d Draft, m godwit.Match) (entry *godwit.EventType, made bool, err error) {
	if err := d.check(name); err != nil {
		return nil, false, err
	}
	c.putting.Lock()
	defer c.putting.Unlock()
	const tries = 50 // each further try means that another node changed the entry
	for try := 1; ; try++ {
		entry, err = c.store.EventType(ctx, tenant, name)
		if made = errors.Is(err, store.ErrNotFound); made {
			entry = &godwit.EventType{}
		} else if err != nil {
			return nil, false, fmt.Errorf("find event type: %w", err)
		}
		if !m.Holds(entry.Version) {
			return nil, false, problem.PreconditionFailed.With("the event type is not as the request expects: its version is %d", entry.Version)
		}
		stored := entry.Version
		entry, err = c.put(ctx, tenant, name, d, entry)
		if !errors.Is(err, store.ErrConflict) {
			return entry, made, err
		}
		// Another node may have changed the entry; if not, the name is taken.
		now, err := c.store.EventType(ctx, tenant, name)
		if try == tries || errors.Is(err, store.ErrNotFound) == made && (made || err == nil && now.Version == stored) {
			return nil, false, problem.Conflict.With("a type is either shared by an environment or a tenant's own: %q is the other already", name)
		}
	}
}

// put stores the next version of an entry; that of a new one is 0.
func (c *Catalogue) put(ctx context.Context, tenant godwit.TenantID, name string, d Draft, entry *godwit.EventType) (*godwit.EventType, error) {
	now := c.now()
	before := *entry
	before.Schemas = slices.Clone(entry.Schemas)
	if entry.Version == 0 {
		if err := c.room(ctx, tenant); err != nil {
			return nil, err
		}
		entry = &godwit.EventType{TenantID: tenant, Name: name, CreatedAt: now}
	}
	entry.Description, entry.Deprecated, entry.Example, entry.UpdatedAt = d.Description, d.Deprecated, d.Example, now
	if err := addVersion(entry, &d, now); err != nil {
		return nil, err
	}
	if err := fitExample(entry); err != nil {
		return nil, err
	}
	if unchanged(&before, entry) {
		return &before, nil
	}
	if err := c.store.PutEventType(ctx, entry); err != nil {
		return nil, fmt.Errorf("put event type: %w", err)
	}
	c.cache.drop(cacheKey{tenant, name})
	c.changed(tenant)
	return entry, nil
}

func (d *Draft) check(name string) error {
	if why := godwit.ValidEventType(name); why != "" {
		return &godwit.FieldError{Field: "name", Detail: why}
	}
	if utf8.RuneCountInString(d.Description) > MaxDescription || !utf8.ValidString(d.Description) {
		return &godwit.FieldError{Field: "description", Detail: fmt.Sprintf("must have at most %d characters", MaxDescription)}
	}
	for _, r := range d.Description {
		if unicode.IsControl(r) && r != '\n' {
			return &godwit.FieldError{Field: "description", Detail: "must not hold control characters"}
		}
	}
	if d.Compatibility != "" && !slices.Contains(compat.Directions, d.Compatibility) {
		return &godwit.FieldError{Field: "compatibility", Detail: fmt.Sprintf("must be one of %v", compat.Directions)}
	}
	if len(d.Example) > MaxExample {
		return &godwit.FieldError{Field: "example", Detail: fmt.Sprintf("must have at most %d bytes", MaxExample)}
	}
	return nil
}

// room returns an error if the tenant has too many types.
func (c *Catalogue) room(ctx context.Context, tenant godwit.TenantID) error {
	const page = 100 // entries may be large
	after := ""
	for n := 0; n < MaxTypes; n += page {
		list, err := c.store.ListEventTypes(ctx, tenant, after, page)
		if err != nil {
			return fmt.Errorf("count event types: %w", err)
		}
		if len(list) < page {
			return nil
		}
		after = list[len(list)-1].Name
	}
	return problem.LimitReached.With("the tenant has %d event types and may have no more", MaxTypes)
}

// unchanged reports whether an entry is as it was before a draft was laid over it.
func unchanged(before, after *godwit.EventType) bool {
	if before.Version == 0 || before.Description != after.Description || before.Deprecated != after.Deprecated ||
		before.SchemaVersion() != after.SchemaVersion() || len(before.Example) == 0 != (len(after.Example) == 0) {
		return false
	}
	if n := len(before.Schemas); n > 0 && before.Schemas[n-1].Compatibility != after.Schemas[len(after.Schemas)-1].Compatibility {
		return false
	}
	if len(before.Example) == 0 {
		return true
	}
	x, errX := jsonschema.Decode(before.Example)
	y, errY := jsonschema.Decode(after.Example)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// fitExample checks the example against the schema in force, because an example that the schema rejects would mislead
// producers.
func fitExample(entry *godwit.EventType) error {
	if entry.Example == nil {
		return nil
	}
	if _, err := jsonschema.Decode(entry.Example); err != nil {
		return &godwit.FieldError{Field: "example", Detail: err.Error()}
	}
	schema, err := inForce(entry)
	if err != nil || schema == nil {
		return err
	}
	var errs []error
	for _, f := range schema.Check(entry.Example) {
		errs = append(errs, &godwit.FieldError{Field: Join("example", f.Field), Detail: f.Detail})
	}
	return errors.Join(errs...)
}

// inForce compiles the last version of the schema; nil if there is none.
func inForce(entry *godwit.EventType) (*Schema, error) {
	if len(entry.Schemas) == 0 {
		return nil, nil
	}
	return Compile(entry.Schemas[len(entry.Schemas)-1].Schema)
}

// Join prefixes a field with its member.
func Join(member, field string) string {
	switch {
	case member == "":
		return field
	case field == "":
		return member
	}
	return member + "." + field
}

// Get returns an entry of the tenant, or else the one that its environment shares.
func (c *Catalogue) Get(ctx context.Context, t *godwit.Tenant, name string) (*godwit.EventType, error) {
	own, err := c.store.EventType(ctx, t.ID, name)
	if errors.Is(err, store.ErrNotFound) && !t.Home {
		return c.store.EventType(ctx, godwit.HomeOf(t.EnvironmentID), name)
	}
	return own, err
}

// List lists the entries of the tenant and those that its environment shares by name, starting after the given one.
func (c *Catalogue) List(ctx context.Context, t *godwit.Tenant, after string, limit int) ([]godwit.EventType, error) {
	list, err := c.store.ListEventTypes(ctx, t.ID, after, limit)
	if err != nil || t.Home {
		return list, err
	}
	shared, err := c.store.ListEventTypes(ctx, godwit.HomeOf(t.EnvironmentID), after, limit)
	if err != nil {
		return nil, err
	}
	list = append(list, shared...)
	slices.SortFunc(list, func(a, b godwit.EventType) int { return strings.Compare(a.Name, b.Name) })
	return list[:min(len(list), limit)], nil
}

// Delete removes an entry with all its versions, if it is as the request expects.
func (c *Catalogue) Delete(ctx context.Context, tenant godwit.TenantID, name string, m godwit.Match) error {
	err := c.store.DeleteEventType(ctx, tenant, name, m.Version)
	if errors.Is(err, store.ErrConflict) {
		return problem.PreconditionFailed.With("the event type has another version now; read it again")
	}
	if err != nil {
		return fmt.Errorf("delete event type: %w", err)
	}
	c.cache.drop(cacheKey{tenant, name})
	c.changed(tenant)
	return nil
}
