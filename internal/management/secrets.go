package management

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/profile"
)

// Rotation limits.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
	// MaxLiveSecrets bounds the signatures on a request: every live secret signs.
	MaxLiveSecrets = 5
)

// An IssuedSecret is a new signing secret with its value, which is shown once.
type IssuedSecret struct {
	Secret godwit.Secret
	Value  string // empty when the public key is enough
	// OthersUntil is when the older secrets stop signing; zero for the first secret.
	OthersUntil time.Time
}

// A Rotation replaces an endpoint's signing secret.
type Rotation struct {
	Algorithm string // Defaults to that of the newest secret.
	// Overlap is how long the old secrets continue to sign beside the new one. Nil means DefaultOverlap.
	Overlap *time.Duration
	// Secret, if not empty, is the caller's own signing key, in the form in which the profile shows keys.
	Secret string
}

func (r *Service) live(secrets []godwit.Secret) int {
	n := 0
	for i := range secrets {
		if secrets[i].LiveAt(r.now()) {
			n++
		}
	}
	return n
}

// Secrets lists an endpoint's secrets. Their values stay sealed.
func (r *Service) Secrets(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) ([]godwit.Secret, error) {
	if _, err := r.store.Endpoint(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	return r.store.Secrets(ctx, tenant, id)
}

// checkAlgorithm returns the algorithm that a profile signs with: the given one, or its first.
func checkAlgorithm(prof profile.Profile, algorithm string) (string, error) {
	if algorithm == "" {
		return prof.Algorithms()[0], nil
	}
	if !profile.SupportsAlgorithm(prof, algorithm) {
		return "", fieldError("algorithm", "profile %q signs with one of %v", prof.Name(), prof.Algorithms())
	}
	return algorithm, nil
}

// givenKey reads the caller's own signing key; nil if there is none.
func givenKey(prof profile.Profile, algorithm, text string) (*profile.KeyMaterial, error) {
	if text == "" {
		return nil, nil
	}
	material, err := prof.ImportKey(algorithm, text)
	if err != nil {
		return nil, fieldError("secret", "%s", err)
	}
	return &material, nil
}

// issue makes a secret for the endpoint, from the given key or from a new one, and seals it.
func (r *Service) issue(e *godwit.Endpoint, prof profile.Profile, algorithm string, given *profile.KeyMaterial) (*IssuedSecret, error) {
	material := given
	if material == nil {
		made, err := prof.NewKey(algorithm)
		if err != nil {
			return nil, fmt.Errorf("make signing key: %w", err)
		}
		material = &made
	}
	now := r.now()
	s := godwit.Secret{
		ID: godwit.NewSecretID(now), EndpointID: e.ID, TenantID: e.TenantID, Algorithm: algorithm,
		PublicKey: material.Public, CreatedAt: now, NotBefore: now,
	}
	s.Sealed = r.ring.Seal(material.Secret, keyring.ForSecret(s.ID))
	if shown := material.Display; len(shown) > 4 {
		sum := sha256.Sum256([]byte(shown))
		s.Hash, s.Hint = hex.EncodeToString(sum[:]), shown[len(shown)-4:]
	}
	return &IssuedSecret{Secret: s, Value: material.Display}, nil
}
