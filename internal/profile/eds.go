package profile

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// eds is the native dialect, after the Event and Webhook Delivery Semantics draft: the producer's exact bytes and media
// type, an RFC 9421 signature made anew for every attempt, the draft's own status table and full-jitter back-off.
type eds struct{}

func init() { register(eds{}) }

func (eds) Name() string { return "eds" }

// Defaults: the expected run of retries is about 7.6 hours, the longest 15.3, below the 24 hours for which receivers are
// expected to remember keys (EDS T-10).
func (eds) Defaults() godwit.Policy {
	return godwit.Policy{
		Base:          time.Second,
		Cap:           600 * time.Second,
		MaxRetries:    100,
		MaxElapsed:    23 * time.Hour,
		Timeout:       30 * time.Second,
		Concurrency:   32,
		HoldScope:     godwit.HoldEndpoint,
		DisableAfter:  10,
		CircuitAfter:  10,
		ProbeInterval: 5 * time.Second,
		MaxHops:       3,
		RefreshOn401:  true, // every attempt is signed anew, which renews the signature (EDS T-26)
		DedupWindow:   24 * time.Hour,
	}
}

func (eds) Algorithms() []string { return []string{godwit.AlgorithmHMAC, godwit.AlgorithmEd25519} }

func (p eds) NewKey(algorithm string) (KeyMaterial, error) {
	switch algorithm {
	case godwit.AlgorithmHMAC:
		secret := make([]byte, 32)
		rand.Read(secret)
		return KeyMaterial{Secret: secret, Display: p.ShowKey(algorithm, secret)}, nil
	case godwit.AlgorithmEd25519:
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return KeyMaterial{}, fmt.Errorf("make ed25519 key: %w", err)
		}
		return KeyMaterial{Secret: private.Seed(), Public: public}, nil
	}
	return KeyMaterial{}, fmt.Errorf("profile eds has no algorithm %q", algorithm)
}

func (eds) sharesKeys() {}

func (eds) ShowKey(algorithm string, secret []byte) string {
	if algorithm == godwit.AlgorithmEd25519 {
		return "" // receivers need the public key alone, which is published
	}
	return base64.StdEncoding.EncodeToString(secret)
}

func (eds) ImportKey(algorithm, text string) (KeyMaterial, error) {
	secret, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return KeyMaterial{}, fmt.Errorf("must be base64")
	case algorithm == godwit.AlgorithmHMAC && len(secret) >= 32 && len(secret) <= 128:
		return KeyMaterial{Secret: secret, Display: text}, nil
	case algorithm == godwit.AlgorithmHMAC:
		return KeyMaterial{}, fmt.Errorf("must be base64 of 32 to 128 bytes")
	case algorithm == godwit.AlgorithmEd25519 && len(secret) == ed25519.SeedSize:
		public := ed25519.NewKeyFromSeed(secret).Public().(ed25519.PublicKey)
		return KeyMaterial{Secret: secret, Public: public}, nil
	}
	return KeyMaterial{}, fmt.Errorf("must be base64 of an Ed25519 seed of %d bytes", ed25519.SeedSize)
}

// The fields that describe the event, beside those of the draft. They are signed, so that a receiver may route by them.
const (
	fieldEventID    = "Godwit-Event-Id"
	fieldEventType  = "Godwit-Event-Type"
	fieldDeliveryID = "Godwit-Delivery-Id"
	fieldAttempt    = "Godwit-Attempt"
	fieldKey        = "Idempotency-Key"
	fieldDigest     = "Content-Digest"
	userAgent       = "Godwit"
)

func (eds) Render(m Message) (http.Header, []byte) {
	values := [...]string{m.Event.ContentType, QuoteKey(m.Event.Key), m.Event.ID.String(), m.Event.Type,
		m.Delivery.ID.String(), strconv.Itoa(m.Attempt), userAgent}
	h := make(http.Header, 12)
	for i, name := range [...]string{"Content-Type", fieldKey, fieldEventID, fieldEventType, fieldDeliveryID, fieldAttempt, "User-Agent"} {
		h[name] = values[i : i+1 : i+1]
	}
	keep(h, m.Event, false)
	return h, m.Event.Body
}

