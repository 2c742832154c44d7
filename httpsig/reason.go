package httpsig

import (
	"errors"
	"strings"
)

// Reason says why a message was not accepted. The values are stable: log them,
// count them, return them to the sender.
type Reason string

const (
	// ReasonMissing: the request carries no signature, or none with the required tag.
	ReasonMissing Reason = "missing"
	// ReasonMalformed: a signature field or a component identifier cannot be parsed.
	ReasonMalformed Reason = "malformed"
	// ReasonMissingComponent: the signature does not cover a required component or parameter, or the message lacks a covered
	// one.
	ReasonMissingComponent Reason = "missing-component"
	// ReasonUnknownKey: no key is known by the signature's keyid.
	ReasonUnknownKey Reason = "unknown-key"
	// ReasonAlgorithmMismatch: the message names an algorithm that is not the key's.
	ReasonAlgorithmMismatch Reason = "algorithm-mismatch"
	// ReasonBadSignature: the signature does not match the message.
	ReasonBadSignature Reason = "bad-signature"
	// ReasonDigestMismatch: Content-Digest does not match the body.
	ReasonDigestMismatch Reason = "digest-mismatch"
	// ReasonFromFuture: the signature was created later than now plus the allowed skew.
	ReasonFromFuture Reason = "from-future"
	// ReasonTooOld: the signature was created longer ago than the allowed age.
	ReasonTooOld Reason = "too-old"
	// ReasonExpired: the signature's own expiry time has passed.
	ReasonExpired Reason = "expired"
	// ReasonReplayed: the nonce was seen before.
	ReasonReplayed Reason = "replayed"
)

// progress orders reasons by how far verification came. If all signatures of a message fail, the one that came furthest
// tells the operator most.
var progress = map[Reason]int{
	ReasonMissing: 0, ReasonMalformed: 1, ReasonMissingComponent: 2, ReasonUnknownKey: 3,
	ReasonAlgorithmMismatch: 4, ReasonBadSignature: 5, ReasonDigestMismatch: 6,
	ReasonFromFuture: 7, ReasonTooOld: 7, ReasonExpired: 7, ReasonReplayed: 8,
}

// Error says why a message cannot be signed, or why its signature was rejected. Any other error type means that verification
// itself failed (for example a key lookup or nonce store) and says nothing about the message.
type Error struct {
	Reason Reason
	// Label is the label of the signature concerned, if any.
	Label string
	// Component is the component identifier or parameter concerned, if any.
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

// ReasonOf returns the reason of an [Error] in err's chain, or "" if there is none.
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
