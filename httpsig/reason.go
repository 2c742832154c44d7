package httpsig

import (
	"errors"
	"strings"
)

// Reason says why a message was not accepted. The values are stable: log them,
// count them, return them to the sender.
type Reason string

const (
	// ReasonMissing: the request carries no signature at all (or none with the wanted tag).
	ReasonMissing Reason = "missing"
	// ReasonMalformed: a signature field or a component identifier cannot be understood.
	ReasonMalformed Reason = "malformed"
	// ReasonMissingComponent: a component or parameter that has to be covered is not,
	// or a covered one is not in the message.
	ReasonMissingComponent Reason = "missing-component"
	// ReasonUnknownKey: no key is known by the signature's keyid.
	ReasonUnknownKey Reason = "unknown-key"
	// ReasonAlgorithmMismatch: the message names another algorithm than the key's.
	ReasonAlgorithmMismatch Reason = "algorithm-mismatch"
	// ReasonBadSignature: the signature does not fit the message.
	ReasonBadSignature Reason = "bad-signature"
	// ReasonDigestMismatch: Content-Digest does not fit the body.
	ReasonDigestMismatch Reason = "digest-mismatch"
	// ReasonFromFuture: the signature was created later than now and the allowed skew.
	ReasonFromFuture Reason = "from-future"
	// ReasonTooOld: the signature was created longer ago than the allowed age.
	ReasonTooOld Reason = "too-old"
	// ReasonExpired: the signature's own expiry time has passed.
	ReasonExpired Reason = "expired"
	// ReasonReplayed: the nonce was seen before.
	ReasonReplayed Reason = "replayed"
)

// progress orders reasons by how far verification came. Of several signatures
// that all fail, the one that came furthest tells the operator most.
var progress = map[Reason]int{
	ReasonMissing: 0, ReasonMalformed: 1, ReasonMissingComponent: 2, ReasonUnknownKey: 3,
	ReasonAlgorithmMismatch: 4, ReasonBadSignature: 5, ReasonDigestMismatch: 6,
	ReasonFromFuture: 7, ReasonTooOld: 7, ReasonExpired: 7, ReasonReplayed: 8,
}

// Error is a verdict on a message: it cannot be signed as asked, or its signature
// is not acceptable. Any other error type means that verification itself could
// not be done (a key lookup or nonce store failed) and says nothing about the message.
type Error struct {
	Reason Reason
	// Label is the signature concerned, if one is.
	Label string
	// Component is the component identifier or parameter concerned, if one is.
	Component string

	detail string
	cause  error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("http signature")
	if e.Label != "" {
		b.WriteString(" " + e.Label)
	}
	b.WriteString(": " + string(e.Reason))
	if e.Component != "" {
		b.WriteString(" " + e.Component)
	}
	if e.detail != "" {
		b.WriteString(": " + e.detail)
	}
	if e.cause != nil {
		b.WriteString(": " + e.cause.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.cause }

// ReasonOf returns the reason if err is, or wraps, an [Error], and "" otherwise.
func ReasonOf(err error) Reason {
	var verdict *Error
	if errors.As(err, &verdict) {
		return verdict.Reason
	}
	return ""
}

func malformed(component, detail string) *Error {
	return &Error{Reason: ReasonMalformed, Component: component, detail: detail}
}

func missingComponent(component, detail string) *Error {
	return &Error{Reason: ReasonMissingComponent, Component: component, detail: detail}
}