// QuoteKey renders an idempotency key as a structured-field String. Keys are printable ASCII.
func QuoteKey(key string) string {
	if strings.ContainsAny(key, `"\`) {
		key = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)
	}
	return `"` + key + `"`
}

func (eds) FollowStatuses() []int { return []int{http.StatusTemporaryRedirect} }

func (eds) Classify(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict {
	return classifyEDS(x, p, now)
}

var edsComponents = append(httpsig.DeliveryComponents(), "godwit-event-id", "godwit-event-type")

type edsSigner struct {
	signer *httpsig.Signer
	keys   []httpsig.Key
	ids    []string
	keep   bool // existing signatures stay: they are the origin's
}

// edsRequestSigner is the same for all keys. Making it takes longer than all else that an endpoint's signer needs.
var edsRequestSigner = sync.OnceValues(func() (*httpsig.Signer, error) { return httpsig.NewSigner(edsComponents...) })

func (eds) NewSigner(keys []SigningKey) (Signer, error) {
	signer, err := edsRequestSigner()
	if err != nil {
		return nil, err
	}
	s := &edsSigner{signer: signer}
	for _, k := range keys {
		var key httpsig.Key
		switch k.Algorithm {
		case godwit.AlgorithmHMAC:
			key, err = httpsig.NewHMACKey(k.ID, k.Secret)
		case godwit.AlgorithmEd25519:
			if len(k.Secret) != ed25519.SeedSize {
				return nil, fmt.Errorf("key %s: not an ed25519 seed", k.ID)
			}
			key, err = httpsig.NewEd25519Signer(k.ID, ed25519.NewKeyFromSeed(k.Secret))
		default:
			err = fmt.Errorf("key %s: profile eds has no algorithm %q", k.ID, k.Algorithm)
		}
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, key)
		s.ids = append(s.ids, k.ID)
	}
	return s, nil
}

// Sign gives the attempt its own time and nonce: a retry two hours later must look neither stale nor replayed (EDS-SEC-RPL-4).
func (s *edsSigner) Sign(r *http.Request, body []byte, now time.Time) error {
	var nonce [16]byte
	godwit.Random(nonce[:])
	if !s.keep || r.Header[fieldDigest] == nil { // one that the origin signed was verified on receipt
		r.Header[fieldDigest] = []string{httpsig.ContentDigest(body)}
	}
	return s.signer.SignRequest(r, httpsig.Params{
		Keys:       s.keys,
		Created:    now,
		Nonce:      base64.RawURLEncoding.EncodeToString(nonce[:]),
		IncludeAlg: true,
		Keep:       s.keep,
	})
}

func (s *edsSigner) KeyIDs() []string { return s.ids }

// For signs for a relayed event. The key id names the event's origin, since a receiver's dedup scope follows the key id and
// keys are not rewritten (EDS T-14). It is the endpoint's own key under the id "<key id>/<origin>"; the id is signed.
// CloudEvents attributes in headers are covered, so that a receiver may route by them; an origin's own signature stays
// (EDS-INT-7).
func (s *edsSigner) For(e *godwit.Event) (Signer, error) {
	own := &edsSigner{signer: s.signer, keys: s.keys, ids: s.ids}
	if !e.Origin.IsZero() {
		own.keys, own.ids = nil, nil
		for _, key := range s.keys {
			key, err := key.WithID(key.ID + "/" + e.Origin.Tag())
			if err != nil {
				return nil, err
			}
			own.keys, own.ids = append(own.keys, key), append(own.ids, key.ID)
		}
	}
	components := edsComponents[:len(edsComponents):len(edsComponents)]
	for _, k := range e.KeptHeaders {
		name := strings.ToLower(k.Name)
		own.keep = own.keep || name == "signature"
		if strings.HasPrefix(name, "ce-") && ascii(k.Value) && !slices.Contains(components, name) {
			components = append(components, name)
		}
	}
	var err error
	if len(components) > len(edsComponents) {
		own.signer, err = httpsig.NewSigner(components...)
	}
	return own, err
}

// ascii: a signature covers only ASCII (RFC 9421, section 2.1).
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] > '~' {
			return false
		}
	}
	return true
}
