package godwit

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

func edsPolicy() Policy {
	return Policy{Base: time.Second, Cap: 600 * time.Second, MaxRetries: 100, MaxElapsed: 23 * time.Hour, DedupWindow: 24 * time.Hour}
}

func fixed(f float64) func() float64 { return func() float64 { return f } }

func TestDelayIsUniformInAGrowingWindow(t *testing.T) {
	trace.Covers(t, "EDS-BKO-1", "EDS-BKO-4", "EDS-SRV-3")
	p := edsPolicy()
	random := rand.New(rand.NewPCG(1, 2))
	const draws = 10000
	previous := 0.0
	for n := range 16 {
		window := math.Min(600, math.Pow(2, float64(n)))
		var samples []float64
		sum := 0.0
		for range draws {
			d := p.Delay(n, 0, random.Float64).Seconds()
			if d < 0 || d > window {
				t.Fatalf("retry %d: delay %g outside [0, %g]", n, d, window)
			}
			samples = append(samples, d/window)
			sum += d
		}
		sort.Float64s(samples)
		worst := 0.0
		for i, s := range samples {
			worst = math.Max(worst, math.Abs(s-float64(i)/draws))
		}
		if limit := 1.95 / math.Sqrt(draws); worst > limit { // Kolmogorov-Smirnov, p = 0.001
			t.Errorf("retry %d: not uniform, distance %g over %g", n, worst, limit)
		}
		if mean := sum / draws; mean < previous*0.97 {
			t.Errorf("retry %d: mean delay fell from %g to %g", n, previous, mean)
		} else {
			previous = mean
		}
	}
	if got := p.Window(200); got != p.Cap {
		t.Errorf("window of retry 200 = %v, want the cap", got)
	}
}

func TestRetryAfterIsAFloor(t *testing.T) {
	trace.Covers(t, "EDS-BKO-7", "EDS-RAF-3", "EDS-SEC-DOS-2")
	p := edsPolicy()
	for _, c := range []struct {
		draw       float64
		retryAfter time.Duration
	}{{0, 4 * time.Second}, {0.2, 4 * time.Second}, {0.999, 4 * time.Second}, {0.5, 0}} {
		got := p.Delay(0, c.retryAfter, fixed(c.draw))
		if got < c.retryAfter || got > c.retryAfter+p.Window(0) {
			t.Errorf("draw %g with Retry-After %v: delay %v outside [%v, %v]", c.draw, c.retryAfter, got, c.retryAfter, c.retryAfter+p.Window(0))
		}
	}
}

func TestFixedScheduleIsNeverShortened(t *testing.T) {
	trace.Covers(t, "EDS-BKO-6")
	p := edsPolicy()
	p.Schedule = []time.Duration{time.Minute, 5 * time.Minute}
	seen := map[time.Duration]bool{}
	for _, f := range []float64{0, 0.3, 0.999} {
		d := p.Delay(1, 0, fixed(f))
		seen[d] = true
		if d < 5*time.Minute || d > 5*time.Minute+30*time.Second {
			t.Errorf("draw %g: %v", f, d)
		}
	}
	if len(seen) != 3 {
		t.Error("a fixed schedule has no jitter")
	}
}

func TestRetryAfterUnderASchedule(t *testing.T) {
	floor, replacing := edsPolicy(), edsPolicy()
	floor.Schedule = []time.Duration{time.Minute, 5 * time.Minute}
	replacing.Schedule, replacing.RetryAfterReplaces = floor.Schedule, true
	for _, c := range []struct {
		policy     *Policy
		n          int
		retryAfter time.Duration
		least      time.Duration
		most       time.Duration
	}{
		{&floor, 0, 0, time.Minute, 66 * time.Second},
		{&floor, 0, 7 * time.Second, time.Minute, 66 * time.Second},
		{&floor, 0, 10 * time.Minute, 10 * time.Minute, 10*time.Minute + 7*time.Second},
		{&floor, 9, 0, 5 * time.Minute, 330 * time.Second}, // past its end the last delay repeats
		{&replacing, 0, 0, time.Minute, 66 * time.Second},
		{&replacing, 0, 10 * time.Second, 10 * time.Second, 11 * time.Second}, // even if it is shorter
		{&replacing, 1, 10 * time.Minute, 10 * time.Minute, 11 * time.Minute},
	} {
		seen := map[time.Duration]bool{}
		for _, f := range []float64{0, 0.5, 0.999} {
			d := c.policy.Delay(c.n, c.retryAfter, fixed(f))
			seen[d] = true
			if d < c.least || d > c.most {
				t.Errorf("replaces %v, retry %d, asked for %v, draw %g: %v outside [%v, %v]",
					c.policy.RetryAfterReplaces, c.n, c.retryAfter, f, d, c.least, c.most)
			}
		}
		if len(seen) != 3 || !seen[c.least] {
			t.Errorf("retry %d, asked for %v: delays %v", c.n, c.retryAfter, seen)
		}
	}
}

