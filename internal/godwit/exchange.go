package godwit

import (
	"net/http"
	"time"
)

// An Exchange is the sender's record of one attempt: one request on the wire (plus the hops of a followed redirect) and
// either a complete response or the reason why there is none. It carries no judgement; a profile turns it into an Outcome.
type Exchange struct {
	URL        string      // URL of the last hop
	Status     int         // final status code; 0 when no status line arrived
	Header     http.Header // response header of the last hop; nil when none arrived
	Body       []byte      // the response body, up to the cap
	BodyCapped bool        // the sender stopped reading at its own cap: the status is valid (EDS T-9)
	Proto      string      // "HTTP/1.1", "HTTP/2.0"
	RemoteAddr string      // address actually dialled
	Reused     bool        // the connection had served an earlier request
	Hops       []Hop       // redirects followed inside this attempt, in order
	Failure    *Failure    // nil exactly when a complete response arrived
	Started    time.Time
	Duration   time.Duration
	Timing     Timing
	Sent       http.Header // of the last hop's request; only of an exchange that failed or was not answered 2xx, and where the request asks for it
}

// Timing says where the time of an exchange went. The parts follow each other and add up to less than the whole; what is left is the reading of the response. They are
// zero where a connection was used again.
type Timing struct {
	DNS       time.Duration // to resolve the name
	Connect   time.Duration // to open connections
	TLS       time.Duration // of handshakes
	FirstByte time.Duration // from the first byte of the request to the first of the response
}

// A Hop is a redirect that was followed within an attempt.
type Hop struct {
	Status int    `json:"status"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// Failure says why an attempt has no complete response. Policy depends on Kind only; Detail is for people.
type Failure struct {
	Kind   FailureKind
	Sent   bool   // request bytes may have reached the receiver: its state is unknown
	Detail string // short, free of secrets
}

// FailureKind names a transport failure. The values are stored and shown by the API, so they are stable.
type FailureKind string

// The kinds of transport failure.
const (
	FailureDNS               FailureKind = "name-resolution"
	FailureRefused           FailureKind = "connection-refused"
	FailureConnect           FailureKind = "connect"            // unreachable network, connect timeout, proxy refusal
	FailureReset             FailureKind = "connection-reset"   // closed or reset before a complete status line
	FailureTLSHandshake      FailureKind = "tls-handshake"      // handshake failed for another reason than the certificate
	FailureTLSVerify         FailureKind = "tls-verify"         // certificate chain, name or dates
	FailureTimeout           FailureKind = "timeout"            // the attempt's deadline passed
	FailureTruncated         FailureKind = "truncated-response" // a status line arrived, the rest did not
	FailureStreamReset       FailureKind = "stream-reset"       // HTTP/2 RST_STREAM or GOAWAY
	FailureProtocol          FailureKind = "protocol"           // not HTTP, header too large, unasked 101
	FailureBlockedAddress    FailureKind = "blocked-address"    // the address guard refused to connect
	FailureRedirectForbidden FailureKind = "redirect-forbidden" // redirect target fails the URL, host or address rules
	FailureRedirectLimit     FailureKind = "redirect-limit"     // more hops than allowed
	FailureRedirectInvalid   FailureKind = "redirect-invalid"   // no usable Location
	FailureCredential        FailureKind = "credential"         // the endpoint's credential could not be obtained
	FailureInvalidRequest    FailureKind = "invalid-request"    // our own request cannot be sent: its URL, method or header is not valid
	FailureInterrupted       FailureKind = "interrupted"        // our own shutdown; costs the delivery no attempt
)
