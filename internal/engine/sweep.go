package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

// Retention says how long the engine keeps stored rows.
type Retention struct {
	Events      time.Duration // events and their deliveries. Defaults to 30 days.
	Attempts    time.Duration // Defaults to 30 days.
	DeadLetters time.Duration // counted from their death. Defaults to 30 days.
	Notices     time.Duration // Defaults to 90 days.
	Rejections  time.Duration // requests that sources rejected. Defaults to 7 days.
	Stats       stats.Retention
	Interval    time.Duration // between sweeps. Defaults to 1 minute.
	// Environments is the time between sweeps of environments that keep their rows for a shorter time. Defaults to 6 hours.
	Environments time.Duration
}

func (r *Retention) setDefaults() {
	const day = 24 * time.Hour
	defaultTo(&r.Events, 30*day)
	defaultTo(&r.Attempts, 30*day)
	defaultTo(&r.DeadLetters, 30*day)
	defaultTo(&r.Notices, 90*day)
	defaultTo(&r.Rejections, 7*day)
	r.Stats.SetDefaults()
	defaultTo(&r.Interval, time.Minute)
	defaultTo(&r.Environments, 6*time.Hour)
}

const (
	sweepRows  = 500
	sweepPause = 20 * time.Millisecond
)

// A sweeper removes expired rows and cancels the deliveries of deleted endpoints.
type sweeper struct {
	cfg        *Config
	lanes      *dispatch.Dispatcher
	jumps      *clock.Jumps
	leads      func() bool
	cancelling atomic.Int32
	swept      time.Time // when all environments were swept last
}

// run sweeps until ctx ends, while this node leads, in small steps that do not delay deliveries.
func (s *sweeper) run(ctx context.Context) {
	scale := s.cfg.TimeScale
	for clock.Wait(ctx, s.cfg.Clock, scale.Real(s.cfg.Retention.Interval)) {
		if !s.leads() {
			continue
		}
		s.rounds(ctx, "sweep", func() store.Sweep {
			now := s.now()
			return store.Sweep{
				EventsBefore:      now.Add(-scale.Real(s.cfg.Retention.Events)),
				AttemptsBefore:    now.Add(-scale.Real(s.cfg.Retention.Attempts)),
				DeadLettersBefore: now.Add(-scale.Real(s.cfg.Retention.DeadLetters)),
				NoticesBefore:     now.Add(-scale.Real(s.cfg.Retention.Notices)),
				RejectionsBefore:  now.Add(-scale.Real(s.cfg.Retention.Rejections)),
				UsageBefore:       godwit.UsageKept(now),
				UnansweredBefore:  now.Add(-scale.Real(s.cfg.IdempotencyWindow)),
			}
		})
		if now := s.now(); s.swept.IsZero() || now.Sub(s.swept) >= scale.Real(s.cfg.Retention.Environments) {
			if err := s.environments(ctx, now); err == nil {
				s.swept = now
			} else if ctx.Err() == nil {
				s.cfg.Log.Error("sweep environments", "error", err)
			}
		}
	}
}

// now is the time that ages count to: a clock that is set forward by mistake must not delete anything.
func (s *sweeper) now() time.Time {
	now := s.cfg.Clock.Now()
	return now.Add(-s.jumps.Ahead(time.Time{}, now))
}

// rounds repeats a sweep until no expired rows are left.
func (s *sweeper) rounds(ctx context.Context, what string, next func() store.Sweep) {
	for more := true; more && ctx.Err() == nil; {
		round := next()
		round.Now, round.Limit = s.cfg.Clock.Now(), sweepRows
		swept, err := s.cfg.Store.Sweep(ctx, round)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error(what, "error", err)
			}
			return
		}
		if *swept != (store.Swept{}) {
			s.cfg.Log.Debug("swept", "counts", *swept)
		}
		if more = swept.More; more {
			clock.Wait(ctx, s.cfg.Pace, sweepPause)
		}
	}
}

// The states of sweeper.cancelling.
const (
	cancelIdle int32 = iota
	cancelUnderWay
	cancelAgain // requested again while one was under way
)

// cancelOrphans cancels deliveries that wait in the store for deleted endpoints, in the background. One run serves all calls
// made meanwhile. If it fails, the next sweep repeats it.
func (s *sweeper) cancelOrphans() {
	if s.cancelling.Swap(cancelAgain) != cancelIdle {
		return
	}
	s.lanes.Go(func() {
		for {
			s.cancelling.Store(cancelUnderWay)
			s.rounds(s.lanes.Base(), "cancel deliveries of deleted endpoints", func() store.Sweep { return store.Sweep{} })
			if s.cancelling.CompareAndSwap(cancelUnderWay, cancelIdle) {
				return
			}
		}
	})
}
