package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Endpoints keeps endpoints and their secrets.
type Endpoints interface {
	// CreateEndpoint stores an endpoint with its first secret, which may be nil. It fails with ErrConflict when the id, a
	// non-empty code or a non-empty uid is taken.
	CreateEndpoint(ctx context.Context, e *godwit.Endpoint, s *godwit.Secret) error
	// CreateEndpointWithin does the same unless the tenant has most endpoints already; then it fails with ErrLimit. Calls of one
	// tenant take turns, on whichever nodes they are made.
	CreateEndpointWithin(ctx context.Context, e *godwit.Endpoint, s *godwit.Secret, most int) error
	// UpdateEndpoint stores e if the stored version is e.Version-1, and fails with ErrConflict otherwise, or when the uid is taken. It fails with
	// ErrNotFound when the endpoint is deleted. Tenant, code, profile and creation time do not change.
	UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error
	// Endpoint returns an endpoint that is not deleted.
	Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	// EndpointByCode returns the endpoint with the code, unless it is deleted.
	EndpointByCode(ctx context.Context, tenant godwit.TenantID, code string) (*godwit.Endpoint, error)
	// EndpointByUID does the same with the uid.
	EndpointByUID(ctx context.Context, tenant godwit.TenantID, uid string) (*godwit.Endpoint, error)
	// ListEndpoints leaves out deleted endpoints.
	ListEndpoints(ctx context.Context, f EndpointFilter, p Page) ([]godwit.Endpoint, error)
	// LoadEndpoint returns one endpoint as the engine needs it, of any tenant and in any status.
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*LoadedEndpoint, error)
	// LoadEndpoints passes every endpoint that is not deleted to fn.
	LoadEndpoints(ctx context.Context, fn func(*LoadedEndpoint) error) error
	// LoadShards does the same with the endpoints of these shards.
	LoadShards(ctx context.Context, shards []int, fn func(*LoadedEndpoint) error) error
	// LoadChosen returns the endpoints with the ids that exist, as LoadEndpoint does.
	LoadChosen(ctx context.Context, ids []godwit.EndpointID) ([]*LoadedEndpoint, error)
	CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error)
	// Health returns an endpoint's health. It holds only the id if the endpoint has no outcomes yet.
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
	// ResetHealth clears failure counts, hold and circuit when an operator enables an endpoint again. Totals, the times of the
	// last outcomes, the last hour's counts and an announced sunset do not change.
	ResetHealth(ctx context.Context, id godwit.EndpointID, now time.Time) error

	// Secrets lists an endpoint's secrets, newest first, including expired ones. The keys of an environment are those of the tenant and endpoint
	// that HomeOf and KeysOf return.
	Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error)
	// PublicKeys lists secrets with a public key that have not expired at now, by ascending id after the given one. It leaves
	// out sealed values.
	PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error)
	// PublicKey returns one such secret, expired or not. It fails with ErrNotFound for a secret without a public key.
	PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error)
}

// Expiry says when an endpoint's older secrets end. A secret that ends earlier keeps its own end.
type Expiry struct {
	At   time.Time // zero: the older secrets do not change
	Keep int       // the newest Keep older secrets end at At, the others when the new one begins; 0: all end at At
}

// EndpointFilter narrows a list of the endpoints of one tenant, or of all tenants of an environment if that is given.
type EndpointFilter struct {
	TenantID    godwit.TenantID
	Environment godwit.EnvironmentID // not zero: TenantID does not count
	Status      godwit.EndpointStatus
	Text        string         // is part of the URL, the uid or the description, in any case of ASCII letters; empty: any
	Health      EndpointHealth // of active endpoints; empty: any
}

// EndpointHealth is how an active endpoint does, as a Backlog counts it.
type EndpointHealth string

// The health of active endpoints.
const (
	HealthHealthy EndpointHealth = "healthy"
	HealthFailing EndpointHealth = "failing"
	HealthOpen    EndpointHealth = "open"
)

// LoadedEndpoint is everything the engine knows about an endpoint.
type LoadedEndpoint struct {
	Endpoint godwit.Endpoint
	Secrets  []godwit.Secret
	Health   godwit.Health
	Account  string // code of its tenant
	Test     bool   // the environment of its tenant is not live
	// Environment is that of its tenant, if the environment signs; zero otherwise.
	Environment godwit.EnvironmentID
}
