package dispatch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
)

// A clock that was ahead for a while has left due times in the store that wait out that while. They are brought back when
// the clock is seen to step back, and when shards are taken over: the step may have come while no node was looking.

// clockWatch notices that the wall clock was set back. It goes by the wall clock alone: the monotonic reading that Go's
// times carry does not step.
type clockWatch struct {
	latest atomic.Int64 // latest reading, in Unix nanoseconds
}

// stepTolerance is what does not count as a step: clocks are corrected all the time.
const stepTolerance = time.Second

// note keeps a reading that was used to set a due time.
func (w *clockWatch) note(now time.Time) {
	for at := now.UnixNano(); ; {
		latest := w.latest.Load()
		if at <= latest || w.latest.CompareAndSwap(latest, at) {
			return
		}
	}
}

// stepped reports whether now is before an earlier reading, and begins anew there if so.
func (w *clockWatch) stepped(now time.Time) bool {
	at, latest := now.UnixNano(), w.latest.Load()
	if at >= latest-int64(stepTolerance) {
		w.note(now)
		return false
	}
	w.latest.Store(at)
	return true
}

// bringBack corrects due times of the shards' endpoints that were set while the clock was ahead. Where a step was seen, all
// waiting deliveries are looked at; else only those that are due later than the endpoint's schedule leads to, which costs
// next to nothing where there are none. It reports whether it is done.
func (d *Dispatcher) bringBack(ctx context.Context, shards []int, seen bool) (done bool) {
	if len(shards) == 0 {
		return true
	}
	limited, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	n := 0
	due, err := d.cfg.Store.EndpointsDue(limited, shards)
	if err == nil {
		now := d.cfg.Clock.Now()
		list := make([]store.Lateness, 0, len(due))
		for _, e := range due {
			if l := d.index.lane(e.EndpointID); l != nil {
				l.mu.Lock()
				l.condition.bringBack(now)
				l.mu.Unlock()
				list = append(list, latenessOf(l, now, seen))
			}
		}
		if len(list) > 0 {
			n, err = d.cfg.Store.BringBack(limited, now, list)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Log.Error("bring due times back", "error", err)
		}
		return false
	}
	if n > 0 {
		d.cfg.Log.Warn("due times brought back: they were set while the clock was ahead", "deliveries", n)
	}
	return true
}

// latenessOf is how far ahead deliveries to the lane's endpoint may be due.
func latenessOf(l *Lane, now time.Time, seen bool) store.Lateness {
	p, scale := &l.Target().Policy, l.d.cfg.TimeScale
	longest := scale.Real(p.LongestDelay())
	late := store.Lateness{EndpointID: l.id, After: now, Latest: now.Add(max(longest, scale.Real(p.MaxElapsed)))}
	if !seen {
		late.After = now.Add(longest)
	}
	return late
}

// bringBack moves the end of a hold and the next try of an open circuit as far back as the endpoint's health was written ahead of now.
func (c *condition) bringBack(now time.Time) {
	h := &c.Health
	ahead := h.UpdatedAt.Sub(now)
	if ahead <= 0 {
		return
	}
	for _, t := range []*time.Time{&h.HoldUntil, &h.ProbeAt, &h.CircuitOpenAt} {
		if t.After(now) {
			*t = t.Add(-ahead)
		}
	}
	h.UpdatedAt = now
}
