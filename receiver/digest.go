package receiver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
)

// A Digest is the SHA-256 under which a store remembers a value. The sender's own text does not reach the store.
type Digest [sha256.Size]byte

// String is the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether the digest is the zero digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// ParseDigest reads the hex form; "" is the zero digest.
func ParseDigest(text string) (Digest, bool) {
	var d Digest
	if text == "" {
		return d, true
	}
	if len(text) != hex.EncodedLen(len(d)) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil
}

var digests = sync.Pool{New: func() any { return &digest{hash: sha256.New()} }}

// digest hashes the parts, each preceded by its length, so that two different lists have different digests (EDS-KEY-5).
type digest struct {
	hash    hash.Hash
	scratch []byte
}

func newDigest() *digest {
	d := digests.Get().(*digest)
	d.hash.Reset()
	return d
}

func (d *digest) bytes(part []byte) {
	d.scratch = binary.BigEndian.AppendUint64(d.scratch[:0], uint64(len(part)))
	d.hash.Write(d.scratch)
	d.hash.Write(part)
}

func (d *digest) text(part string) {
	d.scratch = append(binary.BigEndian.AppendUint64(d.scratch[:0], uint64(len(part))), part...)
	d.hash.Write(d.scratch)
}

func (d *digest) sum() (sum Digest) {
	d.scratch = d.hash.Sum(d.scratch[:0])
	copy(sum[:], d.scratch)
	digests.Put(d)
	return sum
}

// ScopeOf is the id under which a delivery is remembered: principal, address in normal form, and key (IKH-SEC-6).
func ScopeOf(principal, uri, key string) Digest {
	d := newDigest()
	d.text(principal)
	d.text(normalURI(uri))
	d.text(key)
	return d.sum()
}

// FingerprintOf covers the parts that a sender must not change under one key: media type and body.
func FingerprintOf(contentType string, body []byte) Digest {
	d := newDigest()
	d.text(mediaType(contentType))
	d.bytes(body)
	return d.sum()
}

// mediaType is the type without parameters, in lower case. For a malformed type it is the text before the semicolon.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
