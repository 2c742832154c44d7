package shard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// drainLimit is how long a shard may take to drain while the node goes on. Meanwhile its endpoints get nothing new, so a
	// request that hangs must not block them: the node keeps the shard and gives up another one.
	drainLimit = 3 * time.Second
	// refusal is how long a shard that did not drain in time is not given up again.
	refusal = time.Minute
)

// keepMoving moves shards until ctx ends.
func (k *Keeper) keepMoving(ctx context.Context) {
	for k.pause(ctx, k.interval(), k.move) {
		k.moves(ctx)
	}
}

// rest makes the keeper wait for a while before it takes or releases leases again, because the store refused. Each attempt locks
// out the commits of all nodes while it waits for its turn: without pauses, attempts that time out behind one long commit
// would stop the others.
func (k *Keeper) rest() { k.resting = k.cfg.Clock.Steady() + k.interval() }

// moves takes every step that is due.
func (k *Keeper) moves(ctx context.Context) {
	if k.cfg.Clock.Steady() < k.resting {
		k.prepare(ctx)
		return
	}
	k.release(ctx)
	switch surplus := k.plan(); {
	case surplus < 0 && k.resume(-surplus) == 0:
		k.take(ctx, -surplus)
	case surplus > 0:
		k.yield(surplus)
		k.release(ctx)
	}
	k.prepare(ctx)
}

// plan returns how many shards to give up, or, negative, to take.
func (k *Keeper) plan() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.cluster == nil:
		return 0
	case k.leaving:
		return k.count(preparing, serving)
	}
	surplus := k.count(preparing, serving) - share(k.cluster.Members, k.cfg.Node.Owner())
	if surplus >= 0 {
		return surplus
	}
	if n := k.count(yielding); n > 0 {
		return surplus // it wants some of these back
	}
	if k.acted == k.cluster {
		return 0 // other nodes took what was free; the next beat tells what is free now
	}
	available := 0
	for _, l := range k.cluster.Leases {
		if l.Free && k.held[l.Shard].standing == foreign {
			available++
		}
	}
	return max(surplus, -available)
}

// resume goes on with up to n shards that the node was giving up; it returns how many there were.
func (k *Keeper) resume(n int) (resumed int) {
	k.mu.Lock()
	for shard := range k.held {
		if h := k.held[shard]; h.standing == yielding && resumed < n {
			k.set(shard, holding{standing: serving, lease: h.lease, clean: h.clean})
			resumed++
		}
	}
	k.mu.Unlock()
	if resumed > 0 {
		k.owner.WakeAll()
	}
	return resumed
}

// change brackets a change of leases by this node; see apply.
func (k *Keeper) change(fn func() error) error {
	count := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.changes++
	}
	count()
	defer count()
	return fn()
}

// take takes free shards.
func (k *Keeper) take(ctx context.Context, n int) {
	limited, cancel := context.WithTimeout(ctx, k.callTimeout())
	defer cancel()
	sent := k.cfg.Clock.Steady()
	var taken []godwit.Lease
	k.mu.Lock()
	k.acted = k.cluster
	k.mu.Unlock()
	err := k.change(func() (err error) {
		taken, err = k.cfg.Store.Take(limited, k.cfg.Node, k.cfg.TTL, n)
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, l := range taken {
			k.set(l.Shard, holding{standing: preparing, lease: l, clean: l.Clean})
		}
		// Take extends all leases, but does not tell which of them another node took after they had expired: a beat does.
		if err == nil && k.until.Load() > int64(sent) {
			k.until.Store(max(k.until.Load(), int64(sent+k.cfg.TTL)))
		}
		return err
	})
	if ctx.Err() == nil {
		k.taking.note(k.cfg.Log, "shards not taken", "shards can be taken again", err)
	}
	switch {
	case err != nil:
		k.rest()
		k.Look() // the shards may have been taken nevertheless
	case len(taken) > 0:
		k.cfg.Log.Info("shards taken", "shards", shardsOf(taken))
		k.cfg.Recorder.Moved(MoveTaken, len(taken))
	}
}

func shardsOf(leases []godwit.Lease) (shards []int) {
	for _, l := range leases {
		shards = append(shards, l.Shard)
	}
	slices.Sort(shards)
	return shards
}

