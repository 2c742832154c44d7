package receiver

import "errors"

// Reason says why a request is not authentic. The values are stable and fit for logs and metrics.
type Reason string

// The reasons. Those of HTTP Message Signatures are named as in package httpsig.
const (
	ReasonMissing            Reason = "missing"             // there is no signature or credential
	ReasonMalformed          Reason = "malformed"           // it cannot be parsed
	ReasonMalformedTimestamp Reason = "malformed-timestamp" // the signed time cannot be parsed
	ReasonMissingComponent   Reason = "missing-component"   // a component that must be signed is not
	ReasonUnknownKey         Reason = "unknown-key"         // the key is not known
	ReasonAlgorithm          Reason = "algorithm-mismatch"  // the key is used with another algorithm
	ReasonMismatch           Reason = "mismatch"            // it does not match the request
	ReasonDigest             Reason = "digest-mismatch"     // the signed digest does not match the body
	ReasonTooOld             Reason = "too-old"             // it was signed too long ago
	ReasonFromFuture         Reason = "from-future"         // it was signed too far ahead of our clock
	ReasonExpired            Reason = "expired"             // its expiry time has passed
	ReasonReplayed           Reason = "replayed"            // it was seen before
)

// A SignatureError says that a request is not authentic. Verification returns this type for any content of the headers
// (OJS-SIG-10). Another error means that verification itself failed.
type SignatureError struct {
	Reason Reason
	// Message is for people. It holds nothing of the request.
	Message string
}

func (e *SignatureError) Error() string { return e.Message }

func refuse(reason Reason, message string) error { return &SignatureError{reason, message} }

// Verdicts that several schemes share. The texts of the first four are CYBERCUBE's (CCW-SDK-4).
var (
	errFormat     = refuse(ReasonMalformed, "Invalid signature format")
	errTimestamp  = refuse(ReasonMalformedTimestamp, "Invalid timestamp")
	errTooOld     = refuse(ReasonTooOld, "Timestamp outside tolerance")
	errFromFuture = refuse(ReasonFromFuture, "Timestamp outside tolerance")
	errMismatch   = refuse(ReasonMismatch, "Signature mismatch")
	errReplayed   = refuse(ReasonReplayed, "Request was seen before")
)

// A DeliveryError says that a delivery is authentic but not acceptable. It is answered with 400.
type DeliveryError struct {
	Code ProblemCode
	// Message is told to the sender.
	Message string
}

func (e *DeliveryError) Error() string { return e.Message }

// ErrLeaseLost is reported when a handler's result cannot be kept: its lease had ended and another holder may have the key.
var ErrLeaseLost = errors.New("lease was lost before the result was kept")
