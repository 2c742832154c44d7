package clock_test

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

func TestJumps(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	hands := clock.NewManual(start)
	jumps := clock.NewJumps(hands)
	check := func(what string, since time.Time, want time.Duration) {
		t.Helper()
		if got := jumps.Since(since); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	hands.Advance(time.Hour)
	check("time that passes is no jump", start, 0)
	for range 100 {
		hands.Step(time.Second / 2)
		jumps.Look()
	}
	check("small corrections are no jump", start, 0)
	before := hands.Now()
	hands.Step(24 * time.Hour)
	check("a jump of a day", before, 24*time.Hour)
	check("seen from after it", hands.Now(), 0)
	hands.Advance(time.Hour)
	between := hands.Now()
	hands.Step(time.Hour)
	check("the second jump", between, time.Hour)
	check("both jumps", before, 25*time.Hour)
	hands.Step(-2 * time.Hour)
	check("two hours are taken back", before, 23*time.Hour)
	hands.Step(-23 * time.Hour)
	check("all is taken back", start, 0)
	hands.Step(-time.Hour)
	check("a clock that is set back has not jumped forward", start, 0)
	for range 40 {
		hands.Advance(time.Minute)
		hands.Step(time.Minute)
		jumps.Look()
	}
	check("many jumps", start, 40*time.Minute)
}

// The real clocks agree: reading them makes no jump.
func TestJumpsOfTheRealClock(t *testing.T) {
	begun := time.Now()
	jumps := clock.NewJumps(clock.Real{})
	if by := jumps.Since(begun); by != 0 {
		t.Errorf("the clock jumped by %s", by)
	}
}
