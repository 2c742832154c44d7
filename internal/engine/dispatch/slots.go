package dispatch

import "sync"

// slots are the requests that may be in flight at once, over all endpoints. When none are free, lanes wait in line and get one
// slot per turn, so that no endpoint gets more than its share.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []*Lane
}

// take takes a slot for the lane, or puts the lane in line. No lane is in line while slots are free, so give finds every
// waiting lane. Called with the lane locked.
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

// give returns a slot: to the next lane in line that can use it, or to the free slots.
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
