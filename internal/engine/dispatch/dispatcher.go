package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store declares the storage methods that the dispatcher uses.
type Store interface {
	ClaimDue(ctx context.Context, claims []store.Claim) ([]store.Claimed, error)
	Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error)
	EndpointsDue(ctx context.Context, shards []int) ([]store.EndpointDue, error)
	TakeAllowance(ctx context.Context, a store.Allowance) (store.Allowed, error)
	ReturnAllowance(ctx context.Context, tenant godwit.TenantID, name string, at time.Time, n int) error
	BringBack(ctx context.Context, now time.Time, endpoints []store.Lateness) (int, error)
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error)
	LoadEndpoints(ctx context.Context, fn func(*store.LoadedEndpoint) error) error
	LoadShards(ctx context.Context, shards []int, fn func(*store.LoadedEndpoint) error) error
	LoadChosen(ctx context.Context, ids []godwit.EndpointID) ([]*store.LoadedEndpoint, error)
}

// An Observer is notified of the results of deliveries. Its methods are called on the hot path and must not block.
type Observer interface {
	// Judged may add notices and news to a record before it is committed.
	Judged(t *attempt.Target, r *commit.Record, now time.Time)
	// Recorded is called when a record is stored.
	Recorded(r *commit.Record)
	// Refused is called when the store refused a record: another node has the delivery now.
	Refused(r *commit.Record)
	// Orphaned is called when deliveries wait in the store for a deleted endpoint.
	Orphaned()
	// Claimed measures a transaction that claims n deliveries. fenced counts the endpoints that another node has by now.
	Claimed(n, fenced int, took time.Duration, err error)
}

// Config configures a dispatcher.
type Config struct {
	Store    Store
	Maker    *attempt.Maker
	Commits  *commit.Group
	Shards   *shard.Keeper
	Observer Observer
	Clock    clock.Clock
	Pace     clock.Clock // for pauses between claims; tests that move Clock by hand leave it running
	Log      *slog.Logger

	// Tell tells other nodes that a delivery waits for an endpoint of theirs. It must not block.
	Tell func(godwit.EndpointID)

	Window       int   // deliveries of one endpoint in memory
	MaxInFlight  int   // concurrent requests
	MaxHeldBytes int64 // payloads in memory over all endpoints
	MaxHeld      int64 // deliveries in memory over all endpoints
	PollInterval time.Duration
	TimeScale    godwit.TimeScale
	// ReachConfig returns once the endpoints in memory include the changes up to a config version.
	ReachConfig func(ctx context.Context, version int64) error
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
	busy     [godwit.Shards]shardLoad // by shard
	claims   claimer
	reading  [godwit.Shards]sync.Mutex // by shard: held from reading an endpoint until the lane has it
	stale    sync.Map                  // EndpointID → struct{}: changed, but could not be read

	// base is the context of requests in flight; it is cancelled with a cause when draining takes too long.
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

// total counts the deliveries and bytes of all lanes.
type total struct{ deliveries, bytes atomic.Int64 }

// memoryShort reports whether all lanes together have reached the memory limits.
func (d *Dispatcher) memoryShort() bool {
	return d.held.bytes.Load() > d.cfg.MaxHeldBytes || d.held.deliveries.Load() > d.cfg.MaxHeld
}

// timeline counts time from the start of the process, so that setting back the machine's clock blocks no lane.
type timeline struct {
	began time.Time
	scale godwit.TimeScale
}

// since converts a time to the timeline of start logs.
func (t *timeline) since(now time.Time) time.Duration { return now.Sub(t.began) }

// minute returns the real length of a minute; it is shorter when time is scaled.
func (t *timeline) minute() time.Duration { return max(t.scale.Real(time.Minute), 1) }

// New makes a dispatcher without lanes.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{cfg: cfg, times: timeline{cfg.Clock.Now(), cfg.TimeScale}}
	d.claims = claimer{d: d, reclaims: make(chan struct{}, reclaimWorkers)}
	d.index.explicitMeta = cfg.ExplicitMeta
	d.base, d.cut = context.WithCancelCause(context.Background())
	d.slots.free = cfg.MaxInFlight
	d.workers = workers{jobs: make(chan *item), run: d.attempt}
	for shard := range d.busy {
		d.busy[shard].drained = func() {
			if !cfg.Shards.Serves(shard) {
				cfg.Shards.Drained()
			}
		}
	}
	d.accounts = accounts{d: d, tenants: map[godwit.TenantID]weak.Pointer[account]{}}
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

// Stop starts nothing new and waits for requests in flight, up to the limit; then it cancels them.
func (d *Dispatcher) Stop(limit time.Duration) {
	d.phase.Store(phaseStopping)
	d.WakeAll() // starts nothing: it takes every lane's lock, so a lane that saw the running phase has started by now
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
	d.accounts.giveBack()
	d.cut(sender.ErrInterrupted)
	close(d.workers.jobs)
}

// Wait returns when the background tasks are done. It is called after Stop; Go starts no task afterwards.
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

// Base returns the context of requests in flight. It ends with a stop.
func (d *Dispatcher) Base() context.Context { return d.base }

// Go runs f in the background; a stop waits for it. After Wait it does nothing.
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

// Match returns the lanes that an event goes to.
func (d *Dispatcher) Match(tenant godwit.TenantID, event *godwit.Event) []*Lane {
	return pass(d.index.match(tenant, event.Type, event.Attributes), event)
}

// Wanted returns the lanes that select events of a type, before their content filters look at one: see Pass.
func (d *Dispatcher) Wanted(tenant godwit.TenantID, eventType string) []*Lane {
	return d.index.match(tenant, eventType, nil)
}

// Pass leaves only lanes whose content filters the event passes. It changes the list.
func (d *Dispatcher) Pass(lanes []*Lane, event *godwit.Event) []*Lane { return pass(lanes, event) }

// Waiting tells lanes that deliveries wait for them in the store. A lane whose shard belongs to another node claims nothing;
// that node is told.
func (d *Dispatcher) Waiting(lanes []*Lane) {
	now := d.cfg.Clock.Now()
	for _, l := range lanes {
		l.Waiting(now)
	}
}

// WakeAll makes every lane check whether it may send.
func (d *Dispatcher) WakeAll() { d.index.each((*Lane).wake) }

// Stats is a snapshot of the lanes.
type Stats struct {
	InFlight    int   // requests in flight
	Held        int   // deliveries in memory
	HeldBytes   int64 // their payloads
	Endpoints   int
	Active      int // of those, neither paused nor disabled nor deleted
	OpenCircuit int
	// How long the oldest delivery has been waiting for this node alone: its endpoint could take it now.
	Lag time.Duration
}

// Stats counts the lanes and their deliveries.
func (d *Dispatcher) Stats() Stats {
	s := Stats{InFlight: d.slots.inUse(d.cfg.MaxInFlight), HeldBytes: d.held.bytes.Load()}
	now := d.cfg.Clock.Now()
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
		s.Lag = max(s.Lag, l.lag(now))
		l.mu.Unlock()
	})
	return s
}

// Health returns the live health of an endpoint.
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
