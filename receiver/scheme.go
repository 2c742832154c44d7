package receiver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Scheme is one sender's dialect with its secrets: [EDS], [OJS] and so on. A hand-made [Profile] is a Scheme as well.
type Scheme interface {
	// Profile checks the configuration and prepares it for use.
	Profile() (Profile, error)
}

// A Profile is a scheme ready for use: how requests are verified, how deliveries are identified, how they are answered. It
// keeps no state; the receiver's store remembers keys and nonces. Its functions may be called concurrently.
type Profile struct {
	// Name as in "ojs". Required.
	Name string
	// Methods lists the accepted methods. Defaults to POST.
	Methods []string
	// SignsTime says that a time is signed, so that freshness can be checked.
	SignsTime bool
	// SignsTarget says that the signature covers the address. If it does not, host and query can be forged, and keys are
	// remembered for origin and path alone.
	SignsTarget bool
	// AlwaysDedup says that deduplication cannot be turned off (CT-32).
	AlwaysDedup bool
	// WindowFloor is the shortest deduplication window that needs no agreement. Defaults to 24 hours.
	WindowFloor time.Duration
	// Lease is how long a handler may hold a key. Defaults to 60 seconds.
	Lease time.Duration
	// NoFingerprint says that the same event may be sent again with another body.
	NoFingerprint bool
	// Problems says that errors are answered as problem details (RFC 9457), otherwise as {"error": …}.
	Problems bool
	// Challenge is the value of WWW-Authenticate on a 401. Defaults to Signature.
	Challenge string
	// KeySource describes, for people, the source of the deduplication key.
	KeySource string
	// KeySyntax says that the key has the syntax of Idempotency-Key and obeys [Options.Key].
	KeySyntax bool
	// Authenticate verifies a message, over its raw bytes, or returns a [*SignatureError]. Required.
	Authenticate func(ctx context.Context, m *Message, c Check) (Proof, error)
	// Identify reads the identity of an authenticated message, or returns a [*DeliveryError]. Required.
	Identify func(m *Message, p *Proof, k KeyPolicy) (Identity, error)
	// Success is the answer to an accepted delivery if the handler gives no other. Defaults to 200 without a body.
	Success func(Identity) Answer
	// Credentials says that the request holds the secret itself, which needs TLS.
	Credentials bool
	// Refusal is the text of a 401. Defaults to the reason.
	Refusal string
	// Handshake answers an authenticated message that is a handshake, not an event.
	Handshake func(m *Message) (Answer, bool)
}

// Profile returns the profile itself.
func (p Profile) Profile() (Profile, error) { return p, nil }

// check validates hand-made profiles.
func (p Profile) check() error {
	if p.Name == "" || p.Authenticate == nil || p.Identify == nil {
		return errors.New("the profile is not complete")
	}
	return nil
}

func (p Profile) withDefaults() Profile {
	if len(p.Methods) == 0 {
		p.Methods = []string{http.MethodPost}
	}
	if p.WindowFloor == 0 {
		p.WindowFloor = 24 * time.Hour
	}
	if p.Lease == 0 {
		p.Lease = time.Minute
	}
	if p.Challenge == "" {
		p.Challenge = `Signature realm="` + p.Name + `"`
	}
	if p.Success == nil {
		p.Success = func(Identity) Answer { return Answer{Status: http.StatusOK} }
	}
	return p
}

// A Message is a request as it arrived, read whole.
type Message struct {
	// Request is the request. Its body was read already.
	Request *http.Request
	// URL is the absolute address as the sender used it.
	URL string
	// Body is the body as received, before any decoding.
	Body []byte
}

// Field is the value of a header field; several lines are joined to one list, as in HTTP.
func (m *Message) Field(name string) string {
	switch lines := m.Request.Header.Values(name); len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	default:
		return strings.Join(lines, ", ")
	}
}

// Check holds the time, and how much a signed time may differ from it.
type Check struct {
	Now time.Time
	// Tolerance is the largest age and lead of a signed time, inclusive. If it is negative, the time is not checked.
	Tolerance time.Duration
}

// fresh compares times in whole seconds, the precision in which they are sent.
func (c Check) fresh(signed time.Time) error {
	if c.Tolerance < 0 {
		return nil
	}
	age, tolerance := c.Now.Unix()-signed.Unix(), int64(c.Tolerance/time.Second)
	switch {
	case age > tolerance:
		return errTooOld
	case -age > tolerance:
		return errFromFuture
	}
	return nil
}

// A Proof is the result of a successful verification.
type Proof struct {
	// Principal is the authenticated producer. It is configured, never taken from the request (EDS-KEY-6).
	Principal string
	// SignedAt is the signed time; zero if the scheme has none.
	SignedAt time.Time
	// Nonce is unique to an attempt and refused when seen again; "" if the scheme has none.
	Nonce string
	// Once distinguishes, with the body, one attempt from another. It takes the place of a nonce where deduplication is off.
	Once string
	// Covered lists header fields that the signature covers, in lower case; nil if it covers none.
	Covered []string
}

func (p *Proof) covers(field string) bool { return slices.Contains(p.Covered, field) }

// An Identity identifies a delivery and its event.
type Identity struct {
	// Key is the value that duplicates share.
	Key string
	// EventID is the event's id in the sender's form; the key if the sender gives none.
	EventID string
	// EventType is "" if the sender does not send it.
	EventType string
	// DeliveryID is "" if the sender does not send it.
	DeliveryID string
	// Attempt is 1 for the first; 0 if the sender does not send it.
	Attempt int
}

// An Answer is the response to the sender.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}
