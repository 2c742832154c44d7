package clock

import (
	"testing"
	"time"
)

func TestManualFiresInOrderAtTheirTimes(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := NewManual(start)
	fired := make(chan string, 3)
	m.AfterFunc(2*time.Hour, func() { fired <- "two" })
	m.AfterFunc(time.Hour, func() { fired <- "one" })
	stopped := m.AfterFunc(90*time.Minute, func() { fired <- "stopped" })
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop tells whether the timer was waiting")
	}
	if at, ok := m.NextTimer(); !ok || !at.Equal(start.Add(time.Hour)) {
		t.Errorf("next timer at %v", at)
	}
	m.Advance(time.Hour)
	if got := <-fired; got != "one" {
		t.Errorf("fired %s first", got)
	}
	m.Advance(3 * time.Hour)
	if got := <-fired; got != "two" {
		t.Errorf("fired %s second", got)
	}
	if !m.Now().Equal(start.Add(4 * time.Hour)) {
		t.Errorf("now %v", m.Now())
	}
	if _, ok := m.NextTimer(); ok {
		t.Error("a timer is left")
	}
	m.AfterFunc(0, func() { fired <- "now" })
	if got := <-fired; got != "now" {
		t.Errorf("fired %s", got)
	}
}

func TestManualTellsOfTimers(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := NewManual(start)
	m.AfterFunc(time.Hour, func() {})
	if m.Await(start.Add(time.Minute), time.Millisecond) {
		t.Error("a timer for another time counts")
	}
	if !m.Await(start.Add(time.Hour), 0) {
		t.Error("a timer that is set does not count")
	}
	found := make(chan bool)
	go func() { found <- m.Await(start.Add(time.Minute), time.Minute) }()
	m.AfterFunc(2*time.Minute, func() {})
	m.AfterFunc(time.Minute, func() {})
	if !<-found {
		t.Error("a timer that is set meanwhile does not count")
	}
}
