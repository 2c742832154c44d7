// Package shard says which shards this node may deliver for, and under which epoch.
//
//	free ──Take──► preparing ──Relearn──► serving ──too many, or the node stops──► yielding ──drained──► Release ──► free
//	                                         │
//	                                         └── another node took it while this one was silent ──► lost
//
// Endpoints hash onto godwit.Shards shards. Only the node that holds a shard's lease claims deliveries of its endpoints and
// records their results. Every claim and result carries the lease's epoch, and the store refuses those of an older one. The
// Owner interface hides the deliveries, so that only this package handles the hand-over between nodes.
//
// Three goroutines share the work. Beats extend the leases and read who has which shard; nothing else can hold them up. Moves take
// shards and give them up. Cleaning releases what former owners had claimed, which may take long.
package shard

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An Owner runs the endpoints of the shards that the node holds.
type Owner interface {
	// Relearn reads the endpoints of shards again before the node delivers for them: another node recorded outcomes that this
	// one does not know.
	Relearn(ctx context.Context, shards []int) error
	// Inherit is called before the node delivers for shards that other processes had.
	Inherit(former []Former)
	// Gained takes up the waiting deliveries in shards that the node delivers for from now on.
	Gained(ctx context.Context, shards []int)
	// DropForeign forgets deliveries claimed under an epoch that is not the shard's.
	DropForeign()
	// WakeAll makes every endpoint check whether it may be sent to.
	WakeAll()
	// Yield returns the queued deliveries of shards to the store. Requests in flight go on.
	Yield(shards []int)
	// Drained reports whether the owner holds no delivery of the shard and is claiming none. clean says that the store cannot
	// hold claims either.
	Drained(shard int) (drained, clean bool)
	// InFlight counts the requests in flight, by shard.
	InFlight() [godwit.Shards]int
	// Busy tells how much the node has to do. The keeper adds the number of shards.
	Busy() godwit.NodeLoad
}

// Former is the process that had a shard before.
type Former struct {
	Shard int
	Until time.Time // it began no request later
	// Recorded says that the results of all its requests are stored.
	Recorded bool
}

// Config configures a keeper.
type Config struct {
	Store store.Leases
	Clock clock.Clock
	Log   *slog.Logger
	Node  godwit.Node
	TTL   time.Duration // lifetime of a lease without a beat
	// Tell tells other nodes to look at nodes and leases. It must not block. May be nil.
	Tell func()
	// Synced is called with the store's time after each beat, and the steady time before and after. May be nil.
	Synced func(at time.Time, before, after time.Duration)
	// Recorder measures changes of ownership. Defaults to nothing.
	Recorder Recorder
}

// standing is how far a shard's change of owner has come.
type standing uint8

const (
	foreign   standing = iota
	preparing          // its lease is ours, but not its endpoints' state
	serving
	yielding // it starts nothing, and is released when it is drained
)

type holding struct {
	standing
	lease godwit.Lease
	since time.Duration // of its standing, on the steady clock
	clean bool          // no claims of former owners are left
}

// A Keeper holds the leases of this node.
type Keeper struct {
	cfg   Config
	owner Owner

	// Read on the hot path.
	serves [godwit.Shards]atomic.Int64 // the epoch of a shard that this node serves; otherwise 0
	owns   [godwit.Shards]atomic.Int64 // the epoch of a shard whose lease this node has; otherwise 0
	until  atomic.Int64                // expiry of all leases, on the steady clock

	wake  chan struct{} // beat now
	move  chan struct{} // move now
	dirty chan struct{} // clean now

	mu      sync.Mutex
	held    [godwit.Shards]holding
	loaded  [godwit.Shards]int64 // epochs under which shards were free when the endpoints were loaded; -1: not free
	cluster *godwit.Cluster      // as of the last beat

	clusterAt time.Duration // when that was, on the steady clock
	began     time.Time     // time of the first beat, by the store's clock

	acted    *godwit.Cluster // by which shards were last taken
	changes  int             // counts begun and ended changes of leases by this node
	leaving  bool
	stopping bool                         // it will leave soon
	members  string                       // for the log
	refused  [godwit.Shards]time.Duration // until when a shard that did not drain in time is not given up again

	taking, reading, giving trouble       // of the goroutine that moves shards
	resting                 time.Duration // until when that goroutine takes and releases nothing, on the steady clock
	cleaning                trouble
}

