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
	timer = l.d.cfg.Clock.AfterFunc(max(t.Sub(l.d.cfg.Clock.Now()), 0), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if a.timer == timer {
			a.timer = nil
		}
		l.pump()
	})
	a.timer = timer
}
