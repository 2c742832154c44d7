package attempt

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/filter"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/sender/oauth2cc"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Target is an immutable snapshot of an endpoint with its settings resolved. A change of the endpoint makes a new one. Its
// secrets are opened for the first request (see Current): a start with many endpoints would take long to open them all.
type Target struct {
	Endpoint godwit.Endpoint
	Policy   *godwit.Policy  // never nil; endpoints with the same terms share it
	Profile  profile.Profile // nil when this release does not know the profile

	Content *filter.Filter // compiled content filter; nil: none

	account     string         // code of its tenant
	test        bool           // the environment of its tenant is not live
	secrets     []sealedSecret // to make a new signer when one begins or ends
	identity    *identity      // of the environment, if that signs; nil otherwise
	keys        *keySet        // of the identity, that the signer was made from
	follow      []int          // redirects followed inside an attempt; shared
	signer      profile.Signer
	signerUntil time.Time // when the set of live keys changes
	headers     map[string]string
	auth        *godwit.Auth
	token       *oauth2cc.Source
	cert        *tls.Certificate
	sealed      bool  // the secrets have not been opened yet
	broken      error // why no request can be made; the endpoint's deliveries fail with it
}

var errCannotOpen = errors.New("the endpoint's secrets cannot be opened: its key is missing from the key ring")

// Target prepares an endpoint. If that fails, it still returns a target, and the endpoint's deliveries fail with the reason.
func (m *Maker) Target(l *store.LoadedEndpoint) *Target {
	t := &Target{Endpoint: l.Endpoint, account: l.Account, test: l.Test, secrets: packSecrets(l.Secrets), sealed: true}
	shareWords(&t.Endpoint)
	if t.Endpoint.Signing == godwit.SigningEnvironment {
		t.identity = m.identities.of(l.Environment)
	}
	if err := m.fill(t); err != nil {
		m.fail(t, err)
	}
	m.compile(t)
	return t
}

// compile compiles the content filter. A filter that this release does not understand, stored by a later one, lets nothing pass.
func (m *Maker) compile(t *Target) {
	if len(t.Endpoint.Content) == 0 {
		return
	}
	compiled, err := filter.Compile(t.Endpoint.Content)
	if err != nil {
		m.cfg.Log.Error("stored content filter cannot be used, the endpoint gets no events", "endpoint", t.Endpoint.ID.String(), "error", err)
		compiled = filter.Closed(err)
	}
	t.Content = compiled
}

// fail makes the deliveries of an endpoint fail until the endpoint is loaded again. Other keys of its environment change nothing.
func (m *Maker) fail(t *Target, err error) {
	t.identity = nil
	m.unsigned(t, err)
}

// unsigned makes the deliveries of an endpoint fail until there are other keys.
func (m *Maker) unsigned(t *Target, err error) {
	t.broken, t.sealed = err, false
	m.cfg.Log.Error("endpoint cannot be sent to", "endpoint", t.Endpoint.ID.String(), "error", err)
}

func (m *Maker) fill(t *Target) error {
	var err error
	if t.Profile, err = profile.Lookup(t.Endpoint.Profile); err != nil {
		t.Policy = m.terms.fallback()
		return err
	}
	t.Endpoint.Profile = t.Profile.Name()
	terms := m.terms.of(t.Profile, &t.Endpoint.Policy)
	if terms.refused != nil {
		m.cfg.Log.Warn("stored policy does not hold any more, the profile's is used", "endpoint", t.Endpoint.ID.String(), "error", terms.refused)
	}
	t.Policy, t.follow = &terms.policy, terms.follow
	return nil
}

// open opens the header values and the credential of an endpoint.
func (m *Maker) open(t *Target) error {
	if len(t.Endpoint.Sealed) > 0 {
		plain, err := m.cfg.Ring.Open(t.Endpoint.Sealed, keyring.ForEndpoint(t.Endpoint.ID))
		if err != nil {
			return errCannotOpen
		}
		var secrets godwit.EndpointSecrets
		if err := json.Unmarshal(plain, &secrets); err != nil {
			return errCannotOpen
		}
		return m.useSecrets(t, &secrets)
	}
	return nil
}

func (m *Maker) useSecrets(t *Target, s *godwit.EndpointSecrets) error {
	t.headers, t.auth = s.Headers, s.Auth
	if s.Auth == nil {
		return nil
	}
	var err error
	switch s.Auth.Kind {
	case godwit.AuthOAuth2:
		t.token, err = oauth2cc.New(m.cfg.Sender, oauth2cc.Config{
			TokenURL: s.Auth.TokenURL, ClientID: s.Auth.ClientID, ClientSecret: s.Auth.ClientSecret,
			Scopes: s.Auth.Scopes, Audience: s.Auth.Audience, Clock: m.cfg.Clock.Now,
		})
	case godwit.AuthMTLS:
		cert, err := tls.X509KeyPair([]byte(s.Auth.CertificatePEM), []byte(s.Auth.PrivateKeyPEM))
		if err != nil {
			return errors.New("client certificate and key do not fit together")
		}
		t.cert = &cert
	}
	return err
}

