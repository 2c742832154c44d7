package godwit

import (
	"math"
	"slices"
	"time"
)

// A Decision is the state of a delivery after an attempt.
type Decision struct {
	Status DeliveryStatus
	Reason Reason
	// At is when the next attempt is due, while Status is pending.
	At      time.Time
	Trigger Trigger // of that next attempt
}

// Moment is the time-bound context of a decision.
type Moment struct {
	Now      time.Time
	SunsetAt time.Time      // announced by the endpoint; zero when not
	Scale    TimeScale      // how much faster than nominal delays run
	Draw     func() float64 // uniform in [0,1), independent per process (EDS-BKO-2)
}

// Decide chooses what follows an attempt. It looks at the verdict, the policy and the run alone (EDS-OUT-8): no body, no
// latency, no other delivery. Run already counts the attempt that was just made.
func Decide(p *Policy, v *Verdict, run *Run, m Moment) Decision {
	switch {
	case v.Outcome == Accepted:
		return Decision{Status: DeliveryAccepted, Reason: v.Reason}
	case v.RefreshAndRetry && !run.Refreshed && !past(m.SunsetAt, m.Now):
		return Decision{Status: DeliveryPending, Reason: v.Reason, At: m.Now, Trigger: TriggerRefresh}
	case v.Outcome == Terminal:
		return Decision{Status: DeliveryTerminal, Reason: v.Reason}
	case past(m.SunsetAt, m.Now):
		return Decision{Status: DeliveryTerminal, Reason: ReasonSunset}
	}
	retry := run.Attempts - 1 // 0 for the first retry
	if retry >= p.MaxRetries {
		return Decision{Status: DeliveryExhausted, Reason: ReasonAttemptsExhausted}
	}
	if v.MoveTo != "" {
		return Decision{Status: DeliveryPending, Reason: v.Reason, At: m.Now, Trigger: TriggerMoved}
	}
	at := m.Now.Add(m.Scale.Real(p.Delay(retry, v.RetryAfter, m.Draw)))
	if end := run.FirstAt.Add(m.Scale.Real(p.MaxElapsed)); at.After(end) {
		reason := ReasonTimeExhausted
		if v.RetryAfter > 0 && m.Now.Add(m.Scale.Real(v.RetryAfter)).After(end) {
			reason = ReasonRetryAfterBudget
		}
		return Decision{Status: DeliveryExhausted, Reason: reason}
	}
	return Decision{Status: DeliveryPending, Reason: v.Reason, At: at, Trigger: TriggerRetry}
}

func past(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// Delay is the wait before retry n, where n = 0 is the first: full jitter over a doubling window (EDS-BKO-4), or the
// fixed schedule with up to a tenth added (decision 3). A Retry-After is a floor under it, and the draw comes on top so
// that deliveries held by the same answer do not return all at once (EDS T-6). Past the end of a schedule its last delay
// repeats.
func (p *Policy) Delay(n int, retryAfter time.Duration, draw func() float64) time.Duration {
	if len(p.Schedule) > 0 {
		d := p.Schedule[min(n, len(p.Schedule)-1)]
		if retryAfter > 0 && p.RetryAfterReplaces {
			return addJitter(retryAfter, retryAfter/10, draw)
		}
		d += time.Duration(draw() * float64(d) / 10)
		return max(d, addJitter(retryAfter, d/10, draw))
	}
	return addJitter(retryAfter, p.Window(n), draw)
}

// LongestDelay is the longest wait before a retry that the schedule alone leads to.
func (p *Policy) LongestDelay() time.Duration {
	if len(p.Schedule) > 0 {
		return slices.Max(p.Schedule) * 11 / 10
	}
	return p.Cap
}

func addJitter(floor, window time.Duration, draw func() float64) time.Duration {
	return floor + time.Duration(draw()*float64(window))
}

// Window is the width of the jitter window before retry n.
func (p *Policy) Window(n int) time.Duration {
	w := p.Base
	for range n {
		if w >= p.Cap/2 {
			return p.Cap
		}
		w *= 2
	}
	return min(w, p.Cap)
}

// TimeScale runs delays, windows and retentions faster than their nominal length; 0 and 1 are real time.
type TimeScale float64

// Real is how long a nominal duration takes.
func (s TimeScale) Real(d time.Duration) time.Duration {
	if s == 0 || s == 1 {
		return d
	}
	real := float64(d) / float64(s)
	if real >= math.MaxInt64 { // slowed down beyond what can be said: "longer than any budget" must not turn into the past
		return math.MaxInt64
	}
	return time.Duration(real)
}
