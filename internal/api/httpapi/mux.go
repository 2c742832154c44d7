package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// A Router is a handler that lists the patterns of its routes, so that a test can ask for each of them who may use it.
type Router interface {
	http.Handler
	Routes() []string
}

// A Mux is an http.ServeMux that lists its routes. Handlers without a method, for requests that match no route, are not listed.
//
// It remembers the handlers of routes without wildcards, so that their requests cost one lookup instead of a walk through the tree
// of patterns. All routes must be added before the first request.
type Mux struct {
	mux    http.ServeMux
	routes []string
	fixed  func() map[route]match // made by the first request
}

// route is a method with a path that has no wildcard.
type route struct{ method, path string }

// match is the choice of the http.ServeMux.
type match struct {
	handler http.Handler
	pattern string
}

// NewMux returns an empty mux.
func NewMux() *Mux {
	m := &Mux{}
	m.fixed = sync.OnceValue(m.findFixed)
	return m
}

// findFixed asks the http.ServeMux for the handler of each route without wildcards.
func (m *Mux) findFixed() map[route]match {
	fixed := map[route]match{}
	for _, pattern := range m.routes {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok || !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "{") {
			continue
		}
		h, chosen := m.mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: path}})
		if chosen != "" && !strings.Contains(chosen, "{") {
			fixed[route{method, path}] = match{h, chosen}
		}
	}
	return fixed
}

// Handle adds a route. Its pattern must have a method.
func (m *Mux) Handle(pattern string, h http.Handler) {
	m.mux.Handle(pattern, h)
	m.routes = append(m.routes, pattern)
}

// HandleFunc adds a route.
func (m *Mux) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(h))
}

// Mount lets a router serve all paths with a prefix.
func (m *Mux) Mount(prefix string, r Router) {
	m.mux.Handle(prefix, r)
	m.routes = append(m.routes, r.Routes()...)
}

// Unmatched sets the handler for requests that match no route.
func (m *Mux) Unmatched(prefix string, errors ErrorWriter, hint string) {
	m.mux.Handle(prefix, unmatched(&m.mux, errors, hint))
}

// Otherwise sets a handler of the caller's for requests that match no route.
func (m *Mux) Otherwise(h http.HandlerFunc) { m.mux.Handle("/", h) }

// Handler returns the handler and the pattern for a request; see http.ServeMux.
func (m *Mux) Handler(r *http.Request) (http.Handler, string) { return m.mux.Handler(r) }

func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawPath == "" && r.RequestURI != "*" { // a path with unusual escapes is left to the http.ServeMux
		if found, ok := m.fixed()[route{r.Method, r.URL.Path}]; ok {
			r.Pattern = found.pattern
			found.handler.ServeHTTP(w, r)
			return
		}
	}
	m.mux.ServeHTTP(w, r)
}

// Routes lists the patterns of all routes, each once.
func (m *Mux) Routes() []string {
	return slices.Compact(slices.Sorted(slices.Values(m.routes)))
}

// Around returns a router with the routes of inner whose requests outer handles.
func Around(inner Router, outer http.Handler) Router { return around{outer, inner} }

type around struct {
	http.Handler
	inner Router
}

func (a around) Routes() []string { return a.inner.Routes() }
