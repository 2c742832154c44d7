package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// leases is what this node owns.
type leases struct {
	mu    sync.RWMutex
	epoch [godwit.Shards]int64 // 0: not ours
	until time.Time            // of all; they are renewed together
	held  []godwit.Lease
}

// epochOf returns the epoch under which the shard is ours at now, or 0.
func (l *leases) epochOf(shard int, now time.Time) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !now.Before(l.until) {
		return 0
	}
	return l.epoch[shard]
}

func (l *leases) valid(now time.Time) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.held) > 0 && now.Before(l.until)
}

func (l *leases) count() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.held)
}

func (l *leases) current() []godwit.Lease {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.held
}

// owned returns the epoch under which the shard is ours, be the lease run out or not, or 0.
func (l *leases) owned(shard int) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.epoch[shard]
}

// gained lists the shards that would be new or have a new epoch.
func (l *leases) gained(held []godwit.Lease) (shards []int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, lease := range held {
		if l.epoch[lease.Shard] != lease.Epoch {
			shards = append(shards, lease.Shard)
		}
	}
	return shards
}

// set replaces what is held. It reports whether the old leases had run out by then: whoever asked in that time was told
// that nothing is ours, and has to be woken.
func (l *leases) set(held []godwit.Lease, until time.Time, c clock.Clock) (lapsed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lapsed = !c.Now().Before(l.until)
	l.epoch = [godwit.Shards]int64{}
	for _, lease := range held {
		l.epoch[lease.Shard] = lease.Epoch
	}
	l.held, l.until = held, until
	return lapsed
}

// acquire takes the shards at start. It waits for another holder's lease to run out, as long as ctx lasts.
func (e *Engine) acquire(ctx context.Context) error {
	for waited := false; ; waited = true {
		now := e.clock.Now()
		held, err := e.store.Acquire(ctx, e.cfg.Node, now, e.cfg.LeaseTTL, godwit.Shards)
		if err == nil && len(held) > 0 {
			gained := e.leases.gained(held)
			if waited {
				err = e.relearn(ctx)
			}
			if err == nil {
				e.leases.set(held, now.Add(e.cfg.LeaseTTL), e.clock)
				e.learnDue(ctx, gained)
				return nil
			}
		}
		switch {
		case err != nil && (!waited || ctx.Err() != nil || !passing(err)):
			return fmt.Errorf("acquire shards: %w", err)
		case err != nil:
			e.log.Error("acquire shards", "error", err)
		case !waited:
			e.log.Warn("waiting: another node delivers from this store; this node takes over when that one stops or is silent",
				"node", e.cfg.Node, "silent_for", e.cfg.LeaseTTL)
			close(e.standby)
		}
		if !wait(ctx, e.clock, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// leaseTimeout bounds a call about leases. One that hangs would let them run out unnoticed.
const leaseTimeout = 10 * time.Second

// keepLeases renews what is held; a node that lost everything starts anew.
func (e *Engine) keepLeases(ctx context.Context) {
	for wait(ctx, e.clock, e.cfg.LeaseTTL/3) {
		if err := e.renew(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("renew leases", "error", err)
		}
	}
}

func (e *Engine) renew(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	now := e.clock.Now()
	held, err := e.store.Renew(limited, e.leases.current(), now, e.cfg.LeaseTTL)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		// Only then: Acquire starts a new epoch on what is ours already, which would fence our own results.
		held, err = e.store.Acquire(limited, e.cfg.Node, now, e.cfg.LeaseTTL, godwit.Shards)
		if err == nil && len(held) > 0 {
			err = e.relearn(ctx)
		}
		if err != nil {
			held = nil
		}
	}
	if lost := len(e.leases.current()) - len(held); lost > 0 {
		e.log.Warn("lost shards to another node", "shards", lost)
	}
	gained := e.leases.gained(held)
	lapsed := e.leases.set(held, now.Add(e.cfg.LeaseTTL), e.clock)
	e.dropForeign()
	e.learnDue(ctx, gained)
	if lapsed || len(gained) > 0 {
		e.wakeAll()
	}
	return err
}

// relearn loads all endpoints anew. While the shards were another node's, that one was told of changes and saw the outcomes:
// what this node remembers is old, and an endpoint it does not know would get none of the events posted here.
func (e *Engine) relearn(ctx context.Context) error {
	known := map[godwit.EndpointID]bool{}
	var lanes []*lane
	err := e.store.LoadEndpoints(ctx, func(loaded *store.LoadedEndpoint) error {
		l := e.index.lane(loaded.Endpoint.ID)
		if l == nil {
			l = e.newLane(loaded)
		} else {
			l.reload(loaded)
			l.inherit(&loaded.Health)
		}
		known[l.id] = true
		lanes = append(lanes, l)
		return nil
	})
	if err != nil {
		return fmt.Errorf("load endpoints anew: %w", err)
	}
	e.recall(lanes)
	e.index.put(lanes...)
	var gone []godwit.EndpointID
	e.index.each(func(l *lane) {
		if !known[l.id] {
			gone = append(gone, l.id)
		}
	})
	for _, id := range gone {
		if err := e.Changed(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// inherit takes over what another node has learnt about the endpoint.
func (l *lane) inherit(h *godwit.Health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health = *h
	l.health.EndpointID = l.id
}

// learnDue asks the store which endpoints of the shards have work waiting.
func (e *Engine) learnDue(ctx context.Context, shards []int) {
	if len(shards) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	due, err := e.store.EndpointsDue(limited, shards)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("list endpoints with due work", "error", err)
		}
		return
	}
	for _, d := range due {
		if ctx.Err() != nil {
			return
		}
		if e.index.lane(d.EndpointID) == nil {
			// It was created by another process.
			if err := e.Changed(ctx, d.EndpointID); err != nil {
				e.log.Error("load endpoint with due work", "endpoint", d.EndpointID.String(), "error", err)
			}
		}
		if l := e.index.lane(d.EndpointID); l != nil {
			l.noteDue(d.NextDue)
		}
	}
}

// pollStore is the net under the hand-over: it finds work that another process put into the store.
func (e *Engine) pollStore(ctx context.Context) {
	for wait(ctx, e.clock, e.cfg.PollInterval) {
		var shards []int
		for _, lease := range e.leases.current() {
			shards = append(shards, lease.Shard)
		}
		e.learnDue(ctx, shards)
		e.readStale(ctx)
	}
}

// dropForeign empties the lanes of shards that are no longer ours: their deliveries belong to another node now.
func (e *Engine) dropForeign() {
	e.index.each(func(l *lane) { l.dropForeign() })
}

func (e *Engine) releaseLeases() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.store.Release(ctx, e.leases.current(), e.clock.Now()); err != nil {
		return fmt.Errorf("release shards: %w", err)
	}
	e.leases.set(nil, time.Time{}, e.clock)
	return nil
}

// wait lets d pass; it reports false when ctx ended first.
func wait(ctx context.Context, c clock.Clock, d time.Duration) bool {
	fired := make(chan struct{})
	timer := c.AfterFunc(d, func() { close(fired) })
	defer timer.Stop()
	select {
	case <-fired:
		return true
	case <-ctx.Done():
		return false
	}
}
