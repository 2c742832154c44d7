package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// Endpoints manages endpoints.
type Endpoints struct {
	store    store.Endpoints
	tenants  tenantFinder
	rules    rules
	sealer   sealer
	secrets  *Secrets
	keys     *SigningKeys
	notifier *notifier
	log      *slog.Logger
	now      func() time.Time
	limit    int // endpoints of a tenant; negative: no limit
	rate     creationRate
}

// A created endpoint, with its first secret.
type created struct {
	endpoint *godwit.Endpoint
	issued   *IssuedSecret
}

// Create registers an endpoint with its first secret: no endpoint gets unsigned deliveries (EDS-KEY-7). Where the environment signs, the
// returned secret is the environment's key.
func (es *Endpoints) Create(ctx context.Context, t *godwit.Tenant, n NewEndpoint) (*godwit.Endpoint, *IssuedSecret, error) {
	n.setDefaults(t)
	prof, err := es.rules.validate(&n.EndpointSpec)
	if err != nil {
		return nil, nil, err
	}
	given, err := n.ownKey(prof)
	if err != nil {
		return nil, nil, err
	}
	c, err := idempotency.Once(ctx, es.now(),
		func(id godwit.EndpointID) (*created, error) { return es.find(ctx, t, id) },
		func(id godwit.EndpointID) (*created, error) { return es.create(ctx, t, id, &n, prof, given) })
	if err != nil {
		return nil, nil, err
	}
	// The event is announced before the engine knows the endpoint, so that the endpoint does not get the event about
	// itself.
	err = es.notifier.announce(ctx, c.endpoint, profile.AnnounceSubscriptionCreated)
	if err == nil {
		err = es.notifier.tell(ctx, c.endpoint.ID)
	}
	if err != nil {
		// A repeat under a key completes the creation. Without a key it would create a second endpoint.
		if !idempotency.Held(ctx) {
			es.undoCreate(ctx, c.endpoint)
		}
		return nil, nil, err
	}
	return c.endpoint, c.issued, nil
}

// ownKey checks the algorithm and the caller's own key; nil if there is none.
func (n *NewEndpoint) ownKey(prof profile.Profile) (given *profile.KeyMaterial, err error) {
	if n.Signing == godwit.SigningEnvironment {
		const unused = "has no effect where the environment signs; leave it out, or set signing to own"
		switch {
		case n.Algorithm != "":
			return nil, fieldError("algorithm", unused)
		case n.Secret != "":
			return nil, fieldError("secret", unused)
		}
		return nil, nil
	}
	if n.Algorithm, err = checkAlgorithm(prof, n.Algorithm); err != nil {
		return nil, err
	}
	return givenKey(prof, n.Algorithm, n.Secret)
}

