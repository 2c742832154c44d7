package receiver

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
)

// EDS is the scheme of deliveries after the Event and Webhook Delivery Semantics draft: signed with HTTP Message Signatures
// (RFC 9421) and identified by Idempotency-Key.
type EDS struct {
	// Keys lists the accepted keys. Required unless KeyByID is set.
	Keys []EDSKey
	// KeyByID finds a key that is not among Keys, for example in a database; it returns [httpsig.ErrUnknownKey] if there
	// is none. Any other error is answered with 503. Defaults to none.
	KeyByID func(ctx context.Context, id string) (EDSKey, error)
	// Components that must be signed. Include content-digest and idempotency-key: an unsigned field can be forged. Defaults to
	// [httpsig.DeliveryComponents]: method, address, digest, type and key.
	Components []string
	// Tag selects signatures with this tag. Defaults to any, or none.
	Tag string
	// PutAgreement refers to the agreement that lets the producer use PUT. Without it only POST is accepted (EDS-MTH-2).
	PutAgreement string
}

// An EDSKey is a key of a producer.
type EDSKey struct {
	// ID is the keyid of the signatures. Required.
	ID string
	// Principal is the key's owner. Several keys of one owner are one principal, so that a rotation keeps it (EDS-KEY-6).
	// Required.
	Principal string
	// Secret is a shared secret, in base64 as the server shows it. This or PublicKey is required.
	Secret string
	// PublicKey is an Ed25519 public key, in base64 as the server shows it.
	PublicKey string
}

func (k EDSKey) prepare() (httpsig.Key, error) {
	if k.Principal == "" {
		return httpsig.Key{}, fmt.Errorf("eds: key %q has no principal", k.ID)
	}
	if (k.Secret == "") == (k.PublicKey == "") {
		return httpsig.Key{}, fmt.Errorf("eds: key %q needs either a secret or a public key", k.ID)
	}
	material := decodeBase64(k.Secret + k.PublicKey)
	if material == nil {
		return httpsig.Key{}, fmt.Errorf("eds: key %q is not base64", k.ID)
	}
	if k.PublicKey != "" {
		return httpsig.NewEd25519Verifier(k.ID, ed25519.PublicKey(material))
	}
	return httpsig.NewHMACKey(k.ID, material)
}

// Profile prepares the scheme.
func (s EDS) Profile() (Profile, error) {
	v := &edsVerifier{scheme: s, keys: make(map[string]ownedKey, len(s.Keys))}
	for _, k := range s.Keys {
		key, err := k.prepare()
		if err != nil {
			return Profile{}, err
		}
		if _, twice := v.keys[k.ID]; twice {
			return Profile{}, fmt.Errorf("eds: duplicate key %q; remove one", k.ID)
		}
		v.keys[k.ID] = ownedKey{key, k.Principal}
	}
	if len(v.keys) == 0 && s.KeyByID == nil {
		return Profile{}, errors.New("eds: no key; set Keys or KeyByID")
	}
	if s.Components == nil {
		v.scheme.Components = httpsig.DeliveryComponents()
	}
	for _, needed := range []string{"content-digest", "idempotency-key"} {
		if !slices.Contains(v.scheme.Components, needed) {
			return Profile{}, fmt.Errorf("eds: %s must be among the signed components; add it to Components", needed)
		}
	}
	if _, err := newEDSTurn(v, 0, false); err != nil {
		return Profile{}, fmt.Errorf("eds: %w", err)
	}
	p := Profile{
		Name: "eds", SignsTime: true, SignsTarget: slices.Contains(v.scheme.Components, "@target-uri"),
		Problems: true, KeySyntax: true, KeySource: "the header Idempotency-Key",
		Authenticate: v.authenticate,
		Identify:     identifyEDS,
		Success:      func(Identity) Answer { return Answer{Status: http.StatusNoContent} },
	}
	if s.PutAgreement != "" {
		p.Methods = []string{http.MethodPost, http.MethodPut}
	}
	return p, nil
}

type ownedKey struct {
	key   httpsig.Key
	owner string
}

// edsVerifier keeps prepared verifiers. Time and address differ between requests and are set before use.
type edsVerifier struct {
	scheme  EDS
	keys    map[string]ownedKey
	turns   sync.Pool // of *edsTurn
	keyless sync.Pool // of *edsTurn, for requests without a key
}

type edsTurn struct {
	verifier  *httpsig.Verifier
	tolerance time.Duration

	now   time.Time
	uri   string
	found map[string]string // owners of the keys that were looked up for this request
}

