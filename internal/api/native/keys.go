package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// Key is an API key as the API shows it, without its token.
type Key struct {
	ID        string     `json:"id" example:"key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Name      string     `json:"name"`
	Hint      string     `json:"hint" doc:"First characters of the token, to tell keys apart"`
	Scopes    []string   `json:"scopes"`
	Principal string     `json:"principal" doc:"Identity that idempotency is scoped by; a key that replaces another keeps it"`
	MadeBy    []string   `json:"made_by" doc:"Principals that made the key: that of the key it was created with, and those that made that one. None of them and this key's principal can approve each other's commands. Empty for keys made with godwit keys create, and for keys older than this record."`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

// IssuedKey is a new key, with its token.
type IssuedKey struct {
	Key
	Token string `json:"token" doc:"The API key itself. It is shown this once and kept as a hash alone."`
}

func keyView(k *godwit.APIKey) Key {
	v := Key{
		ID: k.ID.String(), Name: k.Name, Hint: k.Hint, Principal: k.Principal.String(), Scopes: []string{}, MadeBy: []string{},
		CreatedAt: k.CreatedAt.UTC(), ExpiresAt: timestamp(k.ExpiresAt), RevokedAt: timestamp(k.RevokedAt),
	}
	for _, s := range k.Scopes {
		v.Scopes = append(v.Scopes, string(s))
	}
	for _, m := range k.Makers {
		v.MadeBy = append(v.MadeBy, godwit.PrincipalText(m))
	}
	return v
}

type keyInput struct {
	Body struct {
		Name      string     `json:"name"`
		Scopes    []string   `json:"scopes" enum:"ingest,read,manage,admin,audit,metrics" doc:"What it may do. A key can grant no scope that it lacks; one with admin can grant metrics, too."`
		ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"From then on it is refused; absent: never"`
		Replaces  string     `json:"replaces,omitempty" doc:"Id of a key of this tenant whose place it takes. The new key acts under the same principal, so that repeated requests stay the same requests; the old key works until it is deleted."`
	} `nameHint:"NewKey"`
}

// KeyPath names an API key.
type KeyPath struct {
	ID string `path:"id" doc:"Id of the key"`
}

func (p KeyPath) parse() (godwit.KeyID, error) {
	id, err := godwit.ParseKeyID(p.ID)
	if err != nil {
		return id, badID("id", "key_…")
	}
	return id, nil
}

type issuedKeyOutput struct {
	Location string `header:"Location"`
	Body     IssuedKey
}

type keyOutput struct{ Body Key }

// Descriptions of the operations on API keys.
var (
	createKeyDoc = huma.Operation{
		OperationID: "create-key",
		Summary:     "Create an API key", DefaultStatus: http.StatusCreated,
		Description: "The token is in this answer and in no other, but for a repeat with the same Idempotency-Key.",
	}
	listKeysDoc = huma.Operation{
		OperationID: "list-keys", Summary: "List API keys",
	}
	getKeyDoc = huma.Operation{
		OperationID: "get-key", Summary: "Get an API key",
	}
	revokeKeyDoc = huma.Operation{
		OperationID: "revoke-key",
		Summary:     "Revoke an API key", DefaultStatus: http.StatusNoContent,
		Description: "It is refused at once by this node and within seconds by all others. It stays in the list.",
	}
)

// keyHandlers serve the operations on API keys.
type keyHandlers struct {
	keys interface {
		Create(ctx context.Context, by *management.Caller, tenant godwit.TenantID, spec management.KeySpec) (*godwit.APIKey, string, error)
		Get(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error)
		List(ctx context.Context, tenant godwit.TenantID, p store.Page) ([]godwit.APIKey, error)
		Revoke(ctx context.Context, by *management.Caller, tenant godwit.TenantID, id godwit.KeyID) error
	}
}

func (h *keyHandlers) create(ctx context.Context, c *management.Caller, in *keyInput) (*issuedKeyOutput, error) {
	spec := management.KeySpec{Name: in.Body.Name}
	for _, scope := range in.Body.Scopes {
		spec.Scopes = append(spec.Scopes, godwit.Scope(scope))
	}
	if in.Body.ExpiresAt != nil {
		spec.ExpiresAt = in.Body.ExpiresAt.UTC()
	}
	if in.Body.Replaces != "" {
		id, err := godwit.ParseKeyID(in.Body.Replaces)
		if err != nil {
			return nil, badID("replaces", "key_…")
		}
		spec.Replaces = id
	}
	k, token, err := h.keys.Create(ctx, c, c.Tenant.ID, spec)
	if err != nil {
		return nil, err
	}
	return &issuedKeyOutput{Location: "/v1/keys/" + k.ID.String(), Body: IssuedKey{Key: keyView(k), Token: token}}, nil
}

func (h *keyHandlers) list(ctx context.Context, c *management.Caller, in *PageParams) (*listOutput[Key], error) {
	return keys.page(*in, func(p store.Page) ([]godwit.APIKey, error) { return h.keys.List(ctx, c.Tenant.ID, p) })
}

func (h *keyHandlers) get(ctx context.Context, c *management.Caller, in *KeyPath) (*keyOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	k, err := h.keys.Get(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: keyView(k)}, nil
}

func (h *keyHandlers) revoke(ctx context.Context, c *management.Caller, in *KeyPath) (*struct{}, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	return nil, h.keys.Revoke(ctx, c, c.Tenant.ID, id)
}
