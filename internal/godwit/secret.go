package godwit

import "time"

// A Secret is a signing key of an endpoint. Several may be live at once, so that a receiver can switch without a gap.
// Every live secret signs.
type Secret struct {
	ID         SecretID
	EndpointID EndpointID
	TenantID   TenantID
	Algorithm  string // hmac-sha256 | ed25519
	Sealed     []byte // the key, encrypted
	PublicKey  []byte // ed25519 only
	CreatedAt  time.Time
	NotBefore  time.Time // zero: since CreatedAt
	ExpiresAt  time.Time // zero: no end
	Hash       string    // hex SHA-256 of the value shown to the owner; distinguishes secrets without revealing them (CCW-SEC-5)
	Hint       string    // its last four characters (CCW-SEC-6)
}

// The signature algorithms.
const (
	AlgorithmHMAC    = "hmac-sha256"
	AlgorithmEd25519 = "ed25519"
)

// Begins returns when the secret starts to sign.
func (s *Secret) Begins() time.Time {
	if s.NotBefore.IsZero() {
		return s.CreatedAt
	}
	return s.NotBefore
}

// LiveAt reports whether the secret signs at the given time.
func (s *Secret) LiveAt(now time.Time) bool {
	return !now.Before(s.NotBefore) && (s.ExpiresAt.IsZero() || now.Before(s.ExpiresAt))
}
