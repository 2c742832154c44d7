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

// A command stores a change together with its outcome. The methods of this file return the change to store, and react once
// it is stored.

// PlanDelete returns the endpoint in the form that marks it as deleted.
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

// Deleted reacts to the stored deletion of an endpoint. The deletion cannot be undone here, so failures are only logged.
func (r *Service) Deleted(ctx context.Context, e *godwit.Endpoint) {
	r.Changed(ctx, e.ID)
	if err := r.announce(ctx, e, profile.AnnounceSubscriptionDeleted); err != nil {
		r.log.Error("deletion of an endpoint is not announced", "endpoint", e.ID.String(), "error", err)
	}
}

// Changed reacts to a stored change of an endpoint.
func (r *Service) Changed(ctx context.Context, id godwit.EndpointID) {
	if err := r.tell(ctx, id); err != nil {
		r.log.Error("read changed endpoint", "endpoint", id.String(), "error", err)
	}
}

// TenantDeleted reacts to the stored deletion of a tenant and its endpoints.
func (r *Service) TenantDeleted(ctx context.Context, id godwit.TenantID, endpoints []godwit.EndpointID) {
	r.cache.dropTenant(id)
	for _, e := range endpoints {
		r.Changed(ctx, e)
	}
}

// A PlannedRotation is a checked rotation. Issue makes the secret.
type PlannedRotation struct {
	// Others is when the endpoint's other secrets end.
	Others store.Expiry

	service   *Service
	endpoint  *godwit.Endpoint
	profile   profile.Profile
	algorithm string
	given     *profile.KeyMaterial // the caller's own key; nil: Issue makes a new one
}

// PlanRotation checks a rotation. Its error names the members that are wrong.
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

// Now returns the service's time, in the precision of the stores.
func (r *Service) Now() time.Time { return r.now() }
