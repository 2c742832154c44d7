package engine

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// environments removes the rows that environments keep for a shorter time than the server. Environments that do not, which are
// most, cost nothing but their part of the list.
func (s *sweeper) environments(ctx context.Context, now time.Time) error {
	const page = 100
	for after := ([16]byte{}); ; {
		list, err := s.cfg.Store.ListEnvironments(ctx, store.Page{After: after, Limit: page})
		if err != nil {
			return err
		}
		for i := range list {
			if err := s.environment(ctx, &list[i], now); err != nil {
				return err
			}
			after = list[i].ID
		}
		if len(list) < page {
			return nil
		}
	}
}

// environment sweeps one environment, in small steps that do not delay deliveries.
func (s *sweeper) environment(ctx context.Context, e *godwit.Environment, now time.Time) error {
	cut := func(seconds int64, server time.Duration) time.Time {
		kept := godwit.KeptFor(seconds, server)
		if kept == server {
			return time.Time{} // the sweep of all removes it
		}
		return now.Add(-s.cfg.TimeScale.Real(kept))
	}
	step := store.EnvironmentSweep{
		Environment: e.ID, Limit: sweepRows,
		EventsBefore: cut(e.KeepEvents, s.cfg.Retention.Events), DeadLettersBefore: cut(e.KeepDeadLetters, s.cfg.Retention.DeadLetters),
	}
	if step.EventsBefore.IsZero() && step.DeadLettersBefore.IsZero() {
		return nil
	}
	for {
		swept, err := s.cfg.Store.SweepEnvironment(ctx, step)
		if err != nil {
			return err
		}
		if !swept.More {
			return nil
		}
		step.From = swept.Next
		clock.Wait(ctx, s.cfg.Pace, sweepPause)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
