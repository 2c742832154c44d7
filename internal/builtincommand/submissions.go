package builtincommand

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Request holds the caller of an operation, the API and the Idempotency-Key.
type Request struct {
	Caller  *management.Caller
	Channel string
	Key     string
}

// DeleteEndpoint deletes an endpoint that is as the request expects. It returns store.ErrNotFound if there is none.
func (d *Runner) DeleteEndpoint(ctx context.Context, r Request, id godwit.EndpointID, m godwit.Match) error {
	if _, err := d.Management.Endpoints.Get(ctx, r.Caller.Tenant.ID, id); err != nil {
		return err
	}
	_, err := d.Run(ctx, r.Caller, Submission{Entity: "endpoint", Action: "delete", Target: id.String(), Key: r.Key, Channel: r.Channel,
		Plan: func(ctx context.Context, _ *command.Call) (*command.Outcome, error) {
			return d.planDelete(ctx, r.Caller.Tenant.ID, id, m)
		}})
	return err
}

// RotateSecret issues a signing secret. A repeat of the request gets the same secret without its value, and true as the second
// result.
func (d *Runner) RotateSecret(ctx context.Context, r Request, id godwit.EndpointID, rot management.Rotation) (*management.IssuedSecret, bool, error) {
	// An invalid request is refused before it becomes a command. Only the command makes the secret.
	plan, invalid := d.Management.Secrets.PlanRotation(ctx, r.Caller.Tenant.ID, id, rot)
	if invalid != nil && !idempotency.Again(ctx) {
		// A repeat of an interrupted rotation goes on: the secret that the first made may be the one too many.
		return nil, false, invalid
	}
	args := map[string]any{}
	if rot.Algorithm != "" {
		args["algorithm"] = rot.Algorithm
	}
	if rot.Secret != "" {
		args["secret"] = rot.Secret
	}
	if rot.Overlap != nil {
		args["overlap_seconds"] = rot.Overlap.Seconds()
	}
	done, err := d.Run(ctx, r.Caller, Submission{Entity: "endpoint", Action: "rotate_secret", Target: id.String(), Args: args, Key: r.Key, Channel: r.Channel,
		Plan: func(ctx context.Context, _ *command.Call) (*command.Outcome, error) {
			if invalid != nil {
				return nil, rejected("endpoint")(invalid)
			}
			return d.rotate(ctx, plan)
		}})
	if err != nil {
		return nil, false, err
	}
	v, err := resultOf[issued](done)
	if err != nil {
		return nil, false, err
	}
	return &management.IssuedSecret{
		Secret: godwit.Secret{ID: v.SecretID, TenantID: r.Caller.Tenant.ID, EndpointID: id, Algorithm: v.Algorithm, PublicKey: v.PublicKey, Hint: v.Hint,
			CreatedAt: v.CreatedAt, NotBefore: v.NotBefore},
		Value: v.Secret, OthersUntil: v.OthersUntil,
	}, done.Redacted, nil
}

// ReplayDeadLetters sends up to limit dead letters again. Next is the cursor of the next page; zero if none are left.
func (d *Runner) ReplayDeadLetters(ctx context.Context, r Request, f store.DeadLetterFilter, after godwit.DeliveryID, limit int) (replayed int, next godwit.DeliveryID, err error) {
	for limit > 0 {
		page := store.Page{Limit: min(limit, maxAtOnce), After: after}
		args := filterArgs(f)
		args["limit"] = page.Limit
		if !after.IsZero() {
			args["after"] = after.String()
		}
		done, err := d.Run(ctx, r.Caller, Submission{Entity: "dead_letters", Action: "replay", Args: args, Key: r.Key, Channel: r.Channel,
			Plan: func(_ context.Context, c *command.Call) (*command.Outcome, error) {
				return d.requeue(c.Actor, f, page), nil
			}})
		if err != nil {
			return replayed, next, err
		}
		v, err := resultOf[requeued](done)
		if err != nil {
			return replayed, next, err
		}
		replayed += v.Replayed
		limit -= page.Limit
		if after = v.Next; after.IsZero() {
			break
		}
	}
	return replayed, after, nil
}

