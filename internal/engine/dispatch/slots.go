package dispatch

import "sync"

// slots are the requests that may be on the wire at once, over all endpoints. When they run out, lanes wait in line and
// each gets one slot at a turn, so that no endpoint takes more than its share however much it has waiting.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []*Lane
}

// take gets a slot for the lane, or puts it in line. No lane stands in line while slots are free, so that give finds every
// lane that waits. Called with the lane locked.
func (s *slots) take(l *Lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 && len(s.waiting) == 0 {
		s.free--
		return true
	}
	if !l.inSlotLine {
		l.inSlotLine = true
		s.waiting = append(s.waiting, l)
	}
	return false
}

// give returns a slot: to the next lane in line that can use it, or to the free ones.
func (s *slots) give() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.free++
			s.mu.Unlock()
			return
		}
		l := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		l.inSlotLine = false
		s.mu.Unlock()
		if l.granted() {
			return
		}
	}
}

func (s *slots) inUse(total int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return total - s.free
}
