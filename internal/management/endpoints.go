package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// EndpointSpec holds the settings of an endpoint that its owner chooses. A merge patch applies to its JSON form.
type EndpointSpec struct {
	URL         string                 `json:"url"`
	Method      string                 `json:"method,omitempty"`
	Profile     string                 `json:"profile,omitempty"`
	Description string                 `json:"description,omitempty"`
	Patterns    []string               `json:"patterns,omitempty"`
	Filter      godwit.Filter          `json:"filter,omitempty"`
	Headers     map[string]string      `json:"headers,omitempty"`
	Auth        *godwit.Auth           `json:"auth,omitempty"`
	Policy      godwit.PolicyOverrides `json:"policy,omitzero"`
	Metadata    godwit.Metadata        `json:"metadata,omitempty"`
}

// NewEndpoint describes an endpoint to create, with the key that signs its deliveries.
type NewEndpoint struct {
	EndpointSpec
	Algorithm string // Defaults to the profile's first.
	// Secret, if not empty, is the caller's own signing key, in the form in which the profile shows keys.
	Secret string
	Paused bool // creates the endpoint paused
}

// CreateEndpoint registers an endpoint with its first secret: no endpoint gets unsigned deliveries (EDS-KEY-7).
func (r *Service) CreateEndpoint(ctx context.Context, tenant godwit.TenantID, n NewEndpoint) (*godwit.Endpoint, *IssuedSecret, error) {
	n.SetDefaults()
	prof, err := r.validate(&n.EndpointSpec)
	if err != nil {
		return nil, nil, err
	}
	now := r.now()
	e := &godwit.Endpoint{
		ID: godwit.NewEndpointID(now), TenantID: tenant, Profile: n.Profile,
		Status: godwit.EndpointActive, StatusAt: now, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if n.Paused {
		e.Status = godwit.EndpointPaused
	}
	if err := r.apply(e, &n.EndpointSpec); err != nil {
		return nil, nil, err
	}
	algorithm, err := checkAlgorithm(prof, n.Algorithm)
	if err != nil {
		return nil, nil, err
	}
	given, err := givenKey(prof, algorithm, n.Secret)
	if err != nil {
		return nil, nil, err
	}
	issued, err := r.issue(e, prof, algorithm, given)
	if err != nil {
		return nil, nil, err
	}
	if err := r.register(ctx, e, &issued.Secret); err != nil {
		return nil, nil, err
	}
	// The event is announced before the engine knows the endpoint, so that the endpoint does not get the event about
	// itself.
	err = r.announce(ctx, e, profile.AnnounceSubscriptionCreated)
	if err == nil {
		err = r.tell(ctx, e.ID)
	}
	if err != nil {
		// The caller will retry, so the endpoint must be removed.
		r.undoCreate(ctx, e)
		return nil, nil, err
	}
	return e, issued, nil
}

// announce publishes an event about a subscription if its policy asks for it (OJS-OBS-4, OJS-OBS-5).
func (r *Service) announce(ctx context.Context, e *godwit.Endpoint, what string) error {
	policy, err := EffectivePolicy(e)
	if err != nil || !policy.Announce {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	return r.cfg.Engine.Announce(ctx, profile.Announcement{Type: what, TenantID: e.TenantID, EndpointID: e.ID, At: r.now()})
}

// SetDefaults sets the defaults of absent members.
func (s *EndpointSpec) SetDefaults() {
	defaultTo(&s.Method, "POST")
	defaultTo(&s.Profile, profile.Default)
	if s.Patterns == nil {
		s.Patterns = []string{"*"}
	}
}

// register stores the endpoint within the tenant's limits.
func (r *Service) register(ctx context.Context, e *godwit.Endpoint, s *godwit.Secret) error {
	if err := r.rate.take(e.TenantID, e.CreatedAt); err != nil {
		return err
	}
	r.creating.Lock() // held from counting to storing
	defer r.creating.Unlock()
	if limit := r.cfg.Limits.Endpoints; limit >= 0 {
		n, err := r.store.CountEndpoints(ctx, e.TenantID)
		if err != nil {
			return fmt.Errorf("count endpoints: %w", err)
		}
		if n >= limit {
			return problem.LimitReached.With("the tenant has %d endpoints and may have no more than %d", n, limit)
		}
	}
	return withCode(&e.Code, "create endpoint", func() error { return r.store.CreateEndpoint(ctx, e, s) })
}

// withCode stores an object that has a public code, and draws another code if it is taken.
func withCode(code *string, what string, insert func() error) error {
	const tries = 5
	for try := 1; ; try++ {
		*code = profile.NewCode()
		err := insert()
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) || try == tries {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

func (r *Service) undoCreate(ctx context.Context, e *godwit.Endpoint) {
	gone := *e
	gone.Status, gone.Version = godwit.EndpointDeleted, e.Version+1
	if err := r.store.UpdateEndpoint(context.WithoutCancel(ctx), &gone); err != nil {
		r.log.Error("endpoint stays although its creation was refused", "endpoint", e.ID.String(), "error", err)
	}
}

// Endpoint returns an endpoint of the tenant.
func (r *Service) Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	return r.store.Endpoint(ctx, tenant, id)
}

// ResolveEndpoint finds an endpoint of the tenant by any form of its id: sub_ with a UUID, or WEB-XXXXXX-X. A text that
// cannot be an id names no endpoint. The check character reveals a mistyped code without a read of the store (CCW-API-5).
func (r *Service) ResolveEndpoint(ctx context.Context, tenant godwit.TenantID, text string) (*godwit.Endpoint, error) {
	if id, err := godwit.ParseEndpointID(text); err == nil {
		return r.store.Endpoint(ctx, tenant, id)
	}
	code, err := profile.ParseCode(profile.CodeEndpoint, text)
	if err != nil {
		return nil, fmt.Errorf("find endpoint: %w", store.ErrNotFound)
	}
	return r.store.EndpointByCode(ctx, tenant, code)
}

// ListEndpoints pages through a tenant's endpoints.
func (r *Service) ListEndpoints(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error) {
	return r.store.ListEndpoints(ctx, f, p)
}

// UpdateEndpoint applies edit to an endpoint. Edit gets the endpoint as its owner wrote it, including credentials.
// UpdateEndpoint calls edit again if a concurrent change came first.
func (r *Service) UpdateEndpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, edit func(*EndpointSpec) error) (*godwit.Endpoint, error) {
	return r.change(ctx, tenant, id, func(e *godwit.Endpoint) error {
		spec, err := r.spec(e)
		if err != nil {
			return err
		}
		if err := edit(spec); err != nil {
			return err
		}
		if !sameOrigin(spec.URL, e.URL) {
			if spec, err = r.moved(e, edit); err != nil {
				return err
			}
		}
		if spec.Profile != e.Profile {
			return fieldError("profile", "is fixed when an endpoint is created; create another one")
		}
		if _, err := r.validate(spec); err != nil {
			return err
		}
		return r.apply(e, spec)
	})
}

// moved applies an edit that changes the endpoint's origin. It drops the old origin's credentials: otherwise a caller that
// may change an endpoint could send them to its own host and read them.
func (r *Service) moved(e *godwit.Endpoint, edit func(*EndpointSpec) error) (*EndpointSpec, error) {
	old, err := r.spec(e)
	if err != nil {
		return nil, err
	}
	spec := *old
	spec.Headers, spec.Auth = nil, nil
	if err := edit(&spec); err != nil {
		return nil, err
	}
	if old.Auth != nil && spec.Auth == nil {
		return nil, fieldError("auth", "must be given again when url changes to another origin; or remove it first")
	}
	for name := range old.Headers {
		if _, given := spec.Headers[name]; !given {
			return nil, fieldError("headers."+name, "must be given again when url changes to another origin; or remove it first")
		}
	}
	return &spec, nil
}

func sameOrigin(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Host, v.Host)
}

// Pause holds an endpoint's deliveries until Resume.
func (r *Service) Pause(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error) {
	return r.stop(ctx, tenant, id, godwit.EndpointPaused, reason)
}

// Disable holds an endpoint's deliveries until an operator resumes it; the engine does not enable it again.
func (r *Service) Disable(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error) {
	return r.stop(ctx, tenant, id, godwit.EndpointDisabled, reason)
}

// stop sets a status that holds deliveries. Repeating it without a reason keeps the first reason.
func (r *Service) stop(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, status godwit.EndpointStatus, reason string) (*godwit.Endpoint, error) {
	if err := checkText("reason", reason, MaxDescription); err != nil {
		return nil, err
	}
	return r.change(ctx, tenant, id, func(e *godwit.Endpoint) error {
		if e.Status == status && reason == "" {
			reason = e.StatusReason
		}
		r.setStatus(e, status, reason)
		return nil
	})
}

// Resume delivers to a paused or disabled endpoint again, and clears its failure counts, because an operator has checked
// it.
func (r *Service) Resume(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	if _, err := r.store.Endpoint(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find endpoint: %w", err)
	}
	if err := r.store.ResetHealth(ctx, id, r.now()); err != nil {
		return nil, fmt.Errorf("reset health: %w", err)
	}
	return r.change(ctx, tenant, id, func(e *godwit.Endpoint) error {
		r.setStatus(e, godwit.EndpointActive, "")
		return nil
	})
}

// setStatus sets the time even if the status does not change, because the engine closes the circuit of an endpoint that an
// operator enables again.
func (r *Service) setStatus(e *godwit.Endpoint, s godwit.EndpointStatus, reason string) {
	e.Status, e.StatusReason, e.StatusAt, e.ReenableAt = s, reason, r.now(), time.Time{}
}

// change applies f to the stored endpoint, and again if a concurrent change came first.
func (r *Service) change(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, f func(*godwit.Endpoint) error) (*godwit.Endpoint, error) {
	const tries = 5
	for try := 1; ; try++ {
		e, err := r.store.Endpoint(ctx, tenant, id)
		if err != nil {
			return nil, fmt.Errorf("find endpoint: %w", err)
		}
		if err := f(e); err != nil {
			return nil, err
		}
		e.Version++
		e.UpdatedAt = r.now()
		err = r.store.UpdateEndpoint(ctx, e)
		if errors.Is(err, store.ErrConflict) && try < tries {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("update endpoint: %w", err), r.tellIfStored(ctx, id, err))
		}
		if err := r.tell(ctx, id); err != nil {
			return nil, err
		}
		return e, nil
	}
}

