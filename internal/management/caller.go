package management

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// TenantHeader is the header field that names the tenant of a request, in every API.
const TenantHeader = "Godwit-Tenant"

// A Caller is an authenticated party. It is shared among requests and never changed.
type Caller struct {
	Key    *godwit.APIKey
	Tenant *godwit.Tenant // the tenant it acts for: its own, or another as an admin or for an environment
	Named  bool           // whether the request names the tenant
	// Session is the session that the request was made with; nil: an API key. A session that was not made from a key has a Key in memory alone, with
	// the scopes and the principal of its user or portal.
	Session *godwit.Session
}

// with returns the caller for a tenant that a request names.
func (c *Caller) with(t *godwit.Tenant) *Caller {
	return &Caller{Key: c.Key, Tenant: t, Named: true, Session: c.Session}
}

// hash identifies the caller's credential.
func (c *Caller) hash() [32]byte {
	if c.Session != nil {
		return c.Session.Hash
	}
	return c.Key.Hash
}

// Portal reports whether the caller is a portal session.
func (c *Caller) Portal() bool { return c.Session != nil && c.Session.Kind == godwit.PortalSession }

// Can reports whether the caller may do what the capability permits, beyond the route that admitted it. Keys and dashboard sessions may.
func (c *Caller) Can(capability godwit.Capability) bool {
	return !c.Portal() || c.Session.Can(capability)
}

// Principal is the caller's identity in records of commands: that of its key or user, or the portal session.
func (c *Caller) Principal() string {
	switch {
	case c.Portal():
		return c.Session.ID.String()
	case c.Session != nil && !c.Session.UserID.IsZero():
		return c.Session.UserID.String()
	}
	return c.Key.Principal.String()
}

// SessionID is the text of the session's id, or "".
func (c *Caller) SessionID() string {
	if c.Session == nil {
		return ""
	}
	return c.Session.ID.String()
}

// User is the name of the user at the identity provider, or "".
func (c *Caller) User() string {
	if c.Session == nil {
		return ""
	}
	return c.Session.User
}

// ForEnvironment reports whether the caller acts for an environment and not for one of its tenants.
func (c *Caller) ForEnvironment() bool { return c.Tenant.Home }

// Actor is the caller's name in records: its key, and its session if it has one.
func (c *Caller) Actor() string {
	switch {
	case c.Session == nil:
		return c.Key.ID.String()
	case c.Portal():
		return c.Session.ID.String()
	case !c.Session.UserID.IsZero():
		return c.Session.UserID.String() + "/" + c.Session.ID.String()
	}
	return c.Key.ID.String() + "/" + c.Session.ID.String()
}

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
	idle  time.Duration // of sessions
	using sync.Map      // ids of sessions whose use is being stored
	log   *slog.Logger
	// create creates a tenant that a request names, see godwit.EnvironmentSettings.
	create func(ctx context.Context, environment godwit.EnvironmentID, spec TenantSpec) (*godwit.Tenant, error)
}

