package native

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// A router authenticates requests, passes them to their handlers, and keeps the OpenAPI document of the routes.
type router struct {
	mux      *httpapi.Mux
	http     *httpapi.API
	api      huma.API
	problems *problem.Writer
	keys     idempotency.Format     // of the Idempotency-Key, for the document
	document func() ([]byte, error) // the OpenAPI document
	patterns map[string]access      // access of each route, by mux pattern
	// bodySchemas has the schema of each operation's body, by mux pattern.
	bodySchemas map[string]*huma.Schema
}

func newRouter(cfg *Config) (*router, error) {
	api, err := httpapi.New(httpapi.Config{
		Callers: cfg.Management.Callers, Idempotency: cfg.Idempotency, Errors: cfg.Problems, Channel: channel, Bodies: cfg.Bodies, Browser: cfg.Browser, Portal: true, Changed: cfg.Changed,
	})
	if err != nil {
		return nil, err
	}
	r := &router{
		mux: httpapi.NewMux(), http: api, problems: cfg.Problems, keys: cfg.Idempotency.Policy().Format,
		patterns: map[string]access{}, bodySchemas: map[string]*huma.Schema{},
	}
	r.api = humago.New(r, r.openAPI(cfg.Version))
	r.mux.Unmatched("/", cfg.Problems, "; /openapi.json lists what there is")
	return r, nil
}

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	httpapi.NameRequest(w, req)
	defer httpapi.Recover(w, req, r.problems)
	r.mux.ServeHTTP(w, req)
}

// Routes lists the patterns of all routes.
func (r *router) Routes() []string { return r.mux.Routes() }

// A section is a group of routes under one tag of the OpenAPI document.
type section struct {
	*router
	tag string
}

func (r *router) section(tag string) section { return section{r, tag} }

// typed registers a management operation. The types I and O define its request and response, and so its part of the
// document.
func typed[I, O any](s section, need access, pattern string, op huma.Operation, h func(ctx context.Context, c *management.Caller, in *I) (*O, error)) {
	s.describe(&op, pattern, need)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, sessionOf(ctx).caller, in)
		if err != nil {
			return nil, s.complete(ctx, err)
		}
		return out, nil
	})
	s.keepBodySchema(op.Method, op.Path)
}

// twoStep registers a management operation that must be confirmed. T is the result of the second step.
func twoStep[I, T any](s section, need access, pattern string, op huma.Operation, h func(ctx context.Context, c *management.Caller, in *I) (*confirmedOutput[T], error)) {
	typed(s, need, pattern, withConfirmation[T](s.router, op), h)
}

// HandleFunc implements huma's mux; huma calls it for each operation that typed registers.
func (r *router) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	r.mux.Handle(pattern, r.managed(pattern, handler))
}

// raw registers a handler that reads and writes HTTP itself. Its operation is added to the document unchanged. The handler
// must return an error only before it has written anything.
func raw(s section, need access, pattern string, op huma.Operation, h func(http.ResponseWriter, *http.Request, *management.Caller) error) {
	s.describe(&op, pattern, need)
	s.api.OpenAPI().AddOperation(&op)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.http.Authorize(r, need)
		if err == nil {
			err = h(w, r, caller)
		}
		if err != nil {
			s.problems.Write(w, r, err)
		}
	})
}

// rawMany is raw for a route that also takes requests for several tenants, or all, of an environment: many handles them.
func rawMany(s section, need access, pattern string, op huma.Operation, one func(http.ResponseWriter, *http.Request, *management.Caller) error,
	many func(w http.ResponseWriter, r *http.Request, c *management.Caller, names []string) error) {
	s.describe(&op, pattern, need)
	s.api.OpenAPI().AddOperation(&op)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if httpapi.Many(r) {
			caller, names, err := s.http.AuthorizeMany(r, need)
			if err == nil {
				err = many(w, r, caller, names)
			}
			if err != nil {
				s.problems.Write(w, r, err)
			}
			return
		}
		caller, err := s.http.Authorize(r, need)
		if err == nil {
			err = one(w, r, caller)
		}
		if err != nil {
			s.problems.Write(w, r, err)
		}
	})
}

// describe adds to the operation what follows from its route.
func (s section) describe(op *huma.Operation, pattern string, need access) {
	s.patterns[pattern] = need
	op.Method, op.Path, _ = strings.Cut(pattern, " ")
	op.Tags = []string{s.tag}
	op.Security = []map[string][]string{{"apiKey": {}}}
	if need.Open {
		op.Security = []map[string][]string{{}}
	}
	op.Description = strings.TrimSpace(op.Description + "\n\n" + requirement(need))
	op.MaxBodyBytes = httpapi.MaxManagementBody + 1 // httpapi has enforced the limit already
	op.BodyReadTimeout = -1                         // the body has been read
	op.RejectUnknownQueryParameters = true
	s.describeCommon(op)
}

// requirement says in a sentence which API keys may use a route.
func requirement(need access) string {
	if need.Open {
		return "Needs no API key."
	}
	text := "Needs an API key with the scope " + orList(need.Need)
	if len(need.Environment) > 0 && !slices.Equal(need.Environment, need.Need) {
		text += ", or a key of the environment with the scope " + orList(need.Environment)
	}
	return text + "."
}

func orList(scopes []godwit.Scope) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, " or ")
}
