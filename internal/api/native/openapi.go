package native

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
)

const apiDescription = `Godwit accepts an event once, delivers it at least once to every endpoint that asked for it, and keeps a record of every attempt.

Authenticate with ` + "`Authorization: Bearer <API key>`" + `. Failures are problem details (RFC 9457) with a stable ` + "`code`" + `.
POST and PATCH honour ` + "`Idempotency-Key`" + `; see /docs/idempotency. Lists are newest first and continue with ` + "`cursor`" + `.
Times are RFC 3339 in UTC. Unknown members and parameters are refused.`

// openAPI configures huma: JSON only, no documentation pages, no links in responses.
func (r *router) openAPI(version string) huma.Config {
	cfg := huma.DefaultConfig("Godwit", version)
	cfg.Info.Description = apiDescription
	cfg.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "", "", ""
	cfg.CreateHooks = nil
	cfg.Transformers = []huma.Transformer{r.completeRefusal}
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	cfg.Formats = map[string]huma.Format{
		jsonType: huma.DefaultJSONFormat,
		"json":   huma.DefaultJSONFormat, // application/merge-patch+json
	}
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"apiKey": {Type: "http", Scheme: "bearer", Description: "An API key, as in gdw_…"},
	}
	cfg.Tags = []*huma.Tag{
		{Name: "Events"}, {Name: "Event types"}, {Name: "Endpoints"}, {Name: "Deliveries"}, {Name: "Dead letters"}, {Name: "Notices"}, {Name: "Sources"}, {Name: "Keys"}, {Name: "Sessions"}, {Name: "Tenants"}, {Name: "Environments"}, {Name: "Nodes"},
	}
	return cfg
}

// completeRefusal adds the type and the request id to huma's own refusals; huma knows neither.
func (r *router) completeRefusal(ctx huma.Context, _ string, v any) (any, error) {
	p, ok := v.(*problem.Problem)
	if !ok || p.Type != "" {
		return v, nil
	}
	done := r.complete(ctx.Context(), p)
	for name, values := range done.GetHeaders() {
		for _, value := range values {
			ctx.SetHeader(name, value)
		}
	}
	return done, nil
}

// schemaName distinguishes types of the same name in two packages: our problems and those that receivers answer with.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[godwit.Problem]() || t == reflect.TypeFor[*godwit.Problem]() {
		return "ReceiverProblem"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// describeCommon adds the parameters of every operation.
func (r *router) describeCommon(op *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: httpapi.TenantHeader, In: "header", Schema: text,
		Description: "Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own.",
	}, &huma.Param{
		Name: httpapi.EnvironmentHeader, In: "header", Schema: text,
		Description: "Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.",
	})
	if op.Method == http.MethodPost || op.Method == http.MethodPatch {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: idempotency.Header, In: "header", Schema: text, Example: `"8e03978e-40d5-43e8-bc93-6894a57f9324"`,
			Description: fmt.Sprintf("A structured-field string of %d to %d characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency.",
				r.keys.MinLength, r.keys.MaxLength),
		})
	}
}

// refOf returns a reference to the schema of a type, for operations that are described by hand.
func (r *router) refOf(v any) *huma.Schema {
	t := reflect.TypeOf(v)
	return r.api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
}

// failures adds the error responses of an operation that is described by hand.
func (r *router) failures(responses map[string]*huma.Response) map[string]*huma.Response {
	responses["default"] = &huma.Response{
		Description: "Error",
		Content:     map[string]*huma.MediaType{problem.ContentType: {Schema: r.refOf(problem.Problem{})}},
	}
	return responses
}

func jsonResponse(description string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{jsonType: {Schema: schema}}}
}
