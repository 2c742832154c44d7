package builtincommand

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// These commands belong to the home tenant of an environment, whose chain has their evidence. They name no scopes: only /v1 submits commands for a
// home, and it has checked the caller; for other tenants there is no such environment.

// environmentOf returns the environment that a command belongs to, if the target names it.
func environmentOf(ctx context.Context, cfg *Config, c *command.Call) (*godwit.Environment, error) {
	tenant, err := tenantOf(c)
	if err != nil {
		return nil, err
	}
	e, err := cfg.Management.Environments.Get(ctx, c.Intent.Target)
	if err == nil && godwit.HomeOf(e.ID) != tenant {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, rejected("environment")(err)
	}
	return e, nil
}

func rotateKeys(cfg Config) operation {
	type rotation struct {
		Overlap *float64 `json:"overlap_seconds"`
	}
	return operation{command.Declaration{
		Entity: "environment", Action: "rotate_keys", TargetRequired: true,
		Args:        schema(`"overlap_seconds":{"type":"number","minimum":0,"maximum":604800,"default":86400}`),
		Description: "Makes a new signing key of an environment, for the endpoints that it signs for; the others go on signing for the overlap.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[rotation](c)
		if err != nil {
			return nil, err
		}
		e, err := environmentOf(ctx, &cfg, c)
		if err != nil {
			return nil, err
		}
		var overlap *time.Duration
		if in.Overlap != nil {
			d := time.Duration(*in.Overlap * float64(time.Second))
			overlap = &d
		}
		plan, err := cfg.Management.SigningKeys.PlanRotation(ctx, e.ID, overlap)
		if err != nil {
			return nil, rejected("environment")(err)
		}
		return cfg.rotateKeys(ctx, e.ID, plan)
	}}
}

// issuedKey is the result of a rotation of an environment's keys.
type issuedKey struct {
	EnvironmentID godwit.EnvironmentID `json:"environment_id"`
	KeyID         godwit.SecretID      `json:"key_id"`
	Algorithm     string               `json:"algorithm"`
	PublicKey     []byte               `json:"public_key"` // base64 in JSON
	CreatedAt     time.Time            `json:"created_at"`
	OthersUntil   time.Time            `json:"others_until"`
}

// rotateKeys makes the key of a checked rotation.
func (cfg *Config) rotateKeys(ctx context.Context, id godwit.EnvironmentID, plan *management.PlannedRotation) (*command.Outcome, error) {
	made, err := plan.Issue()
	if err != nil {
		return nil, err
	}
	s := &made.Secret
	return &command.Outcome{
		Summary: "Environment " + id.String() + " has a new signing key.",
		Result: issuedKey{EnvironmentID: id, KeyID: s.ID, Algorithm: s.Algorithm, PublicKey: s.PublicKey, CreatedAt: s.CreatedAt.UTC(),
			OthersUntil: made.OthersUntil.UTC()},
		Effects: []command.Effect{store.IssueSecret{TenantID: s.TenantID, Secret: s, Others: plan.Others}},
		Refused: rejected("environment"),
		Done:    keysChanged(ctx, cfg.Management.SigningKeys, id),
	}, nil
}

func revokeKey(cfg Config) operation {
	type revocation struct {
		Key string `json:"key_id"`
	}
	return operation{command.Declaration{
		Entity: "environment", Action: "revoke_key", TargetRequired: true, Confirmation: true,
		Args:        schema(`"key_id":{"type":"string","maxLength":64}`, "key_id"),
		Description: "Ends a signing key of an environment at once, for one that leaked. The last one that is live cannot be revoked: rotate first.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[revocation](c)
		if err != nil {
			return nil, err
		}
		e, err := environmentOf(ctx, &cfg, c)
		if err != nil {
			return nil, err
		}
		id, err := godwit.ParseSecretID(in.Key)
		if err != nil {
			return nil, command.Reject("not_found", "there is no such key")
		}
		return &command.Outcome{
			Summary: "Key " + id.String() + " was revoked.",
			Result:  map[string]any{"environment_id": e.ID.String(), "key_id": id.String()},
			Effects: []command.Effect{store.RevokeSecret{TenantID: godwit.HomeOf(e.ID), EndpointID: godwit.KeysOf(e.ID), SecretID: id, Now: cfg.Management.Now()}},
			Refused: func(err error) error {
				if errors.Is(err, store.ErrConflict) {
					return command.Reject("not_revocable", "it has ended before, or is the only one that is live: rotate first")
				}
				return rejected("key")(err)
			},
			Done: keysChanged(ctx, cfg.Management.SigningKeys, e.ID),
		}, nil
	}}
}

func keysChanged(ctx context.Context, keys *management.SigningKeys, id godwit.EnvironmentID) func(bool, command.Results) {
	return func(stored bool, _ command.Results) {
		if stored {
			keys.Changed(context.WithoutCancel(ctx), id)
		}
	}
}

// RotateKeys makes a signing key of an environment. The caller acts for the environment.
func (d *Runner) RotateKeys(ctx context.Context, r Request, overlap *time.Duration) (*management.IssuedSecret, error) {
	id := r.Caller.Tenant.EnvironmentID
	plan, invalid := d.Management.SigningKeys.PlanRotation(ctx, id, overlap)
	if invalid != nil && !idempotency.Again(ctx) {
		return nil, invalid
	}
	args := map[string]any{}
	if overlap != nil {
		args["overlap_seconds"] = overlap.Seconds()
	}
	done, err := d.Run(ctx, r.Caller, Submission{Entity: "environment", Action: "rotate_keys", Target: id.String(), Args: args, Key: r.Key, Channel: r.Channel,
		Plan: func(ctx context.Context, _ *command.Call) (*command.Outcome, error) {
			if invalid != nil {
				return nil, rejected("environment")(invalid)
			}
			return d.rotateKeys(ctx, id, plan)
		}})
	if err != nil {
		return nil, err
	}
	v, err := resultOf[issuedKey](done)
	if err != nil {
		return nil, err
	}
	return &management.IssuedSecret{Secret: godwit.Secret{
		ID: v.KeyID, TenantID: godwit.HomeOf(id), EndpointID: godwit.KeysOf(id), Algorithm: v.Algorithm, PublicKey: v.PublicKey,
		CreatedAt: v.CreatedAt, NotBefore: v.CreatedAt,
	}, OthersUntil: v.OthersUntil}, nil
}

// RevokeKey ends a signing key of an environment once the caller, which acts for the environment, has confirmed it.
func (d *Runner) RevokeKey(ctx context.Context, r Request, key godwit.SecretID, c *Confirmation) (*Done, error) {
	return d.Ask(ctx, r.Caller, Submission{Entity: "environment", Action: "revoke_key", Target: r.Caller.Tenant.EnvironmentID.String(),
		Args: map[string]any{"key_id": key.String()}, Channel: r.Channel}, c)
}
