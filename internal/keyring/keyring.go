// Package keyring encrypts values that must not be readable in the database: signing keys, custom header values,
// credentials. It uses AES-256-GCM with a random nonce. The id of the sealing key precedes each value, so that keys can be
// rotated: add a new key in front, re-encrypt, remove the old one.
//
// The package reads keys only in their text form, does not know where they are stored, and never prints one.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrNoKey reports a value sealed by a key that the ring does not hold.
var ErrNoKey = errors.New("sealed with a key that is not in the key ring")

// ErrSealed reports a value that was damaged, or that was sealed for another context.
var ErrSealed = errors.New("sealed value does not open")

const (
	version   = 1
	maxIDSize = 32
)

// A Ring seals with its first key and opens with any of its keys.
type Ring struct {
	active string
	keys   map[string]cipher.AEAD
}

// Parse reads a key ring: entries `id:base64-of-32-bytes`, separated by line breaks or commas. The first key seals. Empty
// lines and lines that begin with '#' are ignored.
func Parse(text string) (*Ring, error) {
	r := &Ring{keys: map[string]cipher.AEAD{}}
	for i, line := range strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == ',' }) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, encoded, ok := strings.Cut(line, ":")
		if !ok || id == "" || len(id) > maxIDSize {
			return nil, fmt.Errorf("key ring entry %d: want id:base64, with an id of 1 to %d characters", i+1, maxIDSize)
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != 32 {
			return nil, fmt.Errorf("key ring entry %d (%s): want the base64 form of 32 bytes", i+1, id)
		}
		if _, twice := r.keys[id]; twice {
			return nil, fmt.Errorf("key ring entry %d: id %s occurs twice", i+1, id)
		}
		if r.keys[id], err = newAEAD(key); err != nil {
			return nil, err
		}
		if r.active == "" {
			r.active = id
		}
	}
	if r.active == "" {
		return nil, errors.New("key ring is empty: make a key with `godwit keys ring`")
	}
	return r, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Generate returns a key ring entry with a random key.
func Generate(id string) string {
	var key [32]byte
	rand.Read(key[:])
	return id + ":" + base64.StdEncoding.EncodeToString(key[:])
}

// Active returns the id of the key that seals.
func (r *Ring) Active() string { return r.active }

// Seal encrypts a value for one context: it opens only with the same bound.
func (r *Ring) Seal(plain []byte, bound string) []byte {
	aead := r.keys[r.active]
	out := make([]byte, 0, 2+len(r.active)+aead.NonceSize()+len(plain)+aead.Overhead())
	out = append(out, version, byte(len(r.active)))
	out = append(out, r.active...)
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	out = append(out, nonce...)
	return aead.Seal(out, nonce, plain, []byte(bound))
}

// Open decrypts a value sealed for the same bound.
func (r *Ring) Open(sealed []byte, bound string) ([]byte, error) {
	id, rest, err := split(sealed)
	if err != nil {
		return nil, err
	}
	aead, ok := r.keys[id]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrNoKey, id)
	}
	if len(rest) < aead.NonceSize() {
		return nil, ErrSealed
	}
	plain, err := aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], []byte(bound))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

// Stale reports whether the value was sealed with a key other than the active one.
func (r *Ring) Stale(sealed []byte) bool {
	id, _, err := split(sealed)
	return err != nil || id != r.active
}

func split(sealed []byte) (id string, rest []byte, err error) {
	if len(sealed) < 2 || sealed[0] != version || len(sealed) < 2+int(sealed[1]) {
		return "", nil, ErrSealed
	}
	n := 2 + int(sealed[1])
	return string(sealed[2:n]), sealed[n:], nil
}
