package clock

import (
	"testing"
	"time"
)

func TestBootClock(t *testing.T) {
	wall, monotonic, since, asked := 50*365*24*time.Hour, time.Minute, 3*time.Hour, 0
	c := &bootClock{
		read: func() (time.Duration, time.Duration) { return wall, monotonic },
		boot: func() (time.Duration, bool) { asked++; return since, true },
	}
	pass := func(d time.Duration) { wall, monotonic, since = wall+d, monotonic+d, since+d }
	check := func(what string, want time.Duration, calls int) {
		t.Helper()
		if got := c.now(); got != want || asked != calls {
			t.Errorf("%s: the clock shows %s after %d system calls, want %s after %d", what, got, asked, want, calls)
		}
	}
	check("at first", 3*time.Hour, 1)
	pass(time.Hour)
	check("an hour later", 4*time.Hour, 1)
	wall, since = wall+8*time.Hour, since+8*time.Hour
	check("after a sleep", 12*time.Hour, 2)
	pass(time.Second)
	check("a second later", 12*time.Hour+time.Second, 2)
	wall += 24 * time.Hour
	check("after the wall clock was set", 12*time.Hour+time.Second, 3)
	wall += shiftTolerance / 2
	check("after a small correction", 12*time.Hour+time.Second, 3)
}

// A process that is held up during a measurement does not move the clock.
func TestBootClockKeepsWhatItKnows(t *testing.T) {
	wall, monotonic, held := 50*365*24*time.Hour, time.Minute, time.Duration(0)
	c := &bootClock{
		read: func() (time.Duration, time.Duration) { return wall, monotonic },
		boot: func() (time.Duration, bool) {
			since := time.Hour + monotonic
			wall, monotonic = wall+held, monotonic+held
			return since, true
		},
	}
	if got := c.now(); got != time.Hour+monotonic {
		t.Fatalf("the clock shows %s", got)
	}
	held = time.Second
	wall += time.Hour
	at := time.Hour + monotonic
	if got := c.now(); got != at {
		t.Errorf("the clock shows %s after a measurement that took a second, want %s", got, at)
	}
}

// Reading it costs no system call. Compare with BenchmarkBootTime.
func BenchmarkSteady(b *testing.B) {
	for b.Loop() {
		Real{}.Steady()
	}
}

func BenchmarkBootTime(b *testing.B) {
	for b.Loop() {
		boot.boot()
	}
}
