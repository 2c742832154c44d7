package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// broadcastPatience is how long the cursor of another node's broadcast may stand still before this node goes on with it.
	broadcastPatience = 2 * time.Second
	// broadcastPoll is the longest interval between looks in the store while there are other nodes.
	broadcastPoll = 2 * time.Second
	// broadcastRetry is the pause after a round in which no part could be stored.
	broadcastRetry = time.Second
	broadcastPage  = 64
)

// A broadcaster stores the events of broadcasts, which have been acknowledged before, in parts:
//
//	Broadcast ─► store.NewBroadcast in one transaction ─► answer
//	                      │
//	                      └─► run: a part of each broadcast in turn; the last part completes it
//	                           ▲
//	start, poll ─► takeUp: broadcasts that a crash or another node left
//
// One transaction carries a bounded number of events and deliveries, so that a broadcast does not delay other requests. The store's
// cursor prevents that two nodes, or a repeated commit, store an event twice.
type broadcaster struct {
	cfg     *Config
	accept  *acceptor
	commits *commit.Group
	fanouts *fanout.Expander
	alone   func() bool
	owns    func(shard int) bool

	mu   sync.Mutex
	work map[godwit.BroadcastID]*broadcast // that this node works on
	wake chan struct{}                     // has a token when there may be new work

	// The rest is used by run alone.
	looked bool          // the store was asked for broadcasts
	at     time.Duration // when, on the steady clock
	seen   map[godwit.BroadcastID]standing
}

// A broadcast is one that this node works on.
type broadcast struct {
	store.BroadcastWork
	stale bool          // the store must be asked for the cursor
	done  chan struct{} // closed when it is complete, or was found to be
}

// standing is where the cursor of another node's broadcast was seen.
type standing struct {
	done  int
	since time.Duration // on the steady clock
}

// Broadcast accepts a broadcast. When it returns without error, the broadcast is durable, and its tenants will get their events. If the
// request was answered before, it returns the record of that and stores nothing. ErrBroadcasts: the environment has too many open.
func (b *broadcaster) Broadcast(ctx context.Context, n *store.NewBroadcast) (*godwit.IdempotencyRecord, error) {
	if !b.accept.lanes.Running() {
		return nil, ErrStopping
	}
	n.MaxOpen = godwit.MaxOpenBroadcasts
	if n.Record != nil {
		n.Record.ExpiresAt = n.Record.CreatedAt.Add(b.cfg.TimeScale.Real(b.cfg.IdempotencyWindow))
	}
	existing, err := b.cfg.Store.CreateBroadcast(ctx, n)
	if errors.Is(err, store.ErrLimit) {
		return nil, ErrBroadcasts
	}
	if err != nil || existing != nil || !n.Open() {
		return existing, err
	}
	b.cfg.Log.Info("broadcast accepted", "broadcast", n.ID.String(), "type", n.Type, "tenants", n.Tenants, "skipped", n.Skipped)
	b.add(&broadcast{BroadcastWork: store.BroadcastWork{Broadcast: n.Broadcast, Event: n.Event, Work: n.Work}})
	return nil, nil
}

// AwaitBroadcast waits until a broadcast is complete that this node works on, at most until the limit.
func (b *broadcaster) AwaitBroadcast(ctx context.Context, id godwit.BroadcastID, limit time.Duration) {
	b.mu.Lock()
	w := b.work[id]
	b.mu.Unlock()
	if w == nil {
		return
	}
	late := make(chan struct{})
	defer b.cfg.Pace.AfterFunc(limit, func() { close(late) }).Stop()
	select {
	case <-w.done:
	case <-late:
	case <-ctx.Done():
	case <-b.accept.lanes.Base().Done():
	}
}

// Receives returns how many endpoints of a tenant an event would go to. Call CatchUp before.
func (b *broadcaster) Receives(tenant godwit.TenantID, event *godwit.Event) int {
	return len(b.accept.lanes.Match(tenant, event))
}

// CatchUp returns once Receives goes by all changes of endpoints that were answered before the call.
func (b *broadcaster) CatchUp(ctx context.Context) error { return b.cfg.Changes.CatchUp(ctx) }

