package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Under any load, no period holds more starts than its window allows, and no start waits longer than necessary.
func TestRateWindowsHoldInAnyStretchOfTime(t *testing.T) {
	for seed := range uint64(20) {
		draws := rand.New(rand.NewPCG(seed, 1))
		policy := &godwit.Policy{Windows: []godwit.RateWindow{
			{Count: 1 + draws.IntN(40), Per: time.Second}, {Count: 1 + draws.IntN(200), Per: time.Minute},
		}}
		w := newRateWindows(policy, 1, nil)
		var starts []time.Duration
		for now := time.Duration(0); len(starts) < 1000; {
			if at := w.free(); at > now {
				if busiest(starts, at-1, policy) {
					t.Fatalf("seed %d: waits for %s in vain", seed, at)
				}
				now = at
			}
			w.take(now)
			starts = append(starts, now)
			if draws.IntN(3) == 0 {
				now += time.Duration(draws.Int64N(int64(time.Second)))
			}
		}
		for i, at := range starts {
			for _, limit := range policy.Windows {
				if i >= limit.Count && at-starts[i-limit.Count] < limit.Per {
					t.Fatalf("seed %d: start %d at %s is one more than %d in %s", seed, i, at, limit.Count, limit.Per)
				}
			}
		}
	}
}

// busiest reports whether a start at t would have been within every window.
func busiest(starts []time.Duration, t time.Duration, p *godwit.Policy) bool {
	for _, limit := range p.Windows {
		n := 0
		for _, s := range starts {
			if s > t-limit.Per {
				n++
			}
		}
		if n >= limit.Count {
			return false
		}
	}
	return true
}

// The budget that a receiver is told: the limit of its minute, the rest of it, and when the oldest start leaves the minute.
func TestBudget(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	w := newRateWindows(&godwit.Policy{Windows: []godwit.RateWindow{{Count: 3, Per: time.Minute}}}, 1, nil)
	for i, want := range []struct {
		at        time.Duration
		remaining int
		reset     time.Duration
	}{{0, 2, time.Minute}, {10 * time.Second, 1, time.Minute}, {20 * time.Second, 0, time.Minute}, {60 * time.Second, 0, 70 * time.Second}, {200 * time.Second, 2, 260 * time.Second}} {
		w.take(want.at)
		b := w.budget(want.at, start.Add(want.at))
		if b.Limit != 3 || b.Remaining != want.remaining || !b.Reset.Equal(start.Add(want.reset)) {
			t.Errorf("start %d: %+v, want %+v", i, b, want)
		}
	}
	if b := newRateWindows(&godwit.Policy{Windows: []godwit.RateWindow{{Count: 3, Per: time.Second}}}, 1, nil).budget(0, start); b.Limit != 0 {
		t.Errorf("a budget of no minute: %+v", b)
	}
}

// A change of the windows keeps the counted starts: raising and lowering a limit does not reset them.
func TestChangedWindowsCountOn(t *testing.T) {
	minute := func(count int) *godwit.Policy {
		return &godwit.Policy{Windows: []godwit.RateWindow{{Count: count, Per: time.Minute}}}
	}
	w := newRateWindows(minute(40), 1, nil)
	for i := range 40 {
		w.take(time.Duration(i) * time.Second)
	}
	for count, free := range map[int]time.Duration{
		10: 90 * time.Second, // when the tenth last start leaves the minute
		40: 60 * time.Second,
		41: 0,
	} {
		if got := newRateWindows(minute(count), 1, w).free(); got != free {
			t.Errorf("%d a minute: free at %s, want %s", count, got, free)
		}
	}
	if scaled := newRateWindows(minute(1), 60, w); scaled.free() != 39*time.Second+time.Second {
		t.Errorf("sixty times as fast: free at %s", scaled.free())
	}
	if newRateWindows(&godwit.Policy{}, 1, w) != nil {
		t.Error("windows of a policy without any")
	}
}

// A new owner counts what the former one may have started: nothing for an endpoint that was never tried.
func TestInherit(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	until := began.Add(10 * time.Second)
	second, minute := godwit.RateWindow{Count: 50, Per: time.Second}, godwit.RateWindow{Count: 10, Per: time.Minute}
	for name, c := range map[string]struct {
		policy     godwit.Policy
		until      time.Time
		unrecorded int
		wait       time.Duration
	}{
		"a window of a second":            {godwit.Policy{Windows: []godwit.RateWindow{second}}, until, 0, time.Second},
		"both windows":                    {godwit.Policy{Windows: []godwit.RateWindow{second, minute}}, until, 4, time.Second},
		"a minute, all may be under way":  {godwit.Policy{Windows: []godwit.RateWindow{minute}}, until, 20, time.Minute},
		"a minute, some may be under way": {godwit.Policy{Windows: []godwit.RateWindow{minute}}, until, 9, 0},
		"a bucket":                        {godwit.Policy{Rate: 4, Burst: 100}, until, 0, 250 * time.Millisecond},
		"never tried":                     {godwit.Policy{Rate: 4, Burst: 100, Windows: []godwit.RateWindow{second, minute}}, time.Time{}, 0, 0},
	} {
		var p pace
		p.follow(&c.policy, &timeline{began: began, scale: 1})
		p.inherit(c.until, c.unrecorded)
		if got := p.wait(until); got != c.wait {
			t.Errorf("%s: waits %s, want %s", name, got, c.wait)
		}
	}
}

// A lane with few starts keeps a small log, whatever its limit.
func TestLogGrowsWithWhatIsInIt(t *testing.T) {
	var log startLog
	for i := range 10000 {
		log.add(time.Duration(i)*time.Minute, 100000, time.Minute)
	}
	if len(log.ring) != smallLog {
		t.Errorf("%d places for one start a minute", len(log.ring))
	}
	for i := range 200 {
		log.add(10000*time.Minute+time.Duration(i), 150, time.Minute)
	}
	if log.n != 150 || len(log.ring) != 150 {
		t.Errorf("keeps %d of %d", log.n, len(log.ring))
	}
}

// Earlier starts count once the endpoints are loaded, for a minute at most: also if the clock was set back since, and also
// those of another node.
func TestRecall(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	d := newIdle(hands)
	hands.Advance(time.Hour)
	now := hands.Now()
	for name, c := range map[string]struct {
		ended time.Time
		own   int // starts that this node made itself
		free  time.Duration
	}{
		"just now":              {now, 0, time.Hour + time.Minute},
		"30 s ago":              {now.Add(-30 * time.Second), 0, time.Hour + 30*time.Second},
		"long ago":              {now.Add(-10 * time.Minute), 0, 0},
		"by a clock set back":   {now.Add(5 * time.Hour), 0, time.Hour + time.Minute},
		"by another node":       {now, 1, time.Hour + time.Minute},
		"by this node, exactly": {now, 3, time.Hour + 20*time.Second},
	} {
		l := d.bareLane(godwit.Policy{}, 0)
		l.pace.windows = newRateWindows(&godwit.Policy{Windows: []godwit.RateWindow{{Count: 3, Per: time.Minute}}}, 1, nil)
		for range c.own {
			l.pace.windows.take(time.Hour - 40*time.Second)
		}
		for range 3 {
			l.condition.Recent.Add(c.ended, time.Minute, false)
		}
		l.condition.UpdatedAt = c.ended
		d.recall([]*Lane{l})
		if free := l.pace.windows.free(); free != c.free {
			t.Errorf("%s: free at %s, want %s", name, free, c.free)
		}
	}
}
