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
	// ScanEvents passes a tenant's events to fn, newest first, until fn returns false or it has passed scan.Limit. The event is valid during the call only.
	ScanEvents(ctx context.Context, scan EventScan, fn func(*ScannedEvent) bool) error
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

// EventScan says which events are scanned, and which of their members are read. Zero members do not narrow it.
type EventScan struct {
	TenantID     godwit.TenantID
	After        godwit.EventID // continue after this one, which is newer
	Since, Until time.Time      // created at or after, and before
	Bodies       bool           // read bodies, but those of events of other types
	Carried      bool           // read Carried
	Type         string         // a type or a pattern: events of other types are passed without their bodies
	Limit        int
}

// ScannedEvent has the members of an event that a scan compares.
type ScannedEvent struct {
	ID         godwit.EventID
	Type       string
	Key        []byte
	CreatedAt  time.Time
	Attributes []byte // a JSON object; nil if there are none
	Carried    []byte // godwit.Carried as JSON; nil if there is none
	Body       []byte
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
	// DeleteEventType fails with ErrNotFound when there is no such entry, and with ErrConflict when it has another version; 0 stands for any.
	DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string, version int64) error
}
