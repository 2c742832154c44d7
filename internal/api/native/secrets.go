package native

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

type (
	rotateInput struct {
		EndpointPath
		Body *struct {
			Algorithm      string   `json:"algorithm,omitempty" enum:"hmac-sha256,ed25519" doc:"Defaults to that of the newest secret"`
			OverlapSeconds *float64 `json:"overlap_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long the old secrets go on signing beside the new one. Defaults to 86400."`
			Secret         string   `json:"secret,omitempty" maxLength:"1024" doc:"Your own signing key, in the form in which the profile shows keys. Defaults to a new one."`
		} `nameHint:"Rotation"`
	}
	issuedSecretOutput struct{ Body IssuedSecret }
)

type secretsOutput struct {
	Body struct {
		Items []Secret `json:"items"`
	} `nameHint:"SecretList"`
}

// RevokedSecret is the result of a revocation.
type RevokedSecret struct {
	EndpointID string `json:"endpoint_id"`
	SecretID   string `json:"secret_id" doc:"It no longer signs"`
}

type revokeInput struct {
	EndpointPath
	ConfirmationParams
	Secret string `path:"secret" doc:"Id of the secret"`
}

// Descriptions of the operations on signing secrets.
var (
	rotateSecretDoc = huma.Operation{
		OperationID: "rotate-secret", Summary: "Rotate the signing secret",
		Description: "The new secret signs at once, beside the old ones until the overlap ends. Its value is in this answer and in no other, but for a repeat with the same Idempotency-Key. It runs as the command endpoint.rotate_secret.",
	}
	listSecretsDoc = huma.Operation{
		OperationID: "list-secrets", Summary: "List signing secrets, without their values",
		Description: "Where the environment signs, its keys are listed first; secrets of the endpoint's own then do not sign.",
	}
	revokeSecretDoc = huma.Operation{
		OperationID: "revoke-secret", Summary: "Revoke a signing secret",
		Description: "It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate first. It runs as the command endpoint.revoke_secret.",
	}
)

// secretHandlers serve the operations on the signing secrets of endpoints.
type secretHandlers struct {
	secrets interface {
		List(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) ([]godwit.Secret, error)
	}
	endpoints interface {
		Get(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	}
	keys interface {
		List(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
	}
	commands interface {
		RotateSecret(ctx context.Context, r builtincommand.Request, id godwit.EndpointID, rot management.Rotation) (*management.IssuedSecret, bool, error)
		RevokeSecret(ctx context.Context, r builtincommand.Request, id godwit.EndpointID, secret godwit.SecretID, c *builtincommand.Confirmation) (*builtincommand.Done, error)
	}
	finder endpointFinder
	now    func() time.Time
}

func (h *secretHandlers) rotate(ctx context.Context, c *management.Caller, in *rotateInput) (*issuedSecretOutput, error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	var rot management.Rotation
	if in.Body != nil {
		rot.Algorithm, rot.Secret = in.Body.Algorithm, in.Body.Secret
		if in.Body.OverlapSeconds != nil {
			overlap := time.Duration(*in.Body.OverlapSeconds * float64(time.Second))
			rot.Overlap = &overlap
		}
	}
	issued, redacted, err := h.commands.RotateSecret(ctx, commandRequest(ctx), id, rot)
	if err != nil {
		return nil, err
	}
	out := &issuedSecretOutput{Body: issuedView(issued, h.now())}
	out.Body.SecretRedacted = redacted
	return out, nil
}

func (h *secretHandlers) list(ctx context.Context, c *management.Caller, in *EndpointPath) (*secretsOutput, error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	e, err := h.endpoints.Get(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	secrets, err := h.secrets.List(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	shared := e.Signing == godwit.SigningEnvironment
	if shared {
		keys, err := h.keys.List(ctx, c.Tenant.EnvironmentID)
		if err != nil {
			return nil, err
		}
		secrets = append(keys, secrets...)
	}
	out := &secretsOutput{}
	out.Body.Items = make([]Secret, 0, len(secrets))
	now := h.now()
	for i := range secrets {
		v := secretView(&secrets[i], now)
		v.Live = v.Live && v.Shared == shared
		out.Body.Items = append(out.Body.Items, v)
	}
	return out, nil
}

func (h *secretHandlers) revoke(ctx context.Context, c *management.Caller, in *revokeInput) (*confirmedOutput[RevokedSecret], error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	secret, err := godwit.ParseSecretID(in.Secret)
	if err != nil {
		return nil, badID("secret", "sec_…")
	}
	if _, err := h.endpoints.Get(ctx, c.Tenant.ID, id); err != nil {
		return nil, err
	}
	return confirmed[RevokedSecret](h.commands.RevokeSecret(ctx, commandRequest(ctx), id, secret, in.confirmation()))
}
