package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Tenants keeps tenants.
type Tenants interface {
	// CreateTenant fails with ErrConflict when the id or a non-empty code is taken.
	CreateTenant(ctx context.Context, t *godwit.Tenant) error
	// UpdateTenant changes name and settings.
	UpdateTenant(ctx context.Context, t *godwit.Tenant) error
	// Tenant returns a tenant that is not deleted.
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	// ListTenants leaves out deleted tenants.
	ListTenants(ctx context.Context, p Page) ([]godwit.Tenant, error)
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
