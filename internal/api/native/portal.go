package native

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// Portal is what the pages of a portal need to know before they show anything.
type Portal struct {
	Environment PortalEnvironment `json:"environment"`
	Tenant      *PortalTenant     `json:"tenant,omitempty" doc:"Absent if the request is made for the environment itself"`
	Theme       godwit.Theme      `json:"theme" doc:"Members that are absent have the portal's own look"`
}

// PortalEnvironment is the environment of a portal.
type PortalEnvironment struct {
	ID   string `json:"id"`
	UID  string `json:"uid"`
	Name string `json:"name"`
	Live bool   `json:"live"`
}

// PortalTenant is the tenant whose portal it is.
type PortalTenant struct {
	ID   string `json:"id"`
	UID  string `json:"uid,omitempty"`
	Name string `json:"name"`
}

type portalOutput struct{ Body Portal }

var getPortalDoc = huma.Operation{
	OperationID: "get-portal", Summary: "Get the look of the portal",
	Description: "The theme of the caller's environment, and the tenant that the request is made for.",
}

// portalHandlers serve what portals look like.
type portalHandlers struct {
	environments interface {
		Portal(ctx context.Context, id godwit.EnvironmentID) (*godwit.Environment, error)
	}
}

func (h *portalHandlers) get(ctx context.Context, c *management.Caller, _ *struct{}) (*portalOutput, error) {
	e, err := h.environments.Portal(ctx, c.Tenant.EnvironmentID)
	if err != nil {
		return nil, err
	}
	v := Portal{Environment: PortalEnvironment{ID: e.ID.String(), UID: e.UID, Name: e.Name, Live: e.Live}, Theme: e.Portal.Theme}
	if t := c.Tenant; !t.Home {
		v.Tenant = &PortalTenant{ID: t.ID.String(), UID: t.UID, Name: t.Name}
	}
	return &portalOutput{Body: v}, nil
}
