package dialect

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/room"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store is what handler sets read.
type Store interface {
	store.Deliveries
	store.DeadLetters
	store.Events
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
	Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error)
}

// Engine is what handler sets have done.
type Engine interface {
	Submit(ctx context.Context, submissions ...engine.Submission) ([]engine.Receipt, error)
	Probe(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p engine.Publication) (*engine.Probed, error)
	Replay(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, actor string) ([]godwit.Delivery, error)
	ReplayTo(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (int, error)
	Health(id godwit.EndpointID) (godwit.Health, bool)
	Settled() time.Time
}

// Config is what a handler set is made of.
type Config struct {
	Store       Store
	Engine      Engine
	Registry    *management.Service
	Idempotency *idempotency.Guard // with Errors as its way to refuse, and Redact where answers hold secrets
	Clock       clock.Clock
	Log         *slog.Logger
	// Channel names the API in evidence.
	Channel string
	// Errors answers with what an error is to a client, in the dialect's own form. Required.
	Errors ErrorWriter
	// MaxBody bounds an event. Required.
	MaxBody int64
	// Retention is how long events are kept, and so for how long a producer's own id is known. Required.
	Retention time.Duration
	// TimeScale runs windows faster. Defaults to real time.
	TimeScale godwit.TimeScale
	// Bodies is the room of request bodies, shared with other APIs. Defaults to one of its own.
	Bodies *room.Room
}

// An ErrorWriter answers a request with what an error is to a client.
type ErrorWriter interface {
	Write(w http.ResponseWriter, r *http.Request, err error)
}

// API serves routes of one dialect.
type API struct {
	cfg Config
}

// New makes an API.
func New(cfg Config) (*API, error) {
	if cfg.Store == nil || cfg.Engine == nil || cfg.Registry == nil || cfg.Idempotency == nil || cfg.Clock == nil ||
		cfg.Log == nil || cfg.Errors == nil || cfg.MaxBody <= 0 || cfg.Retention <= 0 {
		return nil, errors.New("dialect: store, engine, registry, idempotency, clock, log, errors, max body and retention are required")
	}
	if cfg.Bodies == nil {
		cfg.Bodies = room.ForBodies()
	}
	return &API{cfg: cfg}, nil
}

// A Call is one authenticated request.
type Call struct {
	W      http.ResponseWriter
	R      *http.Request
	Caller *management.Caller
	Body   []byte
}

// Tenant is for whom the call is made.
func (c *Call) Tenant() godwit.TenantID { return c.Caller.Tenant.ID }

// Order is who orders an operation that is a command, by which API, and under which key: the one that the guard has let the request
// through with.
func (a *API) Order(c *Call) builtincommand.Request {
	r := builtincommand.Request{Caller: c.Caller, Channel: a.cfg.Channel}
	if c.R.Method == http.MethodPost && idempotency.Present(c.R.Header) {
		if key, err := a.cfg.Idempotency.Key(c.R.Header); err == nil {
			r.Key = key
		}
	}
	return r
}

// A Route says how a request is taken in.
type Route struct {
	// Need are the scopes of which the key must have one.
	Need []godwit.Scope
	// MediaTypes of a body. None is application/json alone.
	MediaTypes []string
	// Limit of the body. Defaults to 1 MiB.
	Limit int64
	// OwnKey leaves the Idempotency-Key to the handler: for events, whose key travels on.
	OwnKey bool
	// Ingest is for events under a key: they leave no evidence of decisions, which is of management.
	Ingest bool
	// Enter, when not nil, is called once the caller is known, before anything else can be answered: for headers that go
	// with every answer to that caller, a refusal or a repeat too.
	Enter func(h http.Header, c *management.Caller)
}

const managementLimit = 1 << 20

// Handle makes a handler that authenticates, reads the body and honours a key before the dialect's own part.
// Authentication comes first, so that nothing about keys shows to strangers (IKH K-13).
func (a *API) Handle(route Route, serve func(*Call) error) http.Handler {
	if route.Limit == 0 {
		route.Limit = managementLimit
	}
	if len(route.MediaTypes) == 0 {
		route.MediaTypes = []string{"application/json"}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name(w)
		w.Header().Set("Cache-Control", "no-store")
		caller, err := a.authorize(r, route.Need)
		if err != nil {
			a.cfg.Errors.Write(w, r, err)
			return
		}
		if route.Enter != nil {
			route.Enter(w.Header(), caller)
		}
		call := &Call{W: w, R: r, Caller: caller}
		if !carriesBody(r.Method) {
			a.finish(call, serve)
			return
		}
		taken, err := a.cfg.Bodies.Body(r, caller.Tenant.ID, route.Limit)
		if err != nil {
			a.cfg.Errors.Write(w, r, err)
			return
		}
		defer a.cfg.Bodies.Leave(caller.Tenant.ID, taken)
		if call.Body, err = readBody(w, r, route); err != nil {
			a.cfg.Errors.Write(w, r, err)
			return
		}
		if route.OwnKey || !idempotency.Present(r.Header) {
			a.finish(call, serve)
			return
		}
		scope := idempotency.Scope{Principal: caller.Key.Principal, Tenant: caller.Tenant.ID, Operation: r.Method + " " + r.URL.Path}
		if !route.Ingest {
			// A pattern may begin with the method, or not.
			scope.Channel, scope.Route = a.cfg.Channel, r.Method+" "+r.Pattern[strings.LastIndexByte(r.Pattern, ' ')+1:]
		}
		a.cfg.Idempotency.Serve(w, r, scope, call.Body, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.finish(&Call{W: w, R: r, Caller: caller, Body: call.Body}, serve)
		}))
	})
}

func (a *API) finish(c *Call, serve func(*Call) error) {
	if err := serve(c); err != nil {
		a.cfg.Errors.Write(c.W, c.R, err)
	}
}

func carriesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

// name gives the request the id under which the log speaks of it.
func name(w http.ResponseWriter) {
	if w.Header().Get(problem.RequestIDHeader) == "" {
		w.Header().Set(problem.RequestIDHeader, engine.MintKey())
	}
}

func (a *API) authorize(r *http.Request, need []godwit.Scope) (*management.Caller, error) {
	caller, err := a.cfg.Registry.Authenticate(r.Context(), bearer(r))
	if err != nil {
		return nil, err
	}
	if err := caller.Need(need...); err != nil {
		return nil, err
	}
	return caller, nil
}

func bearer(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}
