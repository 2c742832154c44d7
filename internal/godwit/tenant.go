package godwit

import "time"

// A Tenant owns an event bus: its events reach its own endpoints alone.
type Tenant struct {
	ID                    TenantID
	Name                  string
	RequireIdempotencyKey bool // ingest without Idempotency-Key is refused with 400 (decision 15)
	CreatedAt             time.Time
	DeletedAt             time.Time // zero while it lives
}
