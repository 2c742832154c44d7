package native

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/source"
)

// Source is an inbound address to which one upstream delivers.
type Source struct {
	ID             string             `json:"id" example:"src_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Name           string             `json:"name" example:"stripe"`
	TenantID       string             `json:"tenant_id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Path           string             `json:"path" doc:"Where the upstream delivers" example:"/in/src_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	PublicPath     string             `json:"public_path,omitempty" doc:"The same place by the tenant's public id and the source's name"`
	Description    string             `json:"description,omitempty"`
	Scheme         string             `json:"scheme"`
	Settings       SourceSettings     `json:"settings"`
	Credentials    []SourceCredential `json:"credentials" doc:"Without secrets"`
	Adopt          bool               `json:"adopt"`
	Mode           string             `json:"mode" enum:"store-and-forward,pass-through" doc:"The mode that is wanted"`
	ModeInForce    string             `json:"mode_in_force,omitempty" enum:"store-and-forward,pass-through" doc:"store-and-forward only while an acknowledgment of the service description holds"`
	Acknowledged   *Acknowledgment    `json:"acknowledged,omitempty" doc:"The acknowledgment that holds"`
	EventType      SourceEventType    `json:"event_type"`
	KeepHeaders    []string           `json:"keep_headers"`
	KeyIDSuffix    string             `json:"key_id_suffix" doc:"What stands behind the key id of signatures on its events, so that receivers tell it from other upstreams"`
	Status         string             `json:"status" enum:"active,paused"`
	CreatedAt      time.Time          `json:"created_at"`
	UpdatedAt      time.Time          `json:"updated_at"`
	Version        int64              `json:"version"`
	LastReceivedAt *time.Time         `json:"last_received_at,omitempty" doc:"When the last authentic request came, to the minute; absent: none has come"`
}

// SourceSettings are options of the scheme.
type SourceSettings struct {
	WebhookID      string `json:"webhook_id,omitempty" doc:"paypal: id of the webhook, which is signed but not sent"`
	EndToEnd       string `json:"end_to_end,omitempty" doc:"eds: label of a signature that is the origin's own and goes on untouched"`
	PutAgreement   string `json:"put_agreement,omitempty" doc:"eds: where the agreement is written that lets the upstream use PUT"`
	CommandsAs     string `json:"commands_as,omitempty" doc:"Deliveries are commands, submitted in the name of the API key with this id; see /ids/v1"`
	DeliveryHeader string `json:"delivery_header,omitempty" doc:"adopt: header with the upstream's own id of a delivery, in place of the scheme's"`
	LenientKey     bool   `json:"lenient_key,omitempty" doc:"Take an Idempotency-Key without quotes as well; it goes on as it came"`
}

// SourceEventType is the rule that determines an event's type.
type SourceEventType struct {
	Fixed  string `json:"fixed,omitempty" doc:"This one; or what stands in where header or member are not there"`
	Header string `json:"header,omitempty" doc:"Value of this header field"`
	Member string `json:"member,omitempty" doc:"Text at this path of members in a JSON body, joined with dots" example:"data.type"`
}

