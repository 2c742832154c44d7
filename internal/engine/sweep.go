package engine

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
)

// evictionGrace keeps a delivery that is being cancelled from being claimed again before it is.
const evictionGrace = time.Minute

// Retention says how long things are kept.
type Retention struct {
	Events      time.Duration // events and their deliveries. Defaults to 30 days.
	Attempts    time.Duration // Defaults to 30 days.
	DeadLetters time.Duration // from the day they died. Defaults to 30 days.
	Notices     time.Duration // Defaults to 90 days.
	Interval    time.Duration // between sweeps. Defaults to 1 minute.
}

func (r *Retention) setDefaults() {
	const day = 24 * time.Hour
	defaultTo(&r.Events, 30*day)
	defaultTo(&r.Attempts, 30*day)
	defaultTo(&r.DeadLetters, 30*day)
	defaultTo(&r.Notices, 90*day)
	defaultTo(&r.Interval, time.Minute)
}

const (
	sweepRows  = 500
	sweepPause = 20 * time.Millisecond
)

// sweepStore removes what is past its time, a little at a time: a sweep must never be felt by a delivery.
func (e *Engine) sweepStore(ctx context.Context) {
	scale := e.cfg.TimeScale
	for wait(ctx, e.clock, scale.Real(e.cfg.Retention.Interval)) {
		for more := true; more && ctx.Err() == nil; {
			now := e.clock.Now()
			swept, err := e.store.Sweep(ctx, store.Sweep{
				Now:               now,
				EventsBefore:      now.Add(-scale.Real(e.cfg.Retention.Events)),
				AttemptsBefore:    now.Add(-scale.Real(e.cfg.Retention.Attempts)),
				DeadLettersBefore: now.Add(-scale.Real(e.cfg.Retention.DeadLetters)),
				NoticesBefore:     now.Add(-scale.Real(e.cfg.Retention.Notices)),
				Limit:             sweepRows,
			})
			if err != nil {
				if ctx.Err() == nil {
					e.log.Error("sweep", "error", err)
				}
				break
			}
			if *swept != (store.Swept{}) {
				e.log.Debug("swept", "counts", *swept)
			}
			more = swept.More
			pause := time.NewTimer(sweepPause)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}
}
