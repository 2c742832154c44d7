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
		return o, nil
	}}
}
