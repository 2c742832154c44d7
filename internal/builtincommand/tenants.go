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
		return &command.Outcome{
			Summary: "Tenant " + id.String() + " was deleted.",
			Effects: []command.Effect{store.RemoveTenant{ID: id, Now: cfg.Registry.Now()}},
			Refused: rejected("tenant"),
			After: func(o *command.Outcome, results []any) error {
				endpoints, _ := results[0].([]godwit.EndpointID)
				o.Result = map[string]any{"tenant_id": id.String(), "endpoints": len(endpoints)}
				return nil
			},
			Done: func(stored bool, results []any) {
				if !stored {
					return
				}
				var endpoints []godwit.EndpointID
				if len(results) > 0 {
					endpoints, _ = results[0].([]godwit.EndpointID)
				}
				cfg.Registry.TenantDeleted(context.WithoutCancel(ctx), id, endpoints)
			},
		}, nil
	}}
}
