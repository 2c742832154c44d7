package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// mergeEvery is how often log rows of the history are merged, so that a reader has few of them to add.
	mergeEvery = 5 * time.Second
	// foldEvery is how often merged rows are added to their pages. A page is written again each time.
	foldEvery = time.Minute
	foldPause = 5 * time.Millisecond
)

// A historian folds the log of the history, and sweeps it.
type historian struct {
	cfg     *Config
	leads   func() bool
	ages    func() time.Time // the time that ages count to
	led     bool
	folded  time.Time
	swept   time.Time
	aside   bool // rows that were set aside were tried
	warned  bool
	damaged bool
}

// run works until ctx ends, while this node leads.
func (h *historian) run(ctx context.Context) {
	begun := false
	for {
		if !begun {
			err := h.cfg.Store.BeginStats(ctx, h.cfg.Clock.Now())
			if begun = err == nil; err != nil && ctx.Err() == nil {
				h.cfg.Log.Warn("the beginning of the history was not stored; it is tried again", "error", err)
			}
		}
		if h.leads() {
			h.turn(ctx)
		} else {
			h.led = false
		}
		if !clock.Wait(ctx, h.cfg.Pace, mergeEvery) {
			return
		}
	}
}

// turn merges, and folds and sweeps if that is due.
func (h *historian) turn(ctx context.Context) {
	now := h.cfg.Clock.Now()
	// A node that begins to lead folds at once: the one before may have left rows behind.
	f := store.StatsFold{Apply: !h.led || now.Sub(h.folded) >= foldEvery || now.Before(h.folded), Aside: !h.aside}
	h.led = true
	folds := f.Apply
	if folds {
		h.folded = now
	}
	for {
		step, err := h.cfg.Store.FoldStats(ctx, f)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, store.ErrConflict) {
				h.cfg.Log.Error("fold history", "error", err)
			}
			return
		}
		h.aside, f.Aside = true, false
		h.report(step)
		if step.Whole {
			f.Apply = false // what is committed from now on is folded the next time: a busy server always has some
		}
		if !step.More {
			break
		}
		if !clock.Wait(ctx, h.cfg.Pace, foldPause) {
			return
		}
	}
	if folds && (now.Sub(h.swept) >= h.cfg.Retention.Interval || now.Before(h.swept)) {
		h.swept = now
		h.sweep(ctx)
	}
}

// report says once that a part of the history is lost.
func (h *historian) report(f *store.StatsFolded) {
	if f.Aside > 0 && !h.warned {
		h.warned = true
		h.cfg.Log.Error("rows of the history cannot be decoded; they are set aside, and their counts are missing in stats", slog.Int("rows", f.Aside))
	}
	if f.Damaged > 0 && !h.damaged {
		h.damaged = true
		h.cfg.Log.Error("pages of the history could not be decoded; they begin anew", slog.Int("pages", f.Damaged))
	}
}

func (h *historian) sweep(ctx context.Context) {
	now, sw := h.ages(), store.StatsSweep{Limit: sweepRows}
	for _, level := range stats.Levels {
		sw.Before[level] = now.Add(-h.cfg.Retention.Stats.Of(level))
	}
	for more := true; more; {
		var err error
		if _, more, err = h.cfg.Store.SweepStats(ctx, sw); err != nil {
			if ctx.Err() == nil {
				h.cfg.Log.Error("sweep history", "error", err)
			}
			return
		}
		if more && !clock.Wait(ctx, h.cfg.Pace, sweepPause) {
			return
		}
	}
}
