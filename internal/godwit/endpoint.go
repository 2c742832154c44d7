package godwit

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"time"
)

// An Endpoint is a subscriber: its URL, its wire dialect, and the events it selects.
type Endpoint struct {
	ID          EndpointID
	UID         string // chosen by the owner, unique in the tenant; empty: none
	Code        string // six characters, unique among all endpoints; part of WEB-XXXXXX-X (decision 6)
	TenantID    TenantID
	URL         string
	Method      string // POST, or PUT under an agreement (EDS-MTH-2)
	Profile     string // wire dialect; fixed at creation, so that the requests for an event never change between attempts
	Description string
	Patterns    []string
	Filter      Filter
	Content     ContentFilter // nil: none
	Policy      PolicyOverrides
	Metadata    Metadata
	Signing     Signing
	// Sealed holds custom header values and the credential, encrypted. SealedInfo describes its content without values.
	Sealed     []byte
	SealedInfo SealedInfo

	Status       EndpointStatus
	StatusReason string // why it is paused or disabled
	StatusAt     time.Time
	ReenableAt   time.Time // when an endpoint disabled by failures is tried again; zero: never
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64 // grows by one with every change
}

// Signing says whose keys sign the deliveries to an endpoint.
type Signing string

// The signers. Signatures of a profile must name their key for the second: see profile.SharesKeys.
const (
	SigningOwn         Signing = ""            // its own secrets
	SigningEnvironment Signing = "environment" // the keys of its tenant's environment
)

// Metadata holds the owner's own data about an endpoint: any JSON values, stored and returned unchanged. It has no effect.
type Metadata map[string]json.RawMessage

// A ContentFilter restricts the events of an endpoint by their content: see package filter. It is a JSON object, stored and returned unchanged.
type ContentFilter map[string]json.RawMessage

// SealedInfo is the part of an endpoint's sealed settings that may be shown.
type SealedInfo struct {
	HeaderNames []string `json:"header_names,omitempty"`
	AuthKind    string   `json:"auth_kind,omitempty"`
}

// EndpointSecrets holds the values that are encrypted in an endpoint's Sealed.
type EndpointSecrets struct {
	Headers map[string]string `json:"headers,omitempty"`
	Auth    *Auth             `json:"auth,omitempty"`
}

// Auth is a credential that a delivery presents to the endpoint besides the signature.
type Auth struct {
	Kind string `json:"kind"` // bearer | basic | oauth2 | mtls

	Token string `json:"token,omitempty"` // bearer

	Username string `json:"username,omitempty"` // basic
	Password string `json:"password,omitempty"`

	TokenURL     string   `json:"token_url,omitempty"` // oauth2 client credentials
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret string   `json:"client_secret,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	Audience     string   `json:"audience,omitempty"`

	CertificatePEM string `json:"certificate_pem,omitempty"` // mtls
	PrivateKeyPEM  string `json:"private_key_pem,omitempty"`
}

// The kinds of Auth.
const (
	AuthBearer = "bearer"
	AuthBasic  = "basic"
	AuthOAuth2 = "oauth2"
	AuthMTLS   = "mtls"
)

// EndpointStatus says whether deliveries are sent to an endpoint.
type EndpointStatus string

// The statuses. The owner pauses an endpoint, the server disables it. Both hold deliveries and drop none.
const (
	EndpointActive   EndpointStatus = "active"
	EndpointPaused   EndpointStatus = "paused"
	EndpointDisabled EndpointStatus = "disabled"
	EndpointDeleted  EndpointStatus = "deleted" // hidden; the sweep cancels its waiting deliveries
)

// Selects reports whether the endpoint's patterns and filter select an event.
func (e *Endpoint) Selects(eventType string, attributes map[string]string) bool {
	return e.Pattern(eventType) != "" && e.Filter.Match(attributes)
}

// Pattern returns the first of the endpoint's patterns that selects the event type; empty: none does.
func (e *Endpoint) Pattern(eventType string) string {
	for _, p := range e.Patterns {
		if MatchPattern(p, eventType) {
			return p
		}
	}
	return ""
}

// NamedPattern does the same, but leaves out the pattern "*".
func (e *Endpoint) NamedPattern(eventType string) string {
	for _, p := range e.Patterns {
		if p != "*" && MatchPattern(p, eventType) {
			return p
		}
	}
	return ""
}

// Shards is the fixed number of shards that endpoints hash to; a node owns whole shards.
const Shards = 64

// Shard returns the shard of an endpoint. It uses the random half of the id, because the other half is a time.
func (id ID[K]) Shard() int { return int(binary.BigEndian.Uint64(id[8:]) % Shards) }

// AllowedMethod reports whether attempts may use the method (EDS-MTH-1..3).
func AllowedMethod(m string) bool { return m == http.MethodPost || m == http.MethodPut }

// Health holds the engine's statistics about an endpoint. Only the node that owns the endpoint's shard writes it.
type Health struct {
	EndpointID          EndpointID
	ConsecutiveFailures int // transient outcomes in a row; circuit and concurrency depend on it
	Streak              int // attempts in a row that were not accepted, of any kind (CCW-HLT-3)
	ConsecutiveTerminal int // terminal outcomes over distinct events since the last accepted one (EDS-SEC-DOS-3)
	Accepted            int64
	Transient           int64
	Terminal            int64
	LastAcceptedAt      time.Time
	LastFailureAt       time.Time
	LastReason          Reason
	AvgDurationMS       float64   // moving average over attempts
	HoldUntil           time.Time // until when a Retry-After holds the whole endpoint (EDS T-22)
	SunsetAt            time.Time // EDS-SUN-1
	CircuitOpenAt       time.Time // zero: closed
	ProbeAt             time.Time // while open: no attempt before this
	DegradedAt          time.Time // zero: not degraded (CCW-HLT-2)
	Recent              Recent    // attempts of the last hour; empty unless the policy watches for degradation
	UpdatedAt           time.Time
}

// LastAttemptAt returns the time of the last attempt, successful or not.
func (h *Health) LastAttemptAt() time.Time {
	if h.LastFailureAt.After(h.LastAcceptedAt) {
		return h.LastFailureAt
	}
	return h.LastAcceptedAt
}
