package management

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// Rotation limits.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
	// MaxLiveSecrets bounds the signatures on a request: every live secret signs.
	MaxLiveSecrets = 5
)

// A Rotation replaces an endpoint's signing secret.
type Rotation struct {
	Algorithm string // Defaults to that of the newest secret.
	// Overlap is how long the old secrets continue to sign beside the new one. Nil means DefaultOverlap.
	Overlap *time.Duration
	// Secret, if not empty, is the caller's own signing key, in the form in which the profile shows keys.
	Secret string
}

// A PlannedRotation is a checked rotation. Issue makes the secret.
type PlannedRotation struct {
	// Others is when the endpoint's other secrets end.
	Others store.Expiry

	secrets   *Secrets
	endpoint  *godwit.Endpoint
	profile   profile.Profile
	algorithm string
	given     *profile.KeyMaterial // the caller's own key; nil: Issue makes a new one
}

// PlanRotation checks a rotation. Its error names the members that are wrong.
func (ss *Secrets) PlanRotation(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, rot Rotation) (*PlannedRotation, error) {
	overlap := DefaultOverlap
	if rot.Overlap != nil {
		overlap = *rot.Overlap
	}
	if overlap < 0 || overlap > MaxOverlap {
		return nil, fieldError("overlap_seconds", "must be between 0 and %g", MaxOverlap.Seconds())
	}
	e, err := ss.store.Endpoint(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	secrets, err := ss.store.Secrets(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("find secrets: %w", err)
	}
	policy, err := EffectivePolicy(e)
	if err != nil {
		return nil, err
	}
	expiry := store.Expiry{At: ss.now().Add(ss.scale.Real(overlap)), Keep: max(policy.MaxLiveSecrets-1, 0)}
	if overlap > 0 && expiry.Keep == 0 && ss.live(secrets) >= MaxLiveSecrets {
		return nil, problem.LimitReached.With("the endpoint has %d live secrets; rotate with overlap_seconds 0, or wait for some to expire", MaxLiveSecrets)
	}
	if rot.Algorithm == "" && len(secrets) > 0 {
		rot.Algorithm = secrets[0].Algorithm
	}
	prof, err := profile.Lookup(e.Profile)
	if err != nil {
		return nil, err
	}
	plan := &PlannedRotation{Others: expiry, secrets: ss, endpoint: e, profile: prof}
	if plan.algorithm, err = checkAlgorithm(prof, rot.Algorithm); err != nil {
		return nil, err
	}
	plan.given, err = givenKey(prof, plan.algorithm, rot.Secret)
	return plan, err
}

// Issue makes the secret.
func (p *PlannedRotation) Issue() (*IssuedSecret, error) {
	issued, err := p.secrets.issue(p.endpoint, p.profile, p.algorithm, p.given)
	if err != nil {
		return nil, err
	}
	issued.OthersUntil = p.Others.At
	return issued, nil
}

func (ss *Secrets) live(secrets []godwit.Secret) int {
	n := 0
	for i := range secrets {
		if secrets[i].LiveAt(ss.now()) {
			n++
		}
	}
	return n
}
