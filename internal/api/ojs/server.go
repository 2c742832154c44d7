package ojs

import (
	"context"
	"errors"
	"log/slog"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Store is the storage that the handlers read.
type Store interface {
	httpapi.Store
	CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error)
}

// Config holds the handler set's dependencies and settings.
type Config struct {
	Store      Store
	Engine     httpapi.Engine
	Management *management.Service
	// Commands executes the operations that are commands. Required.
	Commands *builtincommand.Runner
	// Idempotency is a guard that refuses with Errors and stores responses without secrets, by Redact.
	Idempotency *idempotency.Guard
	Clock       clock.Clock
	Log         *slog.Logger
	// Outage is that of problem.Writer. Defaults to none.
	Outage *problem.Outage
	// Intake accepts events. Required.
	Intake *intake.Intake
	// MaxBatchBody bounds the body of a batch request. Defaults to 16 MiB, or to the largest payload of an event if that is
	// more.
	MaxBatchBody int64
	// Version of this program, for the manifest.
	Version string
	// Backend names the kind of store, for the manifest.
	Backend string
	// TimeScale speeds up time windows. Defaults to real time.
	TimeScale godwit.TimeScale
	// Bodies is the quota of request bodies, shared with other APIs. Defaults to one of its own.
	Bodies *httpapi.Quota
}

type server struct {
	cfg    Config
	api    *httpapi.API
	errors *Errors
	mux    *httpapi.Mux
}

// mediaTypes are the media types of a request body (decision 10).
var mediaTypes = []string{plainJSON, openJobSpec}

// The scopes of the operations.
var (
	mayRead   = []godwit.Scope{godwit.ScopeRead}
	mayManage = []godwit.Scope{godwit.ScopeManage}
	mayIngest = []godwit.Scope{godwit.ScopeIngest}
)

// New returns the handler of everything under /ojs/. Put Binding around it.
func New(cfg Config) (httpapi.Router, error) {
	if cfg.Store == nil || cfg.Engine == nil || cfg.Management == nil || cfg.Intake == nil || cfg.Commands == nil || cfg.Clock == nil || cfg.Log == nil {
		return nil, errors.New("ojs: Store, Engine, Management, Intake, Commands, Clock and Log are required")
	}
	s := &server{cfg: cfg, errors: &Errors{Log: cfg.Log, Outage: cfg.Outage}, mux: httpapi.NewMux()}
	if s.cfg.MaxBatchBody == 0 {
		s.cfg.MaxBatchBody = max(16<<20, cfg.Intake.MaxPayload())
	}
	var err error
	s.api, err = httpapi.New(httpapi.Config{
		Callers: cfg.Management.Callers, Idempotency: cfg.Idempotency, Errors: s.errors, Bodies: cfg.Bodies, Channel: "ojs",
	})
	if err != nil {
		return nil, err
	}
	s.routes()
	return s.mux, nil
}

// The paths. The specification defines ten operations (OJS-API-1); events and the manifest are additions.
const (
	base              = "/ojs/v1/webhooks/"
	subscriptionsPath = base + "subscriptions"
	subscriptionPath  = base + "subscriptions/{id}"
	deliveriesPath    = base + "deliveries"
	deliveryPath      = base + "deliveries/{id}"
	eventsPath        = "/ojs/v1/events"
)

func (s *server) routes() {
	s.managed("POST "+subscriptionsPath, mayManage, s.createSubscription)
	s.managed("GET "+subscriptionsPath, mayRead, s.listSubscriptions)
	s.managed("GET "+subscriptionPath, mayRead, s.getSubscription)
	s.managed("PATCH "+subscriptionPath, mayManage, s.updateSubscription)
	s.managed("PUT "+subscriptionPath, mayManage, s.updateSubscription) // some clients send PUT for an update (decision 10)
	s.managed("DELETE "+subscriptionPath, mayManage, s.deleteSubscription)
	s.managed("POST "+subscriptionPath+"/test", mayManage, s.testSubscription)
	s.managed("POST "+subscriptionPath+"/rotate-secret", mayManage, s.rotateSecret)
	s.managed("GET "+deliveriesPath, mayRead, s.listDeliveries)
	s.managed("GET "+deliveryPath, mayRead, s.getDelivery)
	s.managed("POST "+deliveryPath+"/retry", mayManage, s.retryDelivery)
	s.managed("GET "+eventsPath, mayRead, s.pollEvents)
	s.mux.Handle("POST "+eventsPath, s.api.Handle(
		httpapi.Route{Access: httpapi.Access{Need: mayIngest}, MediaTypes: mediaTypes, Limit: s.cfg.Intake.MaxPayload(), OwnKey: true}, s.postEvent))
	s.mux.Handle("POST "+eventsPath+"/batch", s.api.Handle(
		httpapi.Route{Access: httpapi.Access{Need: mayIngest}, MediaTypes: mediaTypes, Limit: s.cfg.MaxBatchBody, Ingest: true}, s.postBatch))
	manifest := s.manifest()
	s.mux.Handle("GET /ojs/manifest", manifest)
	s.mux.Handle("GET /ojs/v1/manifest", manifest)
	s.mux.Unmatched("/", s.errors, "; /ojs/manifest lists what there is")
}

// managed registers a management operation.
func (s *server) managed(pattern string, need []godwit.Scope, serve func(*httpapi.Call) error) {
	s.mux.Handle(pattern, s.api.Handle(httpapi.Route{Access: httpapi.Access{Need: need}, MediaTypes: mediaTypes}, serve))
}
