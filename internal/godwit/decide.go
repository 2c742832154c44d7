package godwit

import (
	"math"
	"time"
)

// A Decision is the next state of a delivery after an attempt.
type Decision struct {
	Status DeliveryStatus
	Reason Reason
	// At is when the next attempt is due, while Status is pending.
	At      time.Time
	Trigger Trigger // trigger of that next attempt
}

// Moment holds the times and randomness that a decision depends on.
type Moment struct {
	Now      time.Time
	SunsetAt time.Time      // announced by the endpoint; zero if not
	Scale    TimeScale      // how much faster than nominal delays run
	Draw     func() float64 // uniform in [0,1), independent per process (EDS-BKO-2)
}

// Decide determines the next state after an attempt. It depends only on the verdict, the policy and the run (EDS-OUT-8):
// not on the body, the latency or other deliveries. Run already counts the attempt that was just made.
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

// TimeScale shortens delays, windows and retentions by this factor; 0 and 1 are real time.
type TimeScale float64

// Real returns the real length of a nominal duration.
func (s TimeScale) Real(d time.Duration) time.Duration {
	if s == 0 || s == 1 {
		return d
	}
	real := float64(d) / float64(s)
	if real >= math.MaxInt64 { // too long for a Duration: it must not overflow into the past
		return math.MaxInt64
	}
	return time.Duration(real)
}
