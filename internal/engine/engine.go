package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/engine/follow"
	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/engine/signal"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Engine delivers events. Make it with New, start it with Run.
//
// An event passes through the members in this order: accept.go builds it and its deliveries, commits stores both (fanouts adds
// deliveries that are too many for one transaction), lanes choose when to send each delivery, maker sends and classifies,
// commits stores the result, and reporter reports it.
//
// The embedded parts are what callers ask of it: accept events, for one tenant or for many, send events again, and try endpoints.
type Engine struct {
	*acceptor
	*broadcaster
	*redeliverer
	*trials

	cfg Config

	commits  *commit.Group
	signals  *signal.Hub
	shards   *shard.Keeper
	maker    *attempt.Maker
	lanes    *dispatch.Dispatcher
	fanouts  *fanout.Expander
	reporter *reporter
	sweeper  *sweeper
	history  *historian

	feed      *follow.SharedFeed
	outcomes  *follow.Outcomes
	watermark *follow.Watermark

	accepting, started chan struct{}
}

// New prepares an engine and loads its endpoints. Nothing is sent before Run.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, watermark: follow.NewWatermark(cfg.Clock), accepting: make(chan struct{}), started: make(chan struct{})}
	e.commits = commit.New(commit.Config{
		Store: cfg.Store, Log: cfg.Log, Clock: cfg.Clock, Pace: cfg.Pace, Linger: cfg.Linger, Measured: cfg.Recorder.Committed, Fenced: cfg.Recorder.Fenced, OnNotice: cfg.OnNotice,
		ConfigConfirmed: cfg.Changes.Confirmed,
	})
	e.signals = signal.NewHub(cfg.Store, cfg.Node, cfg.Pace, cfg.Log)
	e.feed = follow.NewSharedFeed(cfg.Clock, e.signals.Tell, e.urlOf)
	e.shards = shard.NewKeeper(shard.Config{Store: cfg.Store, Clock: cfg.Clock, Log: cfg.Log, Node: cfg.Node, TTL: cfg.LeaseTTL, Synced: cfg.Synced, Tell: e.signals.Leases, Recorder: cfg.Recorder})
	e.maker = attempt.NewMaker(attempt.Config{
		Sender: cfg.Sender, Ring: cfg.Ring, Clock: cfg.Clock, Log: cfg.Log, TimeScale: cfg.TimeScale, Draw: cfg.Draw, Keys: cfg.Store.EnvironmentKeys,
	})
	e.reporter = &reporter{e: e}
	e.lanes = dispatch.New(dispatch.Config{
		Store: cfg.Store, Maker: e.maker, Commits: e.commits, Shards: e.shards, Tell: e.signals.Work, Observer: e.reporter, Clock: cfg.Clock, Pace: cfg.Pace, Log: cfg.Log,
		Window: cfg.Window, MaxInFlight: cfg.MaxInFlight, MaxHeldBytes: cfg.MaxHeldBytes, MaxHeld: cfg.MaxHeld,
		PollInterval: cfg.PollInterval, TimeScale: cfg.TimeScale, ExplicitMeta: cfg.ExplicitMeta, ReachConfig: cfg.Changes.Reach,
	})
	e.fanouts = fanout.NewExpander(fanout.Config{Store: cfg.Store, Commits: e.commits, Lanes: e.lanes, Clock: cfg.Clock, Log: cfg.Log, Alone: e.shards.Alone, Owns: e.shards.Serves})
	e.sweeper = &sweeper{cfg: &e.cfg, lanes: e.lanes, jumps: e.maker.Jumps(), leads: e.Leads}
	e.history = &historian{cfg: &e.cfg, leads: e.Leads, ages: e.sweeper.now}
	e.acceptor = &acceptor{
		cfg: &e.cfg, commits: e.commits, lanes: e.lanes, fanouts: e.fanouts, watermark: e.watermark, keys: inProgress{ids: map[[32]byte][32]byte{}},
	}
	e.broadcaster = &broadcaster{
		cfg: &e.cfg, accept: e.acceptor, commits: e.commits, fanouts: e.fanouts, alone: e.shards.Alone, owns: e.shards.Serves,
		work: map[godwit.BroadcastID]*broadcast{}, wake: make(chan struct{}, 1),
	}
	e.redeliverer = &redeliverer{cfg: &e.cfg, accept: e.acceptor, commits: e.commits, lanes: e.lanes, fanouts: e.fanouts, finder: finder{e.lanes, cfg.Changes}, owns: e.Owns, tell: e.signals.Tell}
	e.outcomes = follow.NewOutcomes(follow.Config{Clock: cfg.Clock, Log: cfg.Log, Deliveries: e.deliveriesOf, Lanes: e.lanes})
	e.redeliverer.outcomes = e.outcomes
	e.trials = &trials{lanes: finder{e.lanes, cfg.Changes}, tests: make(chan struct{}, maxTests), calls: make(chan struct{}, maxCalls)}
	if err := e.shards.Prepare(ctx); err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	if err := e.maker.KeysChanged(ctx, godwit.EnvironmentID{}); err != nil {
		return nil, err
	}
	return e, e.lanes.Load(ctx)
}