// SourceCredential is a credential of an upstream, without its secret.
type SourceCredential struct {
	ID        string     `json:"id" doc:"Key id of signatures, user name, or ours"`
	Hint      string     `json:"hint,omitempty" doc:"Last four characters of the secret"`
	PublicKey string     `json:"public_key,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// NewCredential is a credential to add.
type NewCredential struct {
	ID        string `json:"id,omitempty" maxLength:"200" doc:"eds: key id of the upstream's signatures; basic: its user name. Else made here."`
	Secret    string `json:"secret,omitempty" maxLength:"4096" doc:"Shared secret, token or password. Kept encrypted."`
	PublicKey string `json:"public_key,omitempty" maxLength:"16384" doc:"eds: Ed25519 key in base64; standard-webhooks: whpk_…; paypal: certificate in PEM; mtls: SHA-256 fingerprint of the certificate"`
}

// NewSource is the body that creates a source.
type NewSource struct {
	Name        string          `json:"name" maxLength:"64" doc:"Letters, digits, '-', '_' and '.'; unique in the tenant"`
	Description string          `json:"description,omitempty"`
	Scheme      string          `json:"scheme" doc:"How the upstream proves who it is: eds, ojs, cybercube, standard-webhooks, github, stripe, shopify, slack, twilio, paypal, bearer, basic or mtls"`
	Settings    SourceSettings  `json:"settings,omitzero"`
	Credentials []NewCredential `json:"credentials,omitempty" maxItems:"16" doc:"What deliveries are verified with. Absent: a secret is made, where the scheme lets us choose it."`
	Adopt       bool            `json:"adopt,omitempty" doc:"Take deliveries without Idempotency-Key: one is made of the upstream's delivery id"`
	Mode        string          `json:"mode,omitempty" enum:"store-and-forward,pass-through" doc:"Defaults to store-and-forward, which needs an acknowledgment to be in force"`
	EventType   SourceEventType `json:"event_type,omitzero" doc:"Defaults to what a CloudEvent or the scheme tells"`
	KeepHeaders []string        `json:"keep_headers,omitempty" maxItems:"32" doc:"Header fields that go on to the endpoints as they came"`
}

// SourceDraft is the body that creates or replaces the source with the name in the path.
type SourceDraft struct {
	Name        string          `json:"name,omitempty" maxLength:"64" doc:"The one in the path"`
	Description string          `json:"description,omitempty"`
	Scheme      string          `json:"scheme" doc:"As in NewSource; cannot change"`
	Settings    SourceSettings  `json:"settings,omitzero"`
	Credentials []NewCredential `json:"credentials,omitempty" maxItems:"16" doc:"Used when the source is created; afterwards they change by rotate"`
	Adopt       bool            `json:"adopt,omitempty" doc:"Take deliveries without Idempotency-Key: one is made of the upstream's delivery id"`
	Mode        string          `json:"mode,omitempty" enum:"store-and-forward,pass-through" doc:"Defaults to store-and-forward, which needs an acknowledgment to be in force"`
	EventType   SourceEventType `json:"event_type,omitzero" doc:"Defaults to what a CloudEvent or the scheme tells"`
	KeepHeaders []string        `json:"keep_headers,omitempty" maxItems:"32" doc:"Header fields that go on to the endpoints as they came"`
}

func (n *NewSource) spec() source.Spec {
	spec := source.Spec{
		Name: n.Name, Description: n.Description, Scheme: n.Scheme, Settings: godwit.SourceSettings(n.Settings), Adopt: n.Adopt,
		Mode: godwit.RelayMode(n.Mode), EventType: godwit.TypeRule(n.EventType), Keep: n.KeepHeaders,
	}
	for _, c := range n.Credentials {
		spec.Credentials = append(spec.Credentials, c.credential())
	}
	return spec
}

func (c *NewCredential) credential() godwit.Credential {
	return godwit.Credential{ID: c.ID, Secret: c.Secret, PublicKey: c.PublicKey}
}

// IssuedCredential is a new credential. No other response shows its secret.
type IssuedCredential struct {
	ID     string `json:"id"`
	Secret string `json:"secret" doc:"It is shown this once"`
}

// IssuedSource is a source with the credential that the server generated for it.
type IssuedSource struct {
	Source
	Issued *IssuedCredential `json:"issued,omitempty" doc:"The credential that was made; absent where you brought your own"`
}

func issuedCredential(i *source.Issued) *IssuedCredential {
	if i == nil {
		return nil
	}
	return &IssuedCredential{ID: i.ID, Secret: i.Secret}
}

func sourceView(s *godwit.Source) Source {
	v := Source{
		ID: s.ID.String(), Name: s.Name, TenantID: s.TenantID.String(), Path: "/in/" + s.ID.String(), Description: s.Description, Scheme: s.Scheme,
		Settings: SourceSettings(s.Settings), Credentials: []SourceCredential{}, Adopt: s.Adopt, Mode: string(s.Mode),
		EventType: SourceEventType(s.EventType), KeepHeaders: append([]string{}, s.Keep...), Status: string(s.Status),
		KeyIDSuffix: "/" + godwit.Origin{Source: s.ID}.Tag(), CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(), Version: s.Version,
		LastReceivedAt: timestamp(s.LastReceivedAt),
	}
	for _, c := range s.Credentials {
		v.Credentials = append(v.Credentials, SourceCredential{
			ID: c.ID, Hint: c.Hint, PublicKey: c.PublicKey, CreatedAt: c.CreatedAt.UTC(), ExpiresAt: timestamp(c.ExpiresAt),
		})
	}
	return v
}

// Acknowledgment records that the upstream agreed to a version of the service description.
type Acknowledgment struct {
	ID      string    `json:"id" example:"ack_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Version string    `json:"version" doc:"Of the service description"`
	By      string    `json:"by" doc:"Who acknowledged it"`
	Actor   string    `json:"actor" doc:"Id of the API key that recorded it"`
	At      time.Time `json:"at"`
}

func acknowledgmentView(a *godwit.Acknowledgment) Acknowledgment {
	return Acknowledgment{ID: a.ID.String(), Version: a.Version, By: a.By, Actor: a.Actor, At: a.At.UTC()}
}

// Rejection is a request that a source refused. It holds no payload, credential or header values.
type Rejection struct {
	ID         string    `json:"id" example:"rej_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Status     int       `json:"status" doc:"What was answered"`
	Code       string    `json:"code" doc:"Problem code"`
	Reason     string    `json:"reason,omitempty" doc:"What authentication found wrong" example:"mismatch"`
	Detail     string    `json:"detail,omitempty"`
	RemoteAddr string    `json:"remote_addr"`
	Method     string    `json:"method"`
	Size       int64     `json:"size" doc:"Length of the body in bytes; -1 when it is not known"`
	Headers    []string  `json:"headers" doc:"Names alone"`
	At         time.Time `json:"at"`
}

func rejectionView(j *godwit.Rejection) Rejection {
	return Rejection{
		ID: j.ID.String(), Status: j.Status, Code: j.Code, Reason: j.Reason, Detail: j.Detail, RemoteAddr: j.RemoteAddr, Method: j.Method,
		Size: j.Size, Headers: append([]string{}, j.Headers...), At: j.At.UTC(),
	}
}
