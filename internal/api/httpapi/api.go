package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store is the part of the store that handler sets read.
type Store interface {
	store.Deliveries
	store.DeadLetters
	store.Events
	store.Allowances
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
}

// Engine is the part of the engine that handler sets use.
type Engine interface {
	SendTest(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p engine.Publication) (*engine.Trial, error)
	Replay(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, actor string) ([]godwit.Delivery, error)
	ReplayTo(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (int, error)
	Health(id godwit.EndpointID) (godwit.Health, bool)
	Watermark() time.Time
}

// Services are the dependencies that most handler sets share. A handler set that needs fewer leaves the others unset.
type Services struct {
	Config
	Store  Store
	Engine Engine
	// Intake accepts events.
	Intake *intake.Intake
	Clock  clock.Clock
	Log    *slog.Logger
	// TimeScale speeds up time windows. Defaults to real time.
	TimeScale godwit.TimeScale
}

// Check returns an error that names missing members.
func (s *Services) Check() error {
	if s.Store == nil || s.Engine == nil || s.Intake == nil || s.Clock == nil || s.Log == nil {
		return errors.New("store, engine, intake, clock and log are required")
	}
	return nil
}

// Callers finds out who sends a request, and for which tenant. Package management implements it.
type Callers interface {
	Authenticate(ctx context.Context, token string) (*management.Caller, error)
	AuthenticateSession(ctx context.Context, kind godwit.SessionKind, token string) (*management.Caller, error)
	SeeSession(ctx context.Context, kind godwit.SessionKind, token string) (*management.Caller, error)
	ActFor(ctx context.Context, c *management.Caller, tenant string, makes bool) (*management.Caller, error)
	Enter(ctx context.Context, c *management.Caller, environment string) (*management.Caller, error)
}

// Config holds the dependencies and settings of an API.
type Config struct {
	Callers Callers
	// Idempotency guards requests with an Idempotency-Key. It must refuse with Errors, and redact responses that hold
	// secrets before it stores them.
	Idempotency *idempotency.Guard
	// Errors writes error responses in the API's own form. Required.
	Errors ErrorWriter
	// Channel names the API in evidence records.
	Channel string
	// Browser, when not nil, lets dashboard sessions use the API.
	Browser *Browser
	// Changed, when not nil, records evidence of a change that was made through a session and answered with the status. change is the method and the path.
	// Requests with an Idempotency-Key are left to the guard, which records its decisions.
	Changed func(ctx context.Context, c *management.Caller, change string, status int)
	// Portal lets portal sessions use the API, too, where a route is open to them.
	Portal bool
	// Bodies is the quota of request bodies, shared with other APIs. Defaults to one of its own.
	Bodies *Quota
}

// An ErrorWriter answers a request with an error response.
type ErrorWriter interface {
	Write(w http.ResponseWriter, r *http.Request, err error)
}

// API wraps the handlers of one handler set.
type API struct {
	cfg Config
}

// New makes an API.
func New(cfg Config) (*API, error) {
	if cfg.Callers == nil || cfg.Idempotency == nil || cfg.Errors == nil {
		return nil, errors.New("httpapi: callers, idempotency and errors are required")
	}
	if cfg.Bodies == nil {
		cfg.Bodies = NewBodyQuota()
	}
	return &API{cfg: cfg}, nil
}

// A Call is one authenticated request.
type Call struct {
	W      http.ResponseWriter
	R      *http.Request
	Caller *management.Caller
	Body   []byte
	api    *API
	access Access
}

// Tenant is the tenant that the call is made for.
func (c *Call) Tenant() godwit.TenantID { return c.Caller.Tenant.ID }

// CommandRequest describes the request of an operation that is a command: the caller, the API, and the key that the guard
// accepted for the request. Methods other than POST need no key (IKH-DEF-2).
func (a *API) CommandRequest(r *http.Request, caller *management.Caller) builtincommand.Request {
	request := builtincommand.Request{Caller: caller, Channel: a.cfg.Channel}
	if r.Method == http.MethodPost && idempotency.Present(r.Header) {
		if key, err := a.cfg.Idempotency.Key(r.Header); err == nil {
			request.Key = key
		}
	}
	return request
}

// A Route describes how requests of one route are handled.
type Route struct {
	Access
	// MediaTypes of a body. Defaults to application/json alone.
	MediaTypes []string
	// Limit bounds the body in bytes. Defaults to MaxManagementBody.
	Limit int64
	// OwnKey leaves the Idempotency-Key to the handler. Event routes set it, because their key travels with the event.
	OwnKey bool
	// SkipKey, when not nil, reports requests whose Idempotency-Key the guard does not enforce.
	SkipKey func(r *http.Request) bool
	// Ingest marks requests that carry events. They leave no evidence of decisions; only management requests do.
	Ingest bool
	// CheckBody, when not nil, validates the body before the guard looks at the key.
	CheckBody func(r *http.Request, body []byte) error
	// Enter, when not nil, is called as soon as the caller is known. It sets headers of every response to that caller,
	// including refusals and repeats.
	Enter func(ctx context.Context, h http.Header, c *management.Caller)
}

// MaxManagementBody bounds the body of every request that carries no events.
const MaxManagementBody = 1 << 20

var jsonAlone = []string{"application/json"}

// Handle returns a handler that assigns a request id, authenticates the caller, reads the body and applies the
// Idempotency-Key before it calls serve. Authentication comes first, so that unauthenticated callers learn nothing about
// keys (IKH K-13).
func (a *API) Handle(route Route, serve func(*Call) error) http.Handler {
	if route.Limit == 0 {
		route.Limit = MaxManagementBody
	}
	if len(route.MediaTypes) == 0 {
		route.MediaTypes = jsonAlone
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		NameRequest(w, r)
		defer Recover(w, r, a.cfg.Errors)
		w.Header().Set("Cache-Control", "no-store")
		caller, err := &management.Caller{Tenant: &godwit.Tenant{}}, error(nil)
		if !route.Open {
			caller, err = a.Authorize(r, route.Access)
		}
		if err != nil {
			a.cfg.Errors.Write(w, r, err)
			return
		}
		if route.Enter != nil {
			route.Enter(r.Context(), w.Header(), caller)
		}
		call := &Call{W: w, R: r, Caller: caller, api: a, access: route.Access}
		if !carriesBody(r.Method) {
			a.finishWitnessed(call, serve)
			return
		}
		taken, err := a.cfg.Bodies.AcquireBody(r, caller.Tenant.ID, route.Limit)
		if err != nil {
			a.cfg.Errors.Write(w, r, err)
			return
		}
		defer a.cfg.Bodies.Release(caller.Tenant.ID, taken)
		if call.Body, err = route.read(w, r); err != nil {
			a.cfg.Errors.Write(w, r, err)
			return
		}
		if route.OwnKey || route.Open || !idempotency.Present(r.Header) || route.SkipKey != nil && route.SkipKey(r) {
			a.finishWitnessed(call, serve)
			return
		}
		a.guard(call, a.scope(route, call), serve)
	})
}

