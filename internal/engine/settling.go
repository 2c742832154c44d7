package engine

import (
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// settling counts the events whose id is minted and whose commit is under way, by the time of their id. Whoever reads events
// in the order of their ids must not pass one that is still to come.
type settling struct {
	mu    sync.Mutex
	slots []settlingSlot // by time, few
}

type settlingSlot struct {
	at int64 // in units of settlingStep
	n  int
}

const settlingStep = 100 * time.Millisecond

// enter tells the time for ids that are minted from now on, and counts one that is under way until leave is called with the
// slot.
func (s *settling) enter(c clock.Clock) (now time.Time, slot int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = c.Now() // under the lock: nobody is told that this time is over
	slot = now.UnixNano() / int64(settlingStep)
	i := len(s.slots)
	for i > 0 && s.slots[i-1].at > slot {
		i--
	}
	if i > 0 && s.slots[i-1].at == slot {
		s.slots[i-1].n++
		return now, slot
	}
	s.slots = append(s.slots, settlingSlot{})
	copy(s.slots[i+1:], s.slots[i:])
	s.slots[i] = settlingSlot{at: slot, n: 1}
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

// oldest is the time before which nothing is under way.
func (s *settling) oldest(c clock.Clock) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.Now()
	if len(s.slots) > 0 {
		if at := time.Unix(0, s.slots[0].at*int64(settlingStep)).UTC(); at.Before(now) {
			return at
		}
	}
	return now
}

// Settled is a time before which no event will be added any more by this node: every one whose id was minted before it is
// stored, or never will be. It is now while nothing is being stored, and a tenth of a second or more behind else. Events of
// other nodes on the same store are not counted.
func (e *Engine) Settled() time.Time {
	return e.settles.oldest(e.clock).Truncate(time.Millisecond)
}
