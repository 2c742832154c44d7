package shard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// maxBeat bounds the interval between beats, so that nodes notice each other soon however long their leases last.
const maxBeat = time.Second

func (k *Keeper) interval() time.Duration { return min(k.cfg.TTL/5, maxBeat) }

// untilBeat is how long to wait for the next beat: the interval, or less if the leases of a silent node expire sooner, so that its
// shards are taken the moment they are free. After a failed beat it is the interval: what is known of the others is old then, and a store
// that is away would be asked without a pause.
func (k *Keeper) untilBeat(failing bool) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	wait := k.interval()
	if k.cluster == nil || failing {
		return wait
	}
	for i := range k.cluster.Members {
		if m := &k.cluster.Members[i]; m.Alive && m.Owner() != k.cfg.Node.Owner() {
			// A store may count in whole microseconds, so a beat at the very moment may come too early.
			wait = min(wait, k.clusterAt+m.Left-k.cfg.Clock.Steady()+time.Millisecond)
		}
	}
	return max(wait, time.Millisecond)
}

// callTimeout bounds a call about leases. A connection that hangs must be replaced before the leases expire.
func (k *Keeper) callTimeout() time.Duration {
	return min(max(2*k.cfg.TTL/5, time.Second), 10*time.Second)
}

// Prepare reads the leases before the endpoints are loaded. A shard that is free now and that no other node has had until this
// one takes it needs no second reading of its endpoints.
func (k *Keeper) Prepare(ctx context.Context) error {
	c, err := k.cfg.Store.Cluster(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range c.Leases {
		if l.Free {
			k.loaded[l.Shard] = l.Epoch
		}
	}
	return nil
}

// Start announces the node and takes its share of the free shards. It does not wait for shards of other nodes, and leaves what
// fails to Keep.
func (k *Keeper) Start(ctx context.Context, owner Owner) error {
	k.owner = owner
	if err := k.beat(ctx); err != nil {
		return err
	}
	k.tell()
	k.moves(ctx)
	return nil
}

// Keep keeps the leases and this node's share of the shards until ctx ends. It returns store.ErrFenced if another process has
// the node's name.
func (k *Keeper) Keep(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { k.keepMoving(ctx) })
	others.Go(func() { k.keepClean(ctx) })
	defer others.Wait()
	defer cancel()
	failing := false
	for k.pause(ctx, k.untilBeat(failing), k.wake) {
		err := k.beat(ctx)
		switch {
		case errors.Is(err, store.ErrFenced):
			return err
		case err != nil && ctx.Err() == nil && !failing:
			k.cfg.Log.Warn("leases not extended; it is tried again", "error", err)
		case err == nil && failing:
			k.cfg.Log.Info("leases extended again")
		}
		failing = err != nil
	}
	return nil
}

// pause waits for d or a signal; it reports false if ctx ended first.
func (k *Keeper) pause(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	passed := make(chan struct{})
	defer k.cfg.Clock.AfterFunc(d, func() { close(passed) }).Stop()
	select {
	case <-passed:
	case <-signal:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// beat extends the leases. They are valid from when the statement was sent, which is before the store counts their time.
func (k *Keeper) beat(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, k.callTimeout())
	defer cancel()
	load := k.owner.Busy()
	k.mu.Lock()
	load.Shards = k.count(preparing, serving, yielding)
	state, changes := k.state(), k.changes
	k.mu.Unlock()
	sent := k.cfg.Clock.Steady()
	c, err := k.cfg.Store.Beat(limited, store.Beat{Node: k.cfg.Node, TTL: k.cfg.TTL, State: state, Load: load})
	if err != nil {
		return err
	}
	if k.cfg.Synced != nil {
		k.cfg.Synced(c.Now, sent, k.cfg.Clock.Steady())
	}
	k.apply(c, sent, changes)
	return nil
}

// apply compares the store's leases with the keeper's. changes is the count before the beat: if this node took or released
// leases meanwhile, the answer may be older than what the keeper knows. A newer epoch in the answer is certain even then. It
// matters if the leases had expired: they are valid again from now on, and must not include one that another node took.
func (k *Keeper) apply(c *godwit.Cluster, sent time.Duration, changes int) {
	k.mu.Lock()
	late := k.cfg.Clock.Steady() - time.Duration(k.until.Load())
	lapsed := late >= 0 && k.count(serving) > 0
	var lost, found []int
	current := changes == k.changes && changes%2 == 0
	for _, l := range c.Leases {
		mine := l.Owner == k.cfg.Node.Owner()
		h := &k.held[l.Shard]
		switch {
		case h.standing != foreign && (current && (!mine || l.Epoch != h.lease.Epoch) || late >= 0 && l.Epoch > h.lease.Epoch):
			k.set(l.Shard, holding{})
			lost = append(lost, l.Shard)
		case current && h.standing == foreign && mine: // the answer to Take was lost
			k.set(l.Shard, holding{standing: preparing, lease: l})
			found = append(found, l.Shard)
		}
	}
	k.until.Store(int64(sent + k.cfg.TTL))
	k.cluster, k.clusterAt = c, (sent+k.cfg.Clock.Steady())/2
	if k.began.IsZero() {
		k.began = c.Now
	}
	k.logMembers(c)
	k.mu.Unlock()
	if len(lost) > 0 {
		k.cfg.Log.Warn("shards lost to another node", "shards", lost)
		k.cfg.Recorder.Moved(MoveLost, len(lost))
		k.owner.DropForeign()
	}
	if len(found) > 0 {
		k.cfg.Log.Info("shards taken by a call whose answer was lost", "shards", found)
		k.cfg.Recorder.Moved(MoveTaken, len(found))
	}
	if lapsed {
		k.cfg.Log.Warn("leases extended after they had expired", "late_ms", late.Milliseconds())
		k.owner.WakeAll()
	}
	poke(k.move)
}

// logMembers logs when nodes come or go. Called with the keeper locked.
func (k *Keeper) logMembers(c *godwit.Cluster) {
	var names []string
	for _, m := range c.Members {
		switch {
		case m.Alive && m.Leaves():
			names = append(names, m.Name+" (leaving)")
		case m.Alive:
			names = append(names, m.Name)
		}
	}
	if now := strings.Join(names, ", "); now != k.members {
		if k.members != "" || len(names) > 1 {
			k.cfg.Log.Info("nodes changed", "nodes", now)
		}
		k.members = now
	}
}
