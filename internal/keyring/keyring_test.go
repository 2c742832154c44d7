package keyring

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestSealAndOpen(t *testing.T) {
	r, err := Parse(Generate("k1"))
	if err != nil {
		t.Fatal(err)
	}
	sealed := r.Seal([]byte("hush"), "secret:1")
	if bytes.Contains(sealed, []byte("hush")) {
		t.Error("sealed value shows its plain text")
	}
	if plain, err := r.Open(sealed, "secret:1"); err != nil || string(plain) != "hush" {
		t.Errorf("opened %q, %v", plain, err)
	}
	if bytes.Equal(sealed, r.Seal([]byte("hush"), "secret:1")) {
		t.Error("two seals are equal: the nonce is not random")
	}
}

func TestSealedValueStaysInItsPlace(t *testing.T) {
	r, _ := Parse(Generate("k1"))
	sealed := r.Seal([]byte("hush"), "secret:1")
	if _, err := r.Open(sealed, "secret:2"); !errors.Is(err, ErrSealed) {
		t.Errorf("opened for another place: %v", err)
	}
	for i := range sealed {
		broken := bytes.Clone(sealed)
		broken[i] ^= 1
		if _, err := r.Open(broken, "secret:1"); err == nil {
			t.Errorf("opened with byte %d changed", i)
		}
	}
}

func TestRotation(t *testing.T) {
	old := Generate("old")
	before, _ := Parse(old)
	sealed := before.Seal([]byte("hush"), "x")
	after, err := Parse("# new first\n" + Generate("new") + "\n" + old + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if after.Active() != "new" || !after.Stale(sealed) {
		t.Error("the first key seals, and what the old one sealed is stale")
	}
	plain, err := after.Open(sealed, "x")
	if err != nil {
		t.Fatal(err)
	}
	if again := after.Seal(plain, "x"); after.Stale(again) {
		t.Error("a new seal is stale")
	}
	only, _ := Parse(Generate("new"))
	if _, err := only.Open(sealed, "x"); !errors.Is(err, ErrNoKey) {
		t.Errorf("without the old key: %v", err)
	}
}

func TestParseRefusesAndNeverRepeatsAKey(t *testing.T) {
	secret := strings.Repeat("s", 44)
	for _, text := range []string{"", "#", "noid", ":" + secret, "k:" + secret, "k:AAAA", Generate("a") + "," + Generate("a"), strings.Repeat("k", 33) + ":AAAA"} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%q was taken", text)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("error shows the key: %v", err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	r, _ := Parse(Generate("k"))
	f.Add(r.Seal([]byte("x"), "y"))
	f.Add([]byte{1, 255})
	f.Fuzz(func(t *testing.T, sealed []byte) {
		r.Open(sealed, "y")
		r.Stale(sealed)
	})
}
