package dispatch

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	claimBytes   = 8 << 20
	claimTimeout = 10 * time.Second
	maxClaims    = 4
)

// A backlog is what a lane knows of its deliveries in the store. It is guarded by its lane.
type backlog struct {
	lane       *Lane
	overflow   bool      // something waits there that is due: newcomers queue behind it
	nextDue    time.Time // earliest unclaimed delivery that is known of
	claiming   bool      // a claim is under way
	suspect    bool      // a store answer was lost: claims may be stored that memory does not know
	reclaiming bool      // such claims are being taken back: no new ones may be made meanwhile
}

// note takes note that something is due at t.
func (b *backlog) note(t time.Time) { b.nextDue = clock.Earliest(b.nextDue, t) }

// refill claims due work from the store once the window has run down to a quarter: rarely enough that a claim serves many,
// early enough that the lane does not run dry. Called with the lane locked.
func (b *backlog) refill(now time.Time) {
	l := b.lane
	if b.claiming || b.nextDue.IsZero() || !l.open(now) {
		return
	}
	if b.nextDue.After(now) {
		l.wakeAt(b.nextDue)
		return
	}
	room := l.room(now)
	if room <= 0 || len(l.window.queue) > (room+len(l.window.held))/4 {
		return
	}
	epoch := l.epoch(now)
	if epoch == 0 {
		return
	}
	b.claiming = true
	b.nextDue = time.Time{} // what is noted from here on is news
	suspect := b.suspect
	b.suspect = false
	l.d.Go(func() { b.claim(epoch, room, suspect) })
}

// claim takes up to limit due deliveries from the store. All lanes may want to claim at once, after a start for instance.
// They take turns, or commits would wait behind thousands of claims, most of which would give up before their turn.
func (b *backlog) claim(epoch int64, limit int, reclaim bool) {
	d := b.lane.d
	select {
	case d.claims <- struct{}{}:
		defer func() { <-d.claims }()
	case <-d.base.Done():
		b.failed(d.base.Err())
		return
	}
	ctx, cancel := context.WithTimeout(d.base, claimTimeout)
	defer cancel()
	if reclaim {
		if err := b.reclaim(ctx, epoch); err != nil {
			b.failed(err)
			return
		}
	}
	started := d.cfg.Clock.Now()
	claimed, err := d.cfg.Store.ClaimDue(ctx, store.Claim{
		EndpointID: b.lane.id, Epoch: epoch, Now: started, Limit: limit, MaxBytes: claimBytes,
	})
	took := d.cfg.Clock.Now().Sub(started)
	if err != nil {
		d.cfg.Observer.Claimed(0, took, err)
		b.failed(err)
		return
	}
	d.cfg.Observer.Claimed(len(claimed.Work), took, nil)
	b.claimed(claimed, epoch, started)
}

// claimed takes claimed deliveries into the window.
func (b *backlog) claimed(claimed *store.Claimed, epoch int64, started time.Time) {
	l := b.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	b.claiming = false
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
		next = started.Add(storeRetry) // due, but not to be had now: do not ask in a circle
	}
	b.note(next)
	b.overflow = !b.nextDue.IsZero() && !b.nextDue.After(started)
	l.shedIfInactive() // it was paused while the claim was under way
	l.pump()
}

func (b *backlog) failed(err error) {
	l := b.lane
	if l.d.base.Err() == nil {
		l.d.cfg.Log.Error("claim due deliveries", "endpoint", l.id.String(), "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.claiming, b.suspect = false, true
	retry := l.d.cfg.Clock.Now().Add(storeRetry)
	b.note(retry)
	l.wakeAt(retry)
}

// reclaim frees claims that the store holds and memory does not know, after an answer was lost on the way. Until it is done
// the lane makes no new claims, or one made meanwhile would be taken for a lost one and its delivery sent twice.
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

// nextTrigger says what starts the coming attempt of a delivery that was read from the store.
func nextTrigger(d *godwit.Delivery) godwit.Trigger {
	if d.Run.Attempts == 0 {
		return d.Run.Trigger
	}
	return godwit.TriggerRetry
}
