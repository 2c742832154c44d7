package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Sessions keeps sign-in sessions and the links that make them. A session that has ended is no longer stored. Revoking a key ends its
// dashboard sessions and removes its links that were not used; deleting a tenant ends all of its sessions.
type Sessions interface {
	// CreateSession fails with ErrConflict when the id or the hash is taken.
	CreateSession(ctx context.Context, s *godwit.Session) error
	// SessionByHash returns the session, live or not; the caller checks LiveAt.
	SessionByHash(ctx context.Context, hash [32]byte) (*godwit.Session, error)
	Session(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) (*godwit.Session, error)
	// ListSessions leaves out sessions that have expired.
	ListSessions(ctx context.Context, f SessionFilter, p Page) ([]godwit.Session, error)
	// UseSession stores the time of the last use and the end of the idle time, unless later ones are stored. A missing session is not an error.
	UseSession(ctx context.Context, id godwit.SessionID, at, idleUntil time.Time) error
	// EndSession removes a session.
	EndSession(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) error
	// EndSessions removes the sessions that the filter selects, whether they have expired or not, and returns them. With Kind empty or PortalSession it
	// also removes the links that were not used.
	EndSessions(ctx context.Context, f SessionFilter) ([]godwit.Session, error)

	// CreateLink fails with ErrConflict when the id or the hash is taken.
	CreateLink(ctx context.Context, l *godwit.SignInLink) error
	// LinkByHash returns the link, usable or not.
	LinkByHash(ctx context.Context, hash [32]byte) (*godwit.SignInLink, error)
	Link(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (*godwit.SignInLink, error)
	// ListLinks lists the portal links of a tenant, used and expired ones too, until the sweep removes them.
	ListLinks(ctx context.Context, tenant godwit.TenantID, p Page) ([]godwit.SignInLink, error)
	// RedeemLink marks the link as used at s.CreatedAt and stores its session, in one step. It fails with ErrConflict when the link was used
	// before or has expired, and with ErrNotFound when there is none.
	RedeemLink(ctx context.Context, id godwit.LinkID, s *godwit.Session) error
	// RevokeLink removes a portal link and ends the session that was made from it. It returns that session, or nil.
	RevokeLink(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (*godwit.Session, error)
}

// A SessionFilter selects sessions of a tenant.
type SessionFilter struct {
	TenantID godwit.TenantID
	Kind     godwit.SessionKind // empty: any
	// SpareAdmins leaves out sessions with the scope admin.
	SpareAdmins bool
	Now         time.Time // when expired sessions are left out
}

// KeepLinks is how long the sweep leaves a link after it has expired, so that its second use can be told from an unknown code. It leaves a link whose
// session lives for longer.
const KeepLinks = 7 * 24 * time.Hour

// SessionDetail is the part of a session that stores keep as one document.
type SessionDetail struct {
	Name         string              `json:"name,omitempty"`
	UserID       godwit.UserID       `json:"user_id,omitzero"`
	User         string              `json:"user,omitempty"`
	Subject      string              `json:"subject,omitempty"`
	Scopes       []godwit.Scope      `json:"scopes,omitempty"`
	Capabilities []godwit.Capability `json:"capabilities,omitempty"`
	View         godwit.PortalView   `json:"view,omitzero"`
	Address      string              `json:"address,omitempty"`
	UserAgent    string              `json:"user_agent,omitempty"`
}

// DetailOfSession returns the document of a session.
func DetailOfSession(s *godwit.Session) SessionDetail {
	return SessionDetail{s.Name, s.UserID, s.User, s.Subject, s.Scopes, s.Capabilities, s.View, s.Address, s.UserAgent}
}

// Fill sets the members of a session.
func (d *SessionDetail) Fill(s *godwit.Session) {
	s.Name, s.UserID, s.User, s.Subject, s.Scopes, s.Capabilities = d.Name, d.UserID, d.User, d.Subject, d.Scopes, d.Capabilities
	s.View, s.Address, s.UserAgent = d.View, d.Address, d.UserAgent
}

// LinkDetail is the part of a link that stores keep as one document.
type LinkDetail struct {
	Name         string              `json:"name,omitempty"`
	Capabilities []godwit.Capability `json:"capabilities,omitempty"`
	View         godwit.PortalView   `json:"view,omitzero"`
	SessionLife  time.Duration       `json:"session_life,omitempty"`
}

// DetailOfLink returns the document of a link.
func DetailOfLink(l *godwit.SignInLink) LinkDetail {
	return LinkDetail{l.Name, l.Capabilities, l.View, l.SessionLife}
}

// Fill sets the members of a link.
func (d *LinkDetail) Fill(l *godwit.SignInLink) {
	l.Name, l.Capabilities, l.View, l.SessionLife = d.Name, d.Capabilities, d.View, d.SessionLife
}
