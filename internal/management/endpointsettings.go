package management

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
)

// EndpointSpec holds the settings of an endpoint that its owner chooses. A merge patch applies to its JSON form.
type EndpointSpec struct {
	UID         string                 `json:"uid,omitempty"`
	URL         string                 `json:"url"`
	Method      string                 `json:"method,omitempty"`
	Profile     string                 `json:"profile,omitempty"`
	Description string                 `json:"description,omitempty"`
	Patterns    []string               `json:"patterns,omitempty"`
	Filter      godwit.Filter          `json:"filter,omitempty"`
	Content     godwit.ContentFilter   `json:"content_filter,omitempty"`
	Headers     map[string]string      `json:"headers,omitempty"`
	Auth        *godwit.Auth           `json:"auth,omitempty"`
	Policy      godwit.PolicyOverrides `json:"policy,omitzero"`
	Metadata    godwit.Metadata        `json:"metadata,omitempty"`
	Signing     godwit.Signing         `json:"signing,omitempty"`
}

// NewEndpoint describes an endpoint to create, with the key that signs its deliveries.
type NewEndpoint struct {
	EndpointSpec
	Algorithm string // Defaults to the profile's first.
	// Secret, if not empty, is the caller's own signing key, in the form in which the profile shows keys.
	Secret string
	Paused bool // creates the endpoint paused
	// OwnPolicy says that the policy is complete. Otherwise members that it leaves open are those of the environment's policy.
	OwnPolicy bool
	// OwnSigning says that Signing was chosen. Otherwise it is the environment's, if the profile allows it and there is no key of the caller's own.
	OwnSigning bool
	// ByPlatform says that the key of an environment or an administrator creates the endpoint; see creationRate.
	ByPlatform bool
}

// setDefaults sets the defaults of absent members: those of the tenant's environment, and else the server's. The policy of the environment was
// made for its profile; it applies to another profile only if that allows all of it.
func (n *NewEndpoint) setDefaults(t *godwit.Tenant) {
	n.Profile = cmp.Or(n.Profile, t.EndpointProfile)
	n.SetDefaults()
	prof, err := profile.Lookup(n.Profile)
	if err != nil { // validation reports an unknown profile
		return
	}
	if !n.OwnSigning && n.Algorithm == "" && n.Secret == "" && profile.SharesKeys(prof) {
		n.Signing = t.EndpointSigning
	}
	if n.OwnPolicy {
		return
	}
	policy := n.Policy.Over(t.EndpointPolicy)
	if _, unfit := policy.Apply(prof.Defaults()); unfit == nil {
		n.Policy = policy
	}
}

// SetDefaults sets the defaults of absent members.
func (s *EndpointSpec) SetDefaults() {
	defaultTo(&s.Method, "POST")
	defaultTo(&s.Profile, profile.Default)
	if s.Patterns == nil {
		s.Patterns = []string{"*"}
	}
}

// Update applies edit to an endpoint that is as the request expects. Edit gets the endpoint as its owner wrote it, including credentials.
// Update calls edit again if a concurrent change came first.
func (es *Endpoints) Update(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, m godwit.Match, edit func(*EndpointSpec) error) (*godwit.Endpoint, error) {
	return es.change(ctx, tenant, id, m, func(e *godwit.Endpoint) error {
		spec, err := es.sealer.open(e)
		if err != nil {
			return err
		}
		if err := edit(spec); err != nil {
			return err
		}
		spec.Signing = ParseSigning(string(spec.Signing))
		if !sameOrigin(spec.URL, e.URL) {
			if spec, err = es.moved(e, edit); err != nil {
				return err
			}
		}
		if spec.Profile != e.Profile {
			return fieldError("profile", "is fixed when an endpoint is created; create another one")
		}
		if _, err := es.rules.validate(spec); err != nil {
			return err
		}
		if err := es.uidFree(ctx, e, spec.UID); err != nil {
			return err
		}
		if err := es.checkSigners(ctx, e, spec.Signing); err != nil {
			return err
		}
		return es.sealer.apply(e, spec)
	})
}

// checkSigners makes sure that an endpoint that changes its signer has a live key of the new one.
func (es *Endpoints) checkSigners(ctx context.Context, e *godwit.Endpoint, next godwit.Signing) error {
	if next == e.Signing {
		return nil
	}
	if next == godwit.SigningEnvironment {
		t, err := es.tenants.Tenant(ctx, e.TenantID)
		if err != nil {
			return fmt.Errorf("find tenant: %w", err)
		}
		_, err = es.keys.current(ctx, t.EnvironmentID)
		return err
	}
	secrets, err := es.store.Secrets(ctx, e.TenantID, e.ID)
	if err != nil {
		return fmt.Errorf("find secrets: %w", err)
	}
	if es.secrets.live(secrets) == 0 {
		return problem.Conflict.With("the endpoint has no live secret of its own; rotate its secret first, then set signing to own")
	}
	return nil
}

// moved applies an edit that changes the endpoint's origin. It drops the old origin's credentials: otherwise a caller that
// may change an endpoint could send them to its own host and read them.
func (es *Endpoints) moved(e *godwit.Endpoint, edit func(*EndpointSpec) error) (*EndpointSpec, error) {
	old, err := es.sealer.open(e)
	if err != nil {
		return nil, err
	}
	spec := *old
	spec.Headers, spec.Auth = nil, nil
	if err := edit(&spec); err != nil {
		return nil, err
	}
	spec.Signing = ParseSigning(string(spec.Signing))
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

// sealer encrypts the settings of an endpoint that are secret: header values and credentials.
type sealer struct{ ring *keyring.Ring }

// open returns the endpoint as its owner wrote it.
func (s sealer) open(e *godwit.Endpoint) (*EndpointSpec, error) {
	spec := &EndpointSpec{
		UID: e.UID, URL: e.URL, Method: e.Method, Profile: e.Profile, Description: e.Description, Patterns: e.Patterns, Filter: e.Filter, Content: e.Content,
		Policy: e.Policy, Metadata: e.Metadata, Signing: e.Signing,
	}
	if len(e.Sealed) == 0 {
		return spec, nil
	}
	plain, err := s.ring.Open(e.Sealed, keyring.ForEndpoint(e.ID))
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
func (s sealer) apply(e *godwit.Endpoint, spec *EndpointSpec) error {
	e.UID, e.URL, e.Method, e.Description = spec.UID, spec.URL, spec.Method, spec.Description
	e.Patterns, e.Filter, e.Policy, e.Metadata = spec.Patterns, spec.Filter, spec.Policy, spec.Metadata
	e.Signing, e.Content = spec.Signing, spec.Content
	if len(e.Content) == 0 {
		e.Content = nil
	}
	e.Sealed, e.SealedInfo = nil, godwit.SealedInfo{}
	if len(spec.Headers) == 0 && spec.Auth == nil {
		return nil
	}
	plain, err := json.Marshal(godwit.EndpointSecrets{Headers: spec.Headers, Auth: spec.Auth})
	if err != nil {
		return fmt.Errorf("encode endpoint settings: %w", err)
	}
	e.Sealed = s.ring.Seal(plain, keyring.ForEndpoint(e.ID))
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
