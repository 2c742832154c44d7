package management

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// KeySpec describes a new API key.
type KeySpec struct {
	Name      string
	Scopes    []godwit.Scope
	ExpiresAt time.Time // zero: never
	// Replaces is the key that the new one replaces. The new key has the same principal, so that a request repeated with
	// it counts as the same request. The old key works until it is revoked.
	Replaces godwit.KeyID
}

// Keys manages API keys.
type Keys struct {
	store keyStore
	cache *callerCache
	now   func() time.Time
}

// keyStore is the part of the store that Keys uses.
type keyStore interface {
	store.Keys
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
}

// Create creates an API key of a tenant and returns its token, which is not stored. A caller cannot grant a scope that it
// lacks, nor replace a key that has such a scope. A nil caller is the operator at the machine itself.
func (ks *Keys) Create(ctx context.Context, by *Caller, tenant godwit.TenantID, spec KeySpec) (*godwit.APIKey, string, error) {
	now := ks.now()
	if err := checkKeySpec(spec, now); err != nil {
		return nil, "", err
	}
	if err := mayGrant(by, spec.Scopes); err != nil {
		return nil, "", err
	}
	t, err := ks.store.Tenant(ctx, tenant)
	if err != nil {
		return nil, "", fmt.Errorf("find tenant: %w", err)
	}
	for i, s := range spec.Scopes {
		if t.Home && (s == godwit.ScopeAdmin || s == godwit.ScopeMetrics) {
			return nil, "", fieldError(fmt.Sprintf("scopes[%d]", i), "concerns the whole server, and cannot be a scope of an environment's key")
		}
	}
	token := godwit.MintToken()
	k := &godwit.APIKey{
		TenantID: tenant, Name: spec.Name, Hint: godwit.TokenHint(token), Hash: godwit.HashToken(token),
		Scopes: slices.Clone(spec.Scopes), CreatedAt: now, ExpiresAt: spec.ExpiresAt,
	}
	var makers []godwit.KeyID
	if !spec.Replaces.IsZero() {
		old, err := ks.replaced(ctx, by, tenant, spec.Replaces)
		if err != nil {
			return nil, "", err
		}
		k.Principal, makers = old.Principal, old.Makers
	}
	if by != nil {
		makers = slices.Concat(makers, by.Key.Makers, []godwit.KeyID{by.Key.Principal})
	}
	for _, m := range makers {
		if m != k.Principal && !slices.Contains(k.Makers, m) {
			k.Makers = append(k.Makers, m)
		}
	}
	if len(k.Makers) > godwit.MaxMakers {
		return nil, "", problem.LimitReached.With("too many keys made one another before this one; use an API key that was made earlier")
	}
	k, err = idempotency.Once(ctx, now,
		func(id godwit.KeyID) (*godwit.APIKey, error) { return nil, ks.revokeLost(ctx, tenant, id) },
		func(id godwit.KeyID) (*godwit.APIKey, error) {
			k.ID = id
			if spec.Replaces.IsZero() {
				k.Principal = id
			}
			return k, ks.store.CreateKey(ctx, k)
		})
	if err != nil {
		return nil, "", fmt.Errorf("create key: %w", err)
	}
	return k, token, nil
}

// revokeLost revokes the key that an interrupted request created, because its token is lost. It returns store.ErrNotFound, for
// the repeat must create another key.
func (ks *Keys) revokeLost(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) error {
	if err := idempotency.CheckHeld(ctx); err != nil {
		return err
	}
	if err := ks.store.RevokeKey(ctx, tenant, id, ks.now()); err != nil {
		return err
	}
	return store.ErrNotFound
}

// replaced finds the key to replace. The new key can fetch answers that the old one got, so the caller needs every scope
// of the old one.
func (ks *Keys) replaced(ctx context.Context, by *Caller, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error) {
	old, err := ks.store.Key(ctx, tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fieldError("replaces", "names no key of this tenant")
	}
	if err != nil {
		return nil, fmt.Errorf("find replaced key: %w", err)
	}
	if err := mayGrant(by, old.Scopes); err != nil {
		return nil, err
	}
	return old, nil
}

func mayGrant(by *Caller, scopes []godwit.Scope) error {
	if by == nil {
		return nil
	}
	for _, s := range scopes {
		// Metrics cover all tenants, so an admin may grant this scope without having it.
		if s == godwit.ScopeMetrics && by.Key.Has(godwit.ScopeAdmin) {
			continue
		}
		if !by.Key.Has(s) {
			return problem.Forbidden.With("the API key lacks the scope %q, so it cannot grant it", s)
		}
	}
	return nil
}

func checkKeySpec(spec KeySpec, now time.Time) error {
	errs := []error{checkName("name", spec.Name)}
	if len(spec.Scopes) == 0 {
		errs = append(errs, fieldError("scopes", "must name at least one of %v", godwit.AllScopes))
	}
	for i, s := range spec.Scopes {
		switch {
		case !slices.Contains(godwit.AllScopes, s):
			errs = append(errs, fieldError(fmt.Sprintf("scopes[%d]", i), "must be one of %v", godwit.AllScopes))
		case slices.Contains(spec.Scopes[:i], s):
			errs = append(errs, fieldError(fmt.Sprintf("scopes[%d]", i), "is named twice"))
		}
	}
	if !spec.ExpiresAt.IsZero() && !spec.ExpiresAt.After(now) {
		errs = append(errs, fieldError("expires_at", "must lie in the future"))
	}
	return errors.Join(errs...)
}

// Revoke ends a key at once on this node, and within half a second on others. A caller with the scope manage may revoke any
// key of the tenant except an admin's, which would lock out the operator of the server. A nil caller is the operator at
// the machine itself.
func (ks *Keys) Revoke(ctx context.Context, by *Caller, tenant godwit.TenantID, id godwit.KeyID) error {
	k, err := ks.store.Key(ctx, tenant, id)
	if err != nil {
		return fmt.Errorf("find key: %w", err)
	}
	if by != nil && k.Has(godwit.ScopeAdmin) && !by.Key.Has(godwit.ScopeAdmin) {
		return problem.Forbidden.With("the API key lacks the scope %q, so it cannot revoke a key that has it", godwit.ScopeAdmin)
	}
	if err := ks.store.RevokeKey(ctx, tenant, id, ks.now()); err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	ks.cache.dropKeyID(id) // those of its sessions too
	return nil
}

// Get returns a key of the tenant.
func (ks *Keys) Get(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error) {
	return ks.store.Key(ctx, tenant, id)
}

// List pages through a tenant's keys, including revoked ones.
func (ks *Keys) List(ctx context.Context, tenant godwit.TenantID, p store.Page) ([]godwit.APIKey, error) {
	return ks.store.ListKeys(ctx, tenant, p)
}
