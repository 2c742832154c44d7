package attempt

import (
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
