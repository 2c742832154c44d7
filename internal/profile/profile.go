// Package profile holds the wire dialects, one file each: how a delivery is rendered and signed, how a response is classified,
// when to retry. A profile is a value, not a mode of the server: every endpoint names one, and no code outside this package
// asks which.
//
//	eds                 the producer's bytes          RFC 9421 message signature     the draft's status tables
//	ojs                 Open Job Spec envelope        X-OJS-Signature                its section 7.1
//	cybercube           CYBERCUBE event               X-Webhook-Signature            its section 4.5
//	standard-webhooks   the producer's bytes          webhook-signature, v1 and v1a  retries all but 2xx and 410
//
// An event in one dialect reaches endpoints of all: a profile sends its own format unchanged, and wraps the content of any
// other in its own envelope, verbatim and without decoding it.
//
// A profile does no I/O. What it renders for an event and an endpoint is a pure function of fields that never change, so the
// bytes of a retry are the bytes of the first attempt; only headers with time, attempt number and signature differ.
package profile

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Profile is one dialect.
type Profile interface {
	Name() string
	// Defaults is the policy of an endpoint without overrides.
	Defaults() godwit.Policy
	// Algorithms lists the supported signature algorithms; the first is the default.
	Algorithms() []string
	// NewKey makes signing material for an algorithm.
	NewKey(algorithm string) (KeyMaterial, error)
	// ImportKey reads signing material supplied by the endpoint's owner, in the dialect's own form. The error does not repeat
	// it.
	ImportKey(algorithm, text string) (KeyMaterial, error)
	// ShowKey returns what NewKey and ImportKey display of a key, given its secret part.
	ShowKey(algorithm string, secret []byte) string
	// NewSigner prepares keys for use; each of them signs every request, in the given order.
	NewSigner(keys []SigningKey) (Signer, error)
	// Render makes the header and body of an attempt. Signature and credentials are added later.
	Render(m Message) (http.Header, []byte)
	// FollowStatuses are the redirects that are followed within an attempt.
	FollowStatuses() []int
	// Classify reads an exchange. It depends only on its arguments.
	Classify(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict
}

// Message is a delivery to be rendered.
type Message struct {
	Event    *godwit.Event
	Delivery *godwit.Delivery // before the attempt is counted
	Attempt  int              // 1 for the first, over all runs
	ID       godwit.AttemptID
	Endpoint *godwit.Endpoint
	Account  string // code of the tenant
	Test     bool   // the environment of the tenant is not live
	Budget   Budget
}

// Budget is the remaining allowance of an endpoint; zero without a limit.
type Budget struct {
	Limit     int // attempts a minute
	Remaining int // after this one
	Reset     time.Time
}

// KeyMaterial is a fresh signing key.
type KeyMaterial struct {
	Secret  []byte // sealed, and used for signing
	Display string // shown once to the endpoint's owner; may be empty if Public is set
	Public  []byte // published; nil for symmetric keys
}

// SigningKey is a stored secret, opened.
type SigningKey struct {
	ID        string
	Algorithm string
	Secret    []byte
}

// A Signer signs requests.
type Signer interface {
	// Sign adds digest and signature headers. The request's URL, method and other headers are final.
	Sign(r *http.Request, body []byte, now time.Time) error
	// KeyIDs names the keys it signs with.
	KeyIDs() []string
}

// A Carrier is a Signer for relayed events: it signs for the event's origin, and covers or keeps the headers that came with it.
// Other signers treat relayed events like any other.
type Carrier interface {
	// For returns the signer for one event with relayed headers.
	For(e *godwit.Event) (Signer, error)
}

// keep adds the headers of a relayed event to an attempt, except those that the profile sets. The upstream's Idempotency-Key is
// among them if its bytes differ from our rendering: then they are sent on as received (EDS-INT-1). Headers about the body,
// such as CloudEvents attributes and signatures, are left out if the body is wrapped (EDS-MTH-4).
func keep(h http.Header, e *godwit.Event, wrapped bool) {
	if len(e.KeptHeaders) == 0 {
		return
	}
	own := make(map[string]bool, len(h))
	for name := range h {
		own[name] = true
	}
	for _, k := range e.KeptHeaders {
		name := http.CanonicalHeaderKey(k.Name)
		if name == fieldKey {
			h[name] = []string{k.Value}
			continue
		}
		ofBody := strings.HasPrefix(name, "Ce-") || strings.HasPrefix(name, "Signature") || name == fieldDigest
		if !own[name] && !(wrapped && ofBody) {
			h[name] = append(h[name], k.Value)
		}
	}
}

var profiles = map[string]Profile{}

func register(p Profile) { profiles[p.Name()] = p }

// Default is the profile of an endpoint that names none.
const Default = "eds"

// Lookup finds a profile by name.
func Lookup(name string) (Profile, error) {
	p, ok := profiles[name]
	if !ok {
		return nil, fmt.Errorf("unknown profile %q: choose one of %v", name, Names())
	}
	return p, nil
}

// Names lists the profiles.
func Names() []string {
	var names []string
	for n := range profiles {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// SharesKeys reports whether one key may sign for many endpoints: the signatures of the profile name their key and cover the URL, so that a receiver
// finds the public key and takes no request that was meant for another.
func SharesKeys(p Profile) bool {
	_, shares := p.(interface{ sharesKeys() })
	return shares
}

// SupportsAlgorithm reports whether the profile can sign so.
func SupportsAlgorithm(p Profile, algorithm string) bool {
	return slices.Contains(p.Algorithms(), algorithm)
}
