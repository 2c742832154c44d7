package godwit

import "time"

// Outcome is the sender's conclusion from an attempt. There are exactly three (EDS-OUT-1).
type Outcome string

// The outcomes.
const (
	Accepted  Outcome = "accepted"
	Transient Outcome = "transient"
	Terminal  Outcome = "terminal"
)

// Reason is a stable code for the reason of an outcome or a state.
type Reason string

// Reasons that are not the kind of a transport failure.
const (
	ReasonAccepted          Reason = "accepted"
	ReasonStatus            Reason = "status"             // the ordinary meaning of the status code
	ReasonInProgress        Reason = "in-progress"        // 409: the receiver is still processing an earlier attempt
	ReasonMisdirected       Reason = "misdirected"        // 421: needs a new connection
	ReasonUnauthorized      Reason = "unauthorized"       // 401
	ReasonNotFound          Reason = "endpoint-not-found" // 404: reconfigure
	ReasonGone              Reason = "endpoint-gone"      // 410
	ReasonLegal             Reason = "legal-review"       // 451
	ReasonMultiStatus       Reason = "207-without-agreement"
	ReasonMultiElement      Reason = "207-element-failed"
	ReasonRedirect          Reason = "redirect-not-followed"
	ReasonMoved             Reason = "moved-permanently" // 308: the new URL is stored and tried
	ReasonMoveRefused       Reason = "move-refused"      // 308 to a URL that is not allowed
	ReasonAgreement         Reason = "agreement"         // an endpoint's override decided
	ReasonSunset            Reason = "sunset"
	ReasonAttemptsExhausted Reason = "attempts-exhausted"
	ReasonTimeExhausted     Reason = "time-exhausted"
	ReasonRetryAfterBudget  Reason = "retry-after-exceeds-budget"
	ReasonRetention         Reason = "retention-limit"
	ReasonCancelled         Reason = "cancelled"
	ReasonEndpointDeleted   Reason = "endpoint-deleted"
)

// FailureClass distinguishes a receiver's rejection from a failed communication (EDS-CLS-1).
type FailureClass string

// The classes; an accepted attempt has none.
const (
	ClassNone        FailureClass = ""
	ClassTransport   FailureClass = "transport"
	ClassApplication FailureClass = "application"
)

// A Verdict is a profile's reading of an exchange: the outcome, its reason, and the receiver's requests.
type Verdict struct {
	Outcome         Outcome
	Reason          Reason
	Class           FailureClass
	ReceiverUnknown bool          // it may or may not have been received (EDS-NET-2, EDS-STA-408)
	RetryAfter      time.Duration // minimum wait before the next attempt; 0 if none was requested
	SunsetAt        time.Time     // the announced end of the endpoint; zero if none
	DisableEndpoint bool          // 410
	MoveTo          string        // 308: the new URL of the endpoint
	RefreshAndRetry bool          // 401: once with a renewed credential
	Review          bool          // an operator should look at it
	Problem         *Problem
}
