package builtincommand

import (
	"context"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

func deleteTenant(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "tenant", Action: "delete", TargetRequired: true, Scopes: []string{"admin"}, Confirmation: true, StepUp: true, Critical: true, Args: schema(""),
		Description: "Deletes a tenant, revokes its keys and deletes its endpoints. It needs a confirmation and the approval of a second admin key. " +
			"A tenant cannot delete itself.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		id, err := godwit.ParseTenantID(c.Intent.Target)
		if err != nil {
			return nil, command.Reject("not_found", "there is no such tenant")
		}
		if id.String() == c.Tenant { // an id has more than one spelling
			return nil, command.Reject("own_tenant", "the key belongs to this tenant; use an admin key of another one")
		}
		return cfg.removeTenant(ctx, id), nil
	}}
}

// removeTenant deletes a tenant.
func (cfg *Config) removeTenant(ctx context.Context, id godwit.TenantID) *command.Outcome {
	o := &command.Outcome{Summary: "Tenant " + id.String() + " was deleted.", Refused: rejected("tenant")}
	endpoints := command.Add(o, store.RemoveTenant{ID: id, Now: cfg.Management.Now()})
	o.After = func(o *command.Outcome, results command.Results) error {
		o.Result = map[string]any{"tenant_id": id.String(), "endpoints": len(endpoints.In(results))}
		return nil
	}
	o.Done = func(stored bool, results command.Results) {
		if stored {
			cfg.Management.Tenants.Deleted(context.WithoutCancel(ctx), id, endpoints.In(results))
		}
	}
	return o
}

// deleteTenantOf deletes a tenant of the environment that the command belongs to. A tenant cannot leave its environment, so the check holds until the
// tenant is removed.
func deleteTenantOf(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "environment", Action: "delete_tenant", TargetRequired: true, Confirmation: true, Critical: true, Args: schema(""),
		Description: "Deletes a tenant of the environment, revokes its keys and deletes its endpoints. The target is the tenant's id.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		home, err := tenantOf(c)
		if err != nil {
			return nil, err
		}
		id, err := godwit.ParseTenantID(c.Intent.Target)
		if err != nil {
			return nil, command.Reject("not_found", "there is no such tenant")
		}
		t, err := cfg.Management.Tenants.Get(ctx, id)
		if err == nil && (t.Home || godwit.HomeOf(t.EnvironmentID) != home) {
			err = store.ErrNotFound
		}
		if err != nil {
			return nil, rejected("tenant")(err)
		}
		return cfg.removeTenant(ctx, id), nil
	}}
}
