package profile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// standardWebhooks is the Standard Webhooks specification 1.0: the producer's exact bytes, signed together with the
// event's id and the attempt's time, symmetrically (v1) or with Ed25519 (v1a).
type standardWebhooks struct{}

func init() { register(standardWebhooks{}) }

func (standardWebhooks) Name() string { return "standard-webhooks" }

// Defaults: eight attempts within 27 h 35 min of waiting, lengthened by jitter; the three days leave room for longer
// Retry-After waits.
func (standardWebhooks) Defaults() godwit.Policy {
	return godwit.Policy{
		Schedule:      seconds(5, 5*60, 30*60, 2*3600, 5*3600, 10*3600, 10*3600),
		MaxRetries:    7,
		MaxElapsed:    3 * 24 * time.Hour,
		Timeout:       30 * time.Second,
		Concurrency:   32,
		HoldScope:     godwit.HoldEndpoint,
		DisableAfter:  10,
		CircuitAfter:  10,
		ProbeInterval: 5 * time.Second,
		DedupWindow:   7 * 24 * time.Hour,
		Rotation:      godwit.RotationBoth,
	}
}

func (standardWebhooks) Algorithms() []string {
	return []string{godwit.AlgorithmHMAC, godwit.AlgorithmEd25519}
}

// The text forms of keys: base64 with a prefix that names the kind.
const (
	privatePrefix  = "whsk_"
	publicPrefix   = "whpk_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

// NewKey makes a key. For an Ed25519 pair the owner sees the public half, whpk_…, which receivers need; the private half stays
// here.
func (p standardWebhooks) NewKey(algorithm string) (KeyMaterial, error) {
	var b [32]byte
	rand.Read(b[:])
	switch algorithm {
	case godwit.AlgorithmHMAC:
		return KeyMaterial{Secret: b[:], Display: p.ShowKey(algorithm, b[:])}, nil
	case godwit.AlgorithmEd25519:
		return edMaterial(b[:]), nil
	}
	return KeyMaterial{}, fmt.Errorf("profile %s has no algorithm %q", p.Name(), algorithm)
}

func (standardWebhooks) ShowKey(algorithm string, secret []byte) string {
	if algorithm == godwit.AlgorithmEd25519 {
		return edMaterial(secret).Display
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

func edMaterial(seed []byte) KeyMaterial {
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return KeyMaterial{Secret: seed, Public: public, Display: publicPrefix + base64.StdEncoding.EncodeToString(public)}
}

// ImportKey accepts whsec_ with 24 to 64 bytes, or whsk_ with a seed, optionally followed by its public key; both forms are in
// use.
func (p standardWebhooks) ImportKey(algorithm, text string) (KeyMaterial, error) {
	switch algorithm {
	case godwit.AlgorithmHMAC:
		secret, ok := prefixedBase64(secretPrefix, text)
		if !ok || len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
			return KeyMaterial{}, fmt.Errorf("must be %q followed by base64 of %d to %d bytes", secretPrefix, minSecretBytes, maxSecretBytes)
		}
		return KeyMaterial{Secret: secret, Display: text}, nil
	case godwit.AlgorithmEd25519:
		key, ok := prefixedBase64(privatePrefix, text)
		if ok && len(key) == ed25519.PrivateKeySize {
			ok = bytes.Equal(ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]), key)
			key = key[:ed25519.SeedSize]
		}
		if !ok || len(key) != ed25519.SeedSize {
			return KeyMaterial{}, fmt.Errorf("must be %q followed by base64 of an Ed25519 private key", privatePrefix)
		}
		return edMaterial(key), nil
	}
	return KeyMaterial{}, fmt.Errorf("profile %s has no algorithm %q", p.Name(), algorithm)
}

