package godwit

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"time"
)

// SessionKind says what a session is for.
type SessionKind string

// The kinds of sessions.
const (
	DashboardSession SessionKind = "dashboard" // acts like the API key that it was made from
	PortalSession    SessionKind = "portal"    // acts for one tenant, within its capabilities
)

// Capability is a permission of a portal session.
type Capability string

// The capabilities. Each stands alone; none implies another.
const (
	ViewEndpoints   Capability = "view_endpoints"   // endpoints, their deliveries and attempts
	ManageEndpoints Capability = "manage_endpoints" // create, change, pause and delete endpoints
	ManageSecrets   Capability = "secrets"          // see, rotate and revoke signing secrets
	SendTests       Capability = "send_tests"       // test events and probes
	ViewPayloads    Capability = "view_payloads"    // events and their bodies
	Replay          Capability = "replay"           // deliver again
	ViewEventTypes  Capability = "event_types"      // the catalogue
)

// AllCapabilities lists every capability.
var AllCapabilities = []Capability{ViewEndpoints, ManageEndpoints, ManageSecrets, SendTests, ViewPayloads, Replay, ViewEventTypes}

// Needs returns the scopes that an API key must have to do all that the capability permits.
func (c Capability) Needs() []Scope {
	switch c {
	case ViewEndpoints, ViewPayloads, ViewEventTypes:
		return []Scope{ScopeRead}
	case ManageSecrets:
		return []Scope{ScopeRead, ScopeManage}
	}
	return []Scope{ScopeManage}
}

// A Session is a browser that has signed in. Its token is the value of a cookie; only the hash is stored.
type Session struct {
	ID   SessionID
	Kind SessionKind
	Hash [32]byte
	// TenantID is the tenant of the key, which may be the home of an environment, or the tenant of the portal.
	TenantID TenantID
	// KeyID is the key that a dashboard session acts like. It is zero for portals, and for users of an identity provider.
	KeyID KeyID
	// LinkID is the link that the session was made from; zero: none.
	LinkID LinkID
	Name   string // of the key, the user or the portal link
	// User is the user at an identity provider, if the session has one: its principal, its name in records, and the provider's name of it.
	UserID       UserID
	User         string
	Subject      string
	Scopes       []Scope // of a dashboard session: those of its key or user, which do not change
	Capabilities []Capability
	View         PortalView
	Address      string // from which it was made
	UserAgent    string
	CreatedAt    time.Time
	LastUsedAt   time.Time // written sparsely
	IdleUntil    time.Time // it ends then unless it is used before
	ExpiresAt    time.Time // it ends then in any case
}

// LiveAt reports whether the session may be used at the given time.
func (s *Session) LiveAt(now time.Time) bool {
	return now.Before(s.IdleUntil) && now.Before(s.ExpiresAt)
}

// Can reports whether a portal session has the capability.
func (s *Session) Can(c Capability) bool { return slices.Contains(s.Capabilities, c) }

// PortalView is how a portal session looks.
type PortalView struct {
	Theme          string `json:"theme,omitempty"` // light, dark or system
	ReturnURL      string `json:"return_url,omitempty"`
	StartPage      string `json:"start_page,omitempty"`
	HideNavigation bool   `json:"hide_navigation,omitempty"`
}

// A SignInLink makes one session. Its code is the secret part of a URL; only the hash is stored.
type SignInLink struct {
	ID   LinkID
	Kind SessionKind
	Hash [32]byte
	// TenantID is the tenant of the session to make.
	TenantID TenantID
	// KeyID is the key that made the link, and for a dashboard the key that the session acts like. Zero: the operator at the machine.
	KeyID        KeyID
	Name         string
	Capabilities []Capability
	View         PortalView
	SessionLife  time.Duration // of the session to make
	CreatedAt    time.Time
	ExpiresAt    time.Time
	UsedAt       time.Time // zero: not used
	SessionID    SessionID // that was made
}

// ParsePrincipal reads the text of a principal: that of a key, a user or a portal session.
func ParsePrincipal(text string) (KeyID, error) {
	if id, err := ParseID[userKind](text); err == nil {
		return KeyID(id), nil
	}
	if id, err := ParseID[sessionKind](text); err == nil {
		return KeyID(id), nil
	}
	return ParseKeyID(text)
}

const (
	sessionPrefix = "gds_"
	codePrefix    = "gdc_"
)

// MintSessionToken makes the value of a session's cookie.
func MintSessionToken() string { return mintSecret(sessionPrefix) }

// MintSignInCode makes the code of a sign-in link.
func MintSignInCode() string { return mintSecret(codePrefix) }

func mintSecret(prefix string) string {
	var b [32]byte
	rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}
