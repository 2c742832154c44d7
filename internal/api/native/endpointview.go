package native

import (
	"encoding/base64"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
)

// Endpoint is an endpoint as the API shows it: without header values, credentials and secrets.
type Endpoint struct {
	ID           string                 `json:"id" example:"sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	PublicID     string                 `json:"public_id" doc:"The same endpoint's short id, to be read aloud; taken wherever the id is" example:"WEB-X2M8KD-Z"`
	UID          string                 `json:"uid,omitempty" doc:"Chosen by the owner, unique in the tenant; taken wherever the id is" example:"billing"`
	TenantID     string                 `json:"tenant_id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	URL          string                 `json:"url"`
	Method       string                 `json:"method" enum:"POST,PUT"`
	Profile      string                 `json:"profile" doc:"Wire dialect; fixed at creation" example:"eds"`
	Description  string                 `json:"description"`
	Patterns     []string               `json:"patterns"`
	Filter       map[string][]string    `json:"filter,omitempty"`
	Content      godwit.ContentFilter   `json:"content_filter,omitempty" doc:"Conditions on the event's type, attributes, headers, source and body; see docs/filters.md"`
	HeaderNames  []string               `json:"header_names" doc:"Names of the custom headers; values are never shown"`
	AuthKind     string                 `json:"auth_kind,omitempty" doc:"Kind of the credential; its values are never shown"`
	Policy       godwit.PolicyOverrides `json:"policy" doc:"Deviations from the profile"`
	Metadata     godwit.Metadata        `json:"metadata,omitempty" doc:"Any JSON values"`
	Signing      string                 `json:"signing" enum:"own,environment" doc:"Whose keys sign: the endpoint's own secrets, or the environment's signing keys"`
	Status       string                 `json:"status" enum:"active,paused,disabled"`
	StatusReason string                 `json:"status_reason,omitempty"`
	StatusAt     time.Time              `json:"status_at"`
	ReenableAt   *time.Time             `json:"reenable_at,omitempty" doc:"While it is disabled by failures: when it is tried again"`
	CreatedAt    time.Time              `json:"created_at"`
	UpdatedAt    time.Time              `json:"updated_at"`
	Version      int64                  `json:"version" doc:"Grows with every change"`
}

func endpointView(e *godwit.Endpoint) Endpoint {
	v := Endpoint{
		ID: e.ID.String(), PublicID: profile.FormatCode(profile.CodeEndpoint, e.Code), UID: e.UID, TenantID: e.TenantID.String(), URL: e.URL, Method: e.Method, Profile: e.Profile, Description: e.Description, Patterns: e.Patterns,
		Filter: e.Filter, Content: e.Content, HeaderNames: e.SealedInfo.HeaderNames, AuthKind: e.SealedInfo.AuthKind, Policy: e.Policy,
		Metadata: e.Metadata, Signing: signingView(e.Signing), Status: string(e.Status), StatusReason: e.StatusReason, StatusAt: e.StatusAt.UTC(),
		ReenableAt: timestamp(e.ReenableAt), CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(), Version: e.Version,
	}
	if v.Patterns == nil {
		v.Patterns = []string{}
	}
	if v.HeaderNames == nil {
		v.HeaderNames = []string{}
	}
	return v
}

// IssuedEndpoint is a new endpoint with its first secret.
type IssuedEndpoint struct {
	Endpoint
	Secret IssuedSecret `json:"secret"`
}

// WrittenEndpoint is an endpoint that was put, with its first secret if it was created.
type WrittenEndpoint struct {
	Endpoint
	Secret *IssuedSecret `json:"secret,omitempty" doc:"Only when the endpoint was created"`
}

// Secret is a signing secret as the API shows it: never with its value.
type Secret struct {
	ID        string     `json:"id" doc:"Also the keyid of signatures made with it" example:"sec_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Algorithm string     `json:"algorithm" enum:"hmac-sha256,ed25519"`
	PublicKey string     `json:"public_key,omitempty" doc:"Ed25519 public key: standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory"`
	Live      bool       `json:"live" doc:"Whether it signs now"`
	CreatedAt time.Time  `json:"created_at"`
	NotBefore time.Time  `json:"not_before"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Hint      string     `json:"hint,omitempty" doc:"Last four characters of its value"`
	Shared    bool       `json:"shared,omitempty" doc:"It is a signing key of the environment, which signs for other endpoints too"`
}

// IssuedSecret is a new secret. No other response shows its value.
type IssuedSecret struct {
	Secret
	Value string `json:"value,omitempty" doc:"The shared secret, in the profile's form; it is shown this once. eds: standard base64 of the key of 32 bytes, to be decoded before use. ojs, cybercube: the text itself is the key. standard-webhooks: whsec_ and base64 of the key. Absent where the public key is enough."`
	// Only for a repeat after a crash; other repeats get the first response.
	SecretRedacted bool `json:"secret_redacted,omitempty" doc:"The value was shown to an earlier request with this Idempotency-Key and is kept nowhere; who lost it rotates again"`
}

