package receiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// VerifyOptions configure a [Verifier].
type VerifyOptions struct {
	// Freshness configures the check of the signed time. Defaults to on, where a time is signed.
	Freshness Freshness
	// TargetURI returns the address that the sender used, if it is signed and a proxy changes it. Defaults to the address of
	// the request.
	TargetURI func(*http.Request) string
	// Key is the format of Idempotency-Key. Defaults to 16 to 255 characters in quotes.
	Key KeyPolicy
	// Clock returns the time. Defaults to [time.Now].
	Clock func() time.Time
}

// A Verifier only verifies requests. It remembers no keys and no nonces, so it does not stop replays. It may be used
// concurrently.
type Verifier struct {
	o         VerifyOptions
	profile   Profile
	tolerance time.Duration
}

// NewVerifier prepares a verifier.
func NewVerifier(s Scheme, o VerifyOptions) (*Verifier, error) {
	if s == nil {
		return nil, errors.New("make verifier: no scheme given")
	}
	profile, err := s.Profile()
	if err == nil {
		err = profile.check()
	}
	if err != nil {
		return nil, fmt.Errorf("make verifier: %w", err)
	}
	v := &Verifier{o: o, profile: profile.withDefaults(), tolerance: o.Freshness.Tolerance}
	switch {
	case o.Freshness.Off || !profile.SignsTime:
		v.tolerance = -1
	case v.tolerance == 0:
		v.tolerance = 300 * time.Second
	case v.tolerance == NoTolerance:
		v.tolerance = 0
	case v.tolerance < 0:
		return nil, errors.New("make verifier: the tolerance is negative")
	}
	if v.o.Clock == nil {
		v.o.Clock = time.Now
	}
	if v.o.TargetURI == nil {
		v.o.TargetURI = targetURI
	}
	return v, nil
}

// Verify verifies one request; for more than one, prepare a [Verifier].
func Verify(s Scheme, r *http.Request, body []byte, o VerifyOptions) (Proof, error) {
	v, err := NewVerifier(s, o)
	if err != nil {
		return Proof{}, err
	}
	return v.Verify(r.Context(), r, body)
}

// Verify verifies a request whose body was read already. Pass the raw body, not one that was parsed and serialised again. A
// [*SignatureError] says that the request is not authentic; any other error is a failure to verify.
func (v *Verifier) Verify(ctx context.Context, r *http.Request, body []byte) (Proof, error) {
	m := &Message{Request: r, URL: v.o.TargetURI(r), Body: body}
	return v.profile.Authenticate(ctx, m, Check{Now: v.o.Clock(), Tolerance: v.tolerance})
}

// Delivery verifies a request and identifies the delivery. A [*DeliveryError] says that it is authentic but not acceptable, for
// example because its key is missing.
func (v *Verifier) Delivery(ctx context.Context, r *http.Request, body []byte) (*Delivery, error) {
	m := &Message{Request: r, URL: v.o.TargetURI(r), Body: body}
	now := v.o.Clock()
	proof, err := v.profile.Authenticate(ctx, m, Check{Now: now, Tolerance: v.tolerance})
	if err != nil {
		return nil, err
	}
	return newDelivery(&v.profile, m, &proof, v.o.Key.withDefaults(), now)
}

func newDelivery(p *Profile, m *Message, proof *Proof, key KeyPolicy, now time.Time) (*Delivery, error) {
	id, err := p.Identify(m, proof, key)
	if err != nil {
		return nil, err
	}
	return &Delivery{
		Scheme: p.Name, Principal: proof.Principal, Identity: id, Method: m.Request.Method, URL: m.URL, Header: m.Request.Header,
		ContentType: m.Field("Content-Type"), Body: m.Body, SignedAt: proof.SignedAt, ReceivedAt: now,
	}, nil
}