// sign makes the signer from the live secrets, and notes when the set of live secrets changes next.
func (m *Maker) sign(t *Target, now time.Time) (err error) {
	t.signer = nil
	if t.identity != nil {
		t.keys = t.identity.current()
		t.signer, t.signerUntil, err = t.keys.signer(m, t.Profile, t.Policy.Rotation, now)
		return err
	}
	t.signer, t.signerUntil, err = m.signer(t.Profile, unpackSecrets(t.secrets), t.Policy.Rotation, now)
	return err
}

// signer makes a signer from the live secrets. until is when the set of live secrets changes, also without a signer: a secret may become live.
func (m *Maker) signer(prof profile.Profile, secrets []godwit.Secret, rotation string, now time.Time) (signer profile.Signer, until time.Time, err error) {
	var live []*godwit.Secret
	for i := range secrets {
		s := &secrets[i]
		for _, edge := range []time.Time{s.NotBefore, s.ExpiresAt} {
			if edge.After(now) {
				until = clock.Earliest(until, edge)
			}
		}
		if s.LiveAt(now) {
			live = append(live, s)
		}
	}
	var keys []profile.SigningKey
	for _, s := range signing(live, rotation) {
		material, err := m.cfg.Ring.Open(s.Sealed, keyring.ForSecret(s.ID))
		if err != nil {
			return nil, until, errCannotOpen
		}
		keys = append(keys, profile.SigningKey{ID: s.ID.String(), Algorithm: s.Algorithm, Secret: material})
	}
	if len(keys) == 0 {
		return nil, until, errors.New("there is no live secret to sign with: rotate the secret of the endpoint, or the signing keys of the environment")
	}
	if signer, err = prof.NewSigner(keys); err != nil {
		return nil, until, fmt.Errorf("prepare signer: %w", err)
	}
	return signer, until, nil
}

// signing chooses which live secrets sign, and in which order: a receiver that reads only one signature must find there the
// secret it knows.
func signing(live []*godwit.Secret, rotation string) []*godwit.Secret {
	slices.SortStableFunc(live, func(a, b *godwit.Secret) int {
		if order := b.CreatedAt.Compare(a.CreatedAt); order != 0 || a.ExpiresAt.Equal(b.ExpiresAt) {
			return order
		}
		// Secrets made at the same time: a new secret sets the expiry of the older ones.
		if a.ExpiresAt.IsZero() || !b.ExpiresAt.IsZero() && a.ExpiresAt.After(b.ExpiresAt) {
			return -1
		}
		return 1
	})
	switch {
	case rotation == godwit.RotationOldFirst:
		slices.Reverse(live)
	case rotation == godwit.RotationOldOnly && len(live) > 1:
		live = live[len(live)-1:]
	}
	return live
}

// signerFor returns the signer for an event. A relayed event is signed in the name of its origin.
func (t *Target) signerFor(e *godwit.Event) (profile.Signer, error) {
	if len(e.KeptHeaders) == 0 && e.Origin.IsZero() {
		return t.signer, nil
	}
	carrier, ok := t.signer.(profile.Carrier)
	if !ok {
		return t.signer, nil
	}
	return carrier.For(e)
}

// Current reports whether the target's secrets are open and its signer's keys are live at now.
func (t *Target) Current(now time.Time) bool {
	return !t.sealed && (t.signerUntil.IsZero() || now.Before(t.signerUntil)) && (t.identity == nil || t.identity.keys.Load() == t.keys)
}

// Current returns the target with open secrets and a signer whose keys are live at now. It returns t itself if it is current.
func (m *Maker) Current(t *Target, now time.Time) *Target {
	if t.Current(now) {
		return t
	}
	next := *t
	if !t.sealed {
		next.broken = m.sign(&next, now)
		return &next
	}
	next.sealed = false
	if err := m.open(&next); err != nil {
		m.fail(&next, err)
		return &next
	}
	if err := m.sign(&next, now); err != nil {
		m.unsigned(&next, err)
	}
	return &next
}

// prepare adds the credential and the signature to one hop's request. The credential goes to the endpoint's own origin only.
// prepare returns the token it used, if any.
func (t *Target) prepare(r *http.Request, signer profile.Signer, body []byte, otherOrigin bool, now time.Time) (token string, err error) {
	if !otherOrigin {
		for name, value := range t.headers {
			r.Header[http.CanonicalHeaderKey(name)] = []string{value}
		}
		if token, err = t.authorize(r); err != nil {
			return "", err
		}
	}
	return token, signer.Sign(r, body, now)
}

// hasCredential reports whether requests carry headers that only the endpoint's own origin may see.
func (t *Target) hasCredential() bool { return t.auth != nil || len(t.headers) > 0 }

func sameOrigin(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Host, v.Host)
}

func (t *Target) authorize(r *http.Request) (token string, err error) {
	switch {
	case t.auth == nil:
	case t.token != nil:
		if token, err = t.token.Token(r.Context()); err != nil {
			return "", err
		}
		r.Header["Authorization"] = []string{"Bearer " + token}
	case t.auth.Kind == godwit.AuthBearer:
		r.Header["Authorization"] = []string{"Bearer " + t.auth.Token}
	case t.auth.Kind == godwit.AuthBasic:
		r.SetBasicAuth(t.auth.Username, t.auth.Password)
	}
	return token, nil
}
