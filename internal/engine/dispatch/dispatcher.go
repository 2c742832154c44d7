package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store is what the dispatcher needs of storage.
type Store interface {
	ClaimDue(ctx context.Context, c store.Claim) (*store.Claimed, error)
	Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error)
	EndpointsDue(ctx context.Context, shards []int) ([]store.EndpointDue, error)
	BringBack(ctx context.Context, now time.Time, endpoints []store.Lateness) (int, error)
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error)
	LoadEndpoints(ctx context.Context, fn func(*store.LoadedEndpoint) error) error
}

// An Observer is told what becomes of deliveries. Its methods are called on the hot path and must not block.
type Observer interface {
	// Judged may add notices and news to a record before it is committed.
	Judged(t *attempt.Target, r *commit.Record, now time.Time)
	// Recorded says that a record is stored.
	Recorded(r *commit.Record)
	// Refused says that a record was not stored: another node has the delivery now.
	Refused(r *commit.Record)
	// Orphaned says that deliveries wait in the store for an endpoint that is deleted.
	Orphaned()
	// Claimed tells of a claim, for measurements.
	Claimed(n int, took time.Duration, err error)
}

// Config is what a dispatcher is made of.
type Config struct {
	Store    Store
	Maker    *attempt.Maker
	Commits  *commit.Group
	Shards   *shard.Keeper
	Observer Observer
	Clock    clock.Clock
	Log      *slog.Logger

	Window       int   // deliveries of one endpoint in memory
	MaxInFlight  int   // requests on the wire at once
	MaxHeldBytes int64 // payloads in memory over all endpoints
	MaxHeld      int64 // deliveries in memory over all endpoints
	PollInterval time.Duration
	TimeScale    godwit.TimeScale
	// ExplicitMeta keeps the pattern "*" from selecting webhook.* events.
	ExplicitMeta bool
}

// A Dispatcher runs the lanes. Make it with New; it sends nothing before Start.
type Dispatcher struct {
	cfg      Config
	index    index
	slots    slots
	workers  workers
	accounts accounts
	held     total
	times    timeline
	wall     clockWatch
	claims   chan struct{}             // as many as may be under way at once
	reading  [godwit.Shards]sync.Mutex // by shard: held from reading an endpoint until it is known
	stale    sync.Map                  // EndpointID → struct{}: changed, but could not be read

	// base is the context of requests in flight; it is cancelled with cause when draining took too long.
	base     context.Context
	cut      context.CancelCauseFunc
	attempts sync.WaitGroup
	tasks    sync.WaitGroup // claims, reloads, enabling, fan-outs
	tasksMu  sync.Mutex
	finished bool // no more tasks are started
	phase    atomic.Int32
}

const (
	phaseStarting int32 = iota
	phaseRunning
	phaseStopping
)

// total counts what all lanes hold together.
type total struct{ deliveries, bytes atomic.Int64 }

// memoryShort reports that all lanes together hold as much as they may.
func (d *Dispatcher) memoryShort() bool {
	return d.held.bytes.Load() > d.cfg.MaxHeldBytes || d.held.deliveries.Load() > d.cfg.MaxHeld
}

// timeline counts time from the start of the process, so that a machine's clock that is set back holds up no lane.
type timeline struct {
	began time.Time
	scale godwit.TimeScale
}

// since is a time as logs of starts count it.
func (t *timeline) since(now time.Time) time.Duration { return now.Sub(t.began) }

// minute is how long a minute takes; less when time is scaled.
func (t *timeline) minute() time.Duration { return max(t.scale.Real(time.Minute), 1) }

// New makes a dispatcher without lanes.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{cfg: cfg, times: timeline{cfg.Clock.Now(), cfg.TimeScale}, claims: make(chan struct{}, maxClaims)}
	d.index.explicitMeta = cfg.ExplicitMeta
	d.base, d.cut = context.WithCancelCause(context.Background())
	d.slots.free = cfg.MaxInFlight
	d.workers = workers{jobs: make(chan *item), run: d.attempt}
	d.accounts = accounts{d: d, tenants: map[godwit.TenantID]*account{}}
	return d
}

// Load makes a lane for every endpoint in the store.
func (d *Dispatcher) Load(ctx context.Context) error {
	var lanes []*Lane
	err := d.cfg.Store.LoadEndpoints(ctx, func(l *store.LoadedEndpoint) error {
		lanes = append(lanes, d.newLane(l))
		return nil
	})
	if err != nil {
		return fmt.Errorf("load endpoints: %w", err)
	}
	d.recall(lanes)
	d.index.put(lanes...)
	return nil
}

