package receiver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Scheme is one sender's dialect with its secrets: [EDS], [OJS] and so on. A [Profile] made by hand is one, too.
type Scheme interface {
	// Profile checks the configuration and prepares it for use.
	Profile() (Profile, error)
}

// A Profile is a scheme ready for use: what is signed, what identifies a delivery, how it wants to be answered. It keeps
// no state; keys and nonces are remembered by the receiver's store. Its functions may be called concurrently.
type Profile struct {
	// Name as in "ojs". Required.
	Name string
	// Methods that deliveries may have. Defaults to POST.
	Methods []string
	// SignsTime says that a time is signed, so that freshness can be checked.
	SignsTime bool
	// SignsTarget says that the signature covers the address. Where it does not, host and query are whatever a request
	// claims, and keys are remembered for origin and path alone.
	SignsTarget bool
	// AlwaysDedup says that deduplication cannot be turned off (CT-32).
	AlwaysDedup bool
	// WindowFloor is the shortest deduplication window that needs no agreement. Defaults to 24 hours.
	WindowFloor time.Duration
	// Lease is how long a handler may hold a key. Defaults to 60 seconds.
	Lease time.Duration
	// NoFingerprint says that the same event may come again with another body.
	NoFingerprint bool
	// Problems says that errors are answered as problem details (RFC 9457); else they are {"error": …}.
	Problems bool
	// Challenge is the value of WWW-Authenticate on a 401. Defaults to Signature.
	Challenge string
	// KeySource says for people where the deduplication key comes from.
	KeySource string
	// KeySyntax says that the key has the syntax of Idempotency-Key and obeys [Options.Key].
	KeySyntax bool
	// Authenticate verifies a message, over its raw bytes, or returns a [*SignatureError]. Required.
	Authenticate func(ctx context.Context, m *Message, c Check) (Proof, error)
	// Identify reads the identity of an authenticated message, or returns a [*DeliveryError]. Required.
	Identify func(m *Message, p *Proof, k KeyPolicy) (Identity, error)
	// Success is the answer to an accepted delivery whose handler says nothing else. Defaults to 200 without a body.
	Success func(Identity) Answer
	// Credentials says that a secret itself travels with the request, which needs TLS.
	Credentials bool
	// Refusal is the text that a sender is told with a 401. Defaults to the reason.
	Refusal string
	// Handshake answers an authenticated message that is no event, if it is one.
	Handshake func(m *Message) (Answer, bool)
}

// Profile is the profile itself.
func (p Profile) Profile() (Profile, error) { return p, nil }

// check is for profiles made by hand.
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
	// Request has its body read already.
	Request *http.Request
	// URL is the absolute address as the sender used it.
	URL string
	// Body is what arrived, before any decoding.
	Body []byte
}

// Field is the value of a header field; several lines are one list, as HTTP has it.
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

// Check is what time it is and how much a signed time may differ.
type Check struct {
	Now time.Time
	// Tolerance is the largest age and lead of a signed time; the bound itself is good. Below zero time is not checked.
	Tolerance time.Duration
}

// fresh judges a signed time in whole seconds, the precision in which it is sent.
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

// A Proof is what verification found.
type Proof struct {
	// Principal is the authenticated producer: configured, never taken from the request (EDS-KEY-6).
	Principal string
	// SignedAt is the signed time; zero if the scheme has none.
	SignedAt time.Time
	// Nonce is a value that occurs in one attempt only and is refused when it is seen again; "" if the scheme has none.
	Nonce string
	// Once tells, with the body, one attempt from another. It stands in for a nonce where deduplication is off.
	Once string
	// Covered lists header fields that the signature covers, in lower case; nil if it covers none.
	Covered []string
}

func (p *Proof) covers(field string) bool { return slices.Contains(p.Covered, field) }

// An Identity is what a delivery is about.
type Identity struct {
	// Key is what duplicates share.
	Key string
	// EventID is the event's id in the sender's form; the key if the sender gives none.
	EventID string
	// EventType is "" if the sender does not say.
	EventType string
	// DeliveryID is "" if the sender does not say.
	DeliveryID string
	// Attempt is 1 for the first; 0 if the sender does not say.
	Attempt int
}

// An Answer is what goes back to the sender.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}
