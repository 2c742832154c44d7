package httpsig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DefaultMaxAge is the default for Options.MaxAge and Options.MaxSkew.
const DefaultMaxAge = 5 * time.Minute

// Options configure which signatures a [Verifier] accepts.
type Options struct {
	// KeyByID finds the key for a signature's keyid, which is "" if the signature has none. It returns [ErrUnknownKey]
	// (wrapped or not) if no key has that id. Any other error stops verification and is returned unchanged. Required.
	KeyByID func(ctx context.Context, id string) (Key, error)
	// RequiredComponents must be covered. Defaults to [DeliveryComponents] if nil. An empty list requires none; a signature
	// can then be moved to another message.
	RequiredComponents []string
	// Tag selects signatures with this tag. Defaults to all signatures.
	Tag string
	// MaxAge is how long after its creation a signature is accepted. Negative means without limit, and created may then be
	// missing. Defaults to DefaultMaxAge.
	MaxAge time.Duration
	// MaxSkew is how far in the future a signature's creation time may be. Defaults to DefaultMaxAge.
	MaxSkew time.Duration
	// Now returns the current time. Defaults to time.Now.
	Now func() time.Time
	// NonceSeen atomically stores a nonce and reports whether it was stored before. It keeps the nonce at least until the
	// given time (without limit if that is zero). It is called last, for messages that passed every other check. If it is
	// set, a nonce is required. Defaults to none: replays are not detected.
	NonceSeen func(ctx context.Context, keyID, nonce string, until time.Time) (seen bool, err error)
	// TargetURI returns the URI that the client used, if a proxy in front changes it; see [PublicOrigin]. Defaults to the
	// URI of the request.
	TargetURI func(*http.Request) string
}

// PublicOrigin is a TargetURI for a receiver behind a proxy that keeps path and
// query but not scheme or host: origin is, for example, "https://hooks.example.com".
func PublicOrigin(origin string) func(*http.Request) string {
	return func(req *http.Request) string {
		if strings.HasPrefix(req.RequestURI, "/") {
			return origin + req.RequestURI // as received; handlers may have changed URL
		}
		return origin + req.URL.RequestURI()
	}
}

// Verified describes an accepted signature.
type Verified struct {
	Label      string
	KeyID      string
	Algorithm  Algorithm
	Created    time.Time // zero if the signature has none
	Expires    time.Time // zero if the signature has none
	Nonce      string
	Tag        string
	Components []string // covered component identifiers, serialised
}

// Verifier verifies requests. It may be used concurrently.
type Verifier struct {
	options  Options
	required []component
}

