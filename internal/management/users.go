package management

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Seat is a place where a user of an identity provider may act, and what the user may do there. A session is in one seat.
type Seat struct {
	Tenant      *godwit.Tenant // the home of the environment, for an environment or the server
	Environment *godwit.Environment
	Scopes      []godwit.Scope
}

// FindSeat returns the seat at a tenant, an environment (without a tenant), or the server (without either). It fails with store.ErrNotFound if there is none.
func (ss *Sessions) FindSeat(ctx context.Context, environment, tenant string, scopes []godwit.Scope) (*Seat, error) {
	s := &Seat{Scopes: scopes}
	var err error
	if environment == "" {
		environment = godwit.DefaultEnvironment.String()
	}
	if s.Environment, err = ss.environments.Get(ctx, environment); err != nil {
		return nil, fmt.Errorf("find environment: %w", err)
	}
	if tenant == "" {
		s.Tenant, err = ss.store.Tenant(ctx, godwit.HomeOf(s.Environment.ID))
	} else {
		s.Tenant, err = findTenant(ctx, ss.store, s.Environment.ID, tenant)
	}
	if err == nil && s.Tenant.EnvironmentID != s.Environment.ID {
		err = store.ErrNotFound // an id of another environment
	}
	if err != nil {
		return nil, fmt.Errorf("find tenant: %w", err)
	}
	return s, nil
}

// SeatAt returns the seat at a tenant, which may be the home of an environment.
func (ss *Sessions) SeatAt(ctx context.Context, tenant godwit.TenantID, scopes []godwit.Scope) (*Seat, error) {
	t, err := ss.store.Tenant(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("find tenant: %w", err)
	}
	e, err := ss.environments.Get(ctx, t.EnvironmentID.String())
	if err != nil {
		return nil, fmt.Errorf("find environment: %w", err)
	}
	return &Seat{Tenant: t, Environment: e, Scopes: scopes}, nil
}

// SignInUser makes a session of a user in a seat, and returns its token, which is not stored.
func (ss *Sessions) SignInUser(ctx context.Context, u godwit.User, tenant godwit.TenantID, scopes []godwit.Scope, life time.Duration, v Visitor) (*Caller, string, error) {
	if u.ID.IsZero() || len(scopes) == 0 {
		return nil, "", errors.New("sign in user: the user or the scopes are missing")
	}
	s := &godwit.Session{
		Kind: godwit.DashboardSession, TenantID: tenant, Name: u.Name, UserID: u.ID, User: u.Name, Subject: u.Subject, Scopes: slices.Clone(scopes),
	}
	return ss.begin(ctx, s, life, v, func() error { return ss.store.CreateSession(ctx, s) })
}

// Supersede ends the session that a browser had before it signed in anew. That it has ended already is no error.
func (ss *Sessions) Supersede(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) error {
	if id.IsZero() {
		return nil
	}
	if err := ss.store.EndSession(ctx, tenant, id); err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("end session: %w", err)
	}
	ss.callers.cache.dropSession(id)
	return nil
}
