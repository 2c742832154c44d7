package cybercube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// Prefix is the path at which the API is mounted.
const Prefix = "/api/v1/webhooks/"

// Config holds the API's dependencies and settings.
type Config struct {
	httpapi.Services
	// Management changes endpoints. Required.
	Management *management.Service
	// Commands executes the operations that are commands. Required.
	Commands *builtincommand.Runner
	// Limits bound how often management operations may run. The zero value sets no limits.
	Limits Limits
	// UnknownTypes accepts events of well-formed types that the standard does not list (CCW-EVT-25). Defaults to false.
	UnknownTypes bool
	// EventRetention is how long events are kept. Required.
	EventRetention time.Duration
	// DeadLetterRetention is how long dead letters are kept; their expiry time is computed from it. Required.
	DeadLetterRetention time.Duration
	// StallTimeout is how long an export waits for a client that reads nothing before the server closes the connection.
	// Defaults to 90 s.
	StallTimeout time.Duration
}

type server struct {
	cfg    Config
	api    *httpapi.API
	mux    *http.ServeMux
	limits budgets

	exports chan struct{} // one slot for each running export
}

var (
	mayIngest = []godwit.Scope{godwit.ScopeIngest}
	mayRead   = []godwit.Scope{godwit.ScopeRead}
	mayManage = []godwit.Scope{godwit.ScopeManage}
)

// New returns the handler. Mount it at Prefix.
func New(cfg Config) (http.Handler, error) {
	if cfg.EventRetention <= 0 || cfg.DeadLetterRetention <= 0 {
		return nil, errors.New("cybercube: the retention of events and of dead letters is required")
	}
	if cfg.Commands == nil || cfg.Management == nil {
		return nil, errors.New("cybercube: Commands and Management are required")
	}
	if cfg.StallTimeout <= 0 {
		cfg.StallTimeout = 90 * time.Second
	}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("cybercube: %w", err)
	}
	cfg.Channel = "cybercube"
	api, err := httpapi.New(cfg.Services.Config)
	if err != nil {
		return nil, err
	}
	s := &server{
		cfg: cfg, api: api, mux: http.NewServeMux(), exports: make(chan struct{}, maxExports),
		limits: newBudgets(cfg.Limits, cfg.TimeScale.Real(time.Hour), cfg.Clock.Now),
	}
	s.routes()
	return s, nil
}

func (s *server) routes() {
	read := httpapi.Route{Need: mayRead}
	manage := httpapi.Route{Need: mayManage}
	limited := func(b *budget) httpapi.Route { return httpapi.Route{Need: mayManage, Enter: b.tell} }

	s.route("POST endpoints", limited(s.limits.create), s.createEndpoint)
	s.route("GET endpoints", read, s.listEndpoints)
	s.route("GET endpoints/{id}", read, s.getEndpoint)
	s.route("PATCH endpoints/{id}", limited(s.limits.update), s.updateEndpoint)
	s.route("DELETE endpoints/{id}", limited(s.limits.remove), s.deleteEndpoint)
	s.route("POST endpoints/{id}/rotate-secret", manage, s.rotateSecret)
	s.route("POST endpoints/{id}/test", limited(s.limits.test), s.testEndpoint)
	s.route("GET endpoints/{id}/failures", read, s.failures)
	s.route("GET endpoints/{id}/logs", read, s.logs)
	s.route("POST events", httpapi.Route{Need: mayIngest, Limit: s.cfg.Intake.MaxPayload() + envelopeRoom, OwnKey: true}, s.ingest)
	s.route("POST events/{id}/replay", limited(s.limits.replay), s.replayEvent)
	s.route("POST replay", limited(s.limits.replay), s.replayRange)
	s.mux.Handle("/", httpapi.Unmatched(s.mux, s.cfg.Errors, ""))
}

func (s *server) route(pattern string, r httpapi.Route, serve func(*httpapi.Call) error) {
	method, path, _ := strings.Cut(pattern, " ")
	s.mux.Handle(method+" "+Prefix+path, s.api.Handle(r, serve))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mux.ServeHTTP(w, r)
}
