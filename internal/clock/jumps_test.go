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

// A time that was read before the clock was set back has the jump in it that this took back.
func TestReadingBeforeTheClockIsSetBack(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	hands := clock.NewManual(start)
	jumps := clock.NewJumps(hands)
	hands.Step(100 * 24 * time.Hour)
	hands.Advance(time.Minute)
	read := hands.Now()
	if by := jumps.Ahead(start, read); by != 100*24*time.Hour {
		t.Errorf("before it was set back: %s ahead", by)
	}
	hands.Step(-100 * 24 * time.Hour)
	if by := jumps.Ahead(start, read); by != 100*24*time.Hour {
		t.Errorf("a reading from before: %s ahead", by)
	}
	hands.Advance(time.Minute)
	if by := jumps.Ahead(start, hands.Now()); by != 0 {
		t.Errorf("a reading from afterwards: %s ahead", by)
	}
}
