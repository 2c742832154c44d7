package command

import (
	"context"
	"sync"
	"time"
)

// A clock reads the time and waits, by the functions of a Config.
type clock struct{ cfg *Config }

// now returns the time in the precision of stores.
func (c clock) now() time.Time { return c.cfg.Now().Truncate(time.Microsecond) }

// rest waits for d. It reports false if the context ended first.
func (c clock) rest(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	stop := c.cfg.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// A ticker sends on C at intervals, until it is stopped.
type ticker struct {
	C chan struct{}

	mu    sync.Mutex
	next  func() bool
	ended bool
}

func (c clock) newTicker(every time.Duration) *ticker {
	t := &ticker{C: make(chan struct{}, 1)}
	var schedule func()
	schedule = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ended {
			return
		}
		t.next = c.cfg.AfterFunc(every, func() {
			select {
			case t.C <- struct{}{}:
			default:
			}
			schedule()
		})
	}
	schedule()
	return t
}

func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.next()
}
