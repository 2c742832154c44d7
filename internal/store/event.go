package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Events reads stored events.
type Events interface {
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	// ListEvents returns events without their bodies.
	ListEvents(ctx context.Context, f EventFilter, p Page) ([]godwit.Event, error)
	// EventsAfter lists events with their bodies by id, oldest first.
	EventsAfter(ctx context.Context, r EventRange) ([]godwit.Event, error)
}

// EventRange selects events of one tenant, oldest first. Zero members do not narrow it.
type EventRange struct {
	TenantID godwit.TenantID
	After    godwit.EventID // exclusive
	Before   godwit.EventID // exclusive
	Patterns []string       // any of them matches; empty: all types
	// Since and Until bound godwit.Event.Time, both inclusive.
	Since, Until time.Time
	Limit        int
	MaxBytes     int // bound on the sum of bodies; at least one event is returned; 0: no bound
}

// EventFilter narrows a list of one tenant's events. Zero members do not narrow it.
type EventFilter struct {
	TenantID godwit.TenantID
	Type     string // exact, or a pattern `prefix.*`
	Key      string // idempotency key
	Since    time.Time
	Until    time.Time
}

// EventTypes keeps each tenant's catalogue of event types.
type EventTypes interface {
	// PutEventType stores a new entry, or another version of one that is stored; CreatedAt does not change. A name is either shared by an
	// environment, as a type of its home tenant, or a tenant's own: a name that is both fails with ErrConflict, and so
	// does an entry whose stored version is not t.Version; a new entry has the version 0. It sets t.Version.
	PutEventType(ctx context.Context, t *godwit.EventType) error
	EventType(ctx context.Context, tenant godwit.TenantID, name string) (*godwit.EventType, error)
	// ListEventTypes lists entries by name, after the given name.
	ListEventTypes(ctx context.Context, tenant godwit.TenantID, after string, limit int) ([]godwit.EventType, error)
	// DeleteEventType fails with ErrNotFound when there is no such entry.
	DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string) error
}