// The decision takes no HTTP type: outcomes and retries do not depend on the transport.
func TestDecide(t *testing.T) {
	trace.Covers(t, "EDS-SCP-5", "EDS-ATT-5", "EDS-OUT-8")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := edsPolicy()
	p.MaxRetries = 3
	cases := map[string]struct {
		verdict Verdict
		run     Run
		now     time.Time
		sunset  time.Time
		status  DeliveryStatus
		reason  Reason
	}{
		"accepted":                    {Verdict{Outcome: Accepted, Reason: ReasonAccepted}, Run{Attempts: 1}, start, time.Time{}, DeliveryAccepted, ReasonAccepted},
		"terminal":                    {Verdict{Outcome: Terminal, Reason: ReasonGone}, Run{Attempts: 1}, start, time.Time{}, DeliveryTerminal, ReasonGone},
		"transient":                   {Verdict{Outcome: Transient, Reason: ReasonStatus}, Run{Attempts: 1}, start, time.Time{}, DeliveryPending, ReasonStatus},
		"last retry":                  {Verdict{Outcome: Transient, Reason: ReasonStatus}, Run{Attempts: 3}, start, time.Time{}, DeliveryPending, ReasonStatus},
		"retries used up":             {Verdict{Outcome: Transient, Reason: ReasonStatus}, Run{Attempts: 4}, start, time.Time{}, DeliveryExhausted, ReasonAttemptsExhausted},
		"time used up":                {Verdict{Outcome: Transient, Reason: ReasonStatus}, Run{Attempts: 1}, start.Add(23 * time.Hour), time.Time{}, DeliveryExhausted, ReasonTimeExhausted},
		"retry-after beyond budget":   {Verdict{Outcome: Transient, RetryAfter: 24 * time.Hour}, Run{Attempts: 1}, start, time.Time{}, DeliveryExhausted, ReasonRetryAfterBudget},
		"retry-after of forty digits": {Verdict{Outcome: Transient, RetryAfter: math.MaxInt64 / 4}, Run{Attempts: 1}, start, time.Time{}, DeliveryExhausted, ReasonRetryAfterBudget},
		"first 401":                   {Verdict{Outcome: Terminal, Reason: ReasonUnauthorized, RefreshAndRetry: true}, Run{Attempts: 1}, start, time.Time{}, DeliveryPending, ReasonUnauthorized},
		"second 401":                  {Verdict{Outcome: Terminal, Reason: ReasonUnauthorized, RefreshAndRetry: true}, Run{Attempts: 2, Refreshed: true}, start, time.Time{}, DeliveryTerminal, ReasonUnauthorized},
		"transient before sunset":     {Verdict{Outcome: Transient, Reason: ReasonStatus}, Run{Attempts: 1}, start, start.Add(time.Second), DeliveryPending, ReasonStatus},
		"transient after sunset":      {Verdict{Outcome: Transient, Reason: ReasonStatus}, Run{Attempts: 1}, start, start, DeliveryTerminal, ReasonSunset},
		"accepted after sunset":       {Verdict{Outcome: Accepted, Reason: ReasonAccepted}, Run{Attempts: 1}, start, start, DeliveryAccepted, ReasonAccepted},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.run.FirstAt = start
			moment := Moment{Now: c.now, SunsetAt: c.sunset, Draw: fixed(0.5)}
			got := Decide(&p, &c.verdict, &c.run, moment)
			if got.Status != c.status || got.Reason != c.reason {
				t.Fatalf("got %s/%s, want %s/%s", got.Status, got.Reason, c.status, c.reason)
			}
			if (got.Status == DeliveryPending) == got.At.IsZero() {
				t.Errorf("pending %v with next attempt at %v", got.Status == DeliveryPending, got.At)
			}
			if again := Decide(&p, &c.verdict, &c.run, moment); again != got {
				t.Errorf("equal inputs gave %v, then %v", got, again)
			}
		})
	}
}

func TestTimeScale(t *testing.T) {
	for scale, want := range map[TimeScale]time.Duration{0: time.Hour, 1: time.Hour, 60: time.Minute} {
		if got := scale.Real(time.Hour); got != want {
			t.Errorf("scale %g: %v, want %v", scale, got, want)
		}
	}
}

// A scale that slows time down must not turn "longer than any budget" into the past.
func TestScaledTimeDoesNotOverflow(t *testing.T) {
	p := edsPolicy()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const forever = time.Duration(math.MaxInt64 / 4)
	got := Decide(&p, &Verdict{Outcome: Transient, RetryAfter: forever}, &Run{Attempts: 1, FirstAt: now},
		Moment{Now: now, Scale: 0.001, Draw: fixed(0.5)})
	if got.Status != DeliveryExhausted || got.Reason != ReasonRetryAfterBudget {
		t.Errorf("got %+v", got)
	}
}
