package dispatch

import (
	"slices"
	"sort"
	"time"

	"golang.org/x/time/rate"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// A startLog keeps the start times of the latest attempts, in order, on a timeline. Its size follows the number of entries.
type startLog struct {
	ring  []time.Duration
	first int // index of the oldest entry
	n     int
}

const smallLog = 16

// add records a start. The log keeps at most keep starts, and drops those older than span when it can.
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

// resize makes room for size starts, and drops the oldest if there are more.
func (s *startLog) resize(size int) {
	ring := make([]time.Duration, max(size, 1))
	kept := min(s.n, len(ring))
	for i := range kept {
		ring[i] = s.at(s.n - kept + i)
	}
	s.ring, s.first, s.n = ring, 0, kept
}

// at returns the i-th recorded start; the oldest is 0.
func (s *startLog) at(i int) time.Duration { return s.ring[(s.first+i)%len(s.ring)] }

// free returns when the next attempt may start, with at most count starts in any span. A count of 0 means no limit.
func (s *startLog) free(count int, span time.Duration) time.Duration {
	if s.n < count || count == 0 {
		return 0
	}
	return s.at(s.n-count) + span
}

// since returns how many attempts started after t, and when the first of them did.
func (s *startLog) since(t time.Duration) (n int, first time.Duration) {
	i := sort.Search(s.n, func(i int) bool { return s.at(i) > t })
	if i == s.n {
		return 0, 0
	}
	return s.n - i, s.at(i)
}

// learn replaces the log by starts from the store if those are more; otherwise the log's own exact times stay.
func (s *startLog) learn(starts []time.Duration, now time.Duration, keep int, span time.Duration) {
	if n, _ := s.since(now - span); n >= len(starts) {
		return
	}
	*s = startLog{}
	for _, at := range starts {
		s.add(at, keep, span)
	}
}

// rateWindows bound how many attempts a lane starts within any period (CCW-LIM-1, CCW-LIM-3). Deliveries above the bound wait
// and use up no attempt (CCW-LIM-5). Guarded by the lane.
type rateWindows struct {
	limits []godwit.RateWindow // with scaled durations
	minute *godwit.RateWindow  // the limit that receivers are told; nil when there is none
	keep   int
	span   time.Duration
	log    startLog
	// resume is when the first attempt may start after a change of the endpoint's owner.
	resume time.Duration
}

// newRateWindows makes the windows of a policy, or nil if it has none. Starts counted in old still count.
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
		w.log, w.resume = old.log, old.resume
		if w.log.n > w.keep {
			w.log.resize(w.keep)
		}
	}
	return w
}

// free returns when the next attempt may start.
func (w *rateWindows) free() (at time.Duration) {
	at = w.resume
	for i := range w.limits {
		at = max(at, w.log.free(w.limits[i].Count, w.limits[i].Per))
	}
	return at
}

// inherit waits until all starts up to a time have left the windows that are shorter than a minute. Of the longer ones the log
// knows the recorded starts.
func (w *rateWindows) inherit(at time.Duration, unrecorded int) {
	for i := range w.limits {
		if per := w.limits[i].Per; &w.limits[i] != w.minute {
			w.resume = max(w.resume, at+per)
		} else {
			for range min(unrecorded, w.limits[i].Count) {
				w.take(at)
			}
		}
	}
}

// take counts a start.
func (w *rateWindows) take(at time.Duration) { w.log.add(at, w.keep, w.span) }

// budget returns the rest of the minute's allowance.
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

// A pace bounds how fast a lane starts attempts: by a token bucket and by exact windows, as its policy says. It is guarded by
// its lane.
type pace struct {
	limiter *rate.Limiter // nil: no limit
	windows *rateWindows  // nil: no limit
	times   *timeline
	policy  *godwit.Policy
}

func newLimiter(policy *godwit.Policy) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(policy.Rate), max(policy.Burst, 1))
}

// follow applies a policy. Earlier starts still count.
func (p *pace) follow(policy *godwit.Policy, times *timeline) {
	if p.policy == nil || p.policy.Rate != policy.Rate || p.policy.Burst != policy.Burst {
		p.limiter = nil
		if policy.Rate != 0 {
			p.limiter = newLimiter(policy)
		}
	}
	if p.policy == nil || !slices.Equal(p.policy.Windows, policy.Windows) {
		p.windows = newRateWindows(policy, times.scale, p.windows)
	}
	p.policy, p.times = policy, times
}

// wait returns how long the next start has to wait. It takes nothing.
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

// inherit counts what a former owner of the endpoint may have started up to a time. Its results tell how many attempts it made
// in each minute, but not when; unrecorded is how many it may have begun without a result. An endpoint that was never tried has
// the zero time.
func (p *pace) inherit(until time.Time, unrecorded int) {
	if until.IsZero() {
		return
	}
	if p.limiter != nil {
		p.limiter = newLimiter(p.policy)
		p.limiter.AllowN(until, p.limiter.Burst())
	}
	if p.windows != nil {
		p.windows.inherit(p.times.since(until), unrecorded)
	}
}

// take counts a start, and returns the rest of the allowance.
func (p *pace) take(now time.Time) profile.Budget {
	if p.limiter != nil {
		p.limiter.AllowN(now, 1)
	}
	if p.windows != nil {
		p.windows.take(p.times.since(now))
	}
	return p.budget(now)
}

// budget returns the rest of the allowance that receivers are told.
func (p *pace) budget(now time.Time) profile.Budget {
	if p.windows == nil {
		return profile.Budget{}
	}
	return p.windows.budget(p.times.since(now), now)
}

// recall counts starts that an earlier process or another node made, as the endpoints' health recorded them. Health has a
// resolution of one minute; recall rounds so that it never counts too few, and a restart cannot exceed an endpoint's limit.
// Health without recorded minutes yields nothing. If the clock was set back since, starts in the future count as made now.
func (d *Dispatcher) recall(lanes []*Lane) {
	now := d.times.since(d.cfg.Clock.Now())
	for _, l := range lanes {
		l.mu.Lock()
		if w := l.pace.windows; w != nil {
			w.log.learn(d.recentStarts(&l.condition.Health, now), now, w.keep, w.span)
		}
		l.mu.Unlock()
	}
}

// recentStarts returns the starts of the last minute that an endpoint's health recorded.
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
