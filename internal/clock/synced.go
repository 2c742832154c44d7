package clock

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// syncTolerance is how far a Synced clock may be off before it is corrected.
	syncTolerance = 100 * time.Millisecond
	// syncNotable is the smallest difference that is logged.
	syncNotable = time.Second
)

// Synced shows the time of a database that several nodes share, so that times which one node stores mean the same to the others
// however far the clocks of their machines are apart. It is the machine's steady clock plus an offset: setting the machine's
// clock does not change it.
type Synced struct {
	machine Clock
	log     *slog.Logger

	offset atomic.Int64 // the database's time, in nanoseconds since 1970, minus the machine's steady time

	mu    sync.Mutex
	first bool // nothing was observed yet
}

// NewSynced makes a clock that shows the machine's time until the first observation.
func NewSynced(machine Clock, log *slog.Logger) *Synced {
	s := &Synced{machine: machine, log: log, first: true}
	s.offset.Store(machine.Now().UnixNano() - int64(machine.Steady()))
	return s
}

// Now is the database's time in UTC.
func (s *Synced) Now() time.Time {
	return time.Unix(0, int64(s.machine.Steady())+s.offset.Load()).UTC()
}

// Steady returns the machine's steady time.
func (s *Synced) Steady() time.Duration { return s.machine.Steady() }

// AfterFunc waits by the machine's clock.
func (s *Synced) AfterFunc(d time.Duration, f func()) Timer { return s.machine.AfterFunc(d, f) }

// MachineAhead returns how far the machine's clock is ahead of the database's.
func (s *Synced) MachineAhead() time.Duration { return s.machine.Now().Round(0).Sub(s.Now()) }

// Observe tells the clock that the database's time was at, at a moment between two readings of the steady clock. It corrects the
// clock if it was off by more than 100 ms at every moment between the two, so that a slow answer alone corrects nothing.
func (s *Synced) Observe(at time.Time, before, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Duration(s.offset.Load())
	low, high := time.Duration(at.UnixNano())-after, time.Duration(at.UnixNano())-before
	first := s.first
	s.first = false
	if !first && now >= low-syncTolerance && now <= high+syncTolerance {
		return
	}
	offset := low + (high-low)/2
	s.offset.Store(int64(offset))
	switch by := offset - now; {
	case by.Abs() <= syncNotable:
	case first:
		s.log.Warn("clock of this machine differs from the database's, which is used", "ahead", (-by).Round(time.Millisecond).String())
	default:
		s.log.Warn("clock corrected, since the database's clock has changed", "by", by.Round(time.Millisecond).String())
	}
}