func (b *broadcaster) add(w *broadcast) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.work[w.ID] != nil {
		return
	}
	w.done = make(chan struct{})
	b.work[w.ID] = w
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// list returns the broadcasts that this node works on, oldest first.
func (b *broadcaster) list() []*broadcast {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*broadcast, 0, len(b.work))
	for _, w := range b.work {
		all = append(all, w)
	}
	slices.SortFunc(all, func(x, y *broadcast) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	return all
}

// count returns how many broadcasts this node works on.
func (b *broadcaster) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.work)
}

func (b *broadcaster) end(w *broadcast) {
	b.mu.Lock()
	delete(b.work, w.ID)
	b.mu.Unlock()
	close(w.done)
}

// run stores parts until ctx ends or the engine stops. Each broadcast gets one part at its turn, so that a small one does not
// wait for a large one.
func (b *broadcaster) run(ctx context.Context) {
	for ctx.Err() == nil && !b.accept.lanes.Stopping() {
		interval := b.cfg.PollInterval
		if !b.alone() {
			interval = min(interval, broadcastPoll)
		}
		if now := b.cfg.Clock.Steady(); !b.looked || now-b.at >= interval {
			b.looked, b.at = true, now
			if err := b.takeUp(ctx); err != nil && ctx.Err() == nil {
				b.cfg.Log.Error("list broadcasts", "error", err) // the next look tries again
			}
		}
		progress, left := b.round(ctx)
		if progress {
			continue
		}
		if left {
			interval = min(interval, broadcastRetry)
		}
		b.pause(ctx, interval)
	}
}

// round stores a part of each broadcast. It reports whether one was stored, and whether broadcasts are left.
func (b *broadcaster) round(ctx context.Context) (progress, left bool) {
	for _, w := range b.list() {
		if ctx.Err() != nil || b.accept.lanes.Stopping() {
			return progress, true
		}
		complete, err := b.step(ctx, w)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				b.cfg.Log.Error("store a part of a broadcast", "broadcast", w.ID.String(), "done", w.Done, "of", len(w.Work), "error", err)
			}
			w.stale, left = true, true
		case complete:
			b.end(w)
			progress = true
		default:
			progress = true
		}
	}
	return progress, left
}

func (b *broadcaster) pause(ctx context.Context, d time.Duration) {
	passed := make(chan struct{})
	defer b.cfg.Clock.AfterFunc(d, func() { close(passed) }).Stop()
	select {
	case <-passed:
	case <-b.wake:
	case <-ctx.Done():
	case <-b.accept.lanes.Base().Done():
	}
}

// takeUp lists the open broadcasts and takes up those that no node works on: all, if the node is alone; otherwise those of its
// shards whose cursor stands still. The node that accepted a broadcast works on it.
func (b *broadcaster) takeUp(ctx context.Context) error {
	before, now := b.seen, b.cfg.Clock.Steady()
	b.seen = map[godwit.BroadcastID]standing{}
	var after godwit.BroadcastID
	for {
		open, err := b.cfg.Store.OpenBroadcasts(ctx, after, broadcastPage)
		if err != nil {
			b.seen = before
			return err
		}
		for _, o := range open {
			after = o.ID
			stands := standing{done: o.Done, since: now}
			if was, known := before[o.ID]; known && was.done == o.Done {
				stands = was
			}
			b.seen[o.ID] = stands
			if b.alone() || now-stands.since >= broadcastPatience && b.owns(o.ID.Shard()) {
				b.takeOver(o)
			}
		}
		if len(open) < broadcastPage {
			return nil
		}
	}
}

func (b *broadcaster) takeOver(o store.OpenBroadcast) {
	b.mu.Lock()
	known := b.work[o.ID] != nil
	b.mu.Unlock()
	if known {
		return
	}
	b.cfg.Log.Info("broadcast taken up", "broadcast", o.ID.String(), "done", o.Done)
	b.add(&broadcast{BroadcastWork: store.BroadcastWork{Broadcast: godwit.Broadcast{ID: o.ID}, Done: o.Done}, stale: true})
}
