package command

import (
	"sync"
	"time"
)

// limiter counts what comes under a name within a window that begins with the first. It remembers a bounded number of names; when
// there are more it starts over, which lets some callers through once more and refuses none wrongly.
type limiter struct {
	limit  int
	window time.Duration
	most   int

	mu    sync.Mutex
	names map[string]spell
}

// A spell is the window of one name.
type spell struct {
	until time.Time
	count int
}

func newLimiter(limit int, window time.Duration) *limiter {
	return &limiter{limit: limit, window: window, most: 1 << 16, names: map[string]spell{}}
}

// allow counts one more. When there are too many, it says after how long there will be room.
func (l *limiter) allow(name string, at time.Time) (time.Duration, bool) {
	if l.limit <= 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.names[name]
	if !known && len(l.names) >= l.most {
		l.forget(at)
	}
	if !at.Before(s.until) || s.until.Sub(at) > l.window { // over, or the clock was set back
		s = spell{until: at.Add(l.window)}
	}
	if s.count >= l.limit {
		return s.until.Sub(at), false
	}
	s.count++
	l.names[name] = s
	return 0, true
}

func (l *limiter) forget(at time.Time) {
	for name, s := range l.names {
		if !at.Before(s.until) {
			delete(l.names, name)
		}
	}
	if len(l.names) >= l.most {
		clear(l.names)
	}
}