func secretView(s *godwit.Secret, now time.Time) Secret {
	v := Secret{
		ID: s.ID.String(), Algorithm: s.Algorithm, Live: s.LiveAt(now), CreatedAt: s.CreatedAt.UTC(), NotBefore: s.NotBefore.UTC(),
		ExpiresAt: timestamp(s.ExpiresAt), Hint: s.Hint, Shared: godwit.EndpointID(s.TenantID) == s.EndpointID,
	}
	if len(s.PublicKey) > 0 {
		v.PublicKey = base64.StdEncoding.EncodeToString(s.PublicKey)
	}
	return v
}

func issuedView(s *management.IssuedSecret, now time.Time) IssuedSecret {
	return IssuedSecret{Secret: secretView(&s.Secret, now), Value: s.Value}
}

// shownTo leaves the value out for a portal session that may not see secrets.
func shownTo(c *management.Caller, s IssuedSecret) IssuedSecret {
	if !c.Can(godwit.ManageSecrets) {
		s.Value = ""
	}
	return s
}

// mayChoose refuses a secret of the caller's own from a portal session that may not manage secrets.
func mayChoose(c *management.Caller, secret string) error {
	if secret != "" && !c.Can(godwit.ManageSecrets) {
		return problem.Forbidden.With("to choose the secret needs a portal link with the capability %s", godwit.ManageSecrets)
	}
	return nil
}

// Auth is a credential that deliveries present to the endpoint beside the signature.
type Auth struct {
	Kind           string   `json:"kind" enum:"bearer,basic,oauth2,mtls"`
	Token          string   `json:"token,omitempty" doc:"bearer: the token"`
	Username       string   `json:"username,omitempty" doc:"basic"`
	Password       string   `json:"password,omitempty" doc:"basic"`
	TokenURL       string   `json:"token_url,omitempty" doc:"oauth2: where tokens are fetched, by client credentials"`
	ClientID       string   `json:"client_id,omitempty" doc:"oauth2"`
	ClientSecret   string   `json:"client_secret,omitempty" doc:"oauth2"`
	Scopes         []string `json:"scopes,omitempty" doc:"oauth2"`
	Audience       string   `json:"audience,omitempty" doc:"oauth2"`
	CertificatePEM string   `json:"certificate_pem,omitempty" doc:"mtls: the client's certificate chain"`
	PrivateKeyPEM  string   `json:"private_key_pem,omitempty" doc:"mtls: its key"`
}

// NewEndpoint is the body that creates an endpoint.
type NewEndpoint struct {
	UID         string                  `json:"uid,omitempty" doc:"An id of your own, unique in the tenant" example:"billing"`
	URL         string                  `json:"url" doc:"Where to deliver; https unless the operator allows http" example:"https://example.com/webhooks"`
	Method      string                  `json:"method,omitempty" enum:"POST,PUT" doc:"PUT needs policy.agreement. Defaults to POST."`
	Profile     string                  `json:"profile,omitempty" doc:"Wire dialect: eds, ojs, cybercube or standard-webhooks. Defaults to eds."`
	Description string                  `json:"description,omitempty"`
	Patterns    []string                `json:"patterns,omitempty" doc:"Event types to deliver: exact, prefix.* or *. Defaults to [\"*\"]." example:"[\"order.*\"]"`
	Filter      map[string][]string     `json:"filter,omitempty" doc:"For each attribute named, the event's value must be one of those listed"`
	Content     godwit.ContentFilter    `json:"content_filter,omitempty" doc:"Conditions on the event's type, attributes, headers, source and body, such as {\"body\": {\"amount\": {\"$gte\": 100}}}; all must hold. See docs/filters.md."`
	Headers     map[string]string       `json:"headers,omitempty" doc:"Added to every request; values are kept encrypted and never shown"`
	Auth        *Auth                   `json:"auth,omitempty"`
	Policy      *godwit.PolicyOverrides `json:"policy,omitempty"`
	Metadata    godwit.Metadata         `json:"metadata,omitempty" doc:"What you keep about the endpoint: any JSON values. It has no effect."`
	Signing     string                  `json:"signing,omitempty" enum:"own,environment" doc:"own: the endpoint has secrets of its own. environment: the environment's signing keys sign; profile eds. Defaults to the environment's endpoint_signing, and to own with an algorithm or a secret."`
	Algorithm   string                  `json:"algorithm,omitempty" enum:"hmac-sha256,ed25519" doc:"How requests are signed. Defaults to the profile's first."`
	Secret      string                  `json:"secret,omitempty" maxLength:"1024" doc:"Your own signing key, in the form in which the profile shows keys. It is kept encrypted. Defaults to a new one."`
	Paused      bool                    `json:"paused,omitempty" doc:"Whether it starts paused"`
}

func (n *NewEndpoint) spec() management.NewEndpoint {
	spec := management.NewEndpoint{
		EndpointSpec: management.EndpointSpec{
			UID: n.UID, URL: n.URL, Method: n.Method, Profile: n.Profile, Description: n.Description, Patterns: n.Patterns, Filter: n.Filter, Content: n.Content,
			Headers: n.Headers, Metadata: n.Metadata, Signing: management.ParseSigning(n.Signing),
		},
		Algorithm: n.Algorithm, Secret: n.Secret, Paused: n.Paused, OwnPolicy: n.Policy != nil, OwnSigning: n.Signing != "",
	}
	if n.Auth != nil {
		a := godwit.Auth(*n.Auth)
		spec.Auth = &a
	}
	if n.Policy != nil {
		spec.Policy = *n.Policy
	}
	return spec
}
