package command

import (
	"context"
	"sync"
	"time"
)

const (
	maxSteps       = 256
	advanceTimeout = 30 * time.Second
)

// errStopped answers a step that arrives after the committer has stopped.
var errStopped error = &Refusal{Code: ExecutorStopping, Detail: "the executor is shutting down"}

// committer writes steps in shared transactions: while one transaction is written, the next batch fills. A single step
// does not wait for others.
type committer struct {
	store Store
	now   func() time.Time

	mu      sync.Mutex
	queue   []*pendingStep
	wake    chan struct{}
	stopped bool
}

type pendingStep struct {
	step *Step
	done chan stepDone
}

type stepDone struct {
	result Result
	err    error
}

func newCommitter(s Store, now func() time.Time) *committer {
	return &committer{store: s, now: now, wake: make(chan struct{}, 1)}
}

// advance writes one step and waits for the result. It ignores the caller's cancellation, because the executor must know
// whether the step was stored.
func (c *committer) advance(step *Step) (Result, error) {
	p := &pendingStep{step: step, done: make(chan stepDone, 1)}
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return Result{}, errStopped
	}
	c.queue = append(c.queue, p)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	d := <-p.done
	return d.result, d.err
}

// run writes batches until it is stopped, and then writes the remaining steps.
func (c *committer) run() {
	for range c.wake {
		for {
			batch, stopped := c.take()
			if len(batch) == 0 {
				if stopped {
					return
				}
				break
			}
			c.write(batch)
		}
	}
}

func (c *committer) take() ([]*pendingStep, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.queue), maxSteps)
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	if len(c.queue) == 0 {
		c.queue = nil
	}
	return batch, c.stopped
}

// write stores a batch. If that fails, it stores each step by itself, so that a step that cannot be stored does not block
// the others.
func (c *committer) write(batch []*pendingStep) {
	steps := make([]*Step, len(batch))
	for i, p := range batch {
		steps[i] = p.step
	}
	results, err := c.advanceAll(steps)
	if err != nil && len(batch) > 1 {
		for _, p := range batch {
			c.write([]*pendingStep{p})
		}
		return
	}
	for i, p := range batch {
		if err != nil {
			p.done <- stepDone{err: err}
		} else {
			p.done <- stepDone{result: results[i]}
		}
	}
}

func (c *committer) advanceAll(steps []*Step) ([]Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), advanceTimeout)
	defer cancel()
	return c.store.Advance(ctx, c.now(), steps)
}

func (c *committer) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