// NewKeeper makes a keeper without leases.
func NewKeeper(cfg Config) *Keeper {
	if cfg.Recorder == nil {
		cfg.Recorder = silent{}
	}
	k := &Keeper{cfg: cfg, wake: make(chan struct{}, 1), move: make(chan struct{}, 1), dirty: make(chan struct{}, 1)}
	for i := range k.loaded {
		k.loaded[i] = -1
	}
	return k
}

// Epoch returns the epoch under which this node may deliver for the shard now, or 0.
func (k *Keeper) Epoch(shard int) int64 {
	epoch := k.serves[shard].Load()
	if epoch == 0 || !k.Valid() {
		return 0
	}
	return epoch
}

// Valid reports whether the node's leases have not expired.
func (k *Keeper) Valid() bool { return int64(k.cfg.Clock.Steady()) < k.until.Load() }

// Owned returns the epoch under which this node owns the shard, or 0. An expired lease stays owned until another node takes
// it, and so do the claims under it.
func (k *Keeper) Owned(shard int) int64 { return k.owns[shard].Load() }

// Serves reports whether this node may deliver for the shard apart from the expiry of its lease.
func (k *Keeper) Serves(shard int) bool { return k.serves[shard].Load() != 0 }

// Shards lists the shards that the node serves.
func (k *Keeper) Shards() []int {
	var shards []int
	for shard := range k.serves {
		if k.serves[shard].Load() != 0 {
			shards = append(shards, shard)
		}
	}
	return shards
}

// Cluster returns the nodes and leases as of the last beat, or nil.
func (k *Keeper) Cluster() *godwit.Cluster {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cluster
}

// Alone reports whether no other node was alive at the last beat.
func (k *Keeper) Alone() bool { return k.Alive() <= 1 }

// Alive counts the nodes that were alive at the last beat.
func (k *Keeper) Alive() (alive int) {
	if c := k.Cluster(); c != nil {
		for i := range c.Members {
			if c.Members[i].Alive {
				alive++
			}
		}
	}
	return alive
}

// Look makes the keeper read the leases now: another node has given some up, or a node has come or gone.
func (k *Keeper) Look() { poke(k.wake) }

// Drained tells the keeper that a shard that it gives up may have drained.
func (k *Keeper) Drained() { poke(k.move) }

func (k *Keeper) tell() {
	if k.cfg.Tell != nil {
		k.cfg.Tell()
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Serve makes the keeper serve these leases until the given steady time, for tests of the lanes.
func (k *Keeper) Serve(held []godwit.Lease, until time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range held {
		k.set(l.Shard, holding{standing: serving, lease: l})
	}
	k.until.Store(int64(until))
}

// set changes the standing of a shard. Called with the keeper locked.
func (k *Keeper) set(shard int, h holding) {
	h.since = k.cfg.Clock.Steady()
	k.held[shard] = h
	owns, serves := h.lease.Epoch, h.lease.Epoch
	if h.standing == foreign {
		owns = 0
	}
	if h.standing != serving {
		serves = 0
	}
	k.owns[shard].Store(owns)
	k.serves[shard].Store(serves)
}

// in lists the shards with a standing.
func (k *Keeper) in(s standing) (shards []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for shard := range k.held {
		if k.held[shard].standing == s {
			shards = append(shards, shard)
		}
	}
	return shards
}

// count returns how many shards have one of the standings. Called with the keeper locked.
func (k *Keeper) count(of ...standing) (n int) {
	for shard := range k.held {
		for _, s := range of {
			if k.held[shard].standing == s {
				n++
			}
		}
	}
	return n
}
