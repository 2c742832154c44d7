package godwit

import "time"

// A Tenant owns an event bus: only its own endpoints receive its events.
type Tenant struct {
	ID                    TenantID
	EnvironmentID         EnvironmentID
	UID                   string // chosen by the caller, unique in the environment; empty: none
	Home                  bool   // stands for its environment, see Environment
	Code                  string // six characters, unique; part of ACC-XXXXXX-X (decision 6)
	Name                  string
	RequireIdempotencyKey bool       // ingest without Idempotency-Key is refused with 400 (decision 15)
	AlertEmails           []string   // addresses for alerts about dead letters, degraded and disabled endpoints
	Validation            Validation // whether events are validated against the catalogue of event types
	Inherits              []Setting  // settings that the tenant has from its environment; the members hold the environment's values
	Test                  bool       // its environment is not live
	EndpointProfile       string     // of new endpoints that name none; from its environment, empty: the server's default
	EndpointPolicy        PolicyOverrides
	EndpointSigning       Signing
	MakesOthers           bool  // its environment lets requests create the tenants that they name
	KeepEvents            int64 // see EnvironmentSettings
	KeepDeadLetters       int64
	Limits                TenantLimits
	OwnTypes              int   // number of event types of its own
	Version               int64 // counts changes, from 1
	CreatedAt             time.Time
	DeletedAt             time.Time // zero while it lives
}

// Validation says whether an event that does not match the tenant's catalogue of event types is refused.
type Validation string

// The degrees. Events on a dialect's own ingest route are always validated against that dialect's schemas.
const (
	ValidateNone   Validation = ""       // all events are accepted
	ValidateKnown  Validation = "known"  // events of a type with a schema must match it
	ValidateStrict Validation = "strict" // also, types that are not in the catalogue are refused
)
