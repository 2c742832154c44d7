package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store is what the engine needs of storage.
type Store interface {
	store.Pipeline
	store.Leases
	store.Upkeep
	Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
	ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error)
	Requeue(ctx context.Context, r store.Requeue) ([]godwit.Delivery, error)
	Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, now time.Time) (*godwit.Delivery, error)
	Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error)
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error)
	LoadEndpoints(ctx context.Context, fn func(*store.LoadedEndpoint) error) error
}

// Sender makes the requests.
type Sender interface {
	Send(ctx context.Context, r *sender.Request) godwit.Exchange
	CheckURL(raw string) error
	CheckRedirect(from, to string) error
}

// Config is what an engine is made of.
type Config struct {
	Store    Store
	Sender   Sender
	Ring     *keyring.Ring
	Clock    clock.Clock
	Log      *slog.Logger
	Recorder Recorder // Defaults to Silent.

	// Node names this process among those that share a store. Required.
	Node string
	// Window is how many deliveries of one endpoint may be in memory. Defaults to 1024.
	Window int
	// MaxInFlight is how many requests may be on the wire at once. Defaults to 2048.
	MaxInFlight int
	// MaxHeldBytes bounds the payloads in memory over all endpoints. Defaults to 64 MiB.
	MaxHeldBytes int64
	// Linger is how long a commit waits for company while there is load. Defaults to 1 ms.
	Linger time.Duration
	// LeaseTTL is after how long a silent node's shards are free. Defaults to 15 s.
	LeaseTTL time.Duration
	// PollInterval is how often the store is asked for work that came by another way. Defaults to 10 s.
	PollInterval time.Duration
	// Drain is how long a stop waits for requests in flight. Defaults to 20 s.
	Drain time.Duration
	// TimeScale runs delays, windows and retentions faster. Defaults to real time.
	TimeScale godwit.TimeScale
	// IdempotencyWindow is how long answers are replayed. Defaults to 24 h.
	IdempotencyWindow time.Duration
	// Draw is what jitter comes from: uniform in [0,1). Defaults to a sequence of this process's own.
	Draw func() float64
	// Retention says how long things are kept.
	Retention Retention
	// ExplicitMeta keeps the pattern "*" from selecting the webhook.* events that tell of deliveries: only patterns that
	// name them do. Defaults to false.
	ExplicitMeta bool
	// OnNotice is called after a notice is stored, on the goroutine that commits: it must not block. Defaults to nothing.
	OnNotice func(godwit.Notice)
}

