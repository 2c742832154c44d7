package native

import (
	"context"
	"errors"
	"net/http"
	"slices"
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
	ID                    string        `json:"id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	AccountID             string        `json:"account_id" doc:"Its short id, as CYBERCUBE events name it" example:"ACC-9F4K7Q-T"`
	UID                   string        `json:"uid,omitempty" doc:"Chosen by the caller, unique in the environment; names the tenant wherever its id does" example:"customer-42"`
	EnvironmentID         string        `json:"environment_id" example:"env_00000000-0000-7000-8000-000000000000"`
	Name                  string        `json:"name"`
	RequireIdempotencyKey bool          `json:"require_idempotency_key" doc:"Events without Idempotency-Key are refused"`
	AlertEmails           []string      `json:"alert_emails" doc:"Who is told of dead letters, degraded and disabled endpoints"`
	EventValidation       string        `json:"event_validation" enum:",known,strict" doc:"known: events whose type has a schema must fit it. strict: types that are not in the catalogue are refused too. Empty: anything goes."`
	Limits                Limits        `json:"limits" doc:"What the tenant may use. The server's defaults hold for absent members"`
	Inherits              []string      `json:"inherits" enum:"require_idempotency_key,event_validation,alert_emails,limits" doc:"The members above that are the environment's"`
	OwnEventTypes         int           `json:"own_event_types" doc:"How many event types it has beside those that its environment shares"`
	CreatedAt             time.Time     `json:"created_at"`
	Version               int64         `json:"version" doc:"Grows with every change"`
	Health                *TenantHealth `json:"health,omitempty" doc:"How it does, in a list with health=true"`
}

func tenantView(t *godwit.Tenant) Tenant {
	v := Tenant{
		ID: t.ID.String(), AccountID: profile.FormatCode(profile.CodeTenant, t.Code), Name: t.Name,
		RequireIdempotencyKey: t.RequireIdempotencyKey, AlertEmails: t.AlertEmails, EventValidation: string(t.Validation),
		UID: t.UID, EnvironmentID: t.EnvironmentID.String(), Inherits: []string{}, OwnEventTypes: t.OwnTypes, Limits: Limits(t.Limits), CreatedAt: t.CreatedAt.UTC(), Version: t.Version,
	}
	for _, name := range t.Inherits {
		v.Inherits = append(v.Inherits, string(name))
	}
	if v.AlertEmails == nil {
		v.AlertEmails = []string{}
	}
	return v
}

// NewTenant is the body that creates a tenant.
type NewTenant struct {
	UID                   string    `json:"uid,omitempty" doc:"An id of your own, unique in the environment"`
	Name                  string    `json:"name"`
	RequireIdempotencyKey *bool     `json:"require_idempotency_key,omitempty" doc:"Absent: as the environment says"`
	AlertEmails           *[]string `json:"alert_emails,omitempty" maxItems:"10" doc:"E-mail addresses that are told of dead letters, degraded and disabled endpoints. Absent: the environment's"`
	EventValidation       *string   `json:"event_validation,omitempty" enum:",known,strict" doc:"Absent: as the environment says"`
	Limits                *Limits   `json:"limits,omitempty" doc:"Absent: the environment's"`
}

// spec describes the tenant. It inherits what is absent.
func (b *NewTenant) spec() management.TenantSpec {
	spec := management.TenantSpec{Inherits: godwit.LentSettings}
	(&TenantPatch{UID: &b.UID, Name: &b.Name, RequireIdempotencyKey: b.RequireIdempotencyKey, AlertEmails: b.AlertEmails,
		EventValidation: b.EventValidation, Limits: b.Limits}).apply(&spec)
	return spec
}

type tenantInput struct{ Body NewTenant }

type putTenantInput struct {
	TenantPath
	MatchParams
	Body NewTenant
}

type tenantPatch struct {
	TenantPath
	VersionParams
	Body TenantPatch
}

// TenantPatch has the changes of a tenant; absent members stay.
type TenantPatch struct {
	UID                   *string   `json:"uid,omitempty"`
	Name                  *string   `json:"name,omitempty"`
	RequireIdempotencyKey *bool     `json:"require_idempotency_key,omitempty"`
	AlertEmails           *[]string `json:"alert_emails,omitempty" maxItems:"10" doc:"Replaced as a whole"`
	EventValidation       *string   `json:"event_validation,omitempty" enum:",known,strict"`
	Limits                *Limits   `json:"limits,omitempty" doc:"Replaced as a whole"`
	Inherits              *[]string `json:"inherits,omitempty" enum:"require_idempotency_key,event_validation,alert_emails,limits" doc:"Members that are the environment's from now on. Replaced as a whole; a member that is given itself is the tenant's own"`
}

// apply changes a spec. A setting that is given is the tenant's own from then on.
func (b *TenantPatch) apply(spec *management.TenantSpec) {
	if b.Inherits != nil {
		spec.Inherits = nil
		for _, name := range *b.Inherits {
			if s := godwit.Setting(name); !slices.Contains(spec.Inherits, s) {
				spec.Inherits = append(spec.Inherits, s)
			}
		}
	}
	set(&spec.UID, b.UID)
	set(&spec.Name, b.Name)
	own := func(given bool, name godwit.Setting) {
		if given {
			spec.Inherits = slices.DeleteFunc(slices.Clone(spec.Inherits), func(s godwit.Setting) bool { return s == name })
		}
	}
	own(set(&spec.RequireIdempotencyKey, b.RequireIdempotencyKey), godwit.SettingIdempotencyKey)
	own(set(&spec.AlertEmails, b.AlertEmails), godwit.SettingAlertEmails)
	own(set((*string)(&spec.Validation), b.EventValidation), godwit.SettingValidation)
	own(set((*Limits)(&spec.Limits), b.Limits), godwit.SettingLimits)
}

// set copies a member that is given, and reports whether it is.
func set[T any](to, given *T) bool {
	if given == nil {
		return false
	}
	*to = *given
	return true
}

// TenantPath names a tenant.
type TenantPath struct {
	ID string `path:"id" doc:"Id or uid of the tenant"`
}

type listTenantsInput struct {
	PageParams
	Search string `query:"search" maxLength:"200" doc:"Only tenants whose name or uid contains this text; ASCII letters match in either case"`
	Health bool   `query:"health" doc:"Also say how each does: its endpoints by state, what waits, when a delivery was last accepted"`
}

type deleteTenantInput struct {
	TenantPath
	VersionParams
	ConfirmationParams
}

type tenantOutput struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     Tenant
}

// Descriptions of the operations on tenants.
var (
	createTenantDoc = huma.Operation{
		OperationID: "create-tenant",
		Summary:     "Create a tenant", DefaultStatus: http.StatusCreated,
		Description: "A tenant owns an event bus: its events reach its own endpoints alone. It belongs to the environment that the request is made for, and starts without API keys.",
	}
	listTenantsDoc = huma.Operation{
		OperationID: "list-tenants", Summary: "List tenants",
		Description: "Those of the environment that the request is made for. An administrator's request that names none lists those of all environments.",
	}
	getTenantDoc = huma.Operation{
		OperationID: "get-tenant", Summary: "Get a tenant",
	}
	updateTenantDoc = huma.Operation{
		OperationID: "update-tenant", Summary: "Change a tenant",
	}
	putTenantDoc = huma.Operation{
		OperationID: "put-tenant", Summary: "Create or replace a tenant",
		Description: "With a uid of your choice in the path, in the environment that the request is made for. All settings are replaced; those that are absent are the environment's. A tenant that is as the request says stays as it is, with its version.",
	}
	deleteTenantDoc = huma.Operation{
		OperationID: "delete-tenant",
		Summary:     "Delete a tenant",
		Description: "Revokes its API keys, deletes its endpoints and cancels what was waiting for them. It runs as the command tenant.delete, of the tenant that the API key " +
			"belongs to, which cannot delete itself. A second admin key of that tenant has to approve: it posts to the step_up_url of the first answer, and the token " +
			"it gets goes into Godwit-Step-Up. A key of an environment with the scope manage deletes the environment's tenants without that approval; it then runs as the command " +
			"environment.delete_tenant, with its evidence in the environment's chain.",
	}
)

// tenantHandlers serve the operations on tenants.
type tenantHandlers struct {
	tenants interface {
		Create(ctx context.Context, environment godwit.EnvironmentID, spec management.TenantSpec) (*godwit.Tenant, error)
		Find(ctx context.Context, environment godwit.EnvironmentID, named string) (*godwit.Tenant, error)
		Search(ctx context.Context, environment godwit.EnvironmentID, text string, p store.Page) ([]godwit.Tenant, error)
		Health(ctx context.Context, tenants []godwit.TenantID, upTo int) ([]store.TenantHealth, error)
		Put(ctx context.Context, environment godwit.EnvironmentID, named string, spec management.TenantSpec, m godwit.Match) (*godwit.Tenant, bool, error)
		Update(ctx context.Context, id godwit.TenantID, m godwit.Match, edit func(*management.TenantSpec) error) (*godwit.Tenant, error)
	}
	commands interface {
		DeleteTenant(ctx context.Context, r builtincommand.Request, id godwit.TenantID, c *builtincommand.Confirmation) (*builtincommand.Done, error)
	}
}

func (h *tenantHandlers) create(ctx context.Context, c *management.Caller, in *tenantInput) (*tenantOutput, error) {
	t, err := h.tenants.Create(ctx, c.Tenant.EnvironmentID, in.Body.spec())
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Location: "/v1/tenants/" + t.ID.String(), ETag: etag(t.Version), Body: tenantView(t)}, nil
}

func (h *tenantHandlers) list(ctx context.Context, c *management.Caller, in *listTenantsInput) (*listOutput[Tenant], error) {
	var of godwit.EnvironmentID // an administrator sees all
	if c.ForEnvironment() {
		of = c.Tenant.EnvironmentID
	}
	var ids []godwit.TenantID
	out, err := tenants.page(in.PageParams, func(p store.Page) ([]godwit.Tenant, error) {
		list, err := h.tenants.Search(ctx, of, in.Search, p)
		for i := range list[:min(len(list), in.Limit)] {
			ids = append(ids, list[i].ID)
		}
		return list, err
	})
	if err != nil || !in.Health || len(ids) == 0 {
		return out, err
	}
	health, err := h.tenants.Health(ctx, ids, tenantWaiting)
	if err != nil {
		return nil, err
	}
	for i := range out.Body.Items {
		out.Body.Items[i].Health = tenantHealthView(&health[i])
	}
	return out, nil
}

// tenantWaiting is how many waiting deliveries of a tenant are counted.
const tenantWaiting = 1000

// TenantHealth is how a tenant does.
type TenantHealth struct {
	Endpoints      WaitingEndpoints `json:"endpoints" doc:"Its endpoints by their state. Each is counted once, under the first that applies"`
	Waiting        int              `json:"waiting" doc:"Deliveries that wait or are under way; counted up to 1000"`
	Capped         bool             `json:"waiting_capped" doc:"There may be more than were counted"`
	LastAcceptedAt *time.Time       `json:"last_accepted_at,omitempty" doc:"When a receiver last acknowledged a delivery; absent: none has"`
}

func tenantHealthView(h *store.TenantHealth) *TenantHealth {
	return &TenantHealth{
		Endpoints: WaitingEndpoints{Disabled: h.Disabled, Paused: h.Paused, Open: h.Open, Failing: h.Failing, Healthy: h.Healthy},
		Waiting:   h.Waiting, Capped: h.Waiting >= tenantWaiting, LastAcceptedAt: timestamp(h.LastAcceptedAt),
	}
}

// find returns the tenant that a path names, if the caller may know of it.
func (h *tenantHandlers) find(ctx context.Context, c *management.Caller, path TenantPath) (*godwit.Tenant, error) {
	t, err := h.tenants.Find(ctx, c.Tenant.EnvironmentID, path.ID)
	if err == nil && t.EnvironmentID != c.Tenant.EnvironmentID && (c.ForEnvironment() || !c.Key.Has(godwit.ScopeAdmin)) {
		return nil, store.ErrNotFound
	}
	return t, err
}

func (h *tenantHandlers) get(ctx context.Context, c *management.Caller, in *TenantPath) (*tenantOutput, error) {
	t, err := h.find(ctx, c, *in)
	if err != nil {
		return nil, err
	}
	return &tenantOutput{ETag: etag(t.Version), Body: tenantView(t)}, nil
}

func (h *tenantHandlers) update(ctx context.Context, c *management.Caller, in *tenantPatch) (*tenantOutput, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	t, err := h.find(ctx, c, in.TenantPath)
	if err != nil {
		return nil, err
	}
	t, err = h.tenants.Update(ctx, t.ID, m, func(spec *management.TenantSpec) error { in.Body.apply(spec); return nil })
	if err != nil {
		return nil, err
	}
	return &tenantOutput{ETag: etag(t.Version), Body: tenantView(t)}, nil
}

func (h *tenantHandlers) put(ctx context.Context, c *management.Caller, in *putTenantInput) (*putOutput[Tenant], error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	if err := sameUID(in.Body.UID, in.ID); err != nil {
		return nil, err
	}
	t, made, err := h.tenants.Put(ctx, c.Tenant.EnvironmentID, in.ID, in.Body.spec(), m)
	if err != nil {
		return nil, err
	}
	return written(made, t.Version, "/v1/tenants/"+t.ID.String(), tenantView(t)), nil
}

func (h *tenantHandlers) delete(ctx context.Context, c *management.Caller, in *deleteTenantInput) (*confirmedOutput[struct{}], error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	id, malformed := godwit.ParseTenantID(in.ID)
	t, err := h.find(ctx, c, in.TenantPath)
	switch {
	case err == nil:
		if err := expected(m, t.Version); err != nil {
			return nil, err
		}
		id = t.ID
	case malformed == nil && in.confirmation() != nil && errors.Is(err, store.ErrNotFound):
		// A repeat names a tenant that is gone; the command knows whether it was this request's. Tenants of other environments have no such command.
	default:
		return nil, err
	}
	return confirmed[struct{}](h.commands.DeleteTenant(ctx, commandRequest(ctx), id, in.confirmation()))
}
