package engine

import (
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// settling knows the events whose id is minted and whose commit is under way, by the time of their id. A reader of events
// in the order of their ids must not pass one that is still to come, and must not lose sight of one that it was shown.
type settling struct {
	mu    sync.Mutex
	slots []settlingSlot // by time, few
	told  int64          // latest time that a reader was told is over, in Unix nanoseconds; it never goes back
}

// A settlingSlot counts the events under way of one settlingStep.
type settlingSlot struct {
	at    int64 // in units of settlingStep
	n     int
	first int64 // time of the earliest id, in Unix nanoseconds
}

const (
	// settlingStep is how finely times are told apart. While events are stored without a pause, an event is shown up to
	// one step later than it could be.
	settlingStep = 5 * time.Millisecond
	// maxSettlingLead bounds how far ids may run ahead of a clock that was set back. Beyond it the order of ids gives way.
	maxSettlingLead = time.Minute
)

// enter returns the time for ids that are minted from now on, and counts one event as under way until leave is called
// with the slot. The time is never one that a reader was told is over, unless the clock was set back a long way.
func (s *settling) enter(c clock.Clock) (now time.Time, slot int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = c.Now() // under the lock, so that no reader is told meanwhile that this time is over
	if lead := time.Duration(s.told - now.UnixNano()); lead > 0 && lead <= maxSettlingLead {
		now = time.Unix(0, s.told).UTC()
	}
	at := now.UnixNano()
	slot = at / int64(settlingStep)
	i := len(s.slots)
	for i > 0 && s.slots[i-1].at > slot {
		i--
	}
	if i > 0 && s.slots[i-1].at == slot {
		same := &s.slots[i-1]
		same.n++
		same.first = min(same.first, at)
		return now, slot
	}
	s.slots = append(s.slots, settlingSlot{})
	copy(s.slots[i+1:], s.slots[i:])
	s.slots[i] = settlingSlot{at: slot, n: 1, first: at}
	return now, slot
}

func (s *settling) leave(slot int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		if s.slots[i].at != slot {
			continue
		}
		if s.slots[i].n--; s.slots[i].n == 0 {
			s.slots = append(s.slots[:i], s.slots[i+1:]...)
		}
		return
	}
}

// over is the time before which nothing is under way. It never goes back.
func (s *settling) over(c clock.Clock) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := c.Now().UnixNano()
	if len(s.slots) > 0 {
		at = min(at, s.slots[0].first)
	}
	s.told = max(s.told, at)
	return time.Unix(0, s.told).UTC()
}

// Settled is a time before which this node adds no more events: every event whose id was minted before it is stored, or
// never will be. It never goes back. It is now while nothing is being stored; under load it lags behind by a commit and
// settlingStep. Events of other nodes on the same store are not counted.
func (e *Engine) Settled() time.Time {
	return e.settles.over(e.clock).Truncate(time.Millisecond)
}
