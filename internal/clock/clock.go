// Package clock passes time in. Code below the wiring waits and reads the time through a Clock, so that a test can move the
// hours while sockets and stores are real.
package clock

import (
	"context"
	"sync"
	"time"
)

// A Clock tells the time and wakes callers.
type Clock interface {
	Now() time.Time
	// Steady returns the time since a fixed moment. Setting the machine's clock does not change it.
	Steady() time.Duration
	// AfterFunc runs f on its own goroutine once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer can be stopped before it fires.
type Timer interface {
	Stop() bool
}

// Wait waits for d on the clock; it reports false if ctx ended first.
func Wait(ctx context.Context, c Clock, d time.Duration) bool {
	passed := make(chan struct{})
	defer c.AfterFunc(d, func() { close(passed) }).Stop()
	select {
	case <-passed:
		return true
	case <-ctx.Done():
		return false
	}
}

// Earliest is the earlier of two times; the zero time stands for none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Real is the machine's clock.
type Real struct{}

// Now is the current time in UTC. It keeps the monotonic reading, so that a change of the machine's clock does not change a
// wait.
func (Real) Now() time.Time { return wall().UTC() }

// Steady returns the time since the machine's start, sleep included where the system counts it.
func (Real) Steady() time.Duration { return sinceBoot() }

// AfterFunc is time.AfterFunc.
func (Real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// SocketDeadline is the deadline of a socket after d. The runtime compares deadlines with the machine's clock, whatever clock the
// program goes by.
func SocketDeadline(d time.Duration) time.Time { return time.Now().Add(d) }

// Manual stands still until it is advanced.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	zero   time.Time // where Steady is 0; a step moves it
	timers map[*manualTimer]struct{}
	set    chan struct{} // closed and replaced when a timer is set
}

// NewManual starts at the given time.
func NewManual(start time.Time) *Manual {
	return &Manual{now: start.UTC(), zero: start.UTC(), timers: map[*manualTimer]struct{}{}, set: make(chan struct{})}
}

type manualTimer struct {
	clock *Manual
	at    time.Time
	f     func()
}

// Now is the time it was last advanced to.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Steady is how far it was advanced, without steps.
func (m *Manual) Steady() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now.Sub(m.zero)
}

// AfterFunc runs f when the clock is advanced to or past d from now.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &manualTimer{clock: m, at: m.now.Add(d), f: f}
	if d <= 0 {
		go f()
		return t
	}
	m.timers[t] = struct{}{}
	close(m.set)
	m.set = make(chan struct{})
	return t
}

// Await returns once a timer is set for exactly this time, so that moving the clock there fires it. It reports false if none is
// set within patience, which is real time.
func (m *Manual) Await(at time.Time, patience time.Duration) bool {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		set, waits := m.waitsFor(at)
		if waits {
			return true
		}
		select {
		case <-set:
		case <-limit.C:
			return false
		}
	}
}

func (m *Manual) waitsFor(at time.Time) (set <-chan struct{}, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t := range m.timers {
		waits = waits || t.at.Equal(at)
	}
	return m.set, waits
}

// Advance moves the time forward and fires due timers, earliest first, each at its own time.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	end := m.now.Add(d)
	for {
		var next *manualTimer
		for t := range m.timers {
			if !t.at.After(end) && (next == nil || t.at.Before(next.at)) {
				next = t
			}
		}
		if next == nil {
			break
		}
		m.now = next.at
		delete(m.timers, next)
		go next.f()
	}
	m.now = end
	m.mu.Unlock()
}

// Step sets the time without firing timers, as when an operator sets a machine's clock. Timers keep their remaining wait.
func (m *Manual) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.zero = m.now.Add(d), m.zero.Add(d)
	for t := range m.timers {
		t.at = t.at.Add(d)
	}
}

// NextTimer is when the earliest timer fires; ok is false when there is none.
func (m *Manual) NextTimer() (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t := range m.timers {
		if !ok || t.at.Before(at) {
			at, ok = t.at, true
		}
	}
	return at, ok
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, waiting := t.clock.timers[t]
	delete(t.clock.timers, t)
	return waiting
}
