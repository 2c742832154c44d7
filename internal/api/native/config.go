package native

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/stats"
)

// Store is the storage that the API reads without package management or the engine.
type Store interface {
	eventStore
	broadcastStore
	deliveryStore
	explainStore
	deadLetterStore
	noticeStore
	healthStore
	nodeStore
	usageStore
	statsStore
}

// Engine is the part of the engine that the API uses.
type Engine interface {
	eventEngine
	broadcastEngine
	deliveryEngine
	bulkEngine
	explainEngine
	deadLetterEngine
	trialEngine
	streamEngine
	healthEngine
}

// Config holds the API's dependencies and settings.
type Config struct {
	Store       Store
	Engine      Engine
	Management  *management.Service
	Catalogue   *catalogue.Catalogue
	Sources     *source.Sources
	Intake      *intake.Intake
	Idempotency *idempotency.Guard
	Commands    *builtincommand.Runner    // executes the operations that are commands
	Preview     *builtincommand.Previewer // counts the objects that a command would change
	Problems    *problem.Writer
	Clock       clock.Clock
	Log         *slog.Logger

	// MaxBatchBody bounds the body of a batch request. Defaults to 16 MiB, or to the largest payload of an event if that is
	// more.
	MaxBatchBody int64
	// Version is the release that the OpenAPI document names. Defaults to "dev".
	Version string
	// Node is the name of this node. Defaults to none.
	Node string
	// StallTimeout is how long a stream or export waits for a client that reads nothing before the server closes the
	// connection. Defaults to 90 s.
	StallTimeout time.Duration
	// Settings reads the configuration that the server runs with. Defaults to an empty one.
	Settings func(context.Context) (*Settings, error)
	// Bodies is the quota of request bodies, shared with other APIs. Defaults to one of its own.
	Bodies *httpapi.Quota
	// StatsRetention says how long the engine keeps the history for charts.
	StatsRetention stats.Retention
	// Browser lets sessions use the API. Defaults to one for a server on localhost.
	Browser *httpapi.Browser
	// Changed records that a session has changed something; see httpapi.Config. Defaults to nothing.
	Changed func(ctx context.Context, c *management.Caller, change string, status int)
	// Failures counts sign-ins that fail, by address and beginning of the credential. Defaults to no limit.
	Failures *httpapi.Failures
	// IdentityProvider describes the sign-in by an identity provider. Defaults to none.
	IdentityProvider func() *SignInMethod
	// Done, when closed, ends live streams, so that a shutdown does not wait for their clients. Defaults to never.
	Done <-chan struct{}
}

func (c *Config) setDefaults() error {
	if c.Store == nil || c.Engine == nil || c.Management == nil || c.Catalogue == nil || c.Sources == nil || c.Intake == nil || c.Idempotency == nil || c.Commands == nil || c.Preview == nil || c.Problems == nil || c.Clock == nil || c.Log == nil {
		return errors.New("native API: store, engine, management, catalogue, sources, intake, idempotency, commands, preview, problems, clock and log are required")
	}
	if c.MaxBatchBody == 0 {
		c.MaxBatchBody = max(16<<20, c.Intake.MaxPayload())
	}
	c.StatsRetention.SetDefaults()
	if c.StallTimeout == 0 {
		c.StallTimeout = 90 * time.Second
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Settings == nil {
		c.Settings = func(context.Context) (*Settings, error) { return &Settings{Options: []Option{}}, nil }
	}
	if c.Browser == nil {
		var err error
		if c.Browser, err = httpapi.NewBrowser("http://localhost", false, nil); err != nil {
			return err
		}
	}
	if c.Failures == nil {
		c.Failures = httpapi.NewFailures(0, c.Clock.Steady)
	}
	if c.IdentityProvider == nil {
		c.IdentityProvider = func() *SignInMethod { return nil }
	}
	if c.Bodies == nil {
		c.Bodies = httpapi.NewBodyQuota()
	}
	return nil
}

// New returns the handler of /v1 and /openapi.json. Mount it at both.
func New(cfg Config) (httpapi.Router, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	r, err := newRouter(&cfg)
	if err != nil {
		return nil, err
	}
	s := &server{router: r, handlers: newHandlers(&cfg, r.http)}
	r.routes(s.handlers, &cfg)
	r.serveDocument()
	return s, nil
}

// server is the API: its routes and their handlers.
type server struct {
	*router
	handlers *handlers
}
