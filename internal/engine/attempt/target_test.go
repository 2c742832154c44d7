package attempt

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
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
