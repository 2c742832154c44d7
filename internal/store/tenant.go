package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Tenants keeps tenants.
type Tenants interface {
	// CreateTenant fails with ErrConflict when the id, a non-empty code or a non-empty uid is taken, and with ErrNotFound when
	// there is no such environment. It sets t.EnvironmentID and t.Version if they are zero, to godwit.DefaultEnvironment and 1.
	CreateTenant(ctx context.Context, t *godwit.Tenant) error
	// UpdateTenant changes uid, name and settings, and raises the version. It fails with ErrConflict when the stored version is not
	// t.Version, or when the uid is taken. It sets t.Version.
	UpdateTenant(ctx context.Context, t *godwit.Tenant) error
	// Tenant returns a tenant that is not deleted, with the settings that its environment lends it.
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	TenantByUID(ctx context.Context, environment godwit.EnvironmentID, uid string) (*godwit.Tenant, error)
	// ListTenants leaves out deleted tenants and homes of environments.
	ListTenants(ctx context.Context, f TenantFilter, p Page) ([]godwit.Tenant, error)
	// TenantsHealth returns how the tenants do, in their order. It counts up to upTo waiting deliveries of each.
	TenantsHealth(ctx context.Context, tenants []godwit.TenantID, upTo int) ([]TenantHealth, error)
}

// A TenantFilter selects tenants.
type TenantFilter struct {
	Environment godwit.EnvironmentID // zero: those of all environments
	Text        string               // is part of the name or the uid, in any case of ASCII letters; empty: any
}

// TenantHealth is how a tenant's endpoints do.
type TenantHealth struct {
	TenantID       godwit.TenantID
	Backlog                  // without OldestAt; its Waiting is bounded
	LastAcceptedAt time.Time // when an endpoint last accepted a delivery; zero: none has
}

// Keys keeps API keys.
type Keys interface {
	// CreateKey fails with ErrConflict when the id or the hash is taken.
	CreateKey(ctx context.Context, k *godwit.APIKey) error
	Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error)
	// KeyByHash returns the key, live or not; the caller checks LiveAt.
	KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error)
	ListKeys(ctx context.Context, tenant godwit.TenantID, p Page) ([]godwit.APIKey, error)
	// RevokeKey keeps the first revocation time when it is repeated.
	RevokeKey(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID, now time.Time) error
}

// Idempotency keeps the records of management requests, which run outside a Commit.
type Idempotency interface {
	// Reserve inserts r, which has no response yet, in one atomic step (IKH K-15). If a record with its ID exists that has not
	// expired at r.CreatedAt, Reserve returns that record instead. If an expired one has the same fingerprint and no response,
	// its request may have had its effect: Reserve takes it over and sets r.CreatedAt to the time at which it was first reserved.
	Reserve(ctx context.Context, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error)
	// Complete stores the response and the end of the window. Like Interrupt and Forget, it changes only the record with the ID and
	// the ExpiresAt of held: after the lease, the key may belong to another request. It fails with ErrNotFound if there is none.
	Complete(ctx context.Context, held *godwit.IdempotencyRecord, resp *godwit.StoredResponse, expires time.Time) error
	// Interrupt ends the lease at now, and leaves the record. A missing record is not an error.
	Interrupt(ctx context.Context, held *godwit.IdempotencyRecord, now time.Time) error
	// Forget frees the key. A missing record is not an error.
	Forget(ctx context.Context, held *godwit.IdempotencyRecord) error
	// Recorded returns the record that has not expired at now, or ErrNotFound.
	Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error)
}

// Notices keeps messages for operators.
type Notices interface {
	ListNotices(ctx context.Context, tenant godwit.TenantID, openOnly bool, p Page) ([]godwit.Notice, error)
	// AcknowledgeNotice keeps the first acknowledgement when it is repeated.
	AcknowledgeNotice(ctx context.Context, tenant godwit.TenantID, id godwit.NoticeID, by string, now time.Time) (*godwit.Notice, error)
}
