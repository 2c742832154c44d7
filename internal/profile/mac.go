package profile

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// The Open Job Spec and CYBERCUBE sign alike: HMAC-SHA256 of "<seconds>.<body>", the key being the bytes of the whole
// secret with its prefix, not of what it encodes (OJS-SIG-2, OJS-SIG-3, CCW-SIG-2, CCW-SIG-3).

const secretPrefix = "whsec_"

// newTextSecret makes a secret of 32 random bytes (OJS-SUB-7, CCW-SEC-1).
func newTextSecret() KeyMaterial {
	var b [32]byte
	rand.Read(b[:])
	text := secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return KeyMaterial{Secret: []byte(text), Display: text}
}

// SignSHA256 signs a body as sent at a time in Unix seconds: "sha256=" and the MAC in hex.
func SignSHA256(body []byte, secret string, timestamp int64) string {
	return string(newMACKey([]byte(secret)).appendSignature(nil, strconv.FormatInt(timestamp, 10), body))
}

// macKey is an HMAC-SHA256 key, ready for concurrent use.
type macKey struct{ states sync.Pool }

// macState keeps the state of a MAC, so that signing allocates nothing.
type macState struct {
	mac hash.Hash
	buf [96]byte
}

func newMACKey(secret []byte) *macKey {
	own := append([]byte(nil), secret...)
	k := &macKey{}
	k.states.New = func() any { return &macState{mac: hmac.New(sha256.New, own)} }
	return k
}

// sum is the MAC of the prefix, a dot and the body.
func (k *macKey) sum(prefix string, body []byte) (mac [sha256.Size]byte) {
	s := k.states.Get().(*macState)
	s.mac.Reset()
	s.mac.Write(append(append(s.buf[:0], prefix...), '.'))
	s.mac.Write(body)
	copy(mac[:], s.mac.Sum(s.buf[:0]))
	k.states.Put(s)
	return mac
}

func (k *macKey) appendSignature(dst []byte, timestamp string, body []byte) []byte {
	mac := k.sum(timestamp, body)
	return hex.AppendEncode(append(dst, "sha256="...), mac[:])
}

// textSigner signs with text secrets: a time, and a signature for each key in one field, separated by commas
// (OJS-ROT-4, CCW-SEC-10).
type textSigner struct {
	timestamp, signature string // names of the fields, in canonical form
	keys                 []*macKey
	ids                  []string
}

func newTextSigner(p Profile, timestamp, signature string, keys []SigningKey) (*textSigner, error) {
	s := &textSigner{timestamp: timestamp, signature: signature}
	for _, k := range keys {
		if k.Algorithm != godwit.AlgorithmHMAC {
			return nil, fmt.Errorf("key %s: profile %s has no algorithm %q", k.ID, p.Name(), k.Algorithm)
		}
		s.keys = append(s.keys, newMACKey(k.Secret))
		s.ids = append(s.ids, k.ID)
	}
	return s, nil
}

// Sign gives every attempt a new time: a receiver with a tolerance of five minutes accepts a retry of tomorrow (OT-3,
// OJS-RTY-8, CCW-SIG-5).
func (s *textSigner) Sign(r *http.Request, body []byte, now time.Time) error {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	var buf [160]byte
	list := buf[:0]
	for i, k := range s.keys {
		if i > 0 {
			list = append(list, ',')
		}
		list = k.appendSignature(list, timestamp, body)
	}
	values := [...]string{timestamp, string(list)}
	r.Header[s.timestamp] = values[0:1:1]
	r.Header[s.signature] = values[1:2:2]
	return nil
}

func (s *textSigner) KeyIDs() []string { return s.ids }
