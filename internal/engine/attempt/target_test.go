package attempt

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// While two secrets are live, the policy decides which of them sign, and which signature comes first.
func TestSecretsThatSign(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	older := &godwit.Secret{Hint: "old", CreatedAt: now.Add(-time.Hour), ExpiresAt: now.Add(time.Hour)}
	newer := &godwit.Secret{Hint: "new", CreatedAt: now}
	twin := &godwit.Secret{Hint: "twin", CreatedAt: now, ExpiresAt: now.Add(time.Hour)} // replaced by newer at the same moment
	for _, c := range []struct {
		live     []*godwit.Secret
		rotation string
		want     string
	}{
		{[]*godwit.Secret{older, newer}, "", "new old"},
		{[]*godwit.Secret{older, newer}, godwit.RotationBoth, "new old"},
		{[]*godwit.Secret{newer, older}, godwit.RotationBoth, "new old"},
		{[]*godwit.Secret{newer, older}, godwit.RotationOldFirst, "old new"},
		{[]*godwit.Secret{newer, older}, godwit.RotationOldOnly, "old"},
		{[]*godwit.Secret{newer}, godwit.RotationOldOnly, "new"},
		{[]*godwit.Secret{twin, newer}, godwit.RotationBoth, "new twin"},
		{[]*godwit.Secret{newer, twin}, godwit.RotationOldFirst, "twin new"},
		{nil, godwit.RotationOldOnly, ""},
	} {
		var got []string
		for _, s := range signing(c.live, c.rotation) {
			got = append(got, s.Hint)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %v, want %s", c.rotation, got, c.want)
		}
	}
}

// The secrets of an endpoint are opened for its first request, not when it is loaded.
func TestSecretsAreOpenedForTheFirstRequest(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	ring, err := keyring.Parse(keyring.Generate("k1"))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMaker(Config{Ring: ring, Clock: clock.NewManual(now), Log: slog.New(slog.DiscardHandler)})
	secret := godwit.Secret{ID: godwit.NewSecretID(now), Algorithm: godwit.AlgorithmHMAC, CreatedAt: now}
	secret.Sealed = ring.Seal([]byte("0123456789abcdef0123456789abcdef"), keyring.ForSecret(secret.ID))
	loaded := &store.LoadedEndpoint{Endpoint: godwit.Endpoint{Profile: profile.Default}, Secrets: []godwit.Secret{secret}}
	t1 := m.Target(loaded)
	if t1.signer != nil || t1.broken != nil || t1.Current(now) {
		t.Errorf("loaded: %+v", t1)
	}
	t2 := m.Current(t1, now)
	if t2.signer == nil || t2.broken != nil || !t2.Current(now) || m.Current(t2, now) != t2 {
		t.Errorf("for the first request: %+v", t2)
	}
	loaded.Secrets[0].Sealed = []byte("of another ring")
	t3 := m.Current(m.Target(loaded), now)
	if t3.broken == nil || !t3.Current(now) {
		t.Errorf("with a secret that does not open: %+v", t3)
	}
}

