package management

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// An IssuedSecret is a new signing secret with its value, which is shown once.
type IssuedSecret struct {
	Secret godwit.Secret
	Value  string // empty when the public key is enough
	// OthersUntil is when the older secrets stop signing; zero for the first secret.
	OthersUntil time.Time
}

// Secrets manages the signing secrets of endpoints. Package builtincommand stores rotations and revocations as commands.
type Secrets struct {
	store secretStore
	ring  *keyring.Ring
	now   func() time.Time
	scale godwit.TimeScale
}

// secretStore is the part of the store that Secrets reads.
type secretStore interface {
	Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	Secrets(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) ([]godwit.Secret, error)
}

// List lists an endpoint's secrets. Their values stay sealed.
func (ss *Secrets) List(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) ([]godwit.Secret, error) {
	if _, err := ss.store.Endpoint(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	return ss.store.Secrets(ctx, tenant, id)
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
func (ss *Secrets) issue(e *godwit.Endpoint, prof profile.Profile, algorithm string, given *profile.KeyMaterial) (*IssuedSecret, error) {
	material := given
	if material == nil {
		made, err := prof.NewKey(algorithm)
		if err != nil {
			return nil, fmt.Errorf("make signing key: %w", err)
		}
		material = &made
	}
	now := ss.now()
	s := godwit.Secret{
		ID: godwit.NewSecretID(now), EndpointID: e.ID, TenantID: e.TenantID, Algorithm: algorithm,
		PublicKey: material.Public, CreatedAt: now, NotBefore: now,
	}
	s.Sealed = ss.ring.Seal(material.Secret, keyring.ForSecret(s.ID))
	if shown := material.Display; len(shown) > 4 {
		sum := sha256.Sum256([]byte(shown))
		s.Hash, s.Hint = hex.EncodeToString(sum[:]), shown[len(shown)-4:]
	}
	return &IssuedSecret{Secret: s, Value: material.Display}, nil
}

// first returns the secret that the endpoint was created with, and its value.
func (ss *Secrets) first(ctx context.Context, e *godwit.Endpoint) (*IssuedSecret, error) {
	list, err := ss.store.Secrets(ctx, e.TenantID, e.ID)
	if err != nil {
		return nil, fmt.Errorf("find secrets: %w", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find secrets of %s: %w", e.ID, store.ErrNotFound)
	}
	s := slices.MinFunc(list, func(a, b godwit.Secret) int { return a.CreatedAt.Compare(b.CreatedAt) })
	prof, err := profile.Lookup(e.Profile)
	if err != nil {
		return nil, err
	}
	value, err := ss.ring.Open(s.Sealed, keyring.ForSecret(s.ID))
	if err != nil {
		return nil, fmt.Errorf("open secret %s: %w", s.ID, err)
	}
	return &IssuedSecret{Secret: s, Value: prof.ShowKey(s.Algorithm, value)}, nil
}