func (route *Route) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := ReadBody(w, r, route.Limit)
	if err == nil {
		err = CheckMediaType(r, body, route.MediaTypes...)
	}
	if err == nil && route.CheckBody != nil {
		err = route.CheckBody(r, body)
	}
	return body, err
}

// scope returns the scope within which the request's key is unique: the operation on this path.
func (a *API) scope(route Route, c *Call) idempotency.Scope {
	scope := ScopeOf(c.Caller, c.R.Method+" "+c.R.URL.Path)
	if !route.Ingest {
		scope.Actor, scope.Session, scope.User = c.Caller.Principal(), c.Caller.SessionID(), c.Caller.User()
		// A pattern may begin with the method.
		scope.Channel, scope.Route = a.cfg.Channel, c.R.Method+" "+c.R.Pattern[strings.LastIndexByte(c.R.Pattern, ' ')+1:]
	}
	return scope
}

// ScopeOf returns the scope within which a caller's keys for an operation are unique.
func ScopeOf(c *management.Caller, operation string) idempotency.Scope {
	return idempotency.Scope{Principal: c.Key.Principal, Tenant: c.Tenant.ID, Operation: operation}
}

// guard runs serve at most once for the key of the request.
func (a *API) guard(c *Call, scope idempotency.Scope, serve func(*Call) error) {
	id := c.W.Header()[problem.RequestIDHeader]
	a.cfg.Idempotency.Serve(c.W, c.R, scope, c.Body, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()[problem.RequestIDHeader] = id // w is the guard's recorder, which has headers of its own
		a.finish(&Call{W: w, R: r, Caller: c.Caller, Body: c.Body, api: a, access: c.access}, serve)
	}))
}

// finishWitnessed is finish for requests without an Idempotency-Key. What a session changes by them leaves evidence, as what it changes with a key does.
func (a *API) finishWitnessed(c *Call, serve func(*Call) error) {
	if a.cfg.Changed == nil || c.Caller.Session == nil || c.R.Method == http.MethodGet || c.R.Method == http.MethodHead {
		a.finish(c, serve)
		return
	}
	answer := &statusWriter{ResponseWriter: c.W, status: http.StatusOK}
	c.W = answer
	a.finish(c, serve)
	if answer.status < http.StatusBadRequest {
		a.cfg.Changed(c.R.Context(), c.Caller, c.R.Method+" "+Clip(c.R.URL.Path), answer.status)
	}
}

// A statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer within, for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (a *API) finish(c *Call, serve func(*Call) error) {
	if err := serve(c); err != nil {
		a.cfg.Errors.Write(c.W, c.R, err)
	}
}

func carriesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}
