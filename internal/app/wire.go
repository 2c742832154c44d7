package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/cybercube"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/api/ids"
	"github.com/godwit-hq/godwit/internal/api/inbound"
	"github.com/godwit-hq/godwit/internal/api/native"
	"github.com/godwit-hq/godwit/internal/api/wellknown"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// wire creates the services and connects them.
func (a *App) wire(ctx context.Context, d Dependencies) (err error) {
	if a.metrics, err = telemetry.New(telemetry.Config{Series: a.cfg.MetricsSeries}); err != nil {
		return err
	}
	if a.sender, err = newSender(&a.cfg, d); err != nil {
		return err
	}
	if a.alerts, err = newAlerts(a); err != nil {
		return err
	}
	if a.engine, err = engine.New(ctx, a.engineConfig(d)); err != nil {
		return err
	}
	if err := a.metrics.Watch(a.engine.Stats); err != nil {
		return err
	}
	limits := management.Limits{Endpoints: a.cfg.Limits.Endpoints}
	if d.NoLimits {
		limits = management.NoLimits
	}
	a.management, err = management.New(management.Config{
		Store: a.store, Engine: a.engine, URLs: a.sender, Ring: a.ring, Log: a.log, Now: a.clock.Now,
		TimeScale: d.TimeScale, Limits: limits,
	})
	if err != nil {
		return err
	}
	if a.types, err = catalogue.New(catalogue.Config{Store: a.store, Now: a.clock.Now}); err != nil {
		return err
	}
	a.intake, err = intake.New(intake.Config{
		Engine: a.engine, Store: a.store, Catalogue: a.types, Now: a.clock.Now,
		Keys:        idempotency.Format{MinLength: idempotency.DefaultMinLength, MaxLength: idempotency.DefaultMaxLength},
		Fingerprint: idempotency.WholePayload, Retention: a.cfg.Retention.Events.Real(), MaxPayload: int64(a.cfg.MaxBody),
	})
	if err != nil {
		return err
	}
	if a.commands, err = a.newCommands(ctx, d); err != nil {
		return err
	}
	return a.wireHTTP(d)
}

func newSender(c *config.Config, d Dependencies) (*sender.Sender, error) {
	sc := sender.Config{
		Clock:              d.Clock.Now,
		AllowHTTP:          c.AllowHTTP,
		AllowAddresses:     config.Prefixes(c.AllowAddress),
		DenyAddresses:      config.Prefixes(c.DenyAddress),
		AllowRedirectHosts: c.AllowRedirectHost,
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil {
			return nil, errors.New("proxy: not a URL") // url.Parse's error would quote a password
		}
		sc.Proxy = u
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %w", err)
		}
		sc.ExtraCAs = pem
	}
	return sender.New(sc)
}

// longestSchedule is roughly the longest time between the first attempt of a delivery and its death. A dead letter is
// shown with its attempts for as long as it is kept (CCW-DLQ-6).
const longestSchedule = 48 * time.Hour

func (a *App) engineConfig(d Dependencies) engine.Config {
	c := engine.Config{
		Store: a.store, Sender: a.sender, Ring: a.ring, Clock: a.clock, Log: a.log, Recorder: &a.metrics.Recorder,
		Node:              a.node.Owner(),
		Window:            a.cfg.Limits.Window,
		MaxInFlight:       a.cfg.Limits.InFlight,
		MaxHeldBytes:      int64(a.cfg.Limits.Held),
		Drain:             a.cfg.DrainTimeout.Real(),
		TimeScale:         d.TimeScale,
		IdempotencyWindow: a.cfg.IdempotencyWindow.Real(),
		ExplicitMeta:      a.cfg.MetaEvents == config.MetaExplicit,
		OnNotice:          a.alerts.post,
		Retention: engine.Retention{
			Events:      a.cfg.Retention.Events.Real(),
			Attempts:    max(a.cfg.Retention.Attempts.Real(), a.cfg.Retention.DeadLetters.Real()+longestSchedule),
			DeadLetters: a.cfg.Retention.DeadLetters.Real(),
		},
	}
	if d.Tune != nil {
		d.Tune(&c)
	}
	return c
}

