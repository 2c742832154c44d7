package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// Dependencies holds an app's dependencies besides its configuration. The zero value is right for production.
type Dependencies struct {
	// Clock defaults to the machine's clock, on PostgreSQL to one that follows the database's.
	Clock clock.Clock
	// Log defaults to a logger made from the configuration, on standard error.
	Log *slog.Logger
	// TimeScale shortens delays, windows and retentions, for development. Defaults to real time.
	TimeScale godwit.TimeScale
	// NoLimits removes the limits on registrations, for development. Defaults to false.
	NoLimits bool
	// Origins says where the value of each setting came from, by flag, for GET /v1/settings. Defaults to none: a value is the default or the program's.
	Origins map[string]config.Origin
	// Wait makes New wait for a PostgreSQL database that is away, and answer as not ready meanwhile. Defaults to false: New fails.
	Wait bool
	// Hurry is closed when a stop must not wait for the stop delay. Defaults to never.
	Hurry <-chan struct{}
	// Timeouts of the server. Default to values for production.
	Timeouts Timeouts
	// Tune changes the engine's configuration, for tests. Defaults to nil.
	Tune func(*engine.Config)
	// TuneSQLite changes the options of an embedded store, for tests. Defaults to nil.
	TuneSQLite func(*sqlite.Options)
	// TuneCommands changes the configuration of the command executor, and Commands registers more commands, for tests.
	// Default to nil.
	TuneCommands func(*command.Config)
	Commands     func(*command.Registry) error
}

// App is the whole server: its services, and what runs them.
type App struct {
	services
	node      godwit.Node
	servers   []*httpServer
	url       string
	routes    func() []string
	done      chan struct{} // closed when delivery has stopped; ends live streams
	readiness *readiness
	hurry     <-chan struct{}
	stopping  atomic.Bool   // /readyz answers 503, and connections are not kept
	ready     chan struct{} // closed once /readyz answers 200 for the first time
}

// New opens the store, wires the services and listens. The app delivers nothing before Run.
func New(ctx context.Context, cfg config.Config, d Dependencies) (app *App, err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	var leaseTime func() time.Time // the clock of leases; nil is the store's own
	if d.Clock != nil {
		leaseTime = d.Clock.Now
	}
	if d.Log == nil {
		d.Log = NewLogger(cfg.Log, os.Stderr)
	}
	if cfg.Node == "" {
		if cfg.Node, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find a name for this node: %w; set one with --node", err)
		}
	}
	a := &App{services: services{cfg: cfg, clock: clock.Real{}, log: d.Log}, done: make(chan struct{}), ready: make(chan struct{}), hurry: d.Hurry}
	defer func() {
		if err != nil {
			a.release()
		}
	}()
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	if err := a.start(ctx, d, leaseTime); err != nil {
		return nil, err
	}
	if err := a.serve(d); err != nil {
		return nil, err
	}
	return a, nil
}

// open opens the listener and the key ring.
func (a *App) open(ctx context.Context) error {
	// The address comes first: if another server runs here, its data is not touched.
	l, err := listen(ctx, a.cfg.Listen)
	if err != nil {
		return err
	}
	a.servers = append(a.servers, &httpServer{listener: l})
	a.url = publicURL(&a.cfg, l.Addr())
	a.ring, err = OpenRing(&a.cfg.Storage, a.log)
	return err
}

// Run serves and delivers until asked ends, then stops in order: readiness, intake, delivery, server. It closes the app.
func (a *App) Run(asked context.Context) error {
	defer a.release()
	ctx, stop := context.WithCancelCause(context.WithoutCancel(asked))
	defer stop(nil)
	defer context.AfterFunc(asked, func() {
		a.leave(ctx)
		stop(context.Cause(asked))
	})()
	served := make(chan error, len(a.servers))
	for _, s := range a.servers {
		go func() {
			err := s.run()
			stop(err)
			served <- err
		}()
	}
	following, enough := context.WithCancel(context.Background()) // changes are followed until delivery has ended
	var followed sync.WaitGroup
	if a.changes != nil {
		followed.Go(func() { a.changes.Run(following) })
	}
	defer followed.Wait()
	defer enough()
	var announced sync.WaitGroup
	announced.Go(func() { a.announce(ctx) })
	announced.Go(func() { a.checkIdentity(ctx) })
	stopAlerts := a.alerts.start()
	executed := a.commands.start(ctx, a.engine.Accepting(), a.engine.Leads)
	err := a.engine.Run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil // stopped before it began
	}
	if errors.Is(err, store.ErrFenced) {
		err = fmt.Errorf("another process runs as node %q now; this one stops: give each process a name of its own with --node", a.cfg.Node)
	}
	stop(nil)
	announced.Wait()
	<-executed
	close(a.done) // watchers have seen the last attempt
	stopAlerts()
	for _, s := range a.servers {
		s.close()
	}
	errs := []error{err}
	for range a.servers {
		errs = append(errs, <-served)
	}
	if err = errors.Join(errs...); err == nil {
		a.log.Info("stopped")
	}
	return err
}

// leave turns readiness off and keeps answering for the stop delay. Every answer asks its client to connect anew: a balancer's
// connections are closed by an answer, not under a request.
func (a *App) leave(ctx context.Context) {
	a.stopping.Store(true)
	delay := a.cfg.StopDelay.Real()
	if delay <= 0 {
		return
	}
	a.log.Info("stopping; requests are still answered for a while", "delay", delay)
	a.engine.Stopping()
	select {
	case <-time.After(delay):
	case <-a.hurry:
	case <-ctx.Done(): // a part of the server has failed
	}
}

// announce logs the server's version and URL once it is ready. Clients that read the URL from the log can use it at once.
func (a *App) announce(ctx context.Context) {
	select {
	case <-a.engine.Started():
	case <-ctx.Done():
		return
	}
	for a.readiness.reason(ctx) != "" {
		select {
		case <-time.After(pingEvery):
		case <-ctx.Done():
			return
		}
	}
	d, err := a.store.Describe(ctx)
	if err != nil {
		a.log.Error("describe store", "error", err)
	}
	b := telemetry.Build()
	a.log.Info("serving", "url", a.url, "listen", a.servers[0].listener.Addr().String(), "node", a.cfg.Node,
		"store", d.Backend, "store_version", d.Version, "schema", d.SchemaVersion, "location", d.Location,
		"durability", d.Durability, "version", b.Version)
	close(a.ready)
}

// release closes the resources that New opened.
func (a *App) release() {
	for _, s := range a.servers {
		s.listener.Close()
	}
	a.close()
}

// URL returns the app's URL.
func (a *App) URL() string { return a.url }

// Started returns a channel that is closed once the app delivers. The store may fail at that moment; Ready says that it
// did not.
func (a *App) Started() <-chan struct{} { return a.engine.Started() }

// Ready returns a channel that is closed once /readyz would answer 200.
func (a *App) Ready() <-chan struct{} { return a.ready }

// Engine returns the engine, for programs that run an app within their own process: the dev command and tests.
func (a *App) Engine() *engine.Engine { return a.engine }

// Management returns the management of tenants, keys and endpoints: see Engine.
func (a *App) Management() *management.Service { return a.management }

// Store returns the store: see Engine.
func (a *App) Store() store.Store { return a.store }

// Executor returns the command executor: see Engine.
func (a *App) Executor() *command.Executor { return a.commands.executor }

// Routes lists the patterns of all routes of the APIs' address, for a test of who may use each.
func (a *App) Routes() []string { return a.routes() }

// Handler returns the server's handler, for tests that need no socket.
func (a *App) Handler() http.Handler { return a.servers[0].server.Handler }
