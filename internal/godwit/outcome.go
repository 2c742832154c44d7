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

// Reason is a stable code for why an outcome or a state is what it is.
type Reason string

// Reasons that are not the kind of a transport failure.
const (
	ReasonAccepted          Reason = "accepted"
	ReasonStatus            Reason = "status"             // the status code's ordinary reading
	ReasonInProgress        Reason = "in-progress"        // 409: the receiver still works on an earlier attempt
	ReasonMisdirected       Reason = "misdirected"        // 421: needs a new connection
	ReasonUnauthorized      Reason = "unauthorized"       // 401
	ReasonNotFound          Reason = "endpoint-not-found" // 404: reconfigure
	ReasonGone              Reason = "endpoint-gone"      // 410
	ReasonLegal             Reason = "legal-review"       // 451
	ReasonMultiStatus       Reason = "207-without-agreement"
	ReasonMultiElement      Reason = "207-element-failed"
	ReasonRedirect          Reason = "redirect-not-followed"
	ReasonMoved             Reason = "moved-permanently" // 308: stored and tried again
	ReasonMoveRefused       Reason = "move-refused"      // 308 to a place we do not go
	ReasonAgreement         Reason = "agreement"         // an endpoint's override decided
	ReasonSunset            Reason = "sunset"
	ReasonAttemptsExhausted Reason = "attempts-exhausted"
	ReasonTimeExhausted     Reason = "time-exhausted"
	ReasonRetryAfterBudget  Reason = "retry-after-exceeds-budget"
	ReasonRetention         Reason = "retention-limit"
	ReasonCancelled         Reason = "cancelled"
	ReasonEndpointDeleted   Reason = "endpoint-deleted"
)

// FailureClass tells a receiver's rejection from a failure to talk to it (EDS-CLS-1).
type FailureClass string

// The classes; an accepted attempt has none.
const (
	ClassNone        FailureClass = ""
	ClassTransport   FailureClass = "transport"
	ClassApplication FailureClass = "application"
)

// A Verdict is a profile's reading of an exchange: the outcome, why, and what the receiver asked for.
type Verdict struct {
	Outcome         Outcome
	Reason          Reason
	Class           FailureClass
	ReceiverUnknown bool          // it may or may not have been received (EDS-NET-2, EDS-STA-408)
	RetryAfter      time.Duration // least wait before the next attempt; 0 when none was asked for
	SunsetAt        time.Time     // the endpoint announced its end; zero when not
	DisableEndpoint bool          // 410
	MoveTo          string        // 308: where the endpoint says it lives now
	RefreshAndRetry bool          // 401: once with a renewed credential
	Review          bool          // a person should look at it
	Problem         *Problem
}
