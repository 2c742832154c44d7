package godwit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

// A Source is a URL to which an upstream delivers events for the tenant's endpoints. The server is the Intermediary: a
// Consumer toward the upstream and a Producer toward the endpoints (EDS-DEF-4). Each upstream has its own source.
type Source struct {
	ID          SourceID
	TenantID    TenantID
	Name        string // unique among the tenant's sources
	Description string
	Scheme      string // how the upstream authenticates: eds, github, bearer and so on
	Settings    SourceSettings
	// Sealed holds the upstream's credentials, encrypted. Credentials describes them without values.
	Sealed      []byte
	Credentials []CredentialInfo
	Adopt       bool      // the upstream sends no Idempotency-Key: the server makes one from the upstream's delivery id (EDS T-31)
	Mode        RelayMode // the wanted mode; the mode in force also depends on an acknowledgment
	EventType   TypeRule
	Keep        []string // header fields to forward to the endpoints unchanged

	Status    SourceStatus
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64 // grows by one with every change

	// LastReceivedAt is when the last authentic request came, to the minute; zero: none has come. It is no part of the configuration.
	LastReceivedAt time.Time
}

// SourceSettings holds options of the scheme that are not secret.
type SourceSettings struct {
	WebhookID string `json:"webhook_id,omitempty"` // paypal: the id is signed but not sent
	// EndToEnd is the label of the origin's own signature, which is forwarded to the endpoints unchanged; the hop's
	// signature has another label (EDS-INT-7, eds only).
	EndToEnd string `json:"end_to_end,omitempty"`
	// PutAgreement is where the agreement is written that permits the upstream to use PUT (EDS-MTH-2, eds only).
	PutAgreement string `json:"put_agreement,omitempty"`
	// CommandsAs makes deliveries commands: their payload is a command envelope, submitted in the name of this API key. If
	// it is empty, deliveries are events.
	CommandsAs string `json:"commands_as,omitempty"`
	// DeliveryHeader is the header field with the upstream's delivery id, instead of the scheme's (adopt).
	DeliveryHeader string `json:"delivery_header,omitempty"`
	// LenientKey also accepts an Idempotency-Key without quotes; it is forwarded as it came (EDS T-1).
	LenientKey bool `json:"lenient_key,omitempty"`
}

// A Credential is presented by an upstream, or verifies its signatures.
type Credential struct {
	ID        string    `json:"id"`                   // key id of signatures, user name, or an id that the server made
	Secret    string    `json:"secret,omitempty"`     // shared secret, token or password
	PublicKey string    `json:"public_key,omitempty"` // public key, certificate, or a client's fingerprint
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: no end
}

// LiveAt reports whether the credential is valid at the given time.
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

// TypeRule determines the type of an event from a source. It is the value of the header or of the body's member; if these
// are absent, Fixed. Fixed alone applies to every event. Without any of them, the CloudEvent or the scheme itself names
// the type.
type TypeRule struct {
	Fixed  string `json:"fixed,omitempty"`
	Header string `json:"header,omitempty"`
	Member string `json:"member,omitempty"` // path of a member of a JSON body, joined with dots
}

// RelayMode says when the server answers an upstream.
type RelayMode string

// The modes. Store-and-forward is in force only while the upstream's acknowledgment of the service description is valid
// (EDS-INT-8); otherwise the source uses pass-through.
const (
	StoreAndForward RelayMode = "store-and-forward" // once the event is stored
	PassThrough     RelayMode = "pass-through"      // once the endpoints have accepted it
)

// SourceStatus says whether a source accepts deliveries.
type SourceStatus string

// The statuses.
const (
	SourceActive  SourceStatus = "active"
	SourcePaused  SourceStatus = "paused" // upstreams are asked to retry later
	SourceDeleted SourceStatus = "deleted"
)

// Origin is the source of a relayed event; zero for a posted event.
type Origin struct {
	Source SourceID `json:"source"`
	// Principal distinguishes the producers that the upstream relays for. It is empty if the upstream is the producer, or
	// does not name one.
	Principal string `json:"principal,omitempty"`
}

// IsZero reports whether the event was posted, not relayed.
func (o Origin) IsZero() bool { return o.Source.IsZero() }

// Tag names the origin toward receivers. It is appended to the key id of our signatures, so that a receiver keeps the
// contexts of two producers apart although their keys must not be rewritten (EDS T-14).
func (o Origin) Tag() string {
	if o.Principal == "" {
		return o.Source.String()
	}
	sum := sha256.Sum256([]byte(o.Principal))
	return o.Source.String() + "." + hex.EncodeToString(sum[:8])
}

// A KeptHeader is a header field that is forwarded to the endpoints.
type KeptHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Carriable reports whether a header field's value can be stored and forwarded unchanged: UTF-8 without control
// characters. HTTP requires receivers to understand only ASCII, but CloudEvents SDKs send more.
func Carriable(value string) bool {
	return utf8.ValidString(value) && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// An Acknowledgment is an upstream's agreement to a version of the service description (EDS-INT-10). It is an
// administrative act; no request of the upstream can make one.
type Acknowledgment struct {
	ID       AcknowledgmentID
	TenantID TenantID
	SourceID SourceID
	Version  string // version of the description
	Terms    []byte // the promises of the description, to compare with a later one
	By       string // the person who acknowledged
	Actor    string // the principal that recorded it
	At       time.Time
}

// A Rejection is a request to a source that was not accepted. It holds no payload and no credential (EDS-SEC-CNF-2).
type Rejection struct {
	ID         RejectionID
	TenantID   TenantID
	SourceID   SourceID
	Status     int    // status of the answer
	Code       string // problem code
	Reason     string // the fault, as named by authentication or key checks
	Detail     string
	RemoteAddr string
	Method     string
	Size       int64    // size of the body, as far as it is known
	Headers    []string // names only
	At         time.Time
}

// MaxRejections is how many rejections of a source are stored.
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

// MaxRelayedKey is the longest key that a source accepts. Every parser of structured fields must accept this length, so a
// relay is no stricter than the endpoints behind it (IKH K-3).
const MaxRelayedKey = 1024
