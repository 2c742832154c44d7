package management

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Sessions lets browsers sign in, and ends their sessions.
type Sessions struct {
	store        sessionStore
	callers      *Callers
	environments *Environments
	now          func() time.Time
	idle         time.Duration
	lifetime     time.Duration
}

// sessionStore is the part of the store that Sessions uses.
type sessionStore interface {
	store.Sessions
	tenantFinder
}

// A Visitor is a browser that signs in.
type Visitor struct {
	Address   string
	UserAgent string
}

const maxUserAgent = 300

var errUnknownCode = problem.Unauthorized.With("the code of the link is unknown; ask for a new link")

// SignIn makes a session that acts like an API key, and returns its token, which is not stored.
func (ss *Sessions) SignIn(ctx context.Context, key string, v Visitor) (*Caller, string, error) {
	by, err := ss.callers.Authenticate(ctx, key)
	if err != nil {
		return nil, "", err
	}
	s := &godwit.Session{Kind: godwit.DashboardSession, TenantID: by.Key.TenantID, KeyID: by.Key.ID, Name: by.Key.Name, Scopes: by.Key.Scopes}
	return ss.begin(ctx, s, ss.lifetime, v, func() error { return ss.store.CreateSession(ctx, s) })
}

// Redeem makes the session of a link, once. environment is that of the portal in which the link is opened: in another one than its own it is refused, and stays good.
func (ss *Sessions) Redeem(ctx context.Context, kind godwit.SessionKind, environment godwit.EnvironmentID, code string, v Visitor) (*Caller, string, error) {
	if !plausible(code) {
		return nil, "", errUnknownCode
	}
	hash := godwit.HashToken(code)
	l, err := ss.store.LinkByHash(ctx, hash)
	if errors.Is(err, store.ErrNotFound) || err == nil && (subtle.ConstantTimeCompare(l.Hash[:], hash[:]) != 1 || l.Kind != kind) {
		return nil, "", errUnknownCode
	}
	if err != nil {
		return nil, "", fmt.Errorf("find sign-in link: %w", err)
	}
	switch {
	case !l.UsedAt.IsZero():
		return nil, "", problem.CodeUsed.With("the link was used at %s; ask for a new one", l.UsedAt.UTC().Format(time.RFC3339))
	case !ss.now().Before(l.ExpiresAt):
		return nil, "", problem.CodeExpired.With("the link expired at %s; ask for a new one", l.ExpiresAt.UTC().Format(time.RFC3339))
	}
	s := &godwit.Session{Kind: l.Kind, TenantID: l.TenantID, LinkID: l.ID, Name: l.Name, Capabilities: l.Capabilities, View: l.View}
	life := l.SessionLife
	if l.Kind == godwit.DashboardSession {
		s.KeyID, life = l.KeyID, ss.lifetime
	}
	if kind == godwit.PortalSession {
		t, err := ss.store.Tenant(ctx, l.TenantID)
		if err != nil {
			return nil, "", fmt.Errorf("find tenant of a link: %w", err)
		}
		if t.EnvironmentID != environment {
			return nil, "", problem.Forbidden.With("the link opens the portal of another environment; open it as it is")
		}
	}
	return ss.begin(ctx, s, life, v, func() error {
		err := ss.store.RedeemLink(ctx, l.ID, s)
		if errors.Is(err, store.ErrConflict) {
			return problem.CodeUsed.With("the link was used at this moment by another request; ask for a new one")
		}
		if errors.Is(err, store.ErrNotFound) {
			return errUnknownCode
		}
		return err
	})
}

