package inbound

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
)

// Prefix is the path of all sources. Mount the handler there.
const Prefix = "/in/"

// Store is the storage that the handler needs beside package source.
type Store interface {
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	Reserve(ctx context.Context, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error)
	AddRejection(ctx context.Context, r *godwit.Rejection, keep int) error
	Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error)
}

// Engine is the part of the engine that the handler uses.
type Engine interface {
	RepeatedUpstream(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, actor string) (map[godwit.DeliveryID]int, error)
	Await(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, since map[godwit.DeliveryID]int, limit time.Duration) (*engine.Awaited, error)
}

// Config holds the handler's dependencies and settings.
type Config struct {
	Sources  *source.Sources
	Store    Store
	Engine   Engine
	Commands Commands
	Intake   *intake.Intake
	Problems *problem.Writer
	Clock    clock.Clock
	Log      *slog.Logger

	// Deadline is how long an upstream waits for the endpoints in pass-through mode, or for a command. Defaults to 20 s.
	Deadline time.Duration
	// PublicURL is the URL under which upstreams reach this server, if a proxy in front changes it. Defaults to the URL of
	// each request.
	PublicURL string
	// AllowHTTP accepts credentials over plain HTTP, for development. Defaults to false.
	AllowHTTP bool
	// Bodies is the quota of request bodies. Defaults to one of its own.
	Bodies *httpapi.Quota
	// Waiting bounds the upstreams that wait for endpoints; a tenant may have a quarter of it. Defaults to 4096.
	Waiting int
	// Recorder counts requests. Defaults to a recorder that does nothing.
	Recorder Recorder
}

func (c *Config) setDefaults() error {
	if c.Sources == nil || c.Store == nil || c.Engine == nil || c.Commands == nil || c.Intake == nil || c.Problems == nil || c.Clock == nil || c.Log == nil {
		return errors.New("inbound: sources, store, engine, commands, intake, problems, clock and log are required")
	}
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.Waiting == 0 {
		c.Waiting = 4096
	}
	if c.Bodies == nil {
		c.Bodies = httpapi.NewBodyQuota()
	}
	if c.Recorder == nil {
		c.Recorder = silent{}
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	return nil
}

// DefaultDeadline is shorter than the usual timeout of upstreams (EDS T-12).
const DefaultDeadline = 20 * time.Second

type server struct {
	cfg       Config
	waits     *httpapi.Quota
	recording *recording
}

// New makes the handler.
func New(cfg Config) (httpapi.Router, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	return &server{cfg: cfg, recording: newRecording(), waits: httpapi.NewQuota(int64(max(cfg.Waiting/4, 1)), int64(cfg.Waiting))}, nil
}

// Routes lists the routes. Upstreams deliver with POST; some ask with GET first whether the source is theirs.
func (s *server) Routes() []string {
	return []string{"GET " + Prefix + "{source}", "POST " + Prefix + "{source}"}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpapi.NameRequest(w, r)
	defer httpapi.Recover(w, r, s.cfg.Problems)
	w.Header().Set("Cache-Control", "no-store")
	x := &exchange{server: s, w: w, r: r}
	defer func() {
		if x.authentic {
			s.cfg.Sources.Received(r.Context(), x.src)
		}
	}()
	if err := x.serve(); err != nil {
		p := problem.From(err)
		x.refused(p)
		x.failed(p)
		s.cfg.Problems.Write(w, r, err)
	}
}