// Endpoints that their environment signs for share a signer. From the moment at which a change of the keys is known, nothing is signed with those from
// before, also while the new ones cannot be read.
func TestEnvironmentKeysSign(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	ring, err := keyring.Parse(keyring.Generate("k1"))
	if err != nil {
		t.Fatal(err)
	}
	environment := godwit.NewEnvironmentID(now)
	key := func(at time.Time) godwit.Secret {
		s := godwit.Secret{ID: godwit.NewSecretID(at), TenantID: godwit.HomeOf(environment), EndpointID: godwit.KeysOf(environment), Algorithm: godwit.AlgorithmEd25519, CreatedAt: at}
		s.Sealed = ring.Seal([]byte("0123456789abcdef0123456789abcdef"), keyring.ForSecret(s.ID))
		return s
	}
	var stored []godwit.Secret
	var away error
	m := NewMaker(Config{Ring: ring, Clock: clock.NewManual(now), Log: slog.New(slog.DiscardHandler), Keys: func(context.Context, godwit.EnvironmentID) ([]godwit.Secret, error) {
		return stored, away
	}})
	load := func(sealed []byte) *Target {
		return m.Target(&store.LoadedEndpoint{Endpoint: godwit.Endpoint{Profile: profile.Default, Signing: godwit.SigningEnvironment, Sealed: sealed}, Environment: environment})
	}
	a, b, foreign := load(nil), load(nil), load([]byte("of another ring"))
	next := func() {
		a, b, foreign = m.Current(a, now), m.Current(b, now), m.Current(foreign, now)
		if !a.Current(now) || foreign.broken == nil || !foreign.Current(now) {
			t.Fatalf("not current: %+v; %+v", a, foreign)
		}
	}
	if next(); a.broken == nil {
		t.Error("signed without a key")
	}
	first := key(now)
	stored = []godwit.Secret{first}
	if err := m.KeysChanged(t.Context(), environment); err != nil {
		t.Fatal(err)
	}
	if next(); a.broken != nil || a.signer != b.signer || a.signer.KeyIDs()[0] != first.ID.String() {
		t.Errorf("with a key: %+v", a)
	}

	second := key(now.Add(time.Second))
	stored[0].ExpiresAt = now.Add(time.Hour)
	stored = []godwit.Secret{second, stored[0]}
	away = errors.New("the store is away")
	if err := m.KeysChanged(t.Context(), environment); !errors.Is(err, away) {
		t.Fatal(err)
	}
	if next(); a.broken == nil || a.signer != nil {
		t.Errorf("signed with keys that may have been revoked: %+v", a)
	}
	away = nil
	m.ReadKeysAgain(t.Context())
	if next(); a.broken != nil || len(a.signer.KeyIDs()) != 2 {
		t.Errorf("when they can be read again: %+v", a)
	}
	now = now.Add(time.Hour)
	if next(); a.broken != nil || len(a.signer.KeyIDs()) != 1 || a.signer.KeyIDs()[0] != second.ID.String() {
		t.Errorf("after the overlap: %+v", a)
	}
}

// Requests that start while changed keys are being read wait for them.
func TestRequestsWaitForChangedKeys(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	environment := godwit.NewEnvironmentID(now)
	reading, read := make(chan struct{}), make(chan struct{})
	m := NewMaker(Config{Clock: clock.NewManual(now), Log: slog.New(slog.DiscardHandler), Keys: func(context.Context, godwit.EnvironmentID) ([]godwit.Secret, error) {
		close(reading)
		<-read
		return nil, nil
	}})
	done := make(chan error)
	go func() { done <- m.KeysChanged(t.Context(), environment) }()
	<-reading
	found := m.identities.of(environment)
	waited := make(chan *keySet)
	go func() { waited <- found.current() }()
	close(read)
	if set := <-waited; set.err != nil || set != found.keys.Load() {
		t.Errorf("got %+v", set)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Endpoints with the same profile and overrides share a policy; others do not.
func TestEndpointsShareAPolicy(t *testing.T) {
	m := NewMaker(Config{Clock: clock.NewManual(time.Unix(1000, 0)), Log: slog.New(slog.DiscardHandler)})
	target := func(profile string, retries *int) *Target {
		return m.Target(&store.LoadedEndpoint{Endpoint: godwit.Endpoint{Profile: profile, Policy: godwit.PolicyOverrides{MaxRetries: retries}}})
	}
	plain, three := target(profile.Default, nil), target(profile.Default, new(3))
	if target(profile.Default, nil).Policy != plain.Policy || target(profile.Default, new(3)).Policy != three.Policy {
		t.Error("endpoints with the same terms have policies of their own")
	}
	if plain.Policy == three.Policy || three.Policy.MaxRetries != 3 || target("ojs", nil).Policy == plain.Policy {
		t.Error("endpoints with other terms share a policy")
	}
	if unknown := target("unknown", nil); unknown.broken == nil || unknown.Policy.MaxElapsed == 0 {
		t.Errorf("of a profile that is not known: %+v", unknown.Policy)
	}
}

// A target keeps what a signer needs of a secret.
func TestSecretsKeepWhatSigns(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	secret := godwit.Secret{ID: godwit.NewSecretID(now), Algorithm: godwit.AlgorithmEd25519, Sealed: []byte("sealed"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	got := unpackSecrets(packSecrets([]godwit.Secret{secret}))[0]
	if got.ID != secret.ID || got.Algorithm != secret.Algorithm || string(got.Sealed) != "sealed" || !got.CreatedAt.Equal(now) || !got.NotBefore.IsZero() || !got.ExpiresAt.Equal(secret.ExpiresAt) {
		t.Errorf("%+v, want %+v", got, secret)
	}
}