// filterArgs encodes a filter as the args of the commands on dead letters.
func filterArgs(f store.DeadLetterFilter) map[string]any {
	args := map[string]any{}
	if (f == store.DeadLetterFilter{TenantID: f.TenantID, Replayed: f.Replayed}) {
		args["all"] = true
	}
	for name, value := range map[string]string{"type": f.EventType, "status": string(f.Status), "reason": string(f.Reason)} {
		if value != "" {
			args[name] = value
		}
	}
	if !f.EndpointID.IsZero() {
		args["endpoint"] = f.EndpointID.String()
	}
	for name, t := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !t.IsZero() {
			args[name] = t.UTC().Format(time.RFC3339Nano)
		}
	}
	return args
}

// PurgeDeadLetters removes dead letters once the caller has confirmed it.
func (d *Runner) PurgeDeadLetters(ctx context.Context, r Request, f store.DeadLetterFilter, limit int, c *Confirmation) (*Done, error) {
	args := filterArgs(f)
	args["limit"], args["replayed"] = limit, f.Replayed
	return d.Ask(ctx, r.Caller, Submission{Entity: "dead_letters", Action: "purge", Args: args, Channel: r.Channel}, c)
}

// RevokeSecret ends a signing secret once the caller has confirmed it.
func (d *Runner) RevokeSecret(ctx context.Context, r Request, id godwit.EndpointID, secret godwit.SecretID, c *Confirmation) (*Done, error) {
	return d.Ask(ctx, r.Caller, Submission{Entity: "endpoint", Action: "revoke_secret", Target: id.String(),
		Args: map[string]any{"secret_id": secret.String()}, Channel: r.Channel}, c)
}

// DeleteTenant deletes a tenant once the caller has confirmed it and another API key has approved it. The command belongs
// to the tenant of the caller's key, so that its evidence outlives the deleted tenant. A key of an environment deletes tenants of it with its own
// confirmation alone, and the evidence is in the environment's chain.
func (d *Runner) DeleteTenant(ctx context.Context, r Request, id godwit.TenantID, c *Confirmation) (*Done, error) {
	if r.Caller.ForEnvironment() && !r.Caller.Key.Has(godwit.ScopeAdmin) {
		return d.Ask(ctx, r.Caller, Submission{Entity: "environment", Action: "delete_tenant", Target: id.String(), Channel: r.Channel}, c)
	}
	home, err := d.Management.Callers.Own(ctx, r.Caller)
	if err != nil {
		return nil, err
	}
	if id == home.Tenant.ID {
		return nil, problem.Conflict.With("the API key belongs to this tenant; use an admin key of another one")
	}
	if c == nil {
		if _, err := d.Management.Tenants.Get(ctx, id); err != nil {
			return nil, err
		}
	}
	return d.Ask(ctx, home, Submission{Entity: "tenant", Action: "delete", Target: id.String(), Channel: r.Channel}, c)
}

// ReplayEvents sends up to limit events of a period to an endpoint. It returns the number of events sent, and whether
// there are more.
func (d *Runner) ReplayEvents(ctx context.Context, r Request, id godwit.EndpointID, since, until time.Time, types []string, limit int) (queued int, more bool, err error) {
	args := map[string]any{"since": since.UTC().Format(time.RFC3339Nano), "until": until.UTC().Format(time.RFC3339Nano)}
	if len(types) > 0 {
		args["types"] = types
	}
	p := period{Since: since, Until: until, Types: types}
	for more = true; limit > 0 && more; {
		p.Limit = min(limit, replayPage)
		args["limit"] = p.Limit
		done, err := d.Run(ctx, r.Caller, Submission{Entity: "events", Action: "replay", Target: id.String(), Args: args, Key: r.Key, Channel: r.Channel,
			Plan: func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
				events, err := p.events(r.Caller.Tenant.ID)
				if err != nil {
					return nil, err
				}
				events.Limit = p.Limit
				return d.resend(ctx, c.Actor, id, events)
			}})
		if err != nil {
			return queued, false, err
		}
		v, err := resultOf[resent](done)
		if err != nil {
			return queued, false, err
		}
		queued, limit, more = queued+v.Queued, limit-v.Events, v.More
		p.After = v.Next.String()
		args["after"] = p.After
	}
	return queued, more, nil
}
