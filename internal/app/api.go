package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/cybercube"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/api/ids"
	"github.com/godwit-hq/godwit/internal/api/inbound"
	"github.com/godwit-hq/godwit/internal/api/native"
	"github.com/godwit-hq/godwit/internal/api/oidc"
	"github.com/godwit-hq/godwit/internal/api/ojs"
	"github.com/godwit-hq/godwit/internal/api/wellknown"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/telemetry"
	"github.com/godwit-hq/godwit/internal/ui"
)

// apis makes the handlers of all APIs from the services, and what only APIs share.
type apis struct {
	*services
	d         Dependencies
	url       string
	done      <-chan struct{} // ends live streams
	problems  *problem.Writer
	guard     *idempotency.Guard
	bodies    *httpapi.Quota
	browser   *httpapi.Browser
	failures  *httpapi.Failures // sign-ins that failed
	terms     source.Terms
	upstreams *source.Sources
	started   time.Time
}

func newAPIs(s *services, d Dependencies, url string, done <-chan struct{}) (*apis, error) {
	a := &apis{
		failures: httpapi.NewFailures(s.cfg.Sessions.FailuresPerMinute, s.clock.Steady),
		services: s, d: d, started: s.clock.Now(), url: url, done: done, bodies: httpapi.NewBodyQuota(),
		problems: &problem.Writer{Base: strings.TrimSuffix(url, "/"), Log: s.log, Outage: problem.NewOutage(s.log, s.clock, done)},
	}
	var err error
	if a.browser, err = httpapi.NewBrowser(url, s.cfg.PublicURL != "", config.Prefixes(s.cfg.TrustedProxies)); err != nil {
		return nil, err
	}
	if a.guard, err = a.newGuard(a.problems, nil); err != nil {
		return nil, err
	}
	if a.terms, err = a.readTerms(); err != nil {
		return nil, err
	}
	a.upstreams, err = source.New(source.Config{
		Store: a.store, Ring: a.ring, Log: a.log, Now: a.clock.Now, Terms: a.terms, ClientCertificates: a.cfg.ClientCertificates, TimeScale: d.TimeScale,
	})
	return a, err
}

// mount adds every API to the mux. It is the map of the server's paths.
func (a *apis) mount(mux *httpapi.Mux) error {
	v1, err := a.native()
	if err != nil {
		return err
	}
	pages, err := a.wellKnown()
	if err != nil {
		return err
	}
	jobs, err := a.ojs()
	if err != nil {
		return err
	}
	webhooks, err := a.cybercube()
	if err != nil {
		return err
	}
	relay, err := a.relay()
	if err != nil {
		return err
	}
	commands, err := a.ids()
	if err != nil {
		return err
	}
	screens, err := ui.New(ui.Config{Errors: a.problems, Ancestors: a.management.Environments.FrameAncestors})
	if err != nil {
		return err
	}
	mux.Mount(ids.Prefix, a.whenAccepting(commands, a.problems))
	mux.Mount("/v1/", a.whenAccepting(v1, a.problems))
	mux.Mount("/ojs/", jobs)
	mux.Mount(cybercube.Prefix, webhooks)
	mux.Mount("/openapi.json", v1)
	mux.Mount("/docs/", pages)
	mux.Mount(wellknown.DirectoryPath, pages)
	mux.Mount(wellknown.AddressesPath, pages)
	mux.Mount(wellknown.ServicePath, pages)
	mux.Mount(inbound.Prefix, a.whenAccepting(relay, a.problems))
	mux.Mount(ui.DashboardPath, screens)
	mux.Mount(oidc.Prefix, a.oidc())
	mux.Mount(ui.PortalPath, screens)
	mux.HandleFunc("GET /healthz", alive)
	mux.Unmatched("/", a.problems, "; /openapi.json lists what there is")
	return nil
}

func (a *apis) native() (httpapi.Router, error) {
	return native.New(native.Config{
		Store: a.store, Engine: a.engine, Management: a.management, Catalogue: a.types, Sources: a.upstreams, Intake: a.intake,
		Idempotency: a.guard, Problems: a.problems, Clock: a.clock, Log: a.log, StallTimeout: a.d.Timeouts.Write,
		Version: telemetry.Build().Version, Node: a.cfg.Node, Bodies: a.bodies, Done: a.done, Commands: a.commands.runner, Preview: a.commands.previewer,
		StatsRetention: statsRetention(&a.cfg),
		Settings:       a.settings,
		Browser:        a.browser, Changed: a.commands.changed, Failures: a.failures, IdentityProvider: a.signInMethod,
	})
}

func (a *apis) wellKnown() (httpapi.Router, error) {
	return wellknown.New(wellknown.Config{
		Keys: a.store, Ring: a.ring, Idempotency: a.guard, Problems: a.problems, Now: a.clock.Now, Authority: authority(a.url),
		Addresses: config.Prefixes(a.cfg.WebhookIPs),
		Service:   &wellknown.Service{Terms: a.terms, Deadline: a.cfg.RelayDeadline.Real(), MaxBody: int64(a.cfg.MaxBody)},
	})
}

func (a *apis) relay() (httpapi.Router, error) {
	return inbound.New(inbound.Config{
		Sources: a.upstreams, Store: a.store, Engine: a.engine, Commands: a.commands.executor, Intake: a.intake, Problems: a.problems,
		Clock: a.clock, Log: a.log, Deadline: a.cfg.RelayDeadline.Real(), PublicURL: a.cfg.PublicURL, AllowHTTP: a.cfg.AllowHTTP,
		Bodies: a.bodies, Recorder: &a.metrics.Inbound,
	})
}

