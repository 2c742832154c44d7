package dispatch

import (
	"slices"
	"sort"
	"time"

	"golang.org/x/time/rate"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// A startLog remembers when the last attempts started, in order. Times are those of a timeline. It grows with what is in it.
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

// learn takes over starts that the store tells of, if they are more than are remembered: those are exact.
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

// A pace bounds how fast a lane starts attempts: by a token bucket and by exact windows, where its policy has them. It is
// guarded by its lane.
type pace struct {
	limiter *rate.Limiter // nil: none
	windows *rateWindows  // nil: none
	times   *timeline
	policy  *godwit.Policy
}

// follow takes over a policy. What was counted counts on.
func (p *pace) follow(policy *godwit.Policy, times *timeline) {
	if p.policy == nil || p.policy.Rate != policy.Rate || p.policy.Burst != policy.Burst {
		p.limiter = nil
		if policy.Rate != 0 {
			p.limiter = rate.NewLimiter(rate.Limit(policy.Rate), max(policy.Burst, 1))
		}
	}
	if p.policy == nil || !slices.Equal(p.policy.Windows, policy.Windows) {
		p.windows = newRateWindows(policy, times.scale, p.windows)
	}
	p.policy, p.times = policy, times
}

// wait is how long the next start has to wait. It takes nothing.
func (p *pace) wait(now time.Time) (wait time.Duration) {
	if p.limiter != nil {
		r := p.limiter.ReserveN(now, 1)
		wait = r.DelayFrom(now)
		r.CancelAt(now)
	}
	if p.windows != nil {
		wait = max(wait, p.windows.free()-p.times.since(now))
	}
	return wait
}

// take counts a start, and says what is left of the allowance.
func (p *pace) take(now time.Time) profile.Budget {
	if p.limiter != nil {
		p.limiter.AllowN(now, 1)
	}
	if p.windows != nil {
		p.windows.take(p.times.since(now))
	}
	return p.budget(now)
}

// budget is what is left of the allowance that receivers are told of.
func (p *pace) budget(now time.Time) profile.Budget {
	if p.windows == nil {
		return profile.Budget{}
	}
	return p.windows.budget(p.times.since(now), now)
}

// recall counts what was started before this process, or by another one that had the endpoints meanwhile, as far as their
// health tells of it: to the minute, and never less than there was, so that a restart lets no endpoint be sent more than its
// limit. Health that is not watched tells nothing. If the clock was set back since, starts that seem to lie ahead count as made
// now.
func (d *Dispatcher) recall(lanes []*Lane) {
	now := d.times.since(d.cfg.Clock.Now())
	shared := map[*account][]time.Duration{}
	for _, l := range lanes {
		l.mu.Lock()
		starts := d.recentStarts(&l.condition.Health, now)
		if w := l.pace.windows; w != nil {
			w.log.learn(starts, now, w.keep, w.span)
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

// recentStarts are the starts of the last minute that an endpoint's health tells of.
func (d *Dispatcher) recentStarts(h *godwit.Health, now time.Duration) (starts []time.Duration) {
	minute := d.times.minute()
	last := min(d.times.since(h.UpdatedAt), now)
	h.Recent.Each(minute, func(end time.Time, attempts int) {
		if at := min(d.times.since(end), last); at > now-minute {
			starts = append(starts, slices.Repeat([]time.Duration{at}, attempts)...)
		}
	})
	return starts
}
