package godwit

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"time"
)

// An Endpoint is a subscriber: where to deliver, in which dialect, which events.
type Endpoint struct {
	ID          EndpointID
	Code        string // six characters, unique among all endpoints: what WEB-XXXXXX-X is made of (decision 6)
	TenantID    TenantID
	URL         string
	Method      string // POST, or PUT under an agreement (EDS-MTH-2)
	Profile     string // wire dialect; fixed at creation, so that what is sent for an event never changes under way
	Description string
	Patterns    []string
	Filter      Filter
	Policy      PolicyOverrides
	Metadata    Metadata
	// Sealed holds custom header values and the credential, encrypted; SealedInfo tells what is in it without values.
	Sealed     []byte
	SealedInfo SealedInfo

	Status       EndpointStatus
	StatusReason string // why it is paused or disabled
	StatusAt     time.Time
	ReenableAt   time.Time // while disabled by failures: when it is tried again; zero never
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64 // grows by one with every change
}

// Metadata is what owners keep about an endpoint: any JSON values, stored and returned as they are. It has no effect.
type Metadata map[string]json.RawMessage

// SealedInfo is the part of an endpoint's sealed settings that may be shown.
type SealedInfo struct {
	HeaderNames []string `json:"header_names,omitempty"`
	AuthKind    string   `json:"auth_kind,omitempty"`
}

// EndpointSecrets are the values that an endpoint's Sealed blob holds.
type EndpointSecrets struct {
	Headers map[string]string `json:"headers,omitempty"`
	Auth    *Auth             `json:"auth,omitempty"`
}

// Auth is a credential presented to the endpoint besides the signature.
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

// EndpointStatus says whether an endpoint is sent to.
type EndpointStatus string

// The statuses. Paused is the owner's wish, disabled is ours; both hold deliveries, neither drops one.
const (
	EndpointActive   EndpointStatus = "active"
	EndpointPaused   EndpointStatus = "paused"
	EndpointDisabled EndpointStatus = "disabled"
	EndpointDeleted  EndpointStatus = "deleted" // hidden; what was waiting for it is cancelled by the sweep
)

// Selects reports whether an event is for this endpoint.
func (e *Endpoint) Selects(eventType string, attributes map[string]string) bool {
	for _, p := range e.Patterns {
		if MatchPattern(p, eventType) {
			return e.Filter.Match(attributes)
		}
	}
	return false
}

// Shards is the fixed number of parts endpoints hash onto; a node owns whole shards.
const Shards = 64

// Shard is the part this endpoint belongs to. It uses the random half of the id: the other half is a time.
func (id ID[K]) Shard() int { return int(binary.BigEndian.Uint64(id[8:]) % Shards) }

// AllowedMethod reports whether attempts may use the method (EDS-MTH-1..3).
func AllowedMethod(m string) bool { return m == http.MethodPost || m == http.MethodPut }

// Health is what the engine has learnt about an endpoint from its outcomes. Its only writer is the node that owns the
// endpoint's shard.
type Health struct {
	EndpointID          EndpointID
	ConsecutiveFailures int // transient outcomes in a row: what circuit and concurrency go by
	Streak              int // attempts of any kind that were not accepted since the last accepted one (CCW-HLT-3)
	ConsecutiveTerminal int // terminal outcomes over distinct events since the last accepted one (EDS-SEC-DOS-3)
	Accepted            int64
	Transient           int64
	Terminal            int64
	LastAcceptedAt      time.Time
	LastFailureAt       time.Time
	LastReason          Reason
	AvgDurationMS       float64   // moving average over attempts
	HoldUntil           time.Time // endpoint-wide Retry-After (EDS T-22)
	SunsetAt            time.Time // EDS-SUN-1
	CircuitOpenAt       time.Time // zero: closed
	ProbeAt             time.Time // while open: no attempt before this
	DegradedAt          time.Time // zero: not degraded (CCW-HLT-2)
	Recent              Recent    // the last hour's attempts; empty unless the policy watches for degrading
	UpdatedAt           time.Time
}

// LastAttemptAt is when the endpoint last answered, or failed to.
func (h *Health) LastAttemptAt() time.Time {
	if h.LastFailureAt.After(h.LastAcceptedAt) {
		return h.LastFailureAt
	}
	return h.LastAcceptedAt
}
