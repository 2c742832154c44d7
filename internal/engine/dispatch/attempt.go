package dispatch

import (
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// attempt makes one request for a claimed delivery and queues its result for the commit.
func (d *Dispatcher) attempt(it *item) {
	defer d.attempts.Done()
	l := it.lane
	t := l.current(d.cfg.Clock.Now())
	x := d.cfg.Maker.Send(d.base, t, &it.Job)
	var r *commit.Record
	if x.Failure != nil && x.Failure.Kind == godwit.FailureInterrupted {
		r = attempt.Returned(&it.Job) // cut off by our own stop: it does not count as an attempt
	} else {
		var decision *godwit.Decision
		r, decision = d.cfg.Maker.Judge(t, &it.Job, &x, it.situation())
		now := r.Result.Delivery.UpdatedAt
		l.heal(t, r, decision, now)
		d.cfg.Observer.Judged(t, r, now)
	}
	l.finished(it)
	d.cfg.Commits.Add(it.claim(r))
	d.slots.give()
}

// situation returns the endpoint's state that Judge needs.
func (it *item) situation() attempt.Situation {
	l := it.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	return attempt.Situation{SunsetAt: l.condition.SunsetAt, Deleted: l.deleted()}
}

// claim makes the item the claim of the record.
func (it *item) claim(r *commit.Record) *commit.Record {
	r.Claim = it
	return r
}

// Health returns the endpoint's latest health.
func (it *item) Health() godwit.Health {
	it.lane.mu.Lock()
	defer it.lane.mu.Unlock()
	return it.lane.condition.Health
}

// Stored removes the delivery from the window, or puts it at the front of the queue if it is to be tried again at once.
func (it *item) Stored(r *commit.Record) {
	l, next := it.lane, &r.Result.Delivery
	l.d.wall.note(next.UpdatedAt) // again: the clock may have been set back, and the stored due times corrected, while this one was on its way
	l.d.cfg.Observer.Recorded(r)
	l.changed(r.Change, true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Result.KeepClaim {
		it.Work.Delivery = *next
		l.window.pushFront(it)
		l.backlog.settle()
	} else {
		l.window.drop(next.ID, it)
		if next.Status == godwit.DeliveryPending {
			l.backlog.note(next.DueAt)
			l.backlog.reportOrphans()
		}
	}
	l.pump()
}

// Refused forgets a delivery whose result the store refused: another node has it, it was removed, or a commit whose answer was
// lost stored it. In the last case the lane asks the store when it is due.
func (it *item) Refused(r *commit.Record) {
	l := it.lane
	l.d.wall.note(r.Result.Delivery.UpdatedAt)
	l.d.cfg.Observer.Refused(r)
	l.changed(r.Change, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.drop(it.Work.Delivery.ID, it)
	l.backlog.note(l.d.cfg.Clock.Now())
	l.pump()
}

// Dropped gives up a delivery whose result can never be stored, or whose return may be stored. The lane reclaims it and tries it again.
func (it *item) Dropped(r *commit.Record, _ error) {
	l := it.lane
	l.changed(r.Change, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.drop(it.Work.Delivery.ID, it)
	l.backlog.doubt()
}
