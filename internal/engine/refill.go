package engine

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	claimBytes   = 8 << 20
	claimTimeout = 10 * time.Second
	maxClaims    = 4
)

// refillIfLow claims due work from the store once the window has run down to a quarter: rarely enough that a claim
// serves many, early enough that the lane does not run dry. Called with the lane locked.
func (l *lane) refillIfLow(now time.Time) {
	if l.refill || l.nextDue.IsZero() || !l.open(now) {
		return
	}
	if l.nextDue.After(now) {
		l.wakeAt(l.nextDue)
		return
	}
	room := l.room(now)
	if room <= 0 || len(l.queue) > (room+len(l.held))/4 {
		return
	}
	epoch := l.engine.leases.epochOf(l.id.Shard(), now)
	if epoch == 0 {
		return
	}
	l.refill = true
	l.nextDue = time.Time{} // what is noted from here on is news
	suspect := l.suspect
	l.suspect = false
	l.engine.task(func() { l.claim(epoch, room, suspect) })
}

func (l *lane) claim(epoch int64, limit int, reclaim bool) {
	// All lanes may want to claim at once, after a start for instance. They take turns, or commits would wait behind
	// thousands of claims, most of which would give up before it is theirs.
	select {
	case l.engine.claims <- struct{}{}:
		defer func() { <-l.engine.claims }()
	case <-l.engine.base.Done():
		l.claimFailed(l.engine.base.Err())
		return
	}
	ctx, cancel := context.WithTimeout(l.engine.base, claimTimeout)
	defer cancel()
	if reclaim {
		if err := l.reclaim(ctx, epoch); err != nil {
			l.claimFailed(err)
			return
		}
	}
	started := l.engine.clock.Now()
	claimed, err := l.engine.store.ClaimDue(ctx, store.Claim{
		EndpointID: l.id, Epoch: epoch, Now: started, Limit: limit, MaxBytes: claimBytes,
	})
	if err != nil {
		l.engine.cfg.Recorder.Claimed(0, l.engine.clock.Now().Sub(started), err)
		l.claimFailed(err)
		return
	}
	l.engine.cfg.Recorder.Claimed(len(claimed.Work), l.engine.clock.Now().Sub(started), nil)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill = false
	for i := range claimed.Work {
		w := &claimed.Work[i]
		it := &item{work: *w, epoch: epoch, trigger: nextTrigger(&w.Delivery)}
		if l.engine.outOfTime(l.target.Load(), &w.Delivery, started) {
			l.holdItem(it, heldRecording)
			l.engine.expire(l, it, started)
			continue
		}
		l.holdItem(it, heldQueued)
		l.queue = append(l.queue, it)
	}
	next := claimed.NextDue
	if len(claimed.Work) == 0 && !next.IsZero() && !next.After(started) {
		next = started.Add(storeRetry) // due, but not to be had now: do not ask in a circle
	}
	l.nextDue = earliest(l.nextDue, next)
	l.overflow = !l.nextDue.IsZero() && !l.nextDue.After(started)
	l.shedIfAtRest() // it was paused while the claim was under way
	l.pump()
}

func (l *lane) claimFailed(err error) {
	if l.engine.base.Err() == nil {
		l.engine.log.Error("claim due deliveries", "endpoint", l.id.String(), "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill, l.suspect = false, true
	retry := l.engine.clock.Now().Add(storeRetry)
	l.nextDue = earliest(l.nextDue, retry)
	l.wakeAt(retry)
}

// reclaim frees claims that the store holds and memory does not know, after an answer was lost on the way. Until it is done
// the lane makes no new claims, or one made meanwhile would be taken for a lost one and its delivery sent twice.
func (l *lane) reclaim(ctx context.Context, epoch int64) error {
	l.mu.Lock()
	l.taking = true
	held := make([]godwit.DeliveryID, 0, len(l.held))
	for id := range l.held {
		held = append(held, id)
	}
	l.mu.Unlock()
	n, err := l.engine.store.Reclaim(ctx, l.id, epoch, held, l.engine.clock.Now())
	l.mu.Lock()
	l.taking = false
	l.mu.Unlock()
	if n > 0 {
		l.engine.log.Warn("took back deliveries whose claim was lost", "endpoint", l.id.String(), "deliveries", n)
	}
	return err
}

// nextTrigger says what starts the coming attempt of a delivery that was read from the store.
func nextTrigger(d *godwit.Delivery) godwit.Trigger {
	if d.Run.Attempts == 0 {
		return d.Run.Trigger
	}
	return godwit.TriggerRetry
}
