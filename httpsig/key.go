package httpsig

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"sync"
)

// Algorithm is a name from the "HTTP Signature Algorithms" registry.
type Algorithm string

// The supported algorithms.
const (
	HMACSHA256 Algorithm = "hmac-sha256"
	Ed25519    Algorithm = "ed25519"
)

// MinSecretBytes is the shortest shared secret that [NewHMACKey] takes.
const MinSecretBytes = 16

// ErrUnknownKey is returned by a key lookup that finds no key with the given id.
var ErrUnknownKey = errors.New("unknown key")

// Key is a key with its id and its algorithm. Key material is used only to sign and verify: printing or encoding a Key shows
// the id and the algorithm. A Key may be copied and used concurrently. Make it once and keep it, since an HMAC key carries
// prepared state.
type Key struct {
	ID        string
	Algorithm Algorithm

	material *material
}

type material struct {
	params  string // `;keyid="…"`, as it goes into the signature parameters
	macs    sync.Pool
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

// NewHMACKey makes a key for hmac-sha256 that signs and verifies.
func NewHMACKey(id string, secret []byte) (Key, error) {
	if len(secret) < MinSecretBytes {
		return Key{}, fmt.Errorf("make hmac key %q: secret has %d bytes, needs %d", id, len(secret), MinSecretBytes)
	}
	own := append([]byte(nil), secret...)
	m := &material{}
	m.macs.New = func() any { return hmac.New(sha256.New, own) }
	return newKey(id, HMACSHA256, m)
}

// WithID returns the same key under another id. A signer that acts for several parties uses it so that receivers can tell
// the parties apart.
func (k Key) WithID(id string) (Key, error) {
	if k.material == nil {
		return Key{}, errors.New("rename key: key is empty")
	}
	m := &material{private: k.material.private, public: k.material.public}
	m.macs.New = k.material.macs.New
	return newKey(id, k.Algorithm, m)
}

// NewEd25519Signer makes a key for ed25519 that signs and verifies.
func NewEd25519Signer(id string, private ed25519.PrivateKey) (Key, error) {
	if len(private) != ed25519.PrivateKeySize {
		return Key{}, fmt.Errorf("make ed25519 key %q: private key has %d bytes, needs %d", id, len(private), ed25519.PrivateKeySize)
	}
	own := append(ed25519.PrivateKey(nil), private...)
	return newKey(id, Ed25519, &material{private: own, public: own.Public().(ed25519.PublicKey)})
}

// NewEd25519Verifier makes a key for ed25519 that only verifies.
func NewEd25519Verifier(id string, public ed25519.PublicKey) (Key, error) {
	if len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("make ed25519 key %q: public key has %d bytes, needs %d", id, len(public), ed25519.PublicKeySize)
	}
	return newKey(id, Ed25519, &material{public: append(ed25519.PublicKey(nil), public...)})
}

func newKey(id string, algorithm Algorithm, m *material) (Key, error) {
	params, err := appendStringParam(nil, "keyid", id)
	if err != nil {
		return Key{}, fmt.Errorf("make %s key: %w", algorithm, err)
	}
	m.params = string(params)
	return Key{ID: id, Algorithm: algorithm, material: m}, nil
}

// String returns the id and the algorithm, never the key material.
func (k Key) String() string { return string(k.Algorithm) + " " + k.ID }

// appendSignature signs base and appends the raw signature to dst.
func (k Key) appendSignature(dst, base []byte) ([]byte, error) {
	switch {
	case k.material == nil:
		return dst, errors.New("key is empty")
	case k.Algorithm == HMACSHA256 && k.material.macs.New != nil:
		mac := k.material.macs.Get().(hash.Hash)
		mac.Reset()
		mac.Write(base)
		dst = mac.Sum(dst)
		k.material.macs.Put(mac)
		return dst, nil
	case k.Algorithm == Ed25519 && k.material.private != nil:
		return append(dst, ed25519.Sign(k.material.private, base)...), nil
	}
	return dst, fmt.Errorf("key %q cannot sign", k.ID)
}

// usable reports whether the key can verify: a constructor made it, and its algorithm was not changed since.
func (k Key) usable() bool {
	if k.material == nil {
		return false
	}
	return k.Algorithm == HMACSHA256 && k.material.macs.New != nil ||
		k.Algorithm == Ed25519 && k.material.public != nil
}

// verify reports whether signature is the key's signature of base. HMACs are compared in constant time.
func (k Key) verify(base, signature []byte) bool {
	if k.Algorithm == Ed25519 {
		return ed25519.Verify(k.material.public, base, signature)
	}
	var sum [sha256.Size]byte
	want, err := k.appendSignature(sum[:0], base)
	return err == nil && hmac.Equal(want, signature)
}
