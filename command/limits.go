package command

import (
	"sync"
	"time"
)

// limiter counts uses of a name within a window that begins with the first use. It remembers a bounded number of names.
// Beyond that it starts over, which allows some callers more uses and never refuses one wrongly.
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

// allow counts one use. If the limit is reached, it returns the time until the window ends.
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

// limits are those of the submissions that execute nothing.
type limits struct {
	perKey, perActor *limiter
	told             func() // of every refusal; may be nil
}

func newLimits(cfg *Config) *limits {
	minute := cfg.Scale(time.Minute)
	return &limits{newLimiter(cfg.DuplicatesPerKey, minute), newLimiter(cfg.DuplicatesPerActor, minute), cfg.Limited}
}

// key counts a repeat of a key. Its error is a *Refusal.
func (l *limits) key(tenant, key string, at time.Time) error {
	return l.count(l.perKey, tenant+"\x00"+key, at)
}

// actor counts a submission of an actor. Its error is a *Refusal.
func (l *limits) actor(caller Caller, at time.Time) error {
	return l.count(l.perActor, caller.Tenant+"\x00"+caller.Actor, at)
}

func (l *limits) count(in *limiter, name string, at time.Time) error {
	after, ok := in.allow(name, at)
	if ok {
		return nil
	}
	if l.told != nil {
		l.told()
	}
	return &Refusal{Code: RateLimited, Detail: "too many submissions that execute nothing; wait", RetryAfter: after}
}
