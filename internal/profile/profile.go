// Package profile holds the wire dialects, one file each: how a delivery looks on the wire, how it is signed, how an
// answer is read, when to try again. A profile is a value, not a mode of the server: every endpoint names one, and
// nothing outside this package asks which.
//
//	eds                 the producer's bytes          RFC 9421 message signature     the draft's status tables
//	ojs                 Open Job Spec envelope        X-OJS-Signature                its section 7.1
//	cybercube           CYBERCUBE event               X-Webhook-Signature            its section 4.5
//	standard-webhooks   the producer's bytes          webhook-signature, v1 and v1a  all but 2xx and 410 is tried again
//
// An event that was told in one dialect reaches endpoints of all: a profile sends its own format as it came and wraps what
// any other carries in its own envelope, verbatim and without decoding it.
//
// A profile does no I/O. What it renders for an event and an endpoint is a pure function of fields that never change,
// so the bytes of a retry are the bytes of the first attempt; only headers with time, attempt number and signature differ.
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
	// Defaults is the policy an endpoint of this profile has before its overrides.
	Defaults() godwit.Policy
	// Algorithms lists the signature algorithms it can use; the first is the default.
	Algorithms() []string
	// NewKey makes signing material for an algorithm.
	NewKey(algorithm string) (KeyMaterial, error)
	// ImportKey reads signing material that the endpoint's owner brought along, in the form the dialect shows it in. The
	// error says what is wrong without repeating it.
	ImportKey(algorithm, text string) (KeyMaterial, error)
	// NewSigner prepares keys for use; each of them signs every request, in the order given.
	NewSigner(keys []SigningKey) (Signer, error)
	// Render makes the header and body of an attempt. Signature and credentials come later.
	Render(m Message) (http.Header, []byte)
	// FollowStatuses are the redirects followed inside an attempt.
	FollowStatuses() []int
	// Classify reads an exchange. It looks at nothing else than its arguments.
	Classify(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict
}

// Message is what is to be delivered.
type Message struct {
	Event    *godwit.Event
	Delivery *godwit.Delivery // before the attempt is counted
	Attempt  int              // 1 for the first, over all runs
	ID       godwit.AttemptID
	Endpoint *godwit.Endpoint
	Account  string // code of the tenant
	Budget   Budget
}

// Budget is what is left of an endpoint's allowance; the zero value when it has none.
type Budget struct {
	Limit     int // attempts a minute
	Remaining int // after this one
	Reset     time.Time
}

// KeyMaterial is a fresh signing key.
type KeyMaterial struct {
	Secret  []byte // what is sealed and signs
	Display string // what the endpoint's owner is shown once, a public key where the dialect writes those down; may be empty beside Public
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

// A Carrier is a Signer that minds what an event brings along from upstream: it signs for the event's origin, and covers
// or keeps the headers that came with it. Others sign relayed events as any other.
type Carrier interface {
	// For is the signer for one event that carries something.
	For(e *godwit.Event) (Signer, error)
}

// keep puts the headers that an event carries on an attempt, save where the profile has its own. The upstream's
// Idempotency-Key is there if its bytes are not those that we would make of the key: then they go on as they came (EDS-INT-1).
// Those that speak of the body, as CloudEvents attributes and signatures do, stay behind when it is wrapped (EDS-MTH-4).
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

// SupportsAlgorithm reports whether the profile can sign so.
func SupportsAlgorithm(p Profile, algorithm string) bool {
	return slices.Contains(p.Algorithms(), algorithm)
}
