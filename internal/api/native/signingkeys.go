package native

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// SigningKey is a signing key of an environment. Its private part is never shown.
type SigningKey struct {
	ID        string     `json:"id" doc:"Also the keyid of signatures made with it" example:"sec_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Algorithm string     `json:"algorithm" enum:"ed25519"`
	PublicKey string     `json:"public_key" doc:"Standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory"`
	Live      bool       `json:"live" doc:"Whether it signs now"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

func signingKeyView(s *godwit.Secret, now time.Time) SigningKey {
	return SigningKey{
		ID: s.ID.String(), Algorithm: s.Algorithm, PublicKey: base64.StdEncoding.EncodeToString(s.PublicKey), Live: s.LiveAt(now),
		CreatedAt: s.CreatedAt.UTC(), ExpiresAt: timestamp(s.ExpiresAt),
	}
}

type (
	signingKeysOutput struct {
		Body struct {
			Items []SigningKey `json:"items"`
		} `nameHint:"SigningKeyList"`
	}
	rotateKeysInput struct {
		EnvironmentPath
		Body *struct {
			OverlapSeconds *float64 `json:"overlap_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long the other keys go on signing beside the new one. Defaults to 86400."`
		} `nameHint:"KeyRotation"`
	}
	rotateKeysOutput struct{ Body IssuedSigningKey }
	revokeKeyInput   struct {
		EnvironmentPath
		ConfirmationParams
		Key string `path:"key" doc:"Id of the key"`
	}
)

// IssuedSigningKey is a new signing key.
type IssuedSigningKey struct {
	SigningKey
	OthersUntil time.Time `json:"others_until" doc:"When the other keys stop signing"`
}

// RevokedSigningKey is the result of a revocation.
type RevokedSigningKey struct {
	EnvironmentID string `json:"environment_id"`
	KeyID         string `json:"key_id" doc:"It no longer signs"`
}

// Descriptions of the operations on the signing keys of environments.
var (
	listSigningKeysDoc = huma.Operation{
		OperationID: "list-signing-keys", Summary: "List the signing keys of an environment",
		Description: "They sign deliveries to the endpoints of the environment whose signing is environment.",
	}
	rotateSigningKeysDoc = huma.Operation{
		OperationID: "rotate-signing-keys", Summary: "Add a signing key to an environment", DefaultStatus: http.StatusCreated,
		Description: "The new key signs at once, beside the others until the overlap ends; all nodes follow within half a second. It runs as the command environment.rotate_keys, with its evidence in the environment's chain.",
	}
	revokeSigningKeyDoc = huma.Operation{
		OperationID: "revoke-signing-key", Summary: "Revoke a signing key of an environment",
		Description: "It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate first. It runs as the command environment.revoke_key.",
	}
)

// signingKeyHandlers serve the operations on the signing keys of environments.
type signingKeyHandlers struct {
	keys interface {
		List(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
	}
	environments interface {
		Get(ctx context.Context, named string) (*godwit.Environment, error)
	}
	callers interface {
		Enter(ctx context.Context, c *management.Caller, named string) (*management.Caller, error)
	}
	commands interface {
		RotateKeys(ctx context.Context, r builtincommand.Request, overlap *time.Duration) (*management.IssuedSecret, error)
		RevokeKey(ctx context.Context, r builtincommand.Request, key godwit.SecretID, c *builtincommand.Confirmation) (*builtincommand.Done, error)
	}
	now func() time.Time
}

// find returns the environment that a path names, if the caller may know of it.
func (h *signingKeyHandlers) find(ctx context.Context, c *management.Caller, path EnvironmentPath) (*godwit.Environment, error) {
	e, err := h.environments.Get(ctx, path.ID)
	if err == nil && e.ID != c.Tenant.EnvironmentID && !c.Key.Has(godwit.ScopeAdmin) {
		return nil, store.ErrNotFound
	}
	return e, err
}

// request returns the command of a caller that acts for the environment.
func (h *signingKeyHandlers) request(ctx context.Context, c *management.Caller, path EnvironmentPath) (builtincommand.Request, error) {
	r := commandRequest(ctx)
	e, err := h.find(ctx, c, path)
	if err == nil && c.Tenant.ID != godwit.HomeOf(e.ID) {
		r.Caller, err = h.callers.Enter(ctx, c, e.ID.String())
	}
	return r, err
}

func (h *signingKeyHandlers) list(ctx context.Context, c *management.Caller, in *EnvironmentPath) (*signingKeysOutput, error) {
	e, err := h.find(ctx, c, *in)
	if err != nil {
		return nil, err
	}
	keys, err := h.keys.List(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	out := &signingKeysOutput{}
	out.Body.Items = make([]SigningKey, 0, len(keys))
	now := h.now()
	for i := range keys {
		out.Body.Items = append(out.Body.Items, signingKeyView(&keys[i], now))
	}
	return out, nil
}

func (h *signingKeyHandlers) rotate(ctx context.Context, c *management.Caller, in *rotateKeysInput) (*rotateKeysOutput, error) {
	r, err := h.request(ctx, c, in.EnvironmentPath)
	if err != nil {
		return nil, err
	}
	var overlap *time.Duration
	if in.Body != nil && in.Body.OverlapSeconds != nil {
		d := time.Duration(*in.Body.OverlapSeconds * float64(time.Second))
		overlap = &d
	}
	issued, err := h.commands.RotateKeys(ctx, r, overlap)
	if err != nil {
		return nil, err
	}
	return &rotateKeysOutput{Body: IssuedSigningKey{signingKeyView(&issued.Secret, h.now()), issued.OthersUntil.UTC()}}, nil
}

func (h *signingKeyHandlers) revoke(ctx context.Context, c *management.Caller, in *revokeKeyInput) (*confirmedOutput[RevokedSigningKey], error) {
	key, err := godwit.ParseSecretID(in.Key)
	if err != nil {
		return nil, badID("key", "sec_…")
	}
	r, err := h.request(ctx, c, in.EnvironmentPath)
	if err != nil {
		return nil, err
	}
	return confirmed[RevokedSigningKey](h.commands.RevokeKey(ctx, r, key, in.confirmation()))
}
