package httpapi

import (
	"net/http"
	"slices"
)

// A Router is a handler that lists the patterns of its routes, so that a test can ask for each of them who may use it.
type Router interface {
	http.Handler
	Routes() []string
}

// A Mux is an http.ServeMux that lists its routes. Handlers without a method, for requests that match no route, are not listed.
type Mux struct {
	mux    http.ServeMux
	routes []string
}

// NewMux returns an empty mux.
func NewMux() *Mux { return &Mux{} }

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

func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

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
