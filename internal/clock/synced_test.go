package clock_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

func TestSynced(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	machine := clock.NewManual(start)
	var log bytes.Buffer
	c := clock.NewSynced(machine, slog.New(slog.NewTextHandler(&log, nil)))
	check := func(what string, want time.Time, lines int) {
		t.Helper()
		if got := c.Now(); !got.Equal(want) {
			t.Errorf("%s: the clock shows %s, want %s", what, got, want)
		}
		if n := strings.Count(log.String(), "\n"); n != lines {
			t.Errorf("%s: %d lines in the log, want %d:\n%s", what, n, lines, &log)
		}
	}
	observe := func(at time.Time, trip time.Duration) { // at the middle of the round trip
		middle := machine.Steady()
		c.Observe(at, middle-trip/2, middle+trip/2)
	}
	check("before the first observation", start, 0)

	database := start.Add(-time.Hour)
	observe(database, 10*time.Millisecond)
	check("a machine that is an hour ahead", database, 1)
	machine.Advance(time.Minute)
	database = database.Add(time.Minute)
	check("a minute later", database, 1)
	machine.Step(24 * time.Hour)
	check("after the machine's clock was set", database, 1)
	if ahead := c.MachineAhead(); ahead != 25*time.Hour {
		t.Errorf("the machine is ahead by %s", ahead)
	}

	observe(database.Add(90*time.Millisecond), 0)
	check("off by less than the tolerance", database, 1)
	observe(database.Add(500*time.Millisecond), time.Second)
	check("an answer that took a second may mean no difference", database, 1)
	database = database.Add(500 * time.Millisecond)
	observe(database, 100*time.Millisecond)
	check("half a second off", database, 1)
	database = database.Add(-time.Minute)
	observe(database, 0)
	check("another database takes over, a minute behind", database, 2)
	observe(database, 0)
	check("the next observation", database, 2)
}

// To a program that looks for jumps, a machine whose clock is set did not jump; a database whose clock jumps did.
func TestJumpsOfASyncedClock(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	machine := clock.NewManual(start)
	c := clock.NewSynced(machine, slog.New(slog.DiscardHandler))
	c.Observe(start, 0, 0)
	jumps := clock.NewJumps(c)
	machine.Step(time.Hour)
	if by := jumps.Since(start); by != 0 {
		t.Errorf("the clock jumped by %s when the machine's was set", by)
	}
	c.Observe(start.Add(time.Hour), 0, 0)
	if by := jumps.Since(start); by != time.Hour {
		t.Errorf("the clock jumped by %s when the database's jumped by an hour", by)
	}
}
