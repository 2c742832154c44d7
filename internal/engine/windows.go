package engine

import (
	"slices"
	"sort"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// A startLog remembers when the last attempts started, in order. Times are counted from the engine's own beginning, so that
// a machine's clock that is set back does not hold anybody up. It grows with what is in it.
type startLog struct {
	ring  []time.Duration
	first int // where the oldest stands
	n     int
}

const smallLog = 16

// add takes note of a start. No more than keep are kept, and where it can be helped none that is older than span.
func (s *startLog) add(at time.Duration, keep int, span time.Duration) {
	if s.n == len(s.ring) && (s.n == 0 || s.n < keep && s.ring[s.first] > at-span) {
		s.resize(min(max(2*s.n, smallLog), keep))
	}
	if s.n == len(s.ring) {
		s.first = (s.first + 1) % len(s.ring)
		s.n--
	}
	s.ring[(s.first+s.n)%len(s.ring)] = at
	s.n++
}

// resize makes room for so many, and forgets the oldest where there is less than there was.
func (s *startLog) resize(size int) {
	ring := make([]time.Duration, max(size, 1))
	kept := min(s.n, len(ring))
	for i := range kept {
		ring[i] = s.at(s.n - kept + i)
	}
	s.ring, s.first, s.n = ring, 0, kept
}

// at is the i-th start that is remembered, the oldest being 0.
func (s *startLog) at(i int) time.Duration { return s.ring[(s.first+i)%len(s.ring)] }

// free is when another one may start if there are to be no more than count in any span; a count of 0 is no bound.
func (s *startLog) free(count int, span time.Duration) time.Duration {
	if s.n < count || count == 0 {
		return 0
	}
	return s.at(s.n-count) + span
}

// since is how many started after t, and when the first of them did.
func (s *startLog) since(t time.Duration) (n int, first time.Duration) {
	i := sort.Search(s.n, func(i int) bool { return s.at(i) > t })
	if i == s.n {
		return 0, 0
	}
	return s.n - i, s.at(i)
}

// learn takes over starts that somebody else tells of, if they are more than are remembered: those are exact.
func (s *startLog) learn(starts []time.Duration, now time.Duration, keep int, span time.Duration) {
	if n, _ := s.since(now - span); n >= len(starts) {
		return
	}
	*s = startLog{}
	for _, at := range starts {
		s.add(at, keep, span)
	}
}

// rateWindows bound how many attempts a lane starts within any stretch of time (CCW-LIM-1, CCW-LIM-3). What is over the
// bound waits its turn; it costs no attempt (CCW-LIM-5). Guarded by the lane.
type rateWindows struct {
	limits []godwit.RateWindow // with the time they really take
	minute *godwit.RateWindow  // the one that receivers are told of; nil when there is none
	keep   int
	span   time.Duration
	log    startLog
}

// newRateWindows makes the windows of a policy, nil when it has none. What was counted under the old ones counts on.
func newRateWindows(p *godwit.Policy, scale godwit.TimeScale, old *rateWindows) *rateWindows {
	if len(p.Windows) == 0 {
		return nil
	}
	w := &rateWindows{limits: make([]godwit.RateWindow, len(p.Windows))}
	for i, limit := range p.Windows {
		w.limits[i] = godwit.RateWindow{Count: limit.Count, Per: scale.Real(limit.Per)}
		if limit.Per == time.Minute {
			w.minute = &w.limits[i]
		}
		w.keep, w.span = max(w.keep, limit.Count), max(w.span, w.limits[i].Per)
	}
	if old != nil {
		w.log = old.log
		if w.log.n > w.keep {
			w.log.resize(w.keep)
		}
	}
	return w
}

// free is when the next attempt may start.
func (w *rateWindows) free() (at time.Duration) {
	for i := range w.limits {
		at = max(at, w.log.free(w.limits[i].Count, w.limits[i].Per))
	}
	return at
}

// take counts a start.
func (w *rateWindows) take(at time.Duration) { w.log.add(at, w.keep, w.span) }

// budget is what is left of a minute.
func (w *rateWindows) budget(at time.Duration, now time.Time) profile.Budget {
	if w.minute == nil {
		return profile.Budget{}
	}
	used, first := w.log.since(at - w.minute.Per)
	b := profile.Budget{Limit: w.minute.Count, Remaining: max(w.minute.Count-used, 0), Reset: now}
	if used > 0 {
		b.Reset = now.Add(first + w.minute.Per - at)
	}
	return b
}

// recall counts what was started before this process, or by another one that had the endpoints meanwhile, as far as their
// health tells of it: to the minute, and never less than there was, so that a restart lets nobody send more than they may.
// Health that is not watched tells nothing. If the clock was set back since, what seems to lie ahead was started by now.
func (e *Engine) recall(lanes []*lane) {
	now := e.since(e.clock.Now())
	shared := map[*account][]time.Duration{}
	for _, l := range lanes {
		l.mu.Lock()
		last := min(e.since(l.health.UpdatedAt), now)
		var starts []time.Duration
		l.health.Recent.Each(e.minute(), func(end time.Time, attempts int) {
			if at := min(e.since(end), last); at > now-e.minute() {
				starts = append(starts, slices.Repeat([]time.Duration{at}, attempts)...)
			}
		})
		if l.windows != nil {
			l.windows.log.learn(starts, now, l.windows.keep, l.windows.span)
		}
		if l.account != nil {
			shared[l.account] = append(shared[l.account], starts...)
			l.account.allow(limitOf(l))
		}
		l.mu.Unlock()
	}
	for a, starts := range shared {
		slices.Sort(starts)
		a.mu.Lock()
		a.log.learn(starts, now, a.keep, a.span)
		a.mu.Unlock()
	}
}

// minute is how long one takes; shorter when time is scaled.
func (e *Engine) minute() time.Duration { return max(e.cfg.TimeScale.Real(time.Minute), 1) }

// since is a time as logs of starts count it.
func (e *Engine) since(now time.Time) time.Duration { return now.Sub(e.began) }
