package engine

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
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
	Rejections  time.Duration // what sources did not take in. Defaults to 7 days.
	Interval    time.Duration // between sweeps. Defaults to 1 minute.
}

func (r *Retention) setDefaults() {
	const day = 24 * time.Hour
	defaultTo(&r.Events, 30*day)
	defaultTo(&r.Attempts, 30*day)
	defaultTo(&r.DeadLetters, 30*day)
	defaultTo(&r.Notices, 90*day)
	defaultTo(&r.Rejections, 7*day)
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
				RejectionsBefore:  now.Add(-scale.Real(e.cfg.Retention.Rejections)),
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
			rest(ctx)
		}
	}
}

// rest leaves the store to others for a moment.
func rest(ctx context.Context) {
	pause := time.NewTimer(sweepPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
}

// cancel ends a claimed delivery whose endpoint is deleted.
func (e *Engine) cancel(l *lane, it *item) {
	d := it.work.Delivery
	d.Cancel(godwit.ReasonEndpointDeleted, e.clock.Now())
	e.commits.result(l, it, &judgement{result: store.Result{Delivery: d, Epoch: it.epoch}})
}

// cancelIfDeleted has what waits in the store for a deleted endpoint ended soon: its owner looks at it now, and not when the
// next sweep has been (OJS-API-10). Called with the lane locked.
func (l *lane) cancelIfDeleted() {
	if l.target.Load().endpoint.Status == godwit.EndpointDeleted && l.engine.running() {
		l.engine.cancelWaiting()
	}
}

// The states of Engine.cancelling.
const (
	cancelIdle int32 = iota
	cancelUnderWay
	cancelAgain // somebody asked while it was under way
)

// cancelWaiting runs that part of the sweep beside everything else, once for all who ask meanwhile.
func (e *Engine) cancelWaiting() {
	if e.cancelling.Swap(cancelAgain) != cancelIdle {
		return
	}
	e.task(func() {
		for {
			e.cancelling.Store(cancelUnderWay)
			e.cancelRound()
			if e.cancelling.CompareAndSwap(cancelUnderWay, cancelIdle) {
				return
			}
		}
	})
}

func (e *Engine) cancelRound() {
	for more := true; more && e.base.Err() == nil; {
		swept, err := e.store.Sweep(e.base, store.Sweep{Now: e.clock.Now(), Limit: sweepRows})
		if err != nil {
			if e.base.Err() == nil {
				e.log.Error("cancel what waits for deleted endpoints", "error", err) // the next sweep does it
			}
			return
		}
		if more = swept.More; more {
			rest(e.base)
		}
	}
}
