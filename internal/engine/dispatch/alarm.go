package dispatch

import (
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// An alarm wakes its lane at the earliest of the times it was set to. It is guarded by its lane.
type alarm struct {
	lane  *Lane
	timer clock.Timer
	at    time.Time
}

// set pumps the lane at t, unless the alarm is set to an earlier time. Called with the lane locked.
func (a *alarm) set(t time.Time) {
	if a.timer != nil {
		if !a.at.After(t) {
			return
		}
		a.timer.Stop()
	}
	l := a.lane
	a.at = t
	var timer clock.Timer
	ring := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if a.timer == timer {
			a.timer = nil
		}
		l.pump()
	}
	for {
		began := l.d.cfg.Clock.Steady()
		timer = l.d.cfg.Clock.AfterFunc(max(t.Sub(l.d.cfg.Clock.Now()), 0), ring)
		// If time passed before the timer was set, it would ring late by as much.
		if l.d.cfg.Clock.Steady()-began < lateRing || !timer.Stop() {
			break
		}
	}
	a.timer = timer
}

// lateRing is how late an alarm may ring because it was set slowly.
const lateRing = 100 * time.Microsecond