func prefixedBase64(prefix, text string) ([]byte, bool) {
	encoded, ok := strings.CutPrefix(text, prefix)
	if !ok || strings.ContainsAny(encoded, "\r\n") { // the decoder ignores line breaks
		return nil, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return b, err == nil
}

// The fields of a delivery.
const (
	fieldSWID        = "Webhook-Id"
	fieldSWTimestamp = "Webhook-Timestamp"
	fieldSWSignature = "Webhook-Signature"
)

// Render uses the event's own id, the same for every attempt and endpoint. It never uses the producer's id, which might hold a
// dot and change the boundaries of the signed text.
func (standardWebhooks) Render(m Message) (http.Header, []byte) {
	values := [...]string{m.Event.ContentType, QuoteKey(m.Event.Key), m.Event.ID.String(), userAgent}
	h := make(http.Header, 8)
	for i, name := range [...]string{"Content-Type", fieldKey, fieldSWID, "User-Agent"} {
		h[name] = values[i : i+1 : i+1]
	}
	keep(h, m.Event, false)
	return h, m.Event.Body
}

// FollowStatuses: none. The specification asks to correct the URL instead.
func (standardWebhooks) FollowStatuses() []int { return nil }

// Classify: every status but 2xx failed and is retried, except 410, which disables. A Retry-After on any of them is a lower
// bound of the schedule's delay.
func (standardWebhooks) Classify(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict {
	v := classifyBy(persistent, x, p)
	v.DisableEndpoint = gone(x, &v)
	if x.Failure == nil && v.Outcome == godwit.Transient {
		v.RetryAfter = retryAfter(x.Header, now)
	}
	return v
}

func persistent(code int) godwit.Outcome {
	switch {
	case code >= 200 && code <= 299:
		return godwit.Accepted
	case code == http.StatusGone:
		return godwit.Terminal
	}
	return godwit.Transient
}

// swKey is one key; exactly one of its members is set.
type swKey struct {
	mac     *macKey
	private ed25519.PrivateKey
}

type swSigner struct {
	keys []swKey
	ids  []string
}

func (p standardWebhooks) NewSigner(keys []SigningKey) (Signer, error) {
	s := &swSigner{}
	for _, k := range keys {
		var key swKey
		switch {
		case k.Algorithm == godwit.AlgorithmHMAC:
			key.mac = newMACKey(k.Secret)
		case k.Algorithm != godwit.AlgorithmEd25519:
			return nil, fmt.Errorf("key %s: profile %s has no algorithm %q", k.ID, p.Name(), k.Algorithm)
		case len(k.Secret) != ed25519.SeedSize:
			return nil, fmt.Errorf("key %s: not an ed25519 seed", k.ID)
		default:
			key.private = ed25519.NewKeyFromSeed(k.Secret)
		}
		s.keys = append(s.keys, key)
		s.ids = append(s.ids, k.ID)
	}
	return s, nil
}

// Sign signs "<id>.<seconds>.<body>" with each key; the signatures are in one field, separated by spaces.
func (s *swSigner) Sign(r *http.Request, body []byte, now time.Time) error {
	id := r.Header.Get(fieldSWID)
	if id == "" {
		return fmt.Errorf("sign: the request has no %s", fieldSWID)
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signed := id + "." + timestamp
	var buf [160]byte
	list := buf[:0]
	for i := range s.keys {
		if i > 0 {
			list = append(list, ' ')
		}
		list = s.keys[i].appendSignature(list, signed, body)
	}
	values := [...]string{timestamp, string(list)}
	r.Header[fieldSWTimestamp] = values[0:1:1]
	r.Header[fieldSWSignature] = values[1:2:2]
	return nil
}

func (k *swKey) appendSignature(dst []byte, prefix string, body []byte) []byte {
	if k.mac != nil {
		mac := k.mac.sum(prefix, body)
		return base64.StdEncoding.AppendEncode(append(dst, "v1,"...), mac[:])
	}
	message := make([]byte, 0, len(prefix)+1+len(body))
	message = append(append(append(message, prefix...), '.'), body...)
	return base64.StdEncoding.AppendEncode(append(dst, "v1a,"...), ed25519.Sign(k.private, message))
}

func (s *swSigner) KeyIDs() []string { return s.ids }