// prepare lets the node deliver for shards that it has taken.
func (k *Keeper) prepare(ctx context.Context) {
	shards := k.in(preparing)
	if len(shards) == 0 {
		return
	}
	var stale []int
	k.mu.Lock()
	for _, shard := range shards {
		if k.loaded[shard]+1 != k.held[shard].lease.Epoch {
			stale = append(stale, shard)
		}
	}
	k.mu.Unlock()
	if len(stale) > 0 {
		err := k.owner.Relearn(ctx, stale)
		if ctx.Err() == nil {
			k.reading.note(k.cfg.Log, "endpoints of taken shards not read", "endpoints of taken shards read", err)
		}
		if err != nil {
			return
		}
	}
	k.owner.Inherit(k.former(shards))
	var ready []int
	var waits []time.Duration
	k.mu.Lock()
	for _, shard := range shards {
		h := k.held[shard]
		if h.standing != preparing {
			continue // lost meanwhile
		}
		k.loaded[shard] = -1
		k.set(shard, holding{standing: serving, lease: h.lease, clean: h.clean})
		ready = append(ready, shard)
		if took, known := k.handedOver(&h); known {
			waits = append(waits, took)
		}
	}
	k.mu.Unlock()
	for _, took := range waits {
		k.cfg.Recorder.HandedOver(took)
	}
	k.owner.Gained(ctx, ready)
	k.owner.WakeAll()
	poke(k.dirty)
}

// former tells of the processes that had shards before. If the store does not know when one of them ended, it may have been now.
func (k *Keeper) former(shards []int) (list []Former) {
	now := k.cfg.Clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, shard := range shards {
		l := &k.held[shard].lease
		if l.Epoch <= 1 {
			continue // no process had it before
		}
		f := Former{Shard: shard, Until: now}
		if !l.FreeSince.IsZero() && !l.FreeSince.After(now) {
			f.Until, f.Recorded = l.FreeSince, l.Clean
		}
		list = append(list, f)
	}
	return list
}

// keepClean releases the claims of former owners until ctx ends. The node delivers what is not claimed meanwhile.
func (k *Keeper) keepClean(ctx context.Context) {
	for k.pause(ctx, k.interval(), k.dirty) {
		k.mu.Lock()
		var unclean []godwit.Lease
		for shard := range k.held {
			if h := &k.held[shard]; h.standing == serving && !h.clean {
				unclean = append(unclean, h.lease)
			}
		}
		k.mu.Unlock()
		if len(unclean) == 0 {
			continue
		}
		err := k.cfg.Store.ReleaseClaims(ctx, unclean)
		if ctx.Err() == nil {
			k.cleaning.note(k.cfg.Log, "claims of former owners not released", "claims of former owners released", err)
		}
		if err != nil {
			continue
		}
		k.mu.Lock()
		for _, l := range unclean {
			if h := &k.held[l.Shard]; h.lease.Epoch == l.Epoch {
				h.clean = true
			}
		}
		k.mu.Unlock()
		k.owner.Gained(ctx, shardsOf(unclean))
	}
}

// yield begins to give up n shards: those with the fewest requests in flight, since they drain first.
func (k *Keeper) yield(n int) {
	busy := k.owner.InFlight()
	now := k.cfg.Clock.Steady()
	k.mu.Lock()
	var shards []int
	for shard := range k.held {
		if h := &k.held[shard]; (h.standing == serving || k.leaving && h.standing == preparing) && (k.leaving || k.refused[shard] <= now) {
			shards = append(shards, shard)
		}
	}
	slices.SortStableFunc(shards, func(a, b int) int { return busy[a] - busy[b] })
	shards = shards[:min(n, len(shards))]
	for _, shard := range shards {
		h := k.held[shard]
		k.set(shard, holding{standing: yielding, lease: h.lease, clean: h.clean})
	}
	k.mu.Unlock()
	if len(shards) > 0 {
		k.owner.Yield(shards)
	}
}