// wireHTTP mounts the handler of each API.
func (a *App) wireHTTP(d Dependencies) error {
	problems := &problem.Writer{Base: strings.TrimSuffix(a.url, "/"), Log: a.log}
	guard, err := idempotency.New(idempotency.Config{
		Store: a.store, Ring: a.ring, Problems: problems, Log: a.log, Now: a.clock.Now,
		Window: a.cfg.IdempotencyWindow.Real(), TimeScale: d.TimeScale, Decided: a.witness,
	})
	if err != nil {
		return err
	}
	bodies := httpapi.NewBodyQuota()
	terms, err := a.terms()
	if err != nil {
		return err
	}
	upstreams, err := source.New(source.Config{
		Store: a.store, Ring: a.ring, Log: a.log, Now: a.clock.Now, Terms: terms, ClientCertificates: a.cfg.ClientCertificates, TimeScale: d.TimeScale,
	})
	if err != nil {
		return err
	}
	api, err := native.New(native.Config{
		Store: a.store, Engine: a.engine, Management: a.management, Catalogue: a.types, Sources: upstreams, Intake: a.intake, Idempotency: guard, Problems: problems, Clock: a.clock, Log: a.log,
		StallTimeout: d.Timeouts.Write, Version: telemetry.Build().Version, Bodies: bodies, Done: a.done, Commands: a.commands.runner, Preview: a.commands.previewer,
	})
	if err != nil {
		return err
	}
	pages, err := wellknown.New(wellknown.Config{Keys: a.store, Ring: a.ring, Idempotency: guard, Problems: problems, Now: a.clock.Now, Authority: a.authority(),
		Addresses: config.Prefixes(a.cfg.WebhookIPs),
		Service:   &wellknown.Service{Terms: terms, Deadline: a.cfg.RelayDeadline.Real(), MaxBody: int64(a.cfg.MaxBody)}})
	if err != nil {
		return err
	}
	jobs, err := a.newOJS(d, bodies)
	if err != nil {
		return err
	}
	webhooks, err := a.newCybercube(d, problems, bodies)
	if err != nil {
		return err
	}
	relay, err := inbound.New(inbound.Config{
		Sources: upstreams, Store: a.store, Engine: a.engine, Commands: a.commands.executor, Intake: a.intake, Problems: problems, Clock: a.clock, Log: a.log,
		Deadline:  a.cfg.RelayDeadline.Real(),
		PublicURL: a.cfg.PublicURL, AllowHTTP: a.cfg.AllowHTTP, Bodies: bodies, Recorder: &a.metrics.Inbound,
	})
	if err != nil {
		return err
	}
	orders, err := a.newIDS(d, guard, problems, bodies)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(ids.Prefix, orders)
	mux.Handle("/v1/", a.whenDelivering(api, problems))
	mux.Handle("/ojs/", jobs)
	mux.Handle(cybercube.Prefix, webhooks)
	mux.Handle("/openapi.json", api)
	mux.Handle("/docs/", pages)
	mux.Handle(wellknown.DirectoryPath, pages)
	mux.Handle(wellknown.AddressesPath, pages)
	mux.Handle(wellknown.ServicePath, pages)
	mux.Handle(inbound.Prefix, a.whenDelivering(relay, problems))
	mux.HandleFunc("GET /healthz", alive)
	a.readiness = &readiness{ping: a.store.Ping, dispatch: a.engine.Ready, now: a.clock.Now, log: a.log}
	mux.Handle("GET /readyz", a.readiness)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problems.Write(w, r, problem.NotFound.With("there is nothing at this path; /openapi.json lists what there is"))
	})
	t, err := tlsConfig(&a.cfg, a.clock.Now, a.log)
	if err != nil {
		return err
	}
	if a.cfg.ClientCertificates {
		t.ClientAuth = tls.RequestClientCert // the certificate is known by its fingerprint; its issuer does not matter
	}
	if a.cfg.MetricsListen == "" {
		metrics, err := a.guardedMetrics(guard, problems)
		if err != nil {
			return err
		}
		mux.Handle("GET /metrics", metrics)
	} else if err := a.serveMetrics(); err != nil {
		return err
	}
	if a.cfg.DebugListen != "" {
		if err := a.serveDebug(); err != nil {
			return err
		}
	}
	a.servers[0] = newHTTPServer(a.servers[0].listener, mux, t, d.Timeouts, a.log)
	if a.cfg.ShortWay {
		a.servers[0].addFastPath(d.Timeouts, a.clock.Now, a.log, "/v1/events")
	}
	return nil
}

// terms returns the terms that upstreams rely on, from the running configuration.
func (a *App) terms() (source.Terms, error) {
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

// whenDelivering refuses changes until this node delivers. While it waits for shards, another node delivers and would not
// learn of an endpoint that is changed here.
func (a *App) whenDelivering(next http.Handler, problems httpapi.ErrorWriter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-a.engine.Started():
		default:
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				problems.Write(w, r, problem.Unavailable.With("this node is not delivering yet, another one may be; /readyz tells when it does"))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// guardedMetrics serves the metrics on the API's own address. The metrics name subscriptions and event types of all
// tenants, so an API key is required there.
func (a *App) guardedMetrics(guard *idempotency.Guard, problems *problem.Writer) (http.Handler, error) {
	api, err := httpapi.New(httpapi.Config{Callers: a.management.Callers, Idempotency: guard, Errors: problems})
	if err != nil {
		return nil, err
	}
	metrics := a.metrics.Handler()
	return api.Handle(httpapi.Route{Need: []godwit.Scope{godwit.ScopeMetrics, godwit.ScopeAdmin}}, func(c *httpapi.Call) error {
		metrics.ServeHTTP(c.W, c.R)
		return nil
	}), nil
}

// serveMetrics serves the metrics on a separate address, which the operator keeps private.
func (a *App) serveMetrics() error {
	l, err := listen(context.Background(), a.cfg.MetricsListen)
	if err != nil {
		return fmt.Errorf("metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	a.servers = append(a.servers, newHTTPServer(l, mux, nil, Timeouts{}, a.log))
	a.log.Info("serving metrics", "metrics_url", "http://"+l.Addr().String()+"/metrics")
	return nil
}

// serveDebug serves Go's profiler. A request takes as long as the profile that it asks for.
func (a *App) serveDebug() error {
	l, err := listen(context.Background(), a.cfg.DebugListen)
	if err != nil {
		return fmt.Errorf("debug-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	a.servers = append(a.servers, newHTTPServer(l, mux, nil, Timeouts{}, a.log))
	a.log.Warn("the profiler is on", "debug_url", "http://"+l.Addr().String()+"/debug/pprof/")
	return nil
}