func (c *Config) setDefaults() error {
	if c.Store == nil || c.Sender == nil || c.Ring == nil || c.Clock == nil || c.Log == nil || c.Node == "" {
		return errors.New("engine: store, sender, ring, clock, log and node are required")
	}
	if c.Recorder == nil {
		c.Recorder = Silent{}
	}
	if c.Draw == nil {
		c.Draw = draw
	}
	if c.OnNotice == nil {
		c.OnNotice = func(godwit.Notice) {}
	}
	defaultTo(&c.Window, 1024)
	defaultTo(&c.MaxInFlight, 2048)
	defaultTo(&c.MaxHeldBytes, 64<<20)
	defaultTo(&c.Linger, time.Millisecond)
	defaultTo(&c.LeaseTTL, 15*time.Second)
	defaultTo(&c.PollInterval, 10*time.Second)
	defaultTo(&c.Drain, 20*time.Second)
	defaultTo(&c.IdempotencyWindow, 24*time.Hour)
	c.Retention.setDefaults()
	return nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Engine delivers. Make it with New, start it with Run.
type Engine struct {
	cfg   Config
	store Store
	clock clock.Clock
	log   *slog.Logger
	began time.Time

	index   index
	commits *committer
	slots   slots
	workers workers
	leases  leases
	feed    feed
	waiting waiting
	heldB   atomic.Int64
	keys    inProgress
	settles settling
	probes  chan struct{} // as many as may be under way at once
	asked   chan struct{} // the same, of commands
	// accounts are the bounds that lanes share, by tenant.
	accounts   accounts
	cancelling atomic.Int32              // whether what waits for deleted endpoints is being cancelled: see cancelWaiting
	claims     chan struct{}             // as many as may be under way at once
	reading    [godwit.Shards]sync.Mutex // by shard: held from reading an endpoint until it is known
	stale      sync.Map                  // EndpointID → struct{}: changed, but could not be read

	// base is the context of requests in flight; it is cancelled with cause when draining took too long.
	base     context.Context
	cut      context.CancelCauseFunc
	attempts sync.WaitGroup
	tasks    sync.WaitGroup // refills, reclaims, reloads
	phase    atomic.Int32   // starting, running, stopping
	started  chan struct{}
	standby  chan struct{} // closed when another node holds the shards at start
}

const (
	phaseStarting int32 = iota
	phaseRunning
	phaseStopping
)

// New prepares an engine and loads its endpoints. Nothing is sent before Run.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, store: cfg.Store, clock: cfg.Clock, log: cfg.Log, began: cfg.Clock.Now(), started: make(chan struct{}), standby: make(chan struct{})}
	e.index.explicitMeta = cfg.ExplicitMeta
	e.probes, e.asked = make(chan struct{}, maxProbes), make(chan struct{}, maxAsked)
	e.base, e.cut = context.WithCancelCause(context.Background())
	e.slots.free = cfg.MaxInFlight
	e.workers = workers{jobs: make(chan job), run: func(j job) { e.attempt(j.lane, j.item) }}
	e.feed.watchers = map[*watcher]struct{}{}
	e.keys.ids = map[[32]byte][32]byte{}
	e.claims = make(chan struct{}, maxClaims)
	e.commits = newCommitter(e)
	var lanes []*lane
	err := e.store.LoadEndpoints(ctx, func(l *store.LoadedEndpoint) error {
		lanes = append(lanes, e.newLane(l))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load endpoints: %w", err)
	}
	e.recall(lanes)
	e.index.put(lanes...)
	return e, nil
}

// Run delivers until ctx ends, then drains: nothing new is taken in or started, requests in flight may finish within the
// drain limit, what is cut off then costs its delivery nothing.
func (e *Engine) Run(ctx context.Context) error {
	committed := make(chan struct{})
	go func() { defer close(committed); e.commits.run() }()
	defer func() {
		e.commits.stop()
		<-committed
	}()
	if err := e.acquire(ctx); err != nil {
		return err
	}
	e.phase.Store(phaseRunning)
	close(e.started)
	e.wakeAll()

	loops, stopLoops := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){e.keepLeases, e.pollStore, e.sweepStore} {
		wg.Go(func() { loop(loops) })
	}
	<-ctx.Done()
	e.phase.Store(phaseStopping)
	e.wakeAll() // starts nothing any more: it passes every lane's lock, so whoever saw us running has started by now
	e.drain()
	stopLoops()
	wg.Wait()
	e.tasks.Wait()
	e.commits.flush()
	return e.releaseLeases()
}

func (e *Engine) drain() {
	done := make(chan struct{})
	go func() { e.attempts.Wait(); close(done) }()
	expired := make(chan struct{})
	timer := e.clock.AfterFunc(e.cfg.Drain, func() { close(expired) })
	select {
	case <-done:
		timer.Stop()
	case <-expired:
		e.log.Warn("drain limit reached, cutting requests in flight", "in_flight", e.slots.inUse(e.cfg.MaxInFlight))
		e.cut(sender.ErrInterrupted)
		<-done
	}
	e.cut(sender.ErrInterrupted)
	close(e.workers.jobs)
}

// Started is closed once the engine delivers.
func (e *Engine) Started() <-chan struct{} { return e.started }

// Waiting is closed when the engine found all shards held by another node at its start. It takes over when that node
// releases them or its leases run out; Started is closed then.
func (e *Engine) Waiting() <-chan struct{} { return e.standby }

// Ready reports whether events can be taken in and delivered now.
func (e *Engine) Ready() error {
	switch e.phase.Load() {
	case phaseStarting:
		return errors.New("starting")
	case phaseStopping:
		return ErrStopping
	}
	if !e.leases.valid(e.clock.Now()) {
		return errors.New("no lease on any shard: another node with this name may be running, or the store is out of reach")
	}
	if e.commits.lastError() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return e.store.Ping(ctx) // the last commit failed; has the store come back?
}

func (e *Engine) running() bool { return e.phase.Load() == phaseRunning }

// Stats tells the state of the moment.
func (e *Engine) Stats() Stats {
	s := Stats{InFlight: e.slots.inUse(e.cfg.MaxInFlight), HeldBytes: e.heldB.Load(), Shards: e.leases.count()}
	e.index.each(func(l *lane) {
		l.mu.Lock()
		s.Endpoints++
		if l.target.Load().endpoint.Status == godwit.EndpointActive {
			s.Active++
		}
		s.Held += len(l.held)
		if !l.health.CircuitOpenAt.IsZero() {
			s.OpenCircuit++
		}
		l.mu.Unlock()
	})
	return s
}

// draw is uniform in [0,1) and seeded per process by the runtime, so that two nodes never share a sequence (EDS-BKO-2).
func draw() float64 { return rand.Float64() }

// task runs f beside the engine's loops; a stop waits for it.
func (e *Engine) task(f func()) {
	e.tasks.Go(f)
}