// callerStore is the part of the store that Callers reads.
type callerStore interface {
	tenantFinder
	KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error)
	Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error)
	SessionByHash(ctx context.Context, hash [32]byte) (*godwit.Session, error)
	UseSession(ctx context.Context, id godwit.SessionID, at, idleUntil time.Time) error
	EnvironmentByUID(ctx context.Context, uid string) (*godwit.Environment, error)
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
	caller, err := cs.cache.get(callerKey{hash: hash}, now, func() (*Caller, error) {
		return cs.load(ctx, hash)
	})
	if err != nil {
		return nil, err
	}
	if caller.Session != nil || !caller.Key.LiveAt(now) {
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

// ActFor lets a caller act for a tenant that it names by id or uid: an admin for any tenant, a key of an environment for the tenants of that
// environment. A uid is looked up in the environment of the caller; if none has it, the environment makes tenants and so does the request, the tenant is
// created. The result is cached as long as the caller is.
func (cs *Callers) ActFor(ctx context.Context, c *Caller, named string, makes bool) (*Caller, error) {
	if !c.Tenant.Home {
		if named == c.Tenant.ID.String() {
			return c.with(c.Tenant), nil
		}
		if err := c.Need(godwit.ScopeAdmin); err != nil {
			return nil, err
		}
	}
	found, err := cs.cache.get(callerKey{c.hash(), c.Tenant.EnvironmentID, named}, cs.now(), func() (*Caller, error) {
		t, err := findTenant(ctx, cs.store, c.Tenant.EnvironmentID, named)
		if errors.Is(err, store.ErrNotFound) && makes && c.Tenant.MakesOthers && checkUID("", named) == nil {
			t, err = cs.create(ctx, c.Tenant.EnvironmentID, TenantSpec{UID: named, Name: named, Inherits: godwit.LentSettings})
			if errors.Is(err, problem.Conflict) || errors.Is(err, store.ErrConflict) { // another request was first
				t, err = findTenant(ctx, cs.store, c.Tenant.EnvironmentID, named)
			}
		}
		// What other environments have is not told.
		if errors.Is(err, store.ErrNotFound) || err == nil && t.EnvironmentID != c.Tenant.EnvironmentID && !c.Key.Has(godwit.ScopeAdmin) {
			if strings.ContainsAny(named, ",*") {
				return nil, problem.InvalidRequest.In(TenantHeader, "must name a tenant: several, or all, can be named where events are posted one by one")
			}
			return nil, noSuchTenant()
		}
		if err != nil {
			return nil, fmt.Errorf("find tenant: %w", err)
		}
		return c.with(t), nil
	})
	// An administrator that names an environment means its tenants: an id of another one is a mistake.
	if err == nil && c.Tenant.Home && found.Tenant.EnvironmentID != c.Tenant.EnvironmentID {
		return nil, noSuchTenant()
	}
	return found, err
}

func noSuchTenant() error {
	return problem.NotFound.With("there is no tenant with this id, and none of this environment with this uid")
}

// Enter lets an admin act for an environment that it names by id or uid. Any caller may name its own.
func (cs *Callers) Enter(ctx context.Context, c *Caller, named string) (*Caller, error) {
	id, err := godwit.ParseEnvironmentID(named)
	if err != nil {
		e, err := cs.store.EnvironmentByUID(ctx, named)
		if err != nil && c.Key.Has(godwit.ScopeAdmin) {
			return nil, fmt.Errorf("find environment: %w", err)
		}
		if err == nil {
			id = e.ID
		}
	}
	if !c.Key.Has(godwit.ScopeAdmin) {
		if id != c.Tenant.EnvironmentID {
			return nil, problem.Forbidden.With("the API key belongs to another environment")
		}
		return c, nil
	}
	home, err := cs.store.Tenant(ctx, godwit.HomeOf(id))
	if err != nil {
		return nil, fmt.Errorf("find environment: %w", err)
	}
	return &Caller{Key: c.Key, Tenant: home, Session: c.Session}, nil
}

// Forget makes the next request of a tenant's callers read the tenant again.
func (cs *Callers) Forget(tenant godwit.TenantID) { cs.cache.dropTenant(tenant) }

// Own returns the caller for the tenant that its key belongs to.
func (cs *Callers) Own(ctx context.Context, c *Caller) (*Caller, error) {
	if c.Tenant.ID == c.Key.TenantID {
		return c, nil
	}
	t, err := cs.store.Tenant(ctx, c.Key.TenantID)
	if err != nil {
		return nil, fmt.Errorf("find tenant of the key: %w", err)
	}
	return &Caller{Key: c.Key, Tenant: t, Session: c.Session}, nil
}

// findTenant finds a tenant by its id, or by its uid in an environment. A home is no tenant here.
func findTenant(ctx context.Context, s tenantFinder, environment godwit.EnvironmentID, named string) (t *godwit.Tenant, err error) {
	if id, malformed := godwit.ParseTenantID(named); malformed == nil {
		t, err = s.Tenant(ctx, id)
	} else {
		t, err = s.TenantByUID(ctx, environment, named)
	}
	if err == nil && t.Home {
		return nil, store.ErrNotFound
	}
	return t, err
}

// tenantFinder is the part of the store that findTenant reads.
type tenantFinder interface {
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	TenantByUID(ctx context.Context, environment godwit.EnvironmentID, uid string) (*godwit.Tenant, error)
}
