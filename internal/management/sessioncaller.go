package management

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

var errNoSession = problem.Unauthorized.With("the session is unknown or has ended; sign in again")

// AuthenticateSession returns the caller of a session's token: the one that its key would make, its user, or a portal. It is cached
// like the caller of a key. The session counts as used.
func (cs *Callers) AuthenticateSession(ctx context.Context, kind godwit.SessionKind, token string) (*Caller, error) {
	caller, err := cs.SeeSession(ctx, kind, token)
	if err == nil {
		cs.used(ctx, caller.Session, cs.now())
	}
	return caller, err
}

// SeeSession is AuthenticateSession without a use of the session, for requests that a page makes by itself and for requests that run for long.
func (cs *Callers) SeeSession(ctx context.Context, kind godwit.SessionKind, token string) (*Caller, error) {
	if !plausible(token) {
		return nil, errNoSession
	}
	if err := cs.fresh(ctx); err != nil {
		return nil, fmt.Errorf("look for ended sessions: %w", err)
	}
	hash, now := godwit.HashToken(token), cs.now()
	load := func() (*Caller, error) { return cs.loadSession(ctx, hash, now) }
	caller, err := cs.cache.get(callerKey{hash: hash}, now, load)
	if err == nil && caller.Session != nil && !caller.Session.LiveAt(now) {
		cs.cache.dropKey(hash) // another node may have stored a later use
		caller, err = cs.cache.get(callerKey{hash: hash}, now, load)
	}
	if err != nil {
		return nil, err
	}
	if caller.Session == nil || caller.Session.Kind != kind || !caller.Session.LiveAt(now) || !caller.Key.LiveAt(now) {
		return nil, errNoSession
	}
	return caller, nil
}

func (cs *Callers) loadSession(ctx context.Context, hash [32]byte, now time.Time) (*Caller, error) {
	s, err := cs.store.SessionByHash(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNoSession
	}
	if err != nil {
		return nil, fmt.Errorf("find session: %w", err)
	}
	if subtle.ConstantTimeCompare(s.Hash[:], hash[:]) != 1 || !s.LiveAt(now) {
		return nil, errNoSession
	}
	return cs.ofSession(ctx, s)
}

// ofSession makes the caller of a session.
func (cs *Callers) ofSession(ctx context.Context, s *godwit.Session) (*Caller, error) {
	t, err := cs.store.Tenant(ctx, s.TenantID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNoSession
	}
	if err != nil {
		return nil, fmt.Errorf("find tenant: %w", err)
	}
	caller := &Caller{Tenant: t, Session: s}
	switch {
	case s.Kind == godwit.PortalSession:
		// Routes are opened by capabilities. The executor of commands asks for scopes once more.
		caller.Key = &godwit.APIKey{ID: godwit.KeyID(s.ID), Principal: godwit.KeyID(s.ID), Scopes: []godwit.Scope{godwit.ScopeRead, godwit.ScopeManage}}
	case s.KeyID.IsZero():
		caller.Key = &godwit.APIKey{ID: godwit.KeyID(s.UserID), Principal: godwit.KeyID(s.UserID), Scopes: s.Scopes}
	default:
		if caller.Key, err = cs.store.Key(ctx, s.TenantID, s.KeyID); errors.Is(err, store.ErrNotFound) {
			return nil, errNoSession
		}
		if err != nil {
			return nil, fmt.Errorf("find key of a session: %w", err)
		}
		return caller, nil
	}
	caller.Key.TenantID, caller.Key.Name = s.TenantID, s.Name
	return caller, nil
}

const (
	useInterval = time.Minute     // between two writes of a session's last use, at most
	useTimeout  = 5 * time.Second // of such a write
)

// used stores that a session was used, unless a use was stored lately. A browser that breaks the request off does not prevent it.
func (cs *Callers) used(ctx context.Context, s *godwit.Session, now time.Time) {
	if now.Sub(s.LastUsedAt) < min(useInterval, cs.idle/10) {
		return
	}
	if _, under := cs.using.LoadOrStore(s.ID, true); under {
		return
	}
	defer cs.using.Delete(s.ID)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), useTimeout)
	defer cancel()
	if err := cs.store.UseSession(ctx, s.ID, now, now.Add(cs.idle)); err != nil {
		cs.log.Warn("last use of a session was not stored", "session", s.ID.String(), "error", err)
		return
	}
	cs.cache.dropSession(s.ID)
}
