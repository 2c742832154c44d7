package builtincommand

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// target finds the endpoint that an intent names, in any form of its id.
func target(ctx context.Context, endpoints *management.Endpoints, c *command.Call) (*godwit.Endpoint, error) {
	tenant, err := tenantOf(c)
	if err != nil {
		return nil, err
	}
	e, err := endpoints.Resolve(ctx, tenant, c.Intent.Target)
	if err != nil {
		if errors.Is(err, godwit.ErrBadID) {
			return nil, command.Reject("not_found", "there is no such endpoint")
		}
		return nil, rejected("endpoint")(err)
	}
	return e, nil
}

func deleteEndpoint(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "endpoint", Action: "delete", TargetRequired: true, Scopes: []string{"manage"}, Confirmation: true, Args: schema(""),
		Description: "Deletes an endpoint; what waits for it is cancelled. The target is its id.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		e, err := target(ctx, cfg.Management.Endpoints, c)
		if err != nil {
			return nil, err
		}
		return cfg.planDelete(ctx, e.TenantID, e.ID, godwit.Match{})
	}}
}

func (cfg *Config) planDelete(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, m godwit.Match) (*command.Outcome, error) {
	next, err := cfg.Management.Endpoints.PlanDelete(ctx, tenant, id, m)
	if err != nil {
		return nil, rejected("endpoint")(err)
	}
	return &command.Outcome{
		Summary: "Endpoint " + id.String() + " was deleted.",
		Result:  map[string]any{"endpoint_id": id.String(), "status": next.Status},
		Effects: []command.Effect{store.ChangeEndpoint{Endpoint: next}},
		Refused: rejected("endpoint"),
		Done: func(stored bool, _ command.Results) {
			if stored {
				cfg.Management.Endpoints.Deleted(context.WithoutCancel(ctx), next)
			}
		},
	}, nil
}

func rotateSecret(cfg Config) operation {
	type rotation struct {
		Algorithm string   `json:"algorithm"`
		Overlap   *float64 `json:"overlap_seconds"`
		Secret    string   `json:"secret"`
	}
	return operation{command.Declaration{
		Entity: "endpoint", Action: "rotate_secret", TargetRequired: true, Scopes: []string{"manage"}, Secret: []string{"secret"},
		Args: schema(`"algorithm":{"type":"string","maxLength":32},"overlap_seconds":{"type":"number","minimum":0,"maximum":604800,"default":86400},` +
			`"secret":{"type":"string","maxLength":1024,"description":"Your own signing key, in the form in which the profile shows keys. Defaults to a new one."}`),
		Description: "Issues a new signing secret for an endpoint; the others go on signing for the overlap. The secret is in the first answer " +
			"alone: who lost it rotates again.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[rotation](c)
		if err != nil {
			return nil, err
		}
		e, err := target(ctx, cfg.Management.Endpoints, c)
		if err != nil {
			return nil, err
		}
		rot := management.Rotation{Algorithm: in.Algorithm, Secret: in.Secret}
		if in.Overlap != nil {
			overlap := time.Duration(*in.Overlap * float64(time.Second))
			rot.Overlap = &overlap
		}
		plan, err := cfg.Management.Secrets.PlanRotation(ctx, e.TenantID, e.ID, rot)
		if err != nil {
			return nil, rejected("endpoint")(err)
		}
		return cfg.rotate(ctx, plan)
	}}
}

// rotate issues the secret of a checked rotation.
func (cfg *Config) rotate(ctx context.Context, plan *management.PlannedRotation) (*command.Outcome, error) {
	made, err := plan.Issue()
	if err != nil {
		return nil, err
	}
	s := &made.Secret
	return &command.Outcome{
		Summary: "Endpoint " + s.EndpointID.String() + " has a new signing secret.",
		Result: issued{EndpointID: s.EndpointID, SecretID: s.ID, Algorithm: s.Algorithm, PublicKey: s.PublicKey, Hint: s.Hint,
			CreatedAt: s.CreatedAt.UTC(), NotBefore: s.NotBefore.UTC(), OthersUntil: made.OthersUntil.UTC(), Secret: made.Value},
		Effects: []command.Effect{store.IssueSecret{TenantID: s.TenantID, Secret: s, Others: plan.Others}},
		Refused: rejected("endpoint"),
		Done:    changed(ctx, cfg.Management.Endpoints, s.EndpointID),
	}, nil
}

// issued is the result of a rotation.
type issued struct {
	EndpointID  godwit.EndpointID `json:"endpoint_id"`
	SecretID    godwit.SecretID   `json:"secret_id"`
	Algorithm   string            `json:"algorithm"`
	PublicKey   []byte            `json:"public_key,omitempty"` // base64 in JSON
	Hint        string            `json:"hint,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	NotBefore   time.Time         `json:"not_before"`
	OthersUntil time.Time         `json:"others_until"`
	Secret      string            `json:"secret,omitempty"` // in the first answer only
}

func revokeSecret(cfg Config) operation {
	type revocation struct {
		Secret string `json:"secret_id"`
	}
	return operation{command.Declaration{
		Entity: "endpoint", Action: "revoke_secret", TargetRequired: true, Scopes: []string{"manage"}, Confirmation: true,
		Args:        schema(`"secret_id":{"type":"string","maxLength":64}`, "secret_id"),
		Description: "Ends one of an endpoint's signing secrets at once, for one that leaked. The last one that is live cannot be revoked: rotate first.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[revocation](c)
		if err != nil {
			return nil, err
		}
		e, err := target(ctx, cfg.Management.Endpoints, c)
		if err != nil {
			return nil, err
		}
		id, err := godwit.ParseSecretID(in.Secret)
		if err != nil {
			return nil, command.Reject("not_found", "there is no such secret")
		}
		return &command.Outcome{
			Summary: "Secret " + id.String() + " was revoked.",
			Result:  map[string]any{"endpoint_id": e.ID.String(), "secret_id": id.String()},
			Effects: []command.Effect{store.RevokeSecret{TenantID: e.TenantID, EndpointID: e.ID, SecretID: id, Now: cfg.Management.Now()}},
			Refused: func(err error) error {
				if errors.Is(err, store.ErrConflict) {
					return command.Reject("not_revocable", "it has ended before, or is the only one that is live: rotate first")
				}
				return rejected("secret")(err)
			},
			Done: changed(ctx, cfg.Management.Endpoints, e.ID),
		}, nil
	}}
}

func changed(ctx context.Context, endpoints *management.Endpoints, id godwit.EndpointID) func(bool, command.Results) {
	return func(stored bool, _ command.Results) {
		if stored {
			endpoints.Changed(context.WithoutCancel(ctx), id)
		}
	}
}