// tellTimeout is how long the engine may take to reload an endpoint.
const tellTimeout = 10 * time.Second

// tell makes the engine reload the endpoint. It ignores the client's cancellation, because the change is stored: the
// engine would otherwise continue to send to an endpoint that is paused or deleted.
func (r *Service) tell(ctx context.Context, id godwit.EndpointID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	if err := r.cfg.Engine.Changed(ctx, id); err != nil {
		return fmt.Errorf("tell engine: %w", err)
	}
	return nil
}

// tellIfStored tells the engine of a failed write whose result is not known: it may be stored.
func (r *Service) tellIfStored(ctx context.Context, id godwit.EndpointID, err error) error {
	if ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
		return nil
	}
	return r.tell(ctx, id)
}

// spec returns the endpoint as its owner wrote it.
func (r *Service) spec(e *godwit.Endpoint) (*EndpointSpec, error) {
	spec := &EndpointSpec{
		URL: e.URL, Method: e.Method, Profile: e.Profile, Description: e.Description, Patterns: e.Patterns, Filter: e.Filter,
		Policy: e.Policy, Metadata: e.Metadata,
	}
	if len(e.Sealed) == 0 {
		return spec, nil
	}
	plain, err := r.ring.Open(e.Sealed, keyring.ForEndpoint(e.ID))
	if err != nil {
		return nil, fmt.Errorf("open endpoint settings: %w", err)
	}
	var secrets godwit.EndpointSecrets
	if err := json.Unmarshal(plain, &secrets); err != nil {
		return nil, errors.New("open endpoint settings: not readable")
	}
	spec.Headers, spec.Auth = secrets.Headers, secrets.Auth
	return spec, nil
}

