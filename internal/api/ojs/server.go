package ojs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/dialect"
	"github.com/godwit-hq/godwit/internal/api/room"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Store is what the handlers read.
type Store interface {
	dialect.Store
	CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error)
}

// Config is what the handler set is made of.
type Config struct {
	Store    Store
	Engine   dialect.Engine
	Registry *management.Service
	// Commands executes what is a command. Required.
	Commands *builtincommand.Runner
	// Idempotency is a guard that refuses with Errors and keeps answers without secrets: Redact.
	Idempotency *idempotency.Guard
	Clock       clock.Clock
	Log         *slog.Logger
	// MaxBody bounds an event. Required.
	MaxBody int64
	// MaxBatchBody bounds a batch. Defaults to 16 MiB, or MaxBody if that is more.
	MaxBatchBody int64
	// Retention is how long events are kept, and so for how long a producer's own id is known. Required.
	Retention time.Duration
	// Version of this program, for the manifest.
	Version string
	// TimeScale runs windows faster. Defaults to real time.
	TimeScale godwit.TimeScale
	// Bodies is the room of request bodies, shared with other APIs. Defaults to one of its own.
	Bodies *room.Room
}

type server struct {
	cfg    Config
	api    *dialect.API
	errors *Errors
	mux    *http.ServeMux
}

// The two media types of a request (decision 10).
var mediaTypes = []string{"application/json", "application/openjobspec+json"}

// Who may do what.
var (
	mayRead   = []godwit.Scope{godwit.ScopeRead}
	mayManage = []godwit.Scope{godwit.ScopeManage}
	mayIngest = []godwit.Scope{godwit.ScopeIngest}
)

// New makes the handler of everything under /ojs/.
func New(cfg Config) (http.Handler, error) {
	s := &server{cfg: cfg, errors: &Errors{Log: cfg.Log}, mux: http.NewServeMux()}
	if s.cfg.MaxBatchBody == 0 {
		s.cfg.MaxBatchBody = max(16<<20, cfg.MaxBody)
	}
	if cfg.Commands == nil {
		return nil, errors.New("ojs: Commands is required")
	}
	var err error
	s.api, err = dialect.New(dialect.Config{
		Store: cfg.Store, Engine: cfg.Engine, Registry: cfg.Registry, Idempotency: cfg.Idempotency, Clock: cfg.Clock,
		Log: cfg.Log, Errors: s.errors, MaxBody: cfg.MaxBody, Retention: cfg.Retention, TimeScale: cfg.TimeScale,
		Bodies: cfg.Bodies, Channel: "ojs",
	})
	if err != nil {
		return nil, err
	}
	s.routes()
	return s.mux, nil
}

// The paths. Ten operations are the document's (OJS-API-1); events and manifest are beside it.
const (
	base              = "/ojs/v1/webhooks/"
	subscriptionsPath = base + "subscriptions"
	subscriptionPath  = base + "subscriptions/{id}"
	deliveriesPath    = base + "deliveries"
	deliveryPath      = base + "deliveries/{id}"
	eventsPath        = "/ojs/v1/events"
)

func (s *server) routes() {
	s.at(subscriptionsPath, methods{
		http.MethodPost: s.managed(mayManage, s.createSubscription),
		http.MethodGet:  s.managed(mayRead, s.listSubscriptions),
	})
	s.at(subscriptionPath, methods{
		http.MethodGet:    s.managed(mayRead, s.getSubscription),
		http.MethodPatch:  s.managed(mayManage, s.updateSubscription),
		http.MethodPut:    s.managed(mayManage, s.updateSubscription), // some tools send it for the same (decision 10)
		http.MethodDelete: s.managed(mayManage, s.deleteSubscription),
	})
	s.at(subscriptionPath+"/test", methods{http.MethodPost: s.managed(mayManage, s.testSubscription)})
	s.at(subscriptionPath+"/rotate-secret", methods{http.MethodPost: s.managed(mayManage, s.rotateSecret)})
	s.at(deliveriesPath, methods{http.MethodGet: s.managed(mayRead, s.listDeliveries)})
	s.at(deliveryPath, methods{http.MethodGet: s.managed(mayRead, s.getDelivery)})
	s.at(deliveryPath+"/retry", methods{http.MethodPost: s.managed(mayManage, s.retryDelivery)})
	s.at(eventsPath, methods{
		http.MethodPost: s.api.Handle(dialect.Route{Need: mayIngest, MediaTypes: mediaTypes, Limit: s.cfg.MaxBody, OwnKey: true}, s.postEvent),
		http.MethodGet:  s.managed(mayRead, s.pollEvents),
	})
	s.at(eventsPath+"/batch", methods{
		http.MethodPost: s.api.Handle(dialect.Route{Need: mayIngest, MediaTypes: mediaTypes, Limit: s.cfg.MaxBatchBody, Ingest: true}, s.postBatch),
	})
	manifest := methods{http.MethodGet: s.manifest()}
	s.at("/ojs/manifest", manifest)
	s.at("/ojs/v1/manifest", manifest)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.errors.Write(w, r, problem.NotFound.With("there is nothing at this path; /ojs/manifest lists what there is"))
	})
}

// managed makes a handler for a management operation.
func (s *server) managed(need []godwit.Scope, serve func(*dialect.Call) error) http.Handler {
	return s.api.Handle(dialect.Route{Need: need, MediaTypes: mediaTypes}, serve)
}

// methods are what can be done at a path.
type methods map[string]http.Handler

// at serves a path. The mux itself would refuse other methods in its own words.
func (s *server) at(path string, m methods) {
	allowed := slices.Sorted(maps.Keys(m))
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	allow := strings.Join(allowed, ", ")
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		if h := m[method]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		s.errors.Write(w, r, problem.MethodNotAllowed.With("this path takes %s", allow))
	})
}