// Run delivers until ctx ends, then drains: the engine accepts and starts nothing new, requests in flight may finish within the
// drain limit, and other nodes get each shard as soon as its requests have ended. A request that is cut off by the limit does
// not count as an attempt. Run does not wait for shards: an engine without any accepts events for other nodes.
func (e *Engine) Run(ctx context.Context) error {
	committed := make(chan struct{})
	go func() { defer close(committed); e.commits.Run() }()
	defer func() {
		e.commits.Stop()
		<-committed
	}()
	e.lanes.Start()
	close(e.accepting)
	if err := e.shards.Start(ctx, e.lanes); err != nil && ctx.Err() == nil {
		if errors.Is(err, store.ErrFenced) {
			return err
		}
		e.cfg.Log.Warn("node not announced; it is tried again", "error", err)
	}
	close(e.started)

	keeping, release := context.WithCancel(context.Background())
	loops, stopLoops := context.WithCancel(context.Background())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var kept, wg sync.WaitGroup
	kept.Go(func() { stop(e.shards.Keep(keeping)) })
	kept.Go(func() { e.signals.Run(keeping, signalled{e.lanes, e}) })
	wg.Go(func() { e.lanes.Poll(loops) })
	wg.Go(func() { e.feed.Run(loops) })
	wg.Go(func() { e.fanouts.Run(loops, e.cfg.PollInterval) })
	wg.Go(func() { e.broadcaster.run(loops) })
	wg.Go(func() { e.sweeper.run(loops) })
	wg.Go(func() { e.history.run(loops) })
	<-ctx.Done()
	e.shards.Leave()
	e.lanes.Stop(e.cfg.Drain)
	stopLoops()
	wg.Wait()
	e.lanes.Wait()
	e.commits.Flush()
	release()
	kept.Wait()
	err := e.shards.Release()
	e.signals.Flush(context.Background())
	if cause := context.Cause(ctx); errors.Is(cause, store.ErrFenced) {
		err = cause
	}
	return err
}

// signalled passes the signals of other nodes to the engine's parts.
type signalled struct {
	*dispatch.Dispatcher
	e *Engine
}

// Told passes on what does not concern the lanes.
func (s signalled) Told(node, topic, body string) {
	if topic != evictTopic {
		s.e.feed.Told(node, topic, body)
		return
	}
	s.Go(func() {
		if err := s.e.evict(body); err != nil {
			s.e.cfg.Log.Warn("a delivery that another node cancels was not returned", "error", err)
		}
	})
}

// Accepting is closed once the engine accepts events, which does not depend on the shards that it has.
func (e *Engine) Accepting() <-chan struct{} { return e.accepting }

