package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// EndpointPath names an endpoint. Huma fills embedded structs only where their type is exported.
type EndpointPath struct {
	ID string `path:"id" doc:"Id of the endpoint, its public_id, or its uid"`
}

type (
	endpointOutput struct {
		ETag string `header:"ETag"`
		Body Endpoint
	}
	issuedEndpointOutput struct {
		Location string `header:"Location"`
		ETag     string `header:"ETag"`
		Body     IssuedEndpoint
	}
	createEndpointInput struct{ Body NewEndpoint }
	putEndpointInput    struct {
		EndpointPath
		MatchParams
		Body NewEndpoint
	}
	deleteEndpointInput struct {
		EndpointPath
		VersionParams
	}
	listEndpointsInput struct {
		PageParams
		Status string `query:"status" enum:"active,paused,disabled" doc:"Only those with this status"`
		Search string `query:"search" maxLength:"200" doc:"Only endpoints whose URL, uid or description contains this text; ASCII letters match in either case"`
		Health string `query:"health" enum:"healthy,failing,open" doc:"Only active endpoints that do so, as GET /v1/stats/waiting counts them: open means that the circuit is open, failing that the last attempt failed or too many did in the last hour"`
	}
)

// Descriptions of the operations on endpoints.
var (
	createEndpointDoc = huma.Operation{
		OperationID: "create-endpoint",
		Summary:     "Register an endpoint", DefaultStatus: http.StatusCreated,
		Description: "The signing secret is in this answer and in no other, but for a repeat with the same Idempotency-Key. Creating an endpoint resolves no name and sends nothing.",
	}
	listEndpointsDoc = huma.Operation{
		OperationID: "list-endpoints", Summary: "List endpoints",
		Description: "A request for an environment lists those of all its tenants.",
	}
	getEndpointDoc = huma.Operation{
		OperationID: "get-endpoint", Summary: "Get an endpoint",
	}
	updateEndpointDoc = huma.Operation{
		OperationID: "update-endpoint", Summary: "Change an endpoint",
		Description: "A JSON merge patch (RFC 7396): absent members stay, null clears, objects merge member by member. auth is replaced as a whole. The profile cannot change.",
	}
	putEndpointDoc = huma.Operation{
		OperationID: "put-endpoint", Summary: "Create or replace an endpoint",
		Description: "With a uid of your choice in the path. All settings are replaced: members that are absent get their defaults, and headers and auth that are not given are removed. algorithm, secret and paused have an effect only when the endpoint is created; the signing secret is in that answer and in no other. An endpoint that is as the request says stays as it is, with its version.",
	}
	deleteEndpointDoc = huma.Operation{
		OperationID: "delete-endpoint",
		Summary:     "Delete an endpoint", DefaultStatus: http.StatusNoContent, Description: "What was waiting for it is cancelled. It runs as the command endpoint.delete; the request is its own confirmation.",
	}
)

// endpointHandlers serve the operations on endpoints and their settings.
type endpointHandlers struct {
	endpoints interface {
		Create(ctx context.Context, t *godwit.Tenant, n management.NewEndpoint) (*godwit.Endpoint, *management.IssuedSecret, error)
		Get(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
		List(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error)
		Put(ctx context.Context, t *godwit.Tenant, named string, n management.NewEndpoint, m godwit.Match) (*godwit.Endpoint, *management.IssuedSecret, error)
		Update(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, m godwit.Match, edit func(*management.EndpointSpec) error) (*godwit.Endpoint, error)
	}
	commands interface {
		DeleteEndpoint(ctx context.Context, r builtincommand.Request, id godwit.EndpointID, m godwit.Match) error
	}
	finder endpointFinder
	now    func() time.Time
}

func (h *endpointHandlers) create(ctx context.Context, c *management.Caller, in *createEndpointInput) (*issuedEndpointOutput, error) {
	if err := mayChoose(c, in.Body.Secret); err != nil {
		return nil, err
	}
	spec := in.Body.spec()
	spec.ByPlatform = c.Platform()
	e, secret, err := h.endpoints.Create(ctx, c.Tenant, spec)
	if err != nil {
		return nil, err
	}
	return &issuedEndpointOutput{
		Location: "/v1/endpoints/" + e.ID.String(), ETag: etag(e.Version),
		Body: IssuedEndpoint{Endpoint: endpointView(e), Secret: shownTo(c, issuedView(secret, h.now()))},
	}, nil
}

func (h *endpointHandlers) list(ctx context.Context, c *management.Caller, in *listEndpointsInput) (*listOutput[Endpoint], error) {
	f := store.EndpointFilter{TenantID: c.Tenant.ID, Status: godwit.EndpointStatus(in.Status), Text: in.Search, Health: store.EndpointHealth(in.Health)}
	if c.ForEnvironment() {
		f.Environment = c.Tenant.EnvironmentID
	}
	return endpoints.page(in.PageParams, func(p store.Page) ([]godwit.Endpoint, error) { return h.endpoints.List(ctx, f, p) })
}

func (h *endpointHandlers) get(ctx context.Context, c *management.Caller, in *EndpointPath) (*endpointOutput, error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return shown(h.endpoints.Get(ctx, c.Tenant.ID, id))
}

func shown(e *godwit.Endpoint, err error) (*endpointOutput, error) {
	if err != nil {
		return nil, err
	}
	return &endpointOutput{ETag: etag(e.Version), Body: endpointView(e)}, nil
}

func (h *endpointHandlers) update(ctx context.Context, c *management.Caller, in *patchInput) (*endpointOutput, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return shown(h.endpoints.Update(ctx, c.Tenant.ID, id, m, func(spec *management.EndpointSpec) error {
		return patchSpec(spec, in.Body.document)
	}))
}

func (h *endpointHandlers) put(ctx context.Context, c *management.Caller, in *putEndpointInput) (*putOutput[WrittenEndpoint], error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	if err := sameUID(in.Body.UID, in.ID); err != nil {
		return nil, err
	}
	if err := mayChoose(c, in.Body.Secret); err != nil {
		return nil, err
	}
	spec := in.Body.spec()
	spec.ByPlatform = c.Platform()
	e, secret, err := h.endpoints.Put(ctx, c.Tenant, in.ID, spec, m)
	if err != nil {
		return nil, err
	}
	body := WrittenEndpoint{Endpoint: endpointView(e)}
	if secret != nil {
		issued := shownTo(c, issuedView(secret, h.now()))
		body.Secret = &issued
	}
	return written(secret != nil, e.Version, "/v1/endpoints/"+e.ID.String(), body), nil
}

func (h *endpointHandlers) delete(ctx context.Context, c *management.Caller, in *deleteEndpointInput) (*struct{}, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return nil, h.commands.DeleteEndpoint(ctx, commandRequest(ctx), id, m)
}
