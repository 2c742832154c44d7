package godwit

import (
	"crypto/sha256"
	"slices"
	"time"
)

// Scope is a permission of an API key.
type Scope string

// The scopes. Each stands alone; none implies another.
const (
	ScopeIngest Scope = "ingest" // post events
	ScopeRead   Scope = "read"   // read all data of the tenant
	ScopeManage Scope = "manage" // change the tenant's endpoints, deliveries and keys
	ScopeAdmin  Scope = "admin"  // tenants, and keys of any tenant
	ScopeAudit  Scope = "audit"  // read and export the evidence of commands

	// ScopeMetrics permits only reading /metrics, which covers all tenants.
	ScopeMetrics Scope = "metrics"
)

// AllScopes lists every scope.
var AllScopes = []Scope{ScopeIngest, ScopeRead, ScopeManage, ScopeAdmin, ScopeAudit, ScopeMetrics}

// An APIKey is a credential of a tenant. The token is shown once, at creation; only its hash is stored.
type APIKey struct {
	ID       KeyID
	TenantID TenantID
	// Principal is the identity that scopes idempotency. A key that replaces another keeps its principal, so that after a
	// rotation a retry is not a new request (EDS-KEY-6).
	Principal KeyID
	Name      string
	Hint      string // first characters of the token, to tell keys apart
	Hash      [32]byte
	Scopes    []Scope
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: live
	// Makers are the principals that made the key: its creator, the creator of that one's key, and so on. A maker has seen
	// the token of every key that it made. Makers is empty for a key that the operator made at the machine, and for keys
	// older than this record.
	Makers []KeyID
}

// MaxMakers limits the chain of makers between a key and one that the operator made.
const MaxMakers = 32

// Has reports whether the key carries the scope.
func (k *APIKey) Has(s Scope) bool { return slices.Contains(k.Scopes, s) }

// LiveAt reports whether the key may be used at the given time.
func (k *APIKey) LiveAt(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

const tokenPrefix = "gdw_"

// MintToken makes the text of a new API key. It has 256 random bits, so a plain hash of it can be stored safely.
func MintToken() string { return mintSecret(tokenPrefix) }

// HashToken returns the hash that the store keeps of a token.
func HashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// TokenHint is the part of a token that may be shown again.
func TokenHint(token string) string {
	if len(token) < len(tokenPrefix)+4 {
		return ""
	}
	return token[:len(tokenPrefix)+4]
}