func (a *apis) ids() (httpapi.Router, error) {
	return ids.New(ids.Config{
		Config: httpapi.Config{Callers: a.management.Callers, Idempotency: a.guard, Errors: a.problems, Bodies: a.bodies, Browser: a.browser}, Clock: a.clock, Log: a.log,
		Executor: a.commands.executor, Evidence: a.store, EvidenceKey: a.commands.key, Preview: a.commands.previewer, Stall: a.d.Timeouts.Write,
	})
}

// ojs returns the handlers of the Open Job Spec.
func (a *apis) ojs() (httpapi.Router, error) {
	refuse := &ojs.Errors{Log: a.log, Outage: a.problems.Outage}
	guard, err := a.newGuard(refuse, ojs.Redact)
	if err != nil {
		return nil, err
	}
	backend := config.SQLite
	if a.cfg.Postgres() {
		backend = "postgres"
	}
	h, err := ojs.New(ojs.Config{
		Store: a.store, Engine: a.engine, Management: a.management, Idempotency: guard, Clock: a.clock, Log: a.log, Outage: a.problems.Outage,
		Intake: a.intake, Version: telemetry.Build().Version, TimeScale: a.d.TimeScale, Backend: backend,
		Bodies: a.bodies, Commands: a.commands.runner,
	})
	if err != nil {
		return nil, err
	}
	return httpapi.Around(h, ojs.Binding(a.whenAccepting(h, refuse))), nil
}

// cybercube returns the handlers of the CYBERCUBE standard.
func (a *apis) cybercube() (httpapi.Router, error) {
	refuse := &cybercube.Errors{Problems: a.problems, Now: a.clock.Now}
	guard, err := a.newGuard(refuse, cybercube.Redact)
	if err != nil {
		return nil, err
	}
	set := a.cfg.Cybercube
	cfg := cybercube.Config{
		Services: httpapi.Services{
			Config: httpapi.Config{Callers: a.management.Callers, Idempotency: guard, Errors: refuse, Bodies: a.bodies},
			Store:  a.store, Engine: a.engine, Intake: a.intake, Clock: a.clock, Log: a.log, TimeScale: a.d.TimeScale,
		},
		Management:   a.management,
		Commands:     a.commands.runner,
		UnknownTypes: set.UnknownTypes, EventRetention: a.cfg.Retention.Events.Real(), DeadLetterRetention: a.cfg.Retention.DeadLetters.Real(), StallTimeout: a.d.Timeouts.Write,
	}
	if !a.d.NoLimits {
		cfg.Limits = cybercube.Limits{
			Creates: set.CreatesPerHour, Updates: set.UpdatesPerHour, Deletes: set.DeletesPerHour, Tests: set.TestsPerHour,
			Replays: set.ReplaysPerHour,
		}
	}
	h, err := cybercube.New(cfg)
	if err != nil {
		return nil, err
	}
	return a.whenAccepting(h, refuse), nil
}

// newGuard returns the idempotency guard of an API. It words refusals as the API does, and stores answers for repeats as
// redact returns them; nil stores them unchanged.
func (a *apis) newGuard(refuse httpapi.ErrorWriter, redact func([]byte) []byte) (*idempotency.Guard, error) {
	return idempotency.New(idempotency.Config{
		Store: a.store, Ring: a.ring, Problems: refuse, Log: a.log, Now: a.clock.Now,
		Window: a.cfg.IdempotencyWindow.Real(), TimeScale: a.d.TimeScale, Redact: redact, Decided: a.commands.witness,
	})
}

// readTerms returns the terms that upstreams rely on, from the running configuration.
func (a *apis) readTerms() (source.Terms, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d, err := a.store.Describe(ctx)
	if err != nil {
		return source.Terms{}, fmt.Errorf("describe store: %w", err)
	}
	return source.Terms{
		Durability: d.Durability, Retention: a.cfg.Retention.Events.Real().Seconds(), DedupWindow: a.cfg.Retention.Events.Real().Seconds(),
		DeadLetters: a.cfg.Retention.DeadLetters.Real().Seconds(), Retries: source.RetriesByProfile(),
	}, nil
}

// startPatience is how long a request waits for the engine of a server that starts.
const startPatience = 10 * time.Second

// whenAccepting lets changes wait until this node accepts events. After a start that is a moment; clients would have to try again
// later if they were refused.
func (a *apis) whenAccepting(next httpapi.Router, problems httpapi.ErrorWriter) httpapi.Router {
	return httpapi.Around(next, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !a.awaitAccepting(r.Context()) {
			problems.Write(w, r, problem.Unavailable.With("the server is starting; /readyz tells when it has"))
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// awaitAccepting reports whether the engine accepts events now or after a short wait.
func (a *apis) awaitAccepting(ctx context.Context) bool {
	select {
	case <-a.engine.Accepting():
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	select {
	case <-a.engine.Accepting():
		return true
	case <-ctx.Done():
		return false
	}
}

// guardedMetrics serves the metrics on the API's own address. The metrics name subscriptions and event types of all
// tenants, so an API key is required there.
func (a *apis) guardedMetrics() (http.Handler, error) {
	api, err := httpapi.New(httpapi.Config{Callers: a.management.Callers, Idempotency: a.guard, Errors: a.problems})
	if err != nil {
		return nil, err
	}
	metrics := a.metrics.Handler()
	return api.Handle(httpapi.Route{Access: httpapi.Access{Need: []godwit.Scope{godwit.ScopeMetrics, godwit.ScopeAdmin}}}, func(c *httpapi.Call) error {
		metrics.ServeHTTP(c.W, c.R)
		return nil
	}), nil
}
