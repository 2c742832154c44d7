package management

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Caller is an authenticated party. It is shared among requests and never changed.
type Caller struct {
	Key    *godwit.APIKey
	Tenant *godwit.Tenant // the tenant it acts for: its own, or another as an admin
}

// Actor is the caller's name in records.
func (c *Caller) Actor() string { return c.Key.ID.String() }

// Need refuses a caller that has none of the scopes.
func (c *Caller) Need(anyOf ...godwit.Scope) error {
	for _, s := range anyOf {
		if c.Key.Has(s) {
			return nil
		}
	}
	names := make([]string, len(anyOf))
	for i, s := range anyOf {
		names[i] = string(s)
	}
	return problem.Forbidden.With("this operation needs an API key with the scope %s", strings.Join(names, " or "))
}

// Callers finds out who sends a request, and for which tenant.
type Callers struct {
	store callerStore
	cache *callerCache
	now   func() time.Time
	fresh func(context.Context) error
}

// callerStore is the part of the store that Callers reads.
type callerStore interface {
	KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error)
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
}

var errUnauthorized = problem.Unauthorized.With("the API key is missing, unknown, expired or revoked")

// Authenticate returns the caller of a token. It reads the store if the key was not used for a few seconds, or if the node has
// not looked for changes for half a second; every other request costs only a hash and a map lookup.
func (cs *Callers) Authenticate(ctx context.Context, token string) (*Caller, error) {
	if !plausible(token) {
		return nil, errUnauthorized
	}
	if err := cs.fresh(ctx); err != nil {
		return nil, fmt.Errorf("look for changed keys: %w", err)
	}
	hash := godwit.HashToken(token)
	now := cs.now()
	caller, err := cs.cache.get(hash, now, func() (*Caller, error) {
		return cs.load(ctx, hash)
	})
	if err != nil {
		return nil, err
	}
	if !caller.Key.LiveAt(now) {
		return nil, errUnauthorized
	}
	return caller, nil
}

// plausible reports whether a text can be a token. Other texts cost no read of the store.
func plausible(token string) bool { return len(token) >= 20 && len(token) <= 100 }

func (cs *Callers) load(ctx context.Context, hash [32]byte) (*Caller, error) {
	k, err := cs.store.KeyByHash(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errUnauthorized
	}
	if err != nil {
		return nil, fmt.Errorf("find key: %w", err)
	}
	if subtle.ConstantTimeCompare(k.Hash[:], hash[:]) != 1 {
		return nil, errUnauthorized
	}
	t, err := cs.store.Tenant(ctx, k.TenantID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errUnauthorized
	}
	if err != nil {
		return nil, fmt.Errorf("find tenant: %w", err)
	}
	return &Caller{Key: k, Tenant: t}, nil
}

// ActFor lets an admin act for another tenant.
func (cs *Callers) ActFor(ctx context.Context, c *Caller, tenant godwit.TenantID) (*Caller, error) {
	if tenant == c.Tenant.ID {
		return c, nil
	}
	if err := c.Need(godwit.ScopeAdmin); err != nil {
		return nil, err
	}
	t, err := cs.store.Tenant(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("find tenant: %w", err)
	}
	return &Caller{Key: c.Key, Tenant: t}, nil
}
