package dispatch

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A clock that ran ahead leaves times in the store that are too late by that lead: when deliveries are due, and when endpoints
// are enabled again. The dispatcher corrects them when it sees the clock step back, and when it takes over shards, since the
// step may have come while no node was running. While the clock is ahead, attempt.Maker does not count the lead as age.

// clockWatch detects that the wall clock was set back. It ignores the monotonic reading of Go's times, which does not step.
type clockWatch struct {
	latest atomic.Int64 // latest reading, in Unix nanoseconds
}

// stepTolerance is the largest step back that is ignored: clocks are corrected all the time.
const stepTolerance = time.Second

// note records a reading that was used to set a due time.
func (w *clockWatch) note(now time.Time) {
	for at := now.UnixNano(); ; {
		latest := w.latest.Load()
		if at <= latest || w.latest.CompareAndSwap(latest, at) {
			return
		}
	}
}

// stepped reports whether now is before an earlier reading, and if so restarts from now.
func (w *clockWatch) stepped(now time.Time) bool {
	at, latest := now.UnixNano(), w.latest.Load()
	if at >= latest-int64(stepTolerance) {
		w.note(now)
		return false
	}
	w.latest.Store(at)
	return true
}

// bringBack corrects due times of the shards' endpoints that were set while the clock was ahead. After a step was seen it
// examines all waiting deliveries; otherwise only those due later than the endpoint's schedule allows, which is cheap when
// there are none. It reports whether it succeeded.
func (d *Dispatcher) bringBack(ctx context.Context, shards []int, seen bool) (done bool) {
	if len(shards) == 0 {
		return true
	}
	d.shortenRests(shards)
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

// shortenRests corrects when disabled endpoints of the shards are enabled again: no later than after one rest from now. It works
// in the background.
func (d *Dispatcher) shortenRests(shards []int) {
	now := d.cfg.Clock.Now()
	d.index.each(func(l *Lane) {
		if !slices.Contains(shards, l.id.Shard()) {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		t := l.Target()
		latest := now.Add(d.cfg.TimeScale.Real(t.Policy.ReenableAfter))
		if t.Endpoint.Status == godwit.EndpointDisabled && t.Policy.ReenableAfter > 0 && t.Endpoint.ReenableAt.After(latest.Add(stepTolerance)) {
			d.Go(func() { l.reenabler.shorten(latest) })
		}
	})
}

// latenessOf returns how far ahead deliveries to the lane's endpoint may be due.
func latenessOf(l *Lane, now time.Time, seen bool) store.Lateness {
	p, scale := l.Target().Policy, l.d.cfg.TimeScale
	longest := scale.Real(p.LongestDelay())
	late := store.Lateness{EndpointID: l.id, After: now, Latest: now.Add(max(longest, scale.Real(p.MaxElapsed)))}
	if !seen {
		late.After = now.Add(longest)
	}
	return late
}

// bringBack moves the end of a hold and the next probe of an open circuit back by as much as the health was dated ahead of
// now.
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