// newEDSTurn prepares a verifier. A missing key cannot be signed. A request without a key must still prove the rest; then its
// sender is told that the key is missing (IKH-ERR-1), and the request is refused.
func newEDSTurn(v *edsVerifier, tolerance time.Duration, keyless bool) (*edsTurn, error) {
	t := &edsTurn{tolerance: tolerance, found: map[string]string{}}
	components := v.scheme.Components
	if keyless {
		components = slices.DeleteFunc(slices.Clone(components), func(c string) bool { return c == "idempotency-key" })
	}
	o := httpsig.Options{
		RequiredComponents: components,
		Tag:                v.scheme.Tag,
		Now:                func() time.Time { return t.now },
		TargetURI:          func(*http.Request) string { return t.uri },
		KeyByID:            func(ctx context.Context, id string) (httpsig.Key, error) { return v.keyByID(ctx, t, id) },
	}
	switch {
	case tolerance < 0:
		o.MaxAge, o.MaxSkew = -1, 1<<62 // no freshness
	case tolerance == 0:
		o.MaxAge, o.MaxSkew = 1, 1 // a nanosecond: times are compared in whole seconds, and zero would mean the default
	default:
		o.MaxAge, o.MaxSkew = tolerance, tolerance
	}
	if tolerance >= 0 {
		// Makes a nonce required. The receiver's store tells after verification whether the nonce was seen before.
		o.NonceSeen = func(context.Context, string, string, time.Time) (bool, error) { return false, nil }
	}
	var err error
	t.verifier, err = httpsig.NewVerifier(o)
	return t, err
}

func (v *edsVerifier) keyByID(ctx context.Context, t *edsTurn, id string) (httpsig.Key, error) {
	if known, ok := v.known(id); ok {
		return known.key, nil
	}
	if v.scheme.KeyByID == nil {
		return httpsig.Key{}, httpsig.ErrUnknownKey
	}
	found, err := v.scheme.KeyByID(ctx, id)
	if err != nil {
		return httpsig.Key{}, err
	}
	t.found[id] = found.Principal
	return found.prepare()
}

// known finds a key by its id, or by the part of the id before a slash: a relay names the origin of an event after the slash.
// Both are the relay's key, and the whole id is signed. Each origin is a principal of its own, so that one producer's keys do
// not suppress another's events (EDS T-14).
func (v *edsVerifier) known(id string) (ownedKey, bool) {
	if known, ok := v.keys[id]; ok {
		return known, true
	}
	relay, origin, relayed := strings.Cut(id, "/")
	known, ok := v.keys[relay]
	if !relayed || !ok || origin == "" {
		return ownedKey{}, false
	}
	return ownedKey{known.key, known.owner + "/" + origin}, true
}

func (v *edsVerifier) authenticate(ctx context.Context, m *Message, c Check) (Proof, error) {
	keyless := len(m.Request.Header["Idempotency-Key"]) == 0
	turns := &v.turns
	if keyless {
		turns = &v.keyless
	}
	t, _ := turns.Get().(*edsTurn)
	if t == nil || t.tolerance != c.Tolerance {
		var err error
		if t, err = newEDSTurn(v, c.Tolerance, keyless); err != nil {
			return Proof{}, err
		}
	}
	t.now, t.uri = c.Now, m.URL
	clear(t.found)
	req := m.Request
	if req.Context() != ctx {
		req = req.WithContext(ctx) // keys are looked up with it
	}
	verified, err := t.verifier.Verify(req, m.Body)
	owner := t.found[verified.KeyID]
	if known, ok := v.known(verified.KeyID); ok {
		owner = known.owner
	}
	turns.Put(t)
	if err != nil {
		return Proof{}, edsVerdict(err)
	}
	p := Proof{Principal: owner, SignedAt: verified.Created}
	if verified.Nonce != "" {
		p.Nonce = verified.KeyID + " " + verified.Nonce
	}
	p.Covered = verified.Components // serialised: names in quotes
	for i, component := range p.Covered {
		p.Covered[i] = strings.Trim(component, `"`)
	}
	return p, nil
}

var edsReasons = map[httpsig.Reason]Reason{
	httpsig.ReasonMissing: ReasonMissing, httpsig.ReasonMalformed: ReasonMalformed,
	httpsig.ReasonMissingComponent: ReasonMissingComponent, httpsig.ReasonUnknownKey: ReasonUnknownKey,
	httpsig.ReasonAlgorithmMismatch: ReasonAlgorithm, httpsig.ReasonBadSignature: ReasonMismatch,
	httpsig.ReasonDigestMismatch: ReasonDigest, httpsig.ReasonFromFuture: ReasonFromFuture,
	httpsig.ReasonTooOld: ReasonTooOld, httpsig.ReasonExpired: ReasonExpired, httpsig.ReasonReplayed: ReasonReplayed,
}

func edsVerdict(err error) error {
	reason, ok := edsReasons[httpsig.ReasonOf(err)]
	if !ok {
		return fmt.Errorf("verify signature: %w", err)
	}
	return &SignatureError{reason, "HTTP message signature: " + string(reason)}
}

// identifyEDS reads only signed fields about the event (EDS-SEC-THR-3).
func identifyEDS(m *Message, p *Proof, k KeyPolicy) (Identity, error) {
	key, err := ParseKey(m.Request.Header["Idempotency-Key"], k)
	if err != nil {
		return Identity{}, err
	}
	signed := func(field string) string {
		if !p.covers(strings.ToLower(field)) {
			return ""
		}
		return m.Field(field)
	}
	id := Identity{Key: key, EventID: signed("Godwit-Event-Id"), EventType: signed("Godwit-Event-Type"),
		DeliveryID: signed("Godwit-Delivery-Id"), Attempt: positive(signed("Godwit-Attempt"))}
	if id.EventID == "" {
		id.EventID = key
	}
	return id, nil
}