// Start lets the lanes send.
func (d *Dispatcher) Start() {
	d.phase.Store(phaseRunning)
	d.WakeAll()
}

// Stop starts nothing any more and waits for the requests in flight, up to the limit; then it cuts them off.
func (d *Dispatcher) Stop(limit time.Duration) {
	d.phase.Store(phaseStopping)
	d.WakeAll() // starts nothing: it passes every lane's lock, so a lane that saw us running has started by now
	done, expired := make(chan struct{}), make(chan struct{})
	go func() { d.attempts.Wait(); close(done) }()
	timer := d.cfg.Clock.AfterFunc(limit, func() { close(expired) })
	select {
	case <-done:
		timer.Stop()
	case <-expired:
		d.cfg.Log.Warn("drain limit reached, cutting requests in flight", "in_flight", d.slots.inUse(d.cfg.MaxInFlight))
		d.cut(sender.ErrInterrupted)
		<-done
	}
	d.cut(sender.ErrInterrupted)
	close(d.workers.jobs)
}

// Wait returns when the tasks that were started beside the lanes are done. It is called after Stop; no task is started any
// more.
func (d *Dispatcher) Wait() {
	d.tasksMu.Lock()
	d.finished = true
	d.tasksMu.Unlock()
	d.tasks.Wait()
}

// Running reports whether lanes may send.
func (d *Dispatcher) Running() bool { return d.phase.Load() == phaseRunning }

// Stopping reports whether Stop was called.
func (d *Dispatcher) Stopping() bool { return d.phase.Load() == phaseStopping }

// Base is the context of requests in flight. It ends with a stop.
func (d *Dispatcher) Base() context.Context { return d.base }

// Go runs f beside the lanes; a stop waits for it. After Wait it does nothing.
func (d *Dispatcher) Go(f func()) {
	d.tasksMu.Lock()
	defer d.tasksMu.Unlock()
	if !d.finished {
		d.tasks.Go(f)
	}
}

// Lane returns the lane of an endpoint, or nil.
func (d *Dispatcher) Lane(id godwit.EndpointID) *Lane { return d.index.lane(id) }

// TenantLane returns the lane of an endpoint if it is the tenant's, or nil.
func (d *Dispatcher) TenantLane(tenant godwit.TenantID, id godwit.EndpointID) *Lane {
	if l := d.index.lane(id); l != nil && l.Target().Endpoint.TenantID == tenant {
		return l
	}
	return nil
}

// Match returns the lanes that an event is for.
func (d *Dispatcher) Match(tenant godwit.TenantID, eventType string, attributes map[string]string) []*Lane {
	return d.index.match(tenant, eventType, attributes)
}

// Waiting tells lanes that deliveries of theirs wait in the store. A lane whose shard is another node's claims nothing; that
// node finds them when it polls.
func (d *Dispatcher) Waiting(lanes []*Lane) {
	now := d.cfg.Clock.Now()
	for _, l := range lanes {
		l.Waiting(now)
	}
}

// WakeAll has every lane look whether it may send.
func (d *Dispatcher) WakeAll() { d.index.each((*Lane).wake) }

// Stats is what the lanes hold at the moment.
type Stats struct {
	InFlight    int   // requests on the wire
	Held        int   // deliveries in memory
	HeldBytes   int64 // their payloads
	Endpoints   int
	Active      int // of those, neither paused nor disabled nor deleted
	OpenCircuit int
}

// Stats counts.
func (d *Dispatcher) Stats() Stats {
	s := Stats{InFlight: d.slots.inUse(d.cfg.MaxInFlight), HeldBytes: d.held.bytes.Load()}
	d.index.each(func(l *Lane) {
		l.mu.Lock()
		s.Endpoints++
		if l.active() {
			s.Active++
		}
		s.Held += len(l.window.held)
		if !l.condition.CircuitOpenAt.IsZero() {
			s.OpenCircuit++
		}
		l.mu.Unlock()
	})
	return s
}

// Health is the live state of an endpoint.
func (d *Dispatcher) Health(id godwit.EndpointID) (godwit.Health, bool) {
	l := d.index.lane(id)
	if l == nil {
		return godwit.Health{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.condition.recover(l.Target().Policy.DegradedAbove, d.cfg.Clock.Now(), d.times.minute())
	return l.condition.Health, true
}
