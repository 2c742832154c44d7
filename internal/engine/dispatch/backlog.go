package dispatch

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A backlog is the lane's knowledge of its deliveries in the store. It is guarded by its lane.
type backlog struct {
	lane       *Lane
	overflow   bool      // due deliveries wait in the store: new ones queue behind them
	nextDue    time.Time // earliest known due time of an unclaimed delivery
	claiming   bool      // a claim is under way
	suspect    bool      // a store answer was lost: the store may hold claims that memory does not know
	reclaiming bool      // such claims are being released: no new ones may be made meanwhile
}

// note records that a delivery is due at t.
func (b *backlog) note(t time.Time) { b.nextDue = clock.Earliest(b.nextDue, t) }

// wanted reports whether the window has run down to a quarter. Claims wait for that: rarely enough that one claim serves many, early
// enough that the lane does not run empty.
func (b *backlog) wanted(now time.Time) bool {
	room := b.lane.room(now)
	return room > 0 && len(b.lane.window.queue) <= (room+len(b.lane.window.held))/4
}

// refill claims due deliveries if there is place for them. Called with the lane locked.
func (b *backlog) refill(now time.Time) {
	l := b.lane
	if b.claiming || b.nextDue.IsZero() || !l.open(now) {
		return
	}
	if b.nextDue.After(now) {
		l.alarm.set(b.nextDue)
		return
	}
	if !b.wanted(now) {
		return
	}
	epoch := l.epoch()
	if epoch == 0 {
		return
	}
	b.claiming = true
	l.window.shard.add(1)
	b.nextDue = time.Time{} // due times noted from here on are new
	order := claimOrder{b, epoch, l.room(now)}
	if b.suspect {
		b.suspect = false
		l.d.Go(func() { l.d.claims.reclaim(order) })
		return
	}
	l.d.claims.claim(order)
}

// claimed adds claimed deliveries to the window.
func (b *backlog) claimed(claimed *store.Claimed, epoch int64, started time.Time) {
	l := b.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	b.claiming = false
	defer l.window.shard.add(-1) // after the claimed deliveries count
	for i := range claimed.Work {
		w := &claimed.Work[i]
		it := &item{lane: l, Job: attempt.Job{Work: *w, Epoch: epoch, Trigger: nextTrigger(&w.Delivery)}}
		if l.d.cfg.Maker.OutOfTime(l.Target(), &w.Delivery, started) {
			l.expire(it, started)
			continue
		}
		l.window.push(it)
	}
	next := claimed.NextDue
	if len(claimed.Work) == 0 && !next.IsZero() && !next.After(started) {
		next = started.Add(storeRetry) // due, but not available now: wait before the next claim
	}
	b.note(next)
	b.overflow = !b.nextDue.IsZero() && !b.nextDue.After(started)
	l.backlog.settle() // the endpoint may have been paused during the claim
	l.pump()
}

// failed tries again after a pause. The store may hold claims.
func (b *backlog) failed() {
	l := b.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	b.mistrust()
	b.tryLater()
}

// fenced tries again after a pause, if the node has the shard then. The store has claimed nothing.
func (b *backlog) fenced() {
	b.lane.mu.Lock()
	defer b.lane.mu.Unlock()
	b.tryLater()
}

// tryLater ends a claim without deliveries. Called with the lane locked.
func (b *backlog) tryLater() {
	l := b.lane
	b.claiming = false
	l.window.shard.add(-1)
	retry := l.d.cfg.Clock.Now().Add(storeRetry)
	b.note(retry)
	l.alarm.set(retry)
}

// reclaim releases claims that the store holds and memory does not know, after an answer was lost. Until it is done the lane
// makes no new claims; otherwise reclaim would take a new claim for a lost one, and the delivery would be sent twice.
func (b *backlog) reclaim(ctx context.Context, epoch int64) error {
	l := b.lane
	l.mu.Lock()
	b.reclaiming = true
	held := make([]godwit.DeliveryID, 0, len(l.window.held))
	for id := range l.window.held {
		held = append(held, id)
	}
	l.mu.Unlock()
	n, err := l.d.cfg.Store.Reclaim(ctx, l.id, epoch, held, l.d.cfg.Clock.Now())
	l.mu.Lock()
	b.reclaiming = false
	l.mu.Unlock()
	if n > 0 {
		l.d.cfg.Log.Warn("took back deliveries whose claim was lost", "endpoint", l.id.String(), "deliveries", n)
	}
	return err
}

func (b *backlog) mistrust() {
	b.suspect = true
	b.lane.window.shard.suspect.Store(true)
}

// doubt says that the store may hold claims that memory does not know. Called with the lane locked.
func (b *backlog) doubt() {
	l := b.lane
	now := l.d.cfg.Clock.Now()
	b.mistrust()
	b.note(now)
	l.alarm.set(now.Add(storeRetry))
}

// shed returns queued deliveries to the store when the endpoint gets no more requests, so that they use no memory. Those of a
// deleted endpoint end there. Called with the lane locked.
func (b *backlog) shed() {
	keep := 0
	if b.lane.active() {
		keep = 1 // to probe the endpoint with
	}
	b.shedTo(keep)
}

func (b *backlog) shedTo(keep int) {
	l := b.lane
	deleted := l.deleted()
	for _, it := range l.window.cut(keep) {
		if deleted {
			l.d.cfg.Commits.Add(it.claim(attempt.Cancelled(&it.Job, l.d.cfg.Clock.Now())))
		} else {
			l.d.cfg.Commits.Add(it.claim(attempt.Returned(&it.Job)))
		}
	}
}

// settle returns deliveries that were queued after the endpoint was paused, disabled or deleted, or after the node began to give
// up its shard. If another node has the shard by now, the deliveries are forgotten. Called with the lane locked.
func (b *backlog) settle() {
	l, shard := b.lane, b.lane.id.Shard()
	switch {
	case !l.active():
		b.shed()
	case !l.d.cfg.Shards.Serves(shard):
		if l.window.dropOthers(l.d.cfg.Shards.Owned(shard)) {
			b.note(l.d.cfg.Clock.Now())
		}
		b.shedTo(0)
	}
}

// reportOrphans tells the observer when deliveries wait in the store for a deleted endpoint, so that they end before the next
// sweep (OJS-API-10). Called with the lane locked.
func (b *backlog) reportOrphans() {
	l := b.lane
	if l.deleted() && l.d.Running() {
		l.d.cfg.Observer.Orphaned()
	}
}

// nextTrigger returns the trigger of the next attempt of a delivery read from the store.
func nextTrigger(d *godwit.Delivery) godwit.Trigger {
	if d.Run.Attempts == 0 {
		return d.Run.Trigger
	}
	return godwit.TriggerRetry
}
