package godwit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

// A Source is a place where an upstream delivers to us, so that its events go on to the tenant's endpoints: there we are
// the Intermediary, a Consumer toward the upstream and a Producer toward the endpoints (EDS-DEF-4). One source is one
// upstream; several upstreams have a source each.
type Source struct {
	ID          SourceID
	TenantID    TenantID
	Name        string // unique among the tenant's sources
	Description string
	Scheme      string // how the upstream proves who it is: eds, github, bearer and so on
	Settings    SourceSettings
	// Sealed holds the upstream's credentials, encrypted; Credentials tells what is in it without values.
	Sealed      []byte
	Credentials []CredentialInfo
	Adopt       bool      // the upstream sends no Idempotency-Key: one is made from its own delivery id (EDS T-31)
	Mode        RelayMode // the one that is wanted; which one is in force hangs on an acknowledgment too
	EventType   TypeRule
	Keep        []string // header fields that go on to the endpoints, as they came

	Status    SourceStatus
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64 // grows by one with every change
}

// SourceSettings are options of the scheme that are no secrets.
type SourceSettings struct {
	WebhookID string `json:"webhook_id,omitempty"` // paypal: it is signed but not sent
	// EndToEnd is the label of a signature that is the origin's own and goes on to the endpoints untouched; the hop's is
	// another one (EDS-INT-7, eds only).
	EndToEnd string `json:"end_to_end,omitempty"`
	// PutAgreement is where the agreement is written that lets the upstream use PUT (EDS-MTH-2, eds only).
	PutAgreement string `json:"put_agreement,omitempty"`
	// CommandsAs makes deliveries commands: their payload is the envelope of one, submitted in the name of this API key. Empty: they are
	// events.
	CommandsAs string `json:"commands_as,omitempty"`
	// DeliveryHeader is the header field that holds the upstream's own id of a delivery, in place of the scheme's (adopt).
	DeliveryHeader string `json:"delivery_header,omitempty"`
	// LenientKey takes an Idempotency-Key without quotes as well; it goes on as it came (EDS T-1).
	LenientKey bool `json:"lenient_key,omitempty"`
}

// A Credential is what an upstream shows, or what its signatures are verified with.
type Credential struct {
	ID        string    `json:"id"`                   // key id of signatures, user name, or ours
	Secret    string    `json:"secret,omitempty"`     // shared secret, token or password
	PublicKey string    `json:"public_key,omitempty"` // public key, certificate, or a client's fingerprint
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: no end
}

// LiveAt reports whether the credential is good at the given time.
func (c *Credential) LiveAt(now time.Time) bool {
	return c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt)
}

// CredentialInfo is the part of a credential that may be shown.
type CredentialInfo struct {
	ID        string    `json:"id"`
	Hint      string    `json:"hint,omitempty"` // last characters of the secret
	PublicKey string    `json:"public_key,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// TypeRule says what the type of an event from a source is: the value of the header or of the body's member, with Fixed in
// their place where they are not there; Fixed alone for every event; or, without any of them, what a CloudEvent or the scheme
// itself tells.
type TypeRule struct {
	Fixed  string `json:"fixed,omitempty"`
	Header string `json:"header,omitempty"`
	Member string `json:"member,omitempty"` // path of a member of a JSON body, joined with dots
}

// RelayMode says when an upstream is answered.
type RelayMode string

// The modes. Store-and-forward is in force only while the upstream's acknowledgment of the service description holds
// (EDS-INT-8); without it every source is passed through.
const (
	StoreAndForward RelayMode = "store-and-forward" // once the event is stored
	PassThrough     RelayMode = "pass-through"      // once the endpoints have accepted it
)

// SourceStatus says whether a source takes deliveries.
type SourceStatus string

// The statuses.
const (
	SourceActive  SourceStatus = "active"
	SourcePaused  SourceStatus = "paused" // upstreams are told to come again
	SourceDeleted SourceStatus = "deleted"
)

// Origin is where a relayed event came from; zero for one that was posted.
type Origin struct {
	Source SourceID `json:"source"`
	// Principal tells producers apart that the upstream relays for; empty when the upstream is the producer, or does not
	// tell.
	Principal string `json:"principal,omitempty"`
}

// IsZero reports a posted event.
func (o Origin) IsZero() bool { return o.Source.IsZero() }

// Tag names the origin toward receivers: it goes behind the key id of our signatures, so that the contexts of two
// producers do not merge at a receiver although their keys must not be rewritten (EDS T-14).
func (o Origin) Tag() string {
	if o.Principal == "" {
		return o.Source.String()
	}
	sum := sha256.Sum256([]byte(o.Principal))
	return o.Source.String() + "." + hex.EncodeToString(sum[:8])
}

// A KeptHeader is a header field that goes on to the endpoints.
type KeptHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Carriable reports whether a header field's value can be kept and sent on as it is: UTF-8 without control characters. ASCII is
// all that HTTP asks receivers to understand, but CloudEvents SDKs send more.
func Carriable(value string) bool {
	return utf8.ValidString(value) && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// An Acknowledgment is an upstream's agreement to a version of the service description (EDS-INT-10). It is an
// administrative act; no request of the upstream can make one.
type Acknowledgment struct {
	ID       AcknowledgmentID
	TenantID TenantID
	SourceID SourceID
	Version  string // of the description
	Terms    []byte // what was promised in it, so that a later description can be held against it
	By       string // who acknowledged
	Actor    string // who recorded it
	At       time.Time
}

// A Rejection is a request to a source that was not taken in. It holds no payload and no credential (EDS-SEC-CNF-2).
type Rejection struct {
	ID         RejectionID
	TenantID   TenantID
	SourceID   SourceID
	Status     int    // what was answered
	Code       string // problem code
	Reason     string // what was wrong, as authentication or key checks name it
	Detail     string
	RemoteAddr string
	Method     string
	Size       int64    // of the body, as far as it is known
	Headers    []string // names alone
	At         time.Time
}

// MaxRejections is how many rejections of a source are kept.
const MaxRejections = 200

// Limits of sources.
const (
	MaxSourceName     = 64
	MaxKeptHeaders    = 32
	MaxCredentials    = 16
	MaxSourcesOfOne   = 1000
	MaxKeptHeaderSize = 4096
	MaxHops           = 32 // sources that a delivery may have passed through
)

// MaxRelayedKey is the longest key that a source takes. It is what every parser of structured fields has to understand, so
// that a relay is no narrower than what stands behind it (IKH K-3).
const MaxRelayedKey = 1024
