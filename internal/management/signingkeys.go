package management

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// SigningKeys manages the signing keys of environments: Ed25519 keys that sign for all endpoints of an environment that choose them. A key is one
// row, whatever the number of endpoints. Package builtincommand stores rotations and revocations as commands.
type SigningKeys struct {
	store   signingKeyStore
	secrets *Secrets
	engine  Engine
	log     *slog.Logger
	now     func() time.Time
}

// signingKeyStore is the part of the store that SigningKeys uses.
type signingKeyStore interface {
	EnvironmentKeys(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
	AddFirstKey(ctx context.Context, key *godwit.Secret) error
}

// List lists the keys of an environment, newest first. Their private parts stay sealed.
func (ks *SigningKeys) List(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error) {
	return ks.store.EnvironmentKeys(ctx, id)
}

// PlanRotation checks a rotation. Its first one makes the first key.
func (ks *SigningKeys) PlanRotation(ctx context.Context, id godwit.EnvironmentID, wanted *time.Duration) (*PlannedRotation, error) {
	overlap := DefaultOverlap
	if wanted != nil {
		overlap = *wanted
	}
	if overlap < 0 || overlap > MaxOverlap {
		return nil, fieldError("overlap_seconds", "must be between 0 and %g", MaxOverlap.Seconds())
	}
	keys, err := ks.store.EnvironmentKeys(ctx, id)
	if err != nil {
		return nil, err
	}
	if overlap > 0 && ks.secrets.live(keys) >= MaxLiveSecrets {
		return nil, problem.LimitReached.With("the environment has %d live keys; rotate with overlap_seconds 0, or wait for some to expire", MaxLiveSecrets)
	}
	plan, err := ks.plan(id)
	if err != nil {
		return nil, err
	}
	plan.Others = store.Expiry{At: ks.now().Add(ks.secrets.scale.Real(overlap))}
	return plan, nil
}

// plan makes a key of the profile whose endpoints may share keys.
func (ks *SigningKeys) plan(id godwit.EnvironmentID) (*PlannedRotation, error) {
	prof, err := profile.Lookup(profile.Default)
	if err != nil {
		return nil, err
	}
	holder := &godwit.Endpoint{ID: godwit.KeysOf(id), TenantID: godwit.HomeOf(id)}
	return &PlannedRotation{secrets: ks.secrets, endpoint: holder, profile: prof, algorithm: godwit.AlgorithmEd25519}, nil
}

// current returns the newest key of an environment that is live, and makes the first one.
func (ks *SigningKeys) current(ctx context.Context, id godwit.EnvironmentID) (*IssuedSecret, error) {
	for {
		keys, err := ks.store.EnvironmentKeys(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("find signing keys: %w", err)
		}
		now := ks.now()
		for i := range keys {
			if keys[i].LiveAt(now) {
				return &IssuedSecret{Secret: keys[i]}, nil
			}
		}
		if len(keys) > 0 {
			return nil, problem.Conflict.With("no signing key of the environment is live; rotate its keys first")
		}
		plan, err := ks.plan(id)
		if err != nil {
			return nil, err
		}
		issued, err := plan.Issue()
		if err != nil {
			return nil, err
		}
		err = ks.store.AddFirstKey(ctx, &issued.Secret)
		if errors.Is(err, store.ErrConflict) {
			continue // another request was first
		}
		if err != nil {
			return nil, fmt.Errorf("store signing key: %w", err)
		}
		if err := ks.tell(ctx, id); err != nil {
			return nil, err
		}
		return issued, nil
	}
}

// tell makes the engine sign with the stored keys. It ignores the client's cancellation, because the change is stored.
func (ks *SigningKeys) tell(ctx context.Context, id godwit.EnvironmentID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	if err := ks.engine.KeysChanged(ctx, id); err != nil {
		return fmt.Errorf("tell engine: %w", err)
	}
	return nil
}

// Changed reacts to a stored change of an environment's keys. The change cannot be undone here, so a failure is only logged.
func (ks *SigningKeys) Changed(ctx context.Context, id godwit.EnvironmentID) {
	if err := ks.tell(ctx, id); err != nil {
		ks.log.Error("read changed signing keys", "environment", id.String(), "error", err)
	}
}

// checkSigning checks whose keys sign for an endpoint.
func checkSigning(field string, s godwit.Signing, prof profile.Profile) error {
	switch {
	case s == godwit.SigningOwn:
		return nil
	case s != godwit.SigningEnvironment:
		return fieldError(field, "must be own or environment")
	case !profile.SharesKeys(prof):
		return fieldError(field, "profile %q has no signatures that endpoints could share a key for; use own", prof.Name())
	}
	return nil
}

// ParseSigning reads a member of the API.
func ParseSigning(text string) godwit.Signing {
	if text == "own" {
		return godwit.SigningOwn
	}
	return godwit.Signing(text)
}
