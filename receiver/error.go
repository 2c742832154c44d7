package receiver

import "errors"

// Reason says why a request was not accepted as authentic. The values are stable: log them, count them.
type Reason string

// The reasons. Those of HTTP Message Signatures have the names that package httpsig gives them.
const (
	ReasonMissing            Reason = "missing"             // there is no signature or credential
	ReasonMalformed          Reason = "malformed"           // it cannot be understood
	ReasonMalformedTimestamp Reason = "malformed-timestamp" // the signed time is no time
	ReasonMissingComponent   Reason = "missing-component"   // something that has to be signed is not
	ReasonUnknownKey         Reason = "unknown-key"         // it is of a key that we do not know
	ReasonAlgorithm          Reason = "algorithm-mismatch"  // the key is used with another algorithm
	ReasonMismatch           Reason = "mismatch"            // it does not fit the request
	ReasonDigest             Reason = "digest-mismatch"     // the signed digest does not fit the body
	ReasonTooOld             Reason = "too-old"             // it was signed too long ago
	ReasonFromFuture         Reason = "from-future"         // it was signed too far ahead of our clock
	ReasonExpired            Reason = "expired"             // it says itself that it is no longer good
	ReasonReplayed           Reason = "replayed"            // it was seen before
)

// A SignatureError is the verdict that a request is not what it claims to be. Whatever its headers hold, verification
// returns this type and no other (OJS-SIG-10); any other error means that verification itself could not be done.
type SignatureError struct {
	Reason Reason
	// Message is for people; it holds nothing of the request.
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

// A DeliveryError says that a delivery is authentic but cannot be taken as it is. It is answered with 400.
type DeliveryError struct {
	Code ProblemCode
	// Message is told to the sender.
	Message string
}

func (e *DeliveryError) Error() string { return e.Message }

// ErrLeaseLost is reported when a handler's result cannot be kept because its lease had ended and the key is no longer
// its own.
var ErrLeaseLost = errors.New("lease was lost before the result was kept")
