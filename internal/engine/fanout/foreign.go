package fanout

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// sharedPoll is the longest interval between looks in the store while there are other nodes.
	sharedPoll = 2 * time.Second
	// patience is how long the cursor of another node's fan-out may stand still before this node goes on with it.
	patience = 2 * time.Second
	// lookInterval is how old the list of fan-outs in the store may be when a caller asks for one, and foreignInterval when it
	// waits for one of another node.
	lookInterval    = time.Second
	foreignInterval = 250 * time.Millisecond
	// recent is how long after its id was made an event may come to be stored, at most. Another node may have stored a recent event
	// since the list was read, so a caller that asks for one needs a new list.
	recent   = 5 * time.Minute
	pageSize = 64
)

// sighting is a fan-out in the store that this expander does not work on.
type sighting struct {
	tenant godwit.TenantID
	events []godwit.EventID
	done   int
	since  time.Duration // when the cursor was first seen there, on the steady clock
}

// foreign is the list of other nodes' fan-outs.
type foreign struct {
	fanouts map[godwit.EventID]*sighting
	events  map[godwit.EventID]bool
	tenants map[godwit.TenantID]int

	listed   bool          // the store was asked
	listedAt time.Duration // when, on the steady clock
}

// see adds a fan-out of the store to the list. before is what was known of it.
func (n *foreign) see(f *store.Fanout, before *sighting, now time.Duration) *sighting {
	s := &sighting{tenant: f.TenantID, events: f.Events, done: f.Done, since: now}
	if before != nil && before.done == f.Done {
		s.since = before.since
	}
	n.fanouts[f.ID()] = s
	n.tenants[s.tenant]++
	for _, id := range s.events {
		n.events[id] = true
	}
	return s
}

// forget removes a fan-out from the list.
func (n *foreign) forget(id godwit.EventID) {
	s := n.fanouts[id]
	if s == nil {
		return
	}
	delete(n.fanouts, id)
	if n.tenants[s.tenant]--; n.tenants[s.tenant] == 0 {
		delete(n.tenants, s.tenant)
	}
	for _, event := range s.events {
		delete(n.events, event)
	}
}

func newForeign() foreign {
	return foreign{fanouts: map[godwit.EventID]*sighting{}, events: map[godwit.EventID]bool{}, tenants: map[godwit.TenantID]int{}}
}

// Run takes up fan-outs that a crash or another node left, at once and every interval, until ctx ends.
func (x *Expander) Run(ctx context.Context, interval time.Duration) {
	for {
		if err := x.resume(ctx); err != nil && ctx.Err() == nil {
			x.cfg.Log.Error("list fan-outs", "error", err) // the next poll tries again
		}
		wait := interval
		if !x.cfg.Alone() {
			wait = min(wait, sharedPoll)
		}
		if !clock.Wait(ctx, x.cfg.Clock, wait) {
			return
		}
	}
}

// resume lists the fan-outs in the store and takes up those that no node works on: all that this expander does not know, if the
// node is alone; otherwise those of its shards whose cursor stands still. The node that accepted a fan-out works on it, and two
// would be in each other's way.
func (x *Expander) resume(ctx context.Context) error { return x.look(ctx, x.cfg.Clock.Steady()) }

// look does what resume does, unless a list was begun after the given steady time. One list is read at a time, so that an older one
// never replaces a newer one, and callers share those that they wait for.
func (x *Expander) look(ctx context.Context, after time.Duration) error {
	select {
	case x.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.reading }()
	x.mu.Lock()
	fresh := x.foreign.listed && x.foreign.listedAt > after
	x.mu.Unlock()
	if fresh {
		return nil
	}
	begun := x.cfg.Clock.Steady()
	var all []store.Fanout
	for {
		var after godwit.EventID
		if len(all) > 0 {
			after = all[len(all)-1].ID()
		}
		list, err := x.cfg.Store.Fanouts(ctx, after, pageSize)
		if err != nil {
			return err
		}
		all = append(all, list...)
		if len(list) < pageSize {
			break
		}
	}
	for _, f := range x.left(all, begun) {
		x.Add(f)
	}
	return nil
}

// left returns the listed fan-outs that this node takes up, and remembers the others.
func (x *Expander) left(all []store.Fanout, begun time.Duration) (left []store.Fanout) {
	alone := x.cfg.Alone()
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.foreign.fanouts
	x.foreign = newForeign()
	x.foreign.listed, x.foreign.listedAt = true, begun
	for i := range all {
		f := &all[i]
		if x.known[f.ID()] != nil {
			continue
		}
		s := x.foreign.see(f, before[f.ID()], begun)
		if alone || begun-s.since >= patience && x.cfg.Owns(f.ID().Shard()) {
			left = append(left, *f)
		}
	}
	return left
}

// Wait returns when the event has no open fan-out, on whichever node. The event is stored already. The error is the context's,
// the store's, or commit.ErrStopping.
func (x *Expander) Wait(ctx context.Context, id godwit.EventID) error {
	age := lookInterval
	if !x.cfg.Alone() && x.cfg.Clock.Now().Sub(id.Time()) < recent {
		age = 0
	}
	for {
		w, elsewhere, err := x.find(ctx, id, age)
		if err != nil || w == nil && !elsewhere {
			return err
		}
		if w != nil {
			return x.pause(ctx, w.done)
		}
		passed := make(chan struct{})
		timer := x.cfg.Clock.AfterFunc(foreignInterval, func() { close(passed) })
		err = x.pause(ctx, passed)
		timer.Stop()
		if err != nil {
			return err
		}
		age = foreignInterval
	}
}

// Working reports whether the event has an open fan-out, on whichever node.
func (x *Expander) Working(ctx context.Context, id godwit.EventID) (bool, error) {
	age := lookInterval
	if !x.cfg.Alone() && x.cfg.Clock.Now().Sub(id.Time()) < recent {
		age = 0
	}
	w, elsewhere, err := x.find(ctx, id, age)
	return w != nil || elsewhere, err
}

// pause waits until done is closed.
func (x *Expander) pause(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-x.cfg.Lanes.Base().Done():
		return commit.ErrStopping
	}
}

// find returns the open fan-out of an event, or whether another node works on it. It looks in the store if that was not done
// within the given time; with 0 it always does.
func (x *Expander) find(ctx context.Context, id godwit.EventID, age time.Duration) (w *work, elsewhere bool, err error) {
	now := x.cfg.Clock.Steady()
	x.mu.Lock()
	w, elsewhere = x.events[id], x.foreign.events[id]
	fresh := x.foreign.listed && now-x.foreign.listedAt < age
	x.mu.Unlock()
	if w != nil || fresh {
		return w, elsewhere, nil
	}
	if err := x.look(ctx, now); err != nil {
		return nil, false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.events[id], x.foreign.events[id], nil
}