// NewVerifier prepares a verifier.
func NewVerifier(o Options) (*Verifier, error) {
	if o.KeyByID == nil {
		return nil, errors.New("prepare verifier: no key lookup")
	}
	if o.RequiredComponents == nil {
		o.RequiredComponents = DeliveryComponents()
	}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.MaxSkew == 0 {
		o.MaxSkew = DefaultMaxAge
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	required, err := parseComponents(o.RequiredComponents)
	if err != nil {
		return nil, fmt.Errorf("prepare verifier: %w", err)
	}
	return &Verifier{options: o, required: required}, nil
}

// Verify verifies one request; for more than one, prepare a [Verifier].
func Verify(req *http.Request, body []byte, o Options) (Verified, error) {
	v, err := NewVerifier(o)
	if err != nil {
		return Verified{}, err
	}
	return v.Verify(req, body)
}

// Verify accepts a request if one of its signatures is made with a known key, covers the required components, matches the
// message and is fresh. If the signature covers Content-Digest, the body must match it. The body must be as received, before
// any content decoding. An [*Error] means that the message was rejected; any other error means that verification failed.
func (v *Verifier) Verify(req *http.Request, body []byte) (Verified, error) {
	candidates, err := readSignatures(req.Header, v.options.Tag, v.required)
	if err != nil {
		return Verified{}, err
	}
	publicURI := ""
	if v.options.TargetURI != nil {
		publicURI = v.options.TargetURI(req)
	}
	m, err := requestMessage(req, publicURI)
	if err != nil {
		return Verified{}, err
	}
	var best *Error
	for i := range candidates {
		verified, err := v.verifyOne(req.Context(), &m, body, &candidates[i])
		if err == nil {
			return verified, nil
		}
		var verdict *Error
		if !errors.As(err, &verdict) {
			return Verified{}, err
		}
		verdict.Label = candidates[i].label
		if best == nil || progress[verdict.Reason] > progress[best.Reason] {
			best = verdict
		}
	}
	return Verified{}, best
}

func (v *Verifier) verifyOne(ctx context.Context, m *message, body []byte, s *received) (Verified, error) {
	if err := s.parse(); err != nil {
		return Verified{}, err
	}
	if err := v.checkCoverage(s); err != nil {
		return Verified{}, err
	}
	key, err := v.keyFor(ctx, s)
	if err != nil {
		return Verified{}, err
	}
	if err := m.checkSignature(s, key); err != nil {
		return Verified{}, err
	}
	if err := s.checkDigest(m.header, body); err != nil {
		return Verified{}, err
	}
	if err := v.checkTimes(s); err != nil {
		return Verified{}, err
	}
	if err := v.checkNonce(ctx, s); err != nil {
		return Verified{}, err
	}
	return s.verified(key.Algorithm), nil
}

// checkSignature rebuilds the signature base and verifies the signature.
func (m *message) checkSignature(s *received, key Key) error {
	buf := scratches.Get().(*scratch)
	defer scratches.Put(buf)
	base, err := m.appendLines(buf.base[:0], s.components)
	if err != nil {
		return err
	}
	buf.base = appendParamsLine(base, s.params)
	if !key.verify(buf.base, s.signature) {
		return &Error{Reason: ReasonBadSignature}
	}
	return nil
}

// checkCoverage rejects a signature that does not cover the required components, before any key is looked up.
func (v *Verifier) checkCoverage(s *received) error {
	for _, want := range v.required {
		if !covers(s.components, want.identity) {
			return missingComponent(want.id, "not covered")
		}
	}
	switch {
	case v.options.MaxAge >= 0 && !s.hasCreated:
		return missingComponent("created", "parameter is required")
	case v.options.NonceSeen != nil && s.nonce == "":
		return missingComponent("nonce", "parameter is required")
	}
	return nil
}

func (v *Verifier) keyFor(ctx context.Context, s *received) (Key, error) {
	key, err := v.options.KeyByID(ctx, s.keyID)
	switch {
	case errors.Is(err, ErrUnknownKey):
		return Key{}, &Error{Reason: ReasonUnknownKey, Component: fmt.Sprintf("%q", s.keyID)}
	case err != nil:
		return Key{}, fmt.Errorf("find key %q: %w", s.keyID, err)
	case !key.usable():
		return Key{}, fmt.Errorf("find key %q: key cannot verify", s.keyID)
	case s.hasAlg && s.alg != string(key.Algorithm):
		return Key{}, &Error{Reason: ReasonAlgorithmMismatch, detail: fmt.Sprintf("%q, key has %s", s.alg, key.Algorithm)}
	}
	return key, nil
}

// checkTimes compares whole seconds, the precision of the parameters: with a
// MaxAge of 300 s a signature is accepted until 300 s after its creation.
func (v *Verifier) checkTimes(s *received) error {
	now := time.Unix(v.options.Now().Unix(), 0)
	if s.hasCreated {
		if s.created.After(now.Add(v.options.MaxSkew)) {
			return &Error{Reason: ReasonFromFuture, detail: fmt.Sprintf("created %s after now", s.created.Sub(now))}
		}
		if v.options.MaxAge >= 0 && s.created.Add(v.options.MaxAge).Before(now) {
			return &Error{Reason: ReasonTooOld, detail: fmt.Sprintf("created %s ago", now.Sub(s.created))}
		}
	}
	if s.hasExpires && s.expires.Before(now) {
		return &Error{Reason: ReasonExpired, detail: fmt.Sprintf("%s ago", now.Sub(s.expires))}
	}
	return nil
}

func (v *Verifier) checkNonce(ctx context.Context, s *received) error {
	if v.options.NonceSeen == nil {
		return nil
	}
	var until time.Time // after this time the message is rejected for its age
	if v.options.MaxAge >= 0 {
		until = s.created.Add(v.options.MaxAge + time.Second)
	}
	if s.hasExpires && (until.IsZero() || s.expires.Before(until)) {
		until = s.expires.Add(time.Second)
	}
	seen, err := v.options.NonceSeen(ctx, s.keyID, s.nonce, until)
	if err != nil {
		return fmt.Errorf("remember nonce: %w", err)
	}
	if seen {
		return &Error{Reason: ReasonReplayed, Component: "nonce"}
	}
	return nil
}
