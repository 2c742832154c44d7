package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// Tenant is a tenant as the API shows it.
type Tenant struct {
	ID                    string    `json:"id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	AccountID             string    `json:"account_id" doc:"Its short id, as CYBERCUBE events name it" example:"ACC-9F4K7Q-T"`
	Name                  string    `json:"name"`
	RequireIdempotencyKey bool      `json:"require_idempotency_key" doc:"Events without Idempotency-Key are refused"`
	AlertEmails           []string  `json:"alert_emails" doc:"Who is told of dead letters, degraded and disabled endpoints"`
	EventValidation       string    `json:"event_validation" enum:",known,strict" doc:"known: events whose type has a schema must fit it. strict: types that are not in the catalogue are refused too. Empty: anything goes."`
	CreatedAt             time.Time `json:"created_at"`
}

func tenantView(t *godwit.Tenant) Tenant {
	v := Tenant{
		ID: t.ID.String(), AccountID: profile.FormatCode(profile.CodeTenant, t.Code), Name: t.Name,
		RequireIdempotencyKey: t.RequireIdempotencyKey, AlertEmails: t.AlertEmails, EventValidation: string(t.Validation),
		CreatedAt: t.CreatedAt.UTC(),
	}
	if v.AlertEmails == nil {
		v.AlertEmails = []string{}
	}
	return v
}

type tenantInput struct {
	Body struct {
		Name                  string   `json:"name"`
		RequireIdempotencyKey bool     `json:"require_idempotency_key,omitempty"`
		AlertEmails           []string `json:"alert_emails,omitempty" maxItems:"10" doc:"E-mail addresses that are told of dead letters, degraded and disabled endpoints"`
		EventValidation       string   `json:"event_validation,omitempty" enum:",known,strict"`
	} `nameHint:"NewTenant"`
}

type tenantPatch struct {
	TenantPath
	Body struct {
		Name                  *string   `json:"name,omitempty"`
		RequireIdempotencyKey *bool     `json:"require_idempotency_key,omitempty"`
		AlertEmails           *[]string `json:"alert_emails,omitempty" maxItems:"10" doc:"Replaced as a whole"`
		EventValidation       *string   `json:"event_validation,omitempty" enum:",known,strict"`
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

type deleteTenantInput struct {
	TenantPath
	ConfirmationParams
}

type tenantOutput struct {
	Location string `header:"Location"`
	Body     Tenant
}

// Descriptions of the operations on tenants.
var (
	createTenantDoc = huma.Operation{
		OperationID: "create-tenant",
		Summary:     "Create a tenant", DefaultStatus: http.StatusCreated,
		Description: "A tenant owns an event bus: its events reach its own endpoints alone. It starts without API keys.",
	}
	listTenantsDoc = huma.Operation{
		OperationID: "list-tenants", Summary: "List tenants",
	}
	getTenantDoc = huma.Operation{
		OperationID: "get-tenant", Summary: "Get a tenant",
	}
	updateTenantDoc = huma.Operation{
		OperationID: "update-tenant", Summary: "Change a tenant",
	}
	deleteTenantDoc = huma.Operation{
		OperationID: "delete-tenant",
		Summary:     "Delete a tenant",
		Description: "Revokes its API keys, deletes its endpoints and cancels what was waiting for them. It runs as the command tenant.delete, of the tenant that the API key " +
			"belongs to, which cannot delete itself. A second admin key of that tenant has to approve: it posts to the step_up_url of the first answer, and the token " +
			"it gets goes into Godwit-Step-Up.",
	}
)

// tenantHandlers serve the operations on tenants.
type tenantHandlers struct {
	tenants interface {
		Create(ctx context.Context, spec management.TenantSpec) (*godwit.Tenant, error)
		Get(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
		List(ctx context.Context, p store.Page) ([]godwit.Tenant, error)
		Update(ctx context.Context, id godwit.TenantID, edit func(*management.TenantSpec) error) (*godwit.Tenant, error)
	}
	commands interface {
		DeleteTenant(ctx context.Context, r builtincommand.Request, id godwit.TenantID, c *builtincommand.Confirmation) (*builtincommand.Done, error)
	}
}

func (h *tenantHandlers) create(ctx context.Context, _ *management.Caller, in *tenantInput) (*tenantOutput, error) {
	t, err := h.tenants.Create(ctx, management.TenantSpec{
		Name: in.Body.Name, RequireIdempotencyKey: in.Body.RequireIdempotencyKey,
		AlertEmails: in.Body.AlertEmails, Validation: godwit.Validation(in.Body.EventValidation),
	})
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Location: "/v1/tenants/" + t.ID.String(), Body: tenantView(t)}, nil
}

func (h *tenantHandlers) list(ctx context.Context, _ *management.Caller, in *PageParams) (*listOutput[Tenant], error) {
	return tenants.page(*in, func(p store.Page) ([]godwit.Tenant, error) { return h.tenants.List(ctx, p) })
}

func (h *tenantHandlers) get(ctx context.Context, _ *management.Caller, in *TenantPath) (*tenantOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	t, err := h.tenants.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Body: tenantView(t)}, nil
}

func (h *tenantHandlers) update(ctx context.Context, _ *management.Caller, in *tenantPatch) (*tenantOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	t, err := h.tenants.Update(ctx, id, func(spec *management.TenantSpec) error {
		if in.Body.Name != nil {
			spec.Name = *in.Body.Name
		}
		if in.Body.RequireIdempotencyKey != nil {
			spec.RequireIdempotencyKey = *in.Body.RequireIdempotencyKey
		}
		if in.Body.AlertEmails != nil {
			spec.AlertEmails = *in.Body.AlertEmails
		}
		if in.Body.EventValidation != nil {
			spec.Validation = godwit.Validation(*in.Body.EventValidation)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Body: tenantView(t)}, nil
}

func (h *tenantHandlers) delete(ctx context.Context, _ *management.Caller, in *deleteTenantInput) (*confirmedOutput[struct{}], error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	return confirmed[struct{}](h.commands.DeleteTenant(ctx, commandRequest(ctx), id, in.confirmation()))
}
