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
	Version     int64 // counts changes, from 1
}

// SchemaVersion returns the version of the schema in force; 0 if there is none.
func (t *EventType) SchemaVersion() int {
	if len(t.Schemas) == 0 {
		return 0
	}
	return t.Schemas[len(t.Schemas)-1].Version
}

// An EventSchema is one version of a type's JSON Schema.
type EventSchema struct {
	Version   int             `json:"version"` // from 1
	Schema    json.RawMessage `json:"schema"`
	CreatedAt time.Time       `json:"created_at"`
	// Compatibility is what the next version must keep to: backward, forward, full; none or empty is nothing.
	Compatibility string `json:"compatibility,omitempty"`
}