// apply writes a valid spec into the endpoint, and seals its secrets.
func (r *Service) apply(e *godwit.Endpoint, spec *EndpointSpec) error {
	e.URL, e.Method, e.Description = spec.URL, spec.Method, spec.Description
	e.Patterns, e.Filter, e.Policy, e.Metadata = spec.Patterns, spec.Filter, spec.Policy, spec.Metadata
	e.Sealed, e.SealedInfo = nil, godwit.SealedInfo{}
	if len(spec.Headers) == 0 && spec.Auth == nil {
		return nil
	}
	plain, err := json.Marshal(godwit.EndpointSecrets{Headers: spec.Headers, Auth: spec.Auth})
	if err != nil {
		return fmt.Errorf("encode endpoint settings: %w", err)
	}
	e.Sealed = r.ring.Seal(plain, keyring.ForEndpoint(e.ID))
	e.SealedInfo.HeaderNames = slices.Sorted(maps.Keys(spec.Headers))
	if spec.Auth != nil {
		e.SealedInfo.AuthKind = spec.Auth.Kind
	}
	return nil
}

// EffectivePolicy returns the endpoint's delivery policy: its profile's defaults with its overrides.
func EffectivePolicy(e *godwit.Endpoint) (godwit.Policy, error) {
	prof, err := profile.Lookup(e.Profile)
	if err != nil {
		return godwit.Policy{}, err
	}
	p, fieldErr := e.Policy.Apply(prof.Defaults())
	if fieldErr != nil {
		return godwit.Policy{}, fieldErr
	}
	return p, nil
}
