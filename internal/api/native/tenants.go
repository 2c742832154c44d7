package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/registry"
)

// Tenant is a tenant as the API shows it.
type Tenant struct {
	ID                    string    `json:"id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Name                  string    `json:"name"`
	RequireIdempotencyKey bool      `json:"require_idempotency_key" doc:"Events without Idempotency-Key are refused"`
	CreatedAt             time.Time `json:"created_at"`
}

func tenantView(t *godwit.Tenant) Tenant {
	return Tenant{ID: t.ID.String(), Name: t.Name, RequireIdempotencyKey: t.RequireIdempotencyKey, CreatedAt: t.CreatedAt.UTC()}
}

type tenantInput struct {
	Body struct {
		Name                  string `json:"name"`
		RequireIdempotencyKey bool   `json:"require_idempotency_key,omitempty"`
	} `nameHint:"NewTenant"`
}

type tenantPatch struct {
	TenantPath
	Body struct {
		Name                  *string `json:"name,omitempty"`
		RequireIdempotencyKey *bool   `json:"require_idempotency_key,omitempty"`
	} `nameHint:"TenantPatch"`
}

// TenantPath names a tenant.
type TenantPath struct {
	ID string `path:"id" doc:"Id of the tenant"`
}

func (p TenantPath) parse() (godwit.TenantID, error) {
	id, err := godwit.ParseTenantID(p.ID)
	if err != nil {
		return id, badID("id", "ten_…")
	}
	return id, nil
}

type tenantOutput struct {
	Location string `header:"Location"`
	Body     Tenant
}

func (s *server) tenantRoutes() {
	typed(s, mayAdmin, huma.Operation{
		OperationID: "create-tenant", Method: http.MethodPost, Path: "/v1/tenants", Tags: []string{"Tenants"},
		Summary: "Create a tenant", DefaultStatus: http.StatusCreated,
		Description: "A tenant owns an event bus: its events reach its own endpoints alone. It starts without API keys.",
	}, func(ctx context.Context, _ *registry.Caller, in *tenantInput) (*tenantOutput, error) {
		t, err := s.cfg.Registry.CreateTenant(ctx, registry.TenantSpec{Name: in.Body.Name, RequireIdempotencyKey: in.Body.RequireIdempotencyKey})
		if err != nil {
			return nil, err
		}
		return &tenantOutput{Location: "/v1/tenants/" + t.ID.String(), Body: tenantView(t)}, nil
	})
	typed(s, mayAdmin, huma.Operation{
		OperationID: "list-tenants", Method: http.MethodGet, Path: "/v1/tenants", Tags: []string{"Tenants"}, Summary: "List tenants",
	}, func(ctx context.Context, _ *registry.Caller, in *PageParams) (*listOutput[Tenant], error) {
		p, err := in.page(listTenants)
		if err != nil {
			return nil, err
		}
		items, err := s.cfg.Registry.ListTenants(ctx, p)
		if err != nil {
			return nil, err
		}
		return listOf(*in, listTenants, items, func(t *godwit.Tenant) [16]byte { return t.ID }, tenantView), nil
	})
	typed(s, mayAdmin, huma.Operation{
		OperationID: "get-tenant", Method: http.MethodGet, Path: "/v1/tenants/{id}", Tags: []string{"Tenants"}, Summary: "Get a tenant",
	}, s.getTenant)
	typed(s, mayAdmin, huma.Operation{
		OperationID: "update-tenant", Method: http.MethodPatch, Path: "/v1/tenants/{id}", Tags: []string{"Tenants"}, Summary: "Change a tenant",
	}, s.updateTenant)
	typed(s, mayAdmin, huma.Operation{
		OperationID: "delete-tenant", Method: http.MethodDelete, Path: "/v1/tenants/{id}", Tags: []string{"Tenants"},
		Summary: "Delete a tenant", DefaultStatus: http.StatusNoContent,
		Description: "Revokes its API keys, deletes its endpoints and cancels what was waiting for them.",
	}, func(ctx context.Context, _ *registry.Caller, in *TenantPath) (*struct{}, error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		return nil, s.cfg.Registry.DeleteTenant(ctx, id)
	})
}

func (s *server) getTenant(ctx context.Context, _ *registry.Caller, in *TenantPath) (*tenantOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	t, err := s.cfg.Registry.Tenant(ctx, id)
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Body: tenantView(t)}, nil
}

func (s *server) updateTenant(ctx context.Context, _ *registry.Caller, in *tenantPatch) (*tenantOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	t, err := s.cfg.Registry.UpdateTenant(ctx, id, func(spec *registry.TenantSpec) error {
		if in.Body.Name != nil {
			spec.Name = *in.Body.Name
		}
		if in.Body.RequireIdempotencyKey != nil {
			spec.RequireIdempotencyKey = *in.Body.RequireIdempotencyKey
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Body: tenantView(t)}, nil
}