// release releases the shards that have drained. It keeps those that take too long, unless the node is leaving.
func (k *Keeper) release(ctx context.Context) {
	var drained []godwit.Lease
	var kept []int
	clean := true
	for _, shard := range k.in(yielding) {
		done, tidy := k.owner.Drained(shard)
		k.mu.Lock()
		switch h := k.held[shard]; {
		case h.standing != yielding:
		case done:
			drained = append(drained, h.lease)
			clean = clean && tidy && h.clean
		case !k.leaving && k.cfg.Clock.Steady()-h.since > drainLimit:
			k.set(shard, holding{standing: serving, lease: h.lease, clean: h.clean})
			k.refused[shard] = k.cfg.Clock.Steady() + refusal
			kept = append(kept, shard)
		}
		k.mu.Unlock()
	}
	if len(kept) > 0 {
		k.cfg.Log.Info("shards kept: their requests take too long to give them up now", "shards", kept)
		k.owner.WakeAll()
	}
	if len(drained) > 0 {
		k.give(ctx, drained, clean)
	}
}

// give releases leases.
func (k *Keeper) give(ctx context.Context, leases []godwit.Lease, clean bool) {
	limited, cancel := context.WithTimeout(ctx, k.callTimeout())
	defer cancel()
	err := k.change(func() error {
		err := k.cfg.Store.Release(limited, leases, clean)
		if err != nil {
			return err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, l := range leases {
			if k.held[l.Shard].lease.Epoch == l.Epoch {
				k.set(l.Shard, holding{})
			}
		}
		return nil
	})
	if ctx.Err() == nil {
		k.giving.note(k.cfg.Log, "shards not released", "shards can be released again", err)
	}
	if err != nil {
		k.rest()
		k.Look()
		return
	}
	k.cfg.Log.Info("shards given up", "shards", shardsOf(leases))
	k.cfg.Recorder.Moved(MoveGivenUp, len(leases))
	k.tell()
}

// Stopping announces that the node is about to leave. It keeps its shards until Leave.
func (k *Keeper) Stopping() {
	k.mu.Lock()
	k.stopping = true
	k.mu.Unlock()
	poke(k.wake)
}

// state returns what the node says of itself. Called with the keeper locked.
func (k *Keeper) state() godwit.NodeState {
	switch {
	case k.leaving:
		return godwit.NodeLeaving
	case k.stopping:
		return godwit.NodeStopping
	}
	return godwit.NodeRunning
}

// Leave announces that the node stops. It starts nothing new; the keeper gives up the shards as they drain.
func (k *Keeper) Leave() {
	k.mu.Lock()
	k.leaving = true
	var shards []int
	for shard := range k.held {
		if h := k.held[shard]; h.standing == serving || h.standing == preparing {
			k.set(shard, holding{standing: yielding, lease: h.lease, clean: h.clean})
			shards = append(shards, shard)
		}
	}
	k.mu.Unlock()
	k.owner.Yield(shards)
	poke(k.wake)
	poke(k.move)
}

// Release gives up the shards that are left after Keep has ended, so that another node need not wait for the leases to expire.
func (k *Keeper) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), k.callTimeout())
	defer cancel()
	var left []godwit.Lease
	clean := true
	k.mu.Lock()
	for shard := range k.held {
		if h := k.held[shard]; h.standing != foreign {
			drained, tidy := k.owner.Drained(shard)
			clean = clean && h.clean && drained && tidy
			left = append(left, h.lease)
			k.set(shard, holding{})
		}
	}
	k.mu.Unlock()
	// The other nodes must know that this one is leaving, or they would leave it its share until it is silent for too long.
	load := k.owner.Busy()
	if _, err := k.cfg.Store.Beat(ctx, store.Beat{Node: k.cfg.Node, TTL: k.cfg.TTL, State: godwit.NodeLeaving, Load: load}); err != nil {
		k.cfg.Log.Warn("leaving not announced", "error", err)
	}
	err := k.cfg.Store.Release(ctx, left, clean)
	if err != nil { // an idle connection may have died unnoticed; the store has more
		err = k.cfg.Store.Release(ctx, left, clean)
	}
	if err != nil {
		return fmt.Errorf("release shards: %w", err)
	}
	k.cfg.Recorder.Moved(MoveGivenUp, len(left))
	k.tell()
	return nil
}
