package changes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// Bound is how old the last confirmation of the version may be when a node relies on a cached row. A change on another node
	// is honoured after that time at the latest.
	Bound = 500 * time.Millisecond
	// interval is how old a confirmation becomes before the follower looks again by itself, so that requests need not wait.
	interval = Bound / 2
	timeout  = 10 * time.Second
	// reloadTimeout bounds the reading of everything.
	reloadTimeout = 2 * time.Minute
)

// ErrClosed reports that the follower was closed.
var ErrClosed = errors.New("changes are no longer followed")

// A Subscriber holds rows of the configuration in memory. Its methods are called one at a time, and return once the memory is
// up to date. The rows may be newer than the change.
type Subscriber interface {
	// Changed takes changes in the order of their commits.
	Changed(ctx context.Context, changes []store.ConfigChange) error
	// Lost says that any row may have changed or be gone.
	Lost(ctx context.Context) error
}

// Config configures a Follower.
type Config struct {
	Store store.Configuration
	Log   *slog.Logger
	// Clock measures the age of confirmations. It runs in real time, as the other nodes do. Defaults to clock.Real.
	Clock clock.Clock
}

// A Follower knows the config version that this node has applied.
type Follower struct {
	cfg         Config
	subscribers []Subscriber

	applied   atomic.Int64
	seen      atomic.Int64 // version of the store when it was last read
	confirmed atomic.Int64 // steady time before the last moment at which applied was the store's version

	base  context.Context
	close context.CancelFunc

	mu      sync.Mutex
	current *pass // under way
	next    *pass // begins when the current one has ended
	closed  bool
	passes  sync.WaitGroup
}

// A pass is one reading of the changes. Callers that arrive while it is under way share the next one: it has read the store
// before they came.
type pass struct {
	done chan struct{}
	err  error
}

// Follow reads the version from which the follower starts. Subscribers must load their rows afterwards, and subscribe before
// Run. It returns nil if the store has no versions.
func Follow(ctx context.Context, cfg Config) (*Follower, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.Real{}
	}
	f := &Follower{cfg: cfg}
	at := cfg.Clock.Steady()
	version, err := cfg.Store.ConfigVersion(ctx)
	if err != nil || version == 0 {
		return nil, err
	}
	f.applied.Store(version)
	f.seen.Store(version)
	f.confirmed.Store(int64(at))
	f.base, f.close = context.WithCancel(context.Background())
	return f, nil
}

// Subscribe adds a subscriber.
func (f *Follower) Subscribe(s Subscriber) { f.subscribers = append(f.subscribers, s) }

// Version returns the version that this node has applied. Memory that is read afterwards includes all changes up to it.
func (f *Follower) Version() int64 { return f.applied.Load() }

// Confirmed says that the store had this version after the given steady time.
func (f *Follower) Confirmed(version int64, at time.Duration) {
	if version != f.applied.Load() {
		return
	}
	for {
		old := f.confirmed.Load()
		if int64(at) <= old || f.confirmed.CompareAndSwap(old, int64(at)) {
			return
		}
	}
}

// Fresh returns once the node has applied every change that was committed more than Bound ago.
func (f *Follower) Fresh(ctx context.Context) error {
	if f.age() < Bound {
		return nil
	}
	return f.CatchUp(ctx)
}

// Reach returns once the node has applied at least the given version, which a read of the store returned.
func (f *Follower) Reach(ctx context.Context, version int64) error {
	if version <= f.applied.Load() {
		return nil
	}
	return f.CatchUp(ctx)
}

func (f *Follower) age() time.Duration {
	return f.cfg.Clock.Steady() - time.Duration(f.confirmed.Load())
}

// CatchUp returns once the node has applied every change that was committed before the call.
func (f *Follower) CatchUp(ctx context.Context) error {
	p := f.join()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns a pass that has not begun to read yet.
func (f *Follower) join() *pass {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		return f.next
	}
	p := &pass{done: make(chan struct{})}
	switch {
	case f.closed:
		p.err = ErrClosed
		close(p.done)
	case f.current != nil:
		f.next = p
	default:
		f.current = p
		f.passes.Go(f.work)
	}
	return p
}

// work makes passes until none is wanted.
func (f *Follower) work() {
	for {
		f.mu.Lock()
		p := f.current
		f.mu.Unlock()
		p.err = f.apply()
		close(p.done)
		f.mu.Lock()
		f.current, f.next = f.next, nil
		more := f.current != nil
		f.mu.Unlock()
		if !more {
			return
		}
	}
}

// apply reads the changes since the applied version and tells the subscribers.
func (f *Follower) apply() error {
	ctx, cancel := context.WithTimeout(f.base, timeout)
	defer cancel()
	from, at := f.applied.Load(), f.cfg.Clock.Steady()
	changes, err := f.cfg.Store.ConfigChanges(ctx, from)
	if err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	f.seen.Store(changes.Version)
	if changes.Unknown {
		ctx, cancel = context.WithTimeout(f.base, reloadTimeout)
		defer cancel()
		f.cfg.Log.Warn("changes of the configuration are not known, all of it is read again", "version", changes.Version, "applied", from)
	}
	for _, s := range f.subscribers {
		switch {
		case changes.Unknown:
			err = s.Lost(ctx)
		case len(changes.List) > 0:
			err = s.Changed(ctx, changes.List)
		}
		if err != nil {
			return fmt.Errorf("apply changes: %w", err)
		}
	}
	f.applied.Store(changes.Version)
	f.Confirmed(changes.Version, at)
	return nil
}

// Run looks for changes until ctx ends, whether requests come or not.
func (f *Follower) Run(ctx context.Context) {
	failing := false
	for clock.Wait(ctx, f.cfg.Clock, interval) {
		if f.age() < interval {
			continue // a group commit has confirmed the version
		}
		err := f.CatchUp(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && !failing:
			f.cfg.Log.Warn("changes of other nodes could not be read; it is tried again", "error", err)
		case err == nil && failing:
			f.cfg.Log.Info("changes of other nodes are read again")
		}
		failing = err != nil
	}
}

// Close ends the pass that is under way and waits for it.
func (f *Follower) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.close()
	f.passes.Wait()
}

// Staleness says how far this node may be behind.
type Staleness struct {
	Age    time.Duration // since the last confirmation of the version
	Behind int64         // versions that were seen and are not applied yet
}

// Staleness returns the current figures.
func (f *Follower) Staleness() Staleness {
	return Staleness{Age: f.age(), Behind: max(store.ConfigDistance(f.applied.Load(), f.seen.Load()), 0)}
}
