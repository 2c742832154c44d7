package native

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/management"
)

// routes registers all routes and renders the OpenAPI document.
func (s *server) routes() error {
	s.patterns, s.bodySchemas = map[string]access{}, map[string]*huma.Schema{}
	s.api = humago.New(s, s.openAPI())
	s.tenantRoutes()
	s.keyRoutes()
	s.endpointRoutes()
	s.eventRoutes()
	s.eventTypeRoutes()
	s.deliveryRoutes()
	s.deadLetterRoutes()
	s.noticeRoutes()
	s.sourceRoutes()
	s.streamRoutes()
	return s.serveDocument()
}

// typed registers a management operation. The types I and O define its request and response, and so its part of the
// document.
func typed[I, O any](s *server, need access, op huma.Operation, h func(ctx context.Context, c *management.Caller, in *I) (*O, error)) {
	s.describe(&op, need)
	s.patterns[op.Method+" "+op.Path] = need
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, sessionOf(ctx).caller, in)
		if err != nil {
			return nil, s.complete(ctx, err)
		}
		return out, nil
	})
	s.keepBodySchema(op.Method, op.Path)
}

// HandleFunc implements huma's mux; huma calls it for each operation that typed registers.
func (s *server) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	s.mux.Handle(pattern, s.managed(pattern, handler))
}

// raw registers a handler that reads and writes HTTP itself. Its operation is added to the document unchanged.
func (s *server) raw(need access, op huma.Operation, h func(http.ResponseWriter, *http.Request, *management.Caller)) {
	s.describe(&op, need)
	pattern := op.Method + " " + op.Path
	s.patterns[pattern] = need
	s.api.OpenAPI().AddOperation(&op)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.http.Authorize(r, need...)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		h(w, r, caller)
	})
}

// describe adds to the operation what follows from its route.
func (s *server) describe(op *huma.Operation, need access) {
	names := make([]string, len(need))
	for i, scope := range need {
		names[i] = string(scope)
	}
	op.Security = []map[string][]string{{"apiKey": {}}}
	op.Description = strings.TrimSpace(op.Description + "\n\nNeeds an API key with the scope " + strings.Join(names, " or ") + ".")
	op.MaxBodyBytes = httpapi.MaxManagementBody + 1 // httpapi has enforced the limit already
	op.BodyReadTimeout = -1                         // the body has been read
	op.RejectUnknownQueryParameters = true
	s.describeCommon(op)
}
