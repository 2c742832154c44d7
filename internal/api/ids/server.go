package ids

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Prefix is the path at which the handler is mounted.
const Prefix = "/ids/"

// Config holds the handler's dependencies and settings.
type Config struct {
	httpapi.Config
	Executor *command.Executor
	Evidence command.Store
	Clock    clock.Clock
	Log      *slog.Logger
	// Preview counts the objects that a command awaiting confirmation would change.
	Preview *builtincommand.Previewer
	// EvidenceKey signs exports.
	EvidenceKey ed25519.PrivateKey
	// Wait is how long a submission waits for its execution to end before the server answers 202. Defaults to 20 s.
	Wait time.Duration
	// Stall is how long an export waits for a client that reads nothing before the server closes the connection. Defaults to
	// 30 s.
	Stall time.Duration
}

type server struct {
	cfg   Config
	clock clock.Clock
	api   *httpapi.API
}

// New makes the handler.
func New(cfg Config) (httpapi.Router, error) {
	if cfg.Executor == nil || cfg.Evidence == nil || cfg.Preview == nil || cfg.EvidenceKey == nil || cfg.Clock == nil || cfg.Log == nil {
		return nil, errors.New("ids: executor, evidence, its key, preview, the clock and the log are required")
	}
	if cfg.Wait == 0 {
		cfg.Wait = 20 * time.Second
	}
	if cfg.Stall == 0 {
		cfg.Stall = 30 * time.Second
	}
	api, err := httpapi.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, clock: cfg.Clock, api: api}
	mux := httpapi.NewMux()
	// A key with only the metrics scope is stored in monitoring systems, so it must open nothing else.
	anyScope := slices.DeleteFunc(slices.Clone(godwit.AllScopes), func(s godwit.Scope) bool { return s == godwit.ScopeMetrics })
	handle := func(pattern string, need []godwit.Scope, serve func(*httpapi.Call) error) {
		mux.Handle(pattern, api.Handle(httpapi.Route{Access: httpapi.Access{Need: need}, Limit: maxEnvelope, OwnKey: true}, serve))
	}
	// Commands of environments come by /v1; here they are only followed, confirmed and read about.
	both := func(pattern string, need []godwit.Scope, serve func(*httpapi.Call) error) {
		mux.Handle(pattern, api.Handle(httpapi.Route{Access: httpapi.Access{Need: need, Environment: need}, Limit: maxEnvelope, OwnKey: true}, serve))
	}
	handle("POST /ids/v1/commands", anyScope, s.submit)
	both("POST /ids/v1/commands/{id}/confirm", anyScope, s.confirm)
	both("POST /ids/v1/commands/{id}/step-up", anyScope, s.stepUp)
	both("GET /ids/v1/commands/{id}", anyScope, s.status)
	both("GET /ids/v1/registry", anyScope, s.registry)
	both("GET /ids/v1/evidence", []godwit.Scope{godwit.ScopeAudit}, s.evidence)
	both("GET /ids/v1/evidence/export", []godwit.Scope{godwit.ScopeAudit}, s.export)
	both("GET /ids/v1/evidence/key", anyScope, s.evidenceKey)
	mux.Unmatched(Prefix, cfg.Errors, "; /ids/v1/registry lists what may be commanded")
	return mux, nil
}

// maxEnvelope bounds the size of an envelope in bytes.
const maxEnvelope = 64 << 10

// patience bounds how long a submission waits for its execution to end.
func (s *server) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Wait)
}
