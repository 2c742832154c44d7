package godwit

import (
	"encoding/json"
	"time"
)

// An EventType is an entry of a tenant's catalogue: the meaning and the schemas of a type of events.
type EventType struct {
	TenantID    TenantID
	Name        string // exact type, as in order.created
	Description string
	Deprecated  bool
	Example     json.RawMessage // a payload; nil when there is none
	Schemas     []EventSchema   // oldest first; the last one is in force
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// An EventSchema is one version of a type's JSON Schema.
type EventSchema struct {
	Version   int             `json:"version"` // from 1
	Schema    json.RawMessage `json:"schema"`
	CreatedAt time.Time       `json:"created_at"`
	// Compatibility is what the next version must keep to: backward, forward, full; none or empty is nothing.
	Compatibility string `json:"compatibility,omitempty"`
}
