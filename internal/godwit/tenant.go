package godwit

import "time"

// A Tenant owns an event bus: its events reach its own endpoints alone.
type Tenant struct {
	ID                    TenantID
	Code                  string // six characters, unique: what ACC-XXXXXX-X is made of (decision 6)
	Name                  string
	RequireIdempotencyKey bool       // ingest without Idempotency-Key is refused with 400 (decision 15)
	AlertEmails           []string   // who is told of dead letters, degraded and disabled endpoints
	Validation            Validation // whether events are held against the catalogue of event types
	CreatedAt             time.Time
	DeletedAt             time.Time // zero while it lives
}

// Validation says whether an event that does not fit the tenant's catalogue of event types is refused.
type Validation string

// The degrees. Events that come by a dialect's own ingest route are always held against that dialect's schemas.
const (
	ValidateNone   Validation = ""       // anything goes
	ValidateKnown  Validation = "known"  // types with a schema must fit it
	ValidateStrict Validation = "strict" // and types that are not in the catalogue are refused
)
