package godwit

import (
	"testing"
	"time"
)

func TestUsersAreKnownByIssuerAndSubject(t *testing.T) {
	const issuer = "https://id.example.com"
	ann := NewUser(issuer, "1", "ann@example.com")
	if again := NewUser(issuer, "1", "ann.b@example.com"); again.ID != ann.ID {
		t.Errorf("another name gives another id: %s and %s", ann.ID, again.ID)
	}
	for _, other := range []User{NewUser(issuer, "2", ann.Name), NewUser(issuer+"/", "1", ann.Name), NewUser(issuer+"\x001", "", ann.Name)} {
		if other.ID == ann.ID {
			t.Errorf("%q of %q has the id of another user", other.Subject, other.Issuer)
		}
	}
	if text := PrincipalText(KeyID(ann.ID)); text != ann.ID.String() {
		t.Errorf("the principal is %s, want %s", text, ann.ID)
	}
	if id, err := ParsePrincipal(ann.ID.String()); err != nil || id != KeyID(ann.ID) {
		t.Errorf("the principal of %s is %s, %v", ann.ID, id, err)
	}
	if key := NewKeyID(time.UnixMilli(1)); PrincipalText(key) != key.String() {
		t.Errorf("the principal of %s is %s", key, PrincipalText(key))
	}
}
