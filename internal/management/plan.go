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

// Commands store a change together with their outcome. The methods of this file tell them what to store, and take note of what was
// stored.

// PlanDelete returns the endpoint as it has to be stored to be deleted.
func (r *Service) PlanDelete(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	e, err := r.store.Endpoint(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	r.setStatus(e, godwit.EndpointDeleted, "")
	e.Version++
	e.UpdatedAt = r.now()
	return e, nil
}

// Deleted takes note that an endpoint is stored as deleted. The deletion stands whatever fails here, so failures are logged only.
func (r *Service) Deleted(ctx context.Context, e *godwit.Endpoint) {
	r.Changed(ctx, e.ID)
	if err := r.announce(ctx, e, profile.AnnounceSubscriptionDeleted); err != nil {
		r.log.Error("deletion of an endpoint is not announced", "endpoint", e.ID.String(), "error", err)
	}
}

// Changed takes note that an endpoint was changed in the store.
func (r *Service) Changed(ctx context.Context, id godwit.EndpointID) {
	if err := r.tell(ctx, id); err != nil {
		r.log.Error("read changed endpoint", "endpoint", id.String(), "error", err)
	}
}

// TenantDeleted takes note that a tenant is stored as deleted, with its endpoints.
func (r *Service) TenantDeleted(ctx context.Context, id godwit.TenantID, endpoints []godwit.EndpointID) {
	r.cache.dropTenant(id)
	for _, e := range endpoints {
		r.Changed(ctx, e)
	}
}

// A PlannedRotation is a rotation that was checked. Nothing is made before Issue.
type PlannedRotation struct {
	// Others is when the endpoint's other secrets end.
	Others store.Expiry

	service   *Service
	endpoint  *godwit.Endpoint
	profile   profile.Profile
	algorithm string
	given     *profile.KeyMaterial // the caller's own; nil: a new one is made
}

// PlanRotation checks a rotation and names the members of it that are wrong.
func (r *Service) PlanRotation(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, rot Rotation) (*PlannedRotation, error) {
	overlap := DefaultOverlap
	if rot.Overlap != nil {
		overlap = *rot.Overlap
	}
	if overlap < 0 || overlap > MaxOverlap {
		return nil, fieldError("overlap_seconds", "must be between 0 and %g", MaxOverlap.Seconds())
	}
	e, err := r.store.Endpoint(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	secrets, err := r.store.Secrets(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("find secrets: %w", err)
	}
	policy, err := EffectivePolicy(e)
	if err != nil {
		return nil, err
	}
	expiry := store.Expiry{At: r.now().Add(r.cfg.TimeScale.Real(overlap)), Keep: max(policy.MaxLiveSecrets-1, 0)}
	if overlap > 0 && expiry.Keep == 0 && r.live(secrets) >= MaxLiveSecrets {
		return nil, problem.LimitReached.With("the endpoint has %d live secrets; rotate with overlap_seconds 0, or wait for some to expire", MaxLiveSecrets)
	}
	if rot.Algorithm == "" && len(secrets) > 0 {
		rot.Algorithm = secrets[0].Algorithm
	}
	prof, err := profile.Lookup(e.Profile)
	if err != nil {
		return nil, err
	}
	plan := &PlannedRotation{Others: expiry, service: r, endpoint: e, profile: prof}
	if plan.algorithm, err = checkAlgorithm(prof, rot.Algorithm); err != nil {
		return nil, err
	}
	plan.given, err = givenKey(prof, plan.algorithm, rot.Secret)
	return plan, err
}

// Issue makes the secret.
func (p *PlannedRotation) Issue() (*IssuedSecret, error) {
	issued, err := p.service.issue(p.endpoint, p.profile, p.algorithm, p.given)
	if err != nil {
		return nil, err
	}
	issued.OthersUntil = p.Others.At
	return issued, nil
}

// Now is the service's time, in the precision of the stores.
func (r *Service) Now() time.Time { return r.now() }