// Started is closed once the engine delivers.
func (e *Engine) Started() <-chan struct{} { return e.started }

// Stopping tells the other nodes that Run will be stopped soon. The node delivers until then.
func (e *Engine) Stopping() { e.shards.Stopping() }

// Owns reports whether this node delivers for the endpoint now.
func (e *Engine) Owns(id godwit.EndpointID) bool { return e.shards.Epoch(id.Shard()) != 0 }

// Alone reports whether no other node is alive.
func (e *Engine) Alone() bool { return e.shards.Alone() }

// Leads reports whether this node does what only one node may do, such as sweeps: it owns the first shard.
func (e *Engine) Leads() bool { return e.shards.Epoch(0) != 0 }

// Ready reports whether events can be taken in now. It does not matter which shards this node has.
func (e *Engine) Ready() error {
	switch {
	case e.lanes.Stopping():
		return ErrStopping
	case !e.lanes.Running() || !e.hasStarted():
		return errors.New("starting")
	case e.commits.LastError() == nil:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return e.cfg.Store.Ping(ctx) // the last commit failed; check whether the store is back
}

func (e *Engine) hasStarted() bool {
	select {
	case <-e.started:
		return true
	default:
		return false
	}
}

// Changed tells the engine that this node has created, changed or deleted an endpoint. If the endpoint cannot be read now, the
// engine reads it later.
func (e *Engine) Changed(ctx context.Context, id godwit.EndpointID) error {
	if e.cfg.Changes.Version() == 0 {
		return e.lanes.Changed(ctx, id)
	}
	return e.cfg.Changes.CatchUp(ctx) // the change is among those that the engine is subscribed to
}

// KeysChanged tells the engine that this node has changed the signing keys of an environment. If they cannot be read now, nothing is signed
// with them until they are.
func (e *Engine) KeysChanged(ctx context.Context, id godwit.EnvironmentID) error {
	if e.cfg.Changes.Version() == 0 {
		return e.maker.KeysChanged(ctx, id)
	}
	return e.cfg.Changes.CatchUp(ctx)
}

// Subscriber returns the part of the engine that takes changes of any node.
func (e *Engine) Subscriber() *dispatch.Subscriber { return e.lanes.Subscriber() }

// Health returns the live health of an endpoint that this node delivers to.
func (e *Engine) Health(id godwit.EndpointID) (godwit.Health, bool) { return e.lanes.Health(id) }

// Watch streams the attempts of a tenant from now on, once they are recorded. The zero tenant watches all. Call stop
// when done; the channel is then closed.
func (e *Engine) Watch(tenant godwit.TenantID) (items <-chan FeedItem, stop func()) {
	return e.feed.Watch(tenant)
}

// Await waits until every delivery of an event has an outcome, at most until the limit; see follow.Outcomes.
func (e *Engine) Await(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, since map[godwit.DeliveryID]int, limit time.Duration) (*Awaited, error) {
	begun := e.cfg.Clock.Steady()
	if complete, err := e.fanouts.WaitUpTo(ctx, id, limit); err != nil || !complete {
		return &Awaited{Open: 1}, err
	}
	return e.outcomes.Await(ctx, tenant, id, since, max(limit-(e.cfg.Clock.Steady()-begun), 0))
}

func (e *Engine) urlOf(id godwit.EndpointID) string {
	if l := e.lanes.Lane(id); l != nil {
		return l.Target().Endpoint.URL
	}
	return ""
}

// Watermark returns a time before which this node adds no more events; see follow.Watermark.
func (e *Engine) Watermark() time.Time { return e.watermark.Time() }

// Types of the engine's parts, for its callers.
type (
	// FeedItem is one recorded attempt.
	FeedItem = follow.FeedItem
	// Awaited is the progress of an event's deliveries.
	Awaited = follow.Awaited
)

// ErrInFlight reports that a request for the delivery is in flight.
var ErrInFlight = dispatch.ErrInFlight
