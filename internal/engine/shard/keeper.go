// Package shard says which shards this node may deliver for, and under which epoch.
//
//	Acquire ─► owned under an epoch ─► renewed by Keep ─┬─► Release
//	                                                    └─► lost to another node ─► acquired anew under a later epoch
//
// Endpoints hash onto godwit.Shards shards. Only the node that holds a shard's lease claims deliveries of its endpoints and
// records their results. Every claim and result carries the lease's epoch, and the store refuses those of an older one. The
// Owner interface hides the deliveries, so that only this package handles the hand-over between nodes.
package shard

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// callTimeout bounds a call about leases. During a hanging call the leases could expire unnoticed.
const callTimeout = 10 * time.Second

// An Owner runs the endpoints of the shards that the node holds.
type Owner interface {
	// Relearn reads all endpoints again before the node uses shards of another node: that node got changes and outcomes that
	// this one does not know.
	Relearn(ctx context.Context) error
	// Gained takes up the waiting deliveries in shards that are new or have a new epoch.
	Gained(ctx context.Context, shards []int)
	// DropForeign forgets deliveries claimed under an epoch that is not the shard's.
	DropForeign()
	// WakeAll makes every endpoint check whether it may be sent to.
	WakeAll()
}

// Config configures a keeper.
type Config struct {
	Store store.Leases
	Clock clock.Clock
	Log   *slog.Logger
	Node  string
	TTL   time.Duration // lifetime of a lease without renewal
}

// A Keeper holds the leases of this node.
type Keeper struct {
	cfg     Config
	standby chan struct{}
	holder  string // processes that hold the shards; set before standby is closed

	mu    sync.RWMutex
	epoch [godwit.Shards]int64 // 0: not ours
	until time.Time            // expiry of all leases; they are renewed together
	held  []godwit.Lease
}

// NewKeeper makes a keeper without leases.
func NewKeeper(cfg Config) *Keeper { return &Keeper{cfg: cfg, standby: make(chan struct{})} }

// Standby is closed when Acquire finds all shards held by another node.
func (k *Keeper) Standby() <-chan struct{} { return k.standby }

// Holder describes the node that this one waits for. It may be called once Standby is closed.
func (k *Keeper) Holder() string { return k.holder }

// EpochAt returns the epoch under which this node may deliver for the shard at now, or 0.
func (k *Keeper) EpochAt(shard int, now time.Time) int64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !now.Before(k.until) {
		return 0
	}
	return k.epoch[shard]
}

// Owned returns the epoch under which this node owns the shard, or 0. An expired lease stays owned until another node takes
// it, and so do the claims under it.
func (k *Keeper) Owned(shard int) int64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.epoch[shard]
}

// Valid reports whether this node may deliver for any shard at now.
func (k *Keeper) Valid(now time.Time) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.held) > 0 && now.Before(k.until)
}

// Shards lists the shards held.
func (k *Keeper) Shards() []int {
	var shards []int
	for _, lease := range k.current() {
		shards = append(shards, lease.Shard)
	}
	return shards
}

func (k *Keeper) current() []godwit.Lease {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.held
}

// gained lists the shards of held that are new or have a new epoch.
func (k *Keeper) gained(held []godwit.Lease) (shards []int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, lease := range held {
		if k.epoch[lease.Shard] != lease.Epoch {
			shards = append(shards, lease.Shard)
		}
	}
	return shards
}

// Set replaces the leases. It reports whether the old ones had expired by then: lanes that asked meanwhile were refused, and
// must be woken.
func (k *Keeper) Set(held []godwit.Lease, until time.Time) (lapsed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lapsed = !k.cfg.Clock.Now().Before(k.until)
	k.epoch = [godwit.Shards]int64{}
	for _, lease := range held {
		k.epoch[lease.Shard] = lease.Epoch
	}
	k.held, k.until = held, until
	return lapsed
}

// Acquire takes the shards at start. It waits until other nodes' leases expire, or ctx ends.
func (k *Keeper) Acquire(ctx context.Context, owner Owner) error {
	for waited := false; ; waited = true {
		now := k.cfg.Clock.Now()
		held, err := k.cfg.Store.Acquire(ctx, k.cfg.Node, now, k.cfg.TTL, godwit.Shards)
		if err == nil && len(held) > 0 {
			gained := k.gained(held)
			if waited {
				err = owner.Relearn(ctx)
			}
			if err == nil {
				k.Set(held, now.Add(k.cfg.TTL))
				owner.Gained(ctx, gained)
				return nil
			}
		}
		switch {
		case err != nil && (!waited || ctx.Err() != nil || !store.Passing(err)):
			return fmt.Errorf("acquire shards: %w", err)
		case err != nil:
			k.cfg.Log.Error("acquire shards", "error", err)
		case !waited:
			k.holder = k.findHolder(ctx)
			k.cfg.Log.Warn("waiting: another node delivers from this store; this node takes over when that one stops or is silent",
				"node", k.cfg.Node, "holder", k.holder, "silent_for", k.cfg.TTL)
			close(k.standby)
		}
		if !clock.Wait(ctx, k.cfg.Clock, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// findHolder describes the processes that hold the shards.
func (k *Keeper) findHolder(ctx context.Context) string {
	nodes, err := k.cfg.Store.Holders(ctx)
	if err != nil || len(nodes) == 0 { // a message without the name is better than no message
		return "another node"
	}
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].String()
	}
	return strings.Join(names, ", ")
}

// Keep renews the leases until ctx ends; a node that lost all of them acquires shards again.
func (k *Keeper) Keep(ctx context.Context, owner Owner) {
	for clock.Wait(ctx, k.cfg.Clock, k.cfg.TTL/3) {
		if err := k.renew(ctx, owner); err != nil && ctx.Err() == nil {
			k.cfg.Log.Error("renew leases", "error", err)
		}
	}
}

func (k *Keeper) renew(ctx context.Context, owner Owner) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now := k.cfg.Clock.Now()
	held, err := k.cfg.Store.Renew(limited, k.current(), now, k.cfg.TTL)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		// Only when all are lost: Acquire starts a new epoch for shards this node already owns, which would fence its own
		// results.
		held, err = k.cfg.Store.Acquire(limited, k.cfg.Node, now, k.cfg.TTL, godwit.Shards)
		if err == nil && len(held) > 0 {
			err = owner.Relearn(ctx)
		}
		if err != nil {
			held = nil
		}
	}
	if lost := len(k.current()) - len(held); lost > 0 {
		k.cfg.Log.Warn("lost shards to another node", "shards", lost)
	}
	gained := k.gained(held)
	lapsed := k.Set(held, now.Add(k.cfg.TTL))
	owner.DropForeign()
	owner.Gained(ctx, gained)
	if lapsed || len(gained) > 0 {
		owner.WakeAll()
	}
	return err
}

// Release gives up all shards, so that another node need not wait for the leases to run out.
func (k *Keeper) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout/2)
	defer cancel()
	if err := k.cfg.Store.Release(ctx, k.current(), k.cfg.Clock.Now()); err != nil {
		return fmt.Errorf("release shards: %w", err)
	}
	k.Set(nil, time.Time{})
	return nil
}