// create makes an endpoint from a checked request and stores it.
func (es *Endpoints) create(ctx context.Context, tenant *godwit.Tenant, id godwit.EndpointID, n *NewEndpoint, prof profile.Profile, given *profile.KeyMaterial) (*created, error) {
	now := es.now()
	e := &godwit.Endpoint{
		ID: id, TenantID: tenant.ID, Profile: n.Profile,
		Status: godwit.EndpointActive, StatusAt: now, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if n.Paused {
		e.Status = godwit.EndpointPaused
	}
	if err := es.uidFree(ctx, e, n.UID); err != nil {
		return nil, err
	}
	if err := es.sealer.apply(e, &n.EndpointSpec); err != nil {
		return nil, err
	}
	var issued *IssuedSecret
	var first *godwit.Secret // none if the environment signs
	var err error
	if n.Signing == godwit.SigningEnvironment {
		issued, err = es.keys.current(ctx, tenant.EnvironmentID)
	} else if issued, err = es.secrets.issue(e, prof, n.Algorithm, given); err == nil {
		first = &issued.Secret
	}
	if err != nil {
		return nil, err
	}
	if err := es.register(ctx, e, first, &tenant.Limits, n.ByPlatform); err != nil {
		return nil, err
	}
	return &created{e, issued}, nil
}

// find returns the endpoint that an interrupted request created, with its first secret.
func (es *Endpoints) find(ctx context.Context, t *godwit.Tenant, id godwit.EndpointID) (*created, error) {
	e, err := es.store.Endpoint(ctx, t.ID, id)
	if err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	if e.Signing == godwit.SigningEnvironment {
		issued, err := es.keys.current(ctx, t.EnvironmentID)
		return &created{e, issued}, err
	}
	issued, err := es.secrets.first(ctx, e)
	if err != nil {
		return nil, err
	}
	return &created{e, issued}, nil
}

// register stores the endpoint within the tenant's limits.
func (es *Endpoints) register(ctx context.Context, e *godwit.Endpoint, s *godwit.Secret, own *godwit.TenantLimits, byPlatform bool) error {
	if !byPlatform {
		if err := es.rate.take(ctx, e.TenantID, own.EndpointCreationsPerMinute, e.CreatedAt); err != nil {
			return err
		}
	}
	limit := cmp.Or(own.Endpoints, es.limit)
	err := withCode(&e.Code, "create endpoint", func() error {
		if limit < 0 {
			return es.store.CreateEndpoint(ctx, e, s)
		}
		return es.store.CreateEndpointWithin(ctx, e, s, limit)
	})
	if errors.Is(err, store.ErrLimit) && own.Endpoints > 0 {
		return problem.TenantLimit.With("the tenant may have no more than %d endpoints (limit endpoints); delete one first", limit)
	}
	if errors.Is(err, store.ErrOlderNodes) {
		return errOlderNodes
	}
	if errors.Is(err, store.ErrLimit) {
		return problem.LimitReached.With("the tenant may have no more than %d endpoints; delete one first", limit)
	}
	return err
}

func (es *Endpoints) undoCreate(ctx context.Context, e *godwit.Endpoint) {
	gone := *e
	gone.Status, gone.Version = godwit.EndpointDeleted, e.Version+1
	if err := es.store.UpdateEndpoint(context.WithoutCancel(ctx), &gone); err != nil {
		es.log.Error("endpoint stays although its creation was refused", "endpoint", e.ID.String(), "error", err)
	}
}

// Get returns an endpoint of the tenant.
func (es *Endpoints) Get(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	return es.store.Endpoint(ctx, tenant, id)
}

// Resolve finds an endpoint of the tenant by any form of its id: sub_ with a UUID, WEB-XXXXXX-X, or its uid. A text that
// cannot be an id names no endpoint. The check character reveals a mistyped code without a read of the store (CCW-API-5).
func (es *Endpoints) Resolve(ctx context.Context, tenant godwit.TenantID, text string) (*godwit.Endpoint, error) {
	if id, err := godwit.ParseEndpointID(text); err == nil {
		return es.store.Endpoint(ctx, tenant, id)
	}
	if code, err := profile.ParseCode(profile.CodeEndpoint, text); err == nil {
		return es.store.EndpointByCode(ctx, tenant, code)
	}
	if checkUID("id", text) != nil {
		return nil, fmt.Errorf("find endpoint: %w", store.ErrNotFound)
	}
	return es.store.EndpointByUID(ctx, tenant, text)
}

// List pages through a tenant's endpoints.
func (es *Endpoints) List(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error) {
	return es.store.ListEndpoints(ctx, f, p)
}

// change applies f to the stored endpoint if that is as the request expects, and again if a concurrent change came first.
func (es *Endpoints) change(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, m godwit.Match, f func(*godwit.Endpoint) error) (*godwit.Endpoint, error) {
	for try := 1; ; try++ {
		e, err := es.store.Endpoint(ctx, tenant, id)
		if err != nil {
			return nil, fmt.Errorf("find endpoint: %w", err)
		}
		if err := expect(m, e.Version); err != nil {
			return nil, err
		}
		err = f(e)
		if errors.Is(err, errUnchanged) {
			return e, nil
		}
		if err != nil {
			return nil, err
		}
		e.Version++
		e.UpdatedAt = es.now()
		err = es.store.UpdateEndpoint(ctx, e)
		if errors.Is(err, store.ErrConflict) && try < changeTries {
			continue
		}
		if errors.Is(err, store.ErrOlderNodes) {
			return nil, errOlderNodes
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("update endpoint: %w", err), es.notifier.tellIfStored(ctx, id, err))
		}
		if err := es.notifier.tell(ctx, id); err != nil {
			return nil, err
		}
		return e, nil
	}
}

// PlanDelete returns an endpoint that is as the request expects in the form that marks it as deleted.
func (es *Endpoints) PlanDelete(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, m godwit.Match) (*godwit.Endpoint, error) {
	e, err := es.store.Endpoint(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	if err := expect(m, e.Version); err != nil {
		return nil, err
	}
	es.setStatus(e, godwit.EndpointDeleted, "")
	e.Version++
	e.UpdatedAt = es.now()
	return e, nil
}

// Deleted reacts to the stored deletion of an endpoint. The deletion cannot be undone here, so failures are only logged.
func (es *Endpoints) Deleted(ctx context.Context, e *godwit.Endpoint) {
	es.notifier.changed(ctx, e.ID)
	if err := es.notifier.announce(ctx, e, profile.AnnounceSubscriptionDeleted); err != nil {
		es.log.Error("deletion of an endpoint is not announced", "endpoint", e.ID.String(), "error", err)
	}
}

// Changed reacts to a stored change of an endpoint.
func (es *Endpoints) Changed(ctx context.Context, id godwit.EndpointID) { es.notifier.changed(ctx, id) }