// begin completes a session and stores it. The caller tells whether the key and the tenant still allow it.
func (ss *Sessions) begin(ctx context.Context, s *godwit.Session, life time.Duration, v Visitor, save func() error) (*Caller, string, error) {
	now, token := ss.now(), godwit.MintSessionToken()
	s.ID, s.Hash = godwit.NewSessionID(now), godwit.HashToken(token)
	s.Address, s.UserAgent = v.Address, clipText(v.UserAgent, maxUserAgent)
	s.CreatedAt, s.LastUsedAt, s.ExpiresAt = now, now, now.Add(life)
	s.IdleUntil = s.ExpiresAt
	if idle := now.Add(ss.idle); idle.Before(s.ExpiresAt) {
		s.IdleUntil = idle
	}
	caller, err := ss.callers.ofSession(ctx, s)
	if err != nil {
		return nil, "", err
	}
	if !caller.Key.LiveAt(now) {
		return nil, "", errUnauthorized
	}
	if !s.KeyID.IsZero() {
		s.Name, s.Scopes = caller.Key.Name, caller.Key.Scopes
	}
	if err := save(); err != nil {
		return nil, "", fmt.Errorf("store session: %w", err)
	}
	return caller, token, nil
}

// clipText shortens a text that a client sent, and makes it valid UTF-8.
func clipText(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

// Life of the links that sign in to the dashboard.
const (
	SignInLinkLife = 5 * time.Minute
	DevLinkLife    = time.Hour // of `godwit dev`, which prints an API key beside it
)

// Link makes a link that signs in to the dashboard as an API key, and returns its code, which is not stored.
func (ss *Sessions) Link(ctx context.Context, key *godwit.APIKey, life time.Duration) (*godwit.SignInLink, string, error) {
	now, code := ss.now(), godwit.MintSignInCode()
	l := &godwit.SignInLink{
		ID: godwit.NewLinkID(now), Kind: godwit.DashboardSession, Hash: godwit.HashToken(code), TenantID: key.TenantID, KeyID: key.ID, Name: key.Name,
		CreatedAt: now, ExpiresAt: now.Add(life),
	}
	if err := ss.store.CreateLink(ctx, l); err != nil {
		return nil, "", fmt.Errorf("create sign-in link: %w", err)
	}
	return l, code, nil
}

// Get returns a session of the tenant.
func (ss *Sessions) Get(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) (*godwit.Session, error) {
	s, err := ss.store.Session(ctx, tenant, id)
	if err == nil && !s.LiveAt(ss.now()) {
		return nil, store.ErrNotFound
	}
	return s, err
}

// List pages through the sessions of a tenant that have not ended.
func (ss *Sessions) List(ctx context.Context, tenant godwit.TenantID, kind godwit.SessionKind, p store.Page) ([]godwit.Session, error) {
	return ss.store.ListSessions(ctx, store.SessionFilter{TenantID: tenant, Kind: kind, Now: ss.now()}, p)
}

// End ends a session at once on this node, and within half a second on others. As with keys, a caller without the scope admin cannot end the
// session of one with it. Every session may end itself.
func (ss *Sessions) End(ctx context.Context, by *Caller, id godwit.SessionID) error {
	tenant := by.Tenant.ID
	own := by.Session != nil && by.Session.ID == id
	if own {
		tenant = by.Session.TenantID
	}
	s, err := ss.store.Session(ctx, tenant, id)
	if err != nil {
		return fmt.Errorf("find session: %w", err)
	}
	if !own && slices.Contains(s.Scopes, godwit.ScopeAdmin) && !by.Key.Has(godwit.ScopeAdmin) {
		return problem.Forbidden.With("the caller lacks the scope %q, so it cannot end a session that has it", godwit.ScopeAdmin)
	}
	if err := ss.store.EndSession(ctx, tenant, id); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	ss.callers.cache.dropSession(id)
	return nil
}

// EndAll ends the sessions of the caller's tenant, and for portals removes links that were not used. It returns how many sessions ended. A caller without the
// scope admin leaves the sessions of those with it.
func (ss *Sessions) EndAll(ctx context.Context, by *Caller, kind godwit.SessionKind) (int, error) {
	ended, err := ss.store.EndSessions(ctx, store.SessionFilter{TenantID: by.Tenant.ID, Kind: kind, SpareAdmins: !by.Key.Has(godwit.ScopeAdmin)})
	if err != nil {
		return 0, fmt.Errorf("end sessions: %w", err)
	}
	for i := range ended {
		ss.callers.cache.dropSession(ended[i].ID)
	}
	return len(ended), nil
}
