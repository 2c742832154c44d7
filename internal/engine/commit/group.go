package commit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// ErrStopping reports that the group accepts no more operations.
var ErrStopping = errors.New("shutting down")

const (
	// MaxRows bounds the rows of requests in one transaction, and separately the rows of records. A single larger request gets
	// a transaction of its own.
	MaxRows = 1024
	// MaxPart bounds the rows of background requests in one transaction.
	MaxPart = 256

	maxOps   = 1024
	crowd    = 8 // a last batch of at least this size means load
	timeout  = 30 * time.Second
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// Store writes batches.
type Store interface {
	Commit(ctx context.Context, b *store.Batch) (*store.Committed, error)
}

// Config configures a group.
type Config struct {
	Store Store
	Log   *slog.Logger
	Clock clock.Clock
	// Pace is the clock for pauses between transactions. Tests that move Clock by hand leave this one running.
	Pace clock.Clock
	// Linger is how long a transaction waits for further operations under load.
	Linger time.Duration
	// Measured is called after each transaction. Defaults to nothing.
	Measured func(requests, records int, took time.Duration, err error)
	// Fenced is called with the number of results that a transaction refused. Defaults to nothing.
	Fenced func(results int)
	// OnNotice is called after a notice is stored; it must not block. Defaults to nothing.
	OnNotice func(godwit.Notice)
	// ConfigConfirmed is called when a transaction has found the config version to be the store's. The time is that before the
	// transaction, on the steady clock of Pace. Defaults to nothing.
	ConfigConfirmed func(version int64, at time.Duration)
}

// A Group gathers requests and records and writes them in shared transactions. Make it with New, start it with Run.
type Group struct {
	cfg Config

	mu         sync.Mutex
	foreground *queue[*requestOp]
	background *queue[*requestOp]
	records    *queue[*Record]
	stopping   bool
	failing    error
	last       int           // size of the last batch
	limit      limit         // bound on records in a transaction
	filled     int           // size at which a lingering batch is written at once; 0: no batch lingers
	work       chan struct{} // has one token when there is work
	full       chan struct{} // has one token when a lingering batch has filled up
	idle       *sync.Cond    // signalled when nothing is queued or being written
	busy       bool
}

// New prepares a group.
func New(cfg Config) *Group {
	if cfg.Measured == nil {
		cfg.Measured = func(int, int, time.Duration, error) {}
	}
	if cfg.OnNotice == nil {
		cfg.OnNotice = func(godwit.Notice) {}
	}
	if cfg.ConfigConfirmed == nil {
		cfg.ConfigConfirmed = func(int64, time.Duration) {}
	}
	weigh := func(op *requestOp) int { return op.weight }
	g := &Group{
		cfg: cfg, limit: limit{rows: MaxRows}, work: make(chan struct{}, 1), full: make(chan struct{}, 1),
		foreground: newQueue(weigh), background: newQueue(weigh), records: newQueue((*Record).rows),
	}
	g.idle = sync.NewCond(&g.mu)
	return g
}

// Do stores a request and waits for it.
func (g *Group) Do(r Request) Answer { return g.do(r, g.foreground) }

// DoInBackground stores a request after all foreground requests: a transaction carries at most MaxPart rows of background
// requests.
func (g *Group) DoInBackground(r Request) Answer { return g.do(r, g.background) }

func (g *Group) do(r Request, q *queue[*requestOp]) Answer {
	op := requestOps.Get().(*requestOp)
	op.Request, op.weight = r, r.rows()
	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		return Answer{Err: ErrStopping}
	}
	q.push(r.Tenant, op)
	g.notify()
	g.mu.Unlock()
	answer := <-op.done
	op.Request = Request{} // the writer does not read it again
	requestOps.Put(op)
	return answer
}

// Add queues a record. It never blocks: the lanes' windows bound the number of records.
func (g *Group) Add(r *Record) {
	g.mu.Lock()
	g.records.push(r.Result.Delivery.TenantID, r)
	g.notify()
	g.mu.Unlock()
}

// Write queues a record. The channel receives the result of the first try to write it. After an error the record stays queued,
// unless the error is ErrStopping.
func (g *Group) Write(r *Record) <-chan error {
	written := make(chan error, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		written <- ErrStopping
		return written
	}
	r.written = written
	g.records.push(r.Result.Delivery.TenantID, r)
	g.notify()
	return written
}

// notify is called with mu held.
func (g *Group) notify() {
	signal(g.work)
	if g.filled > 0 && g.queued() >= g.filled {
		signal(g.full)
	}
}

// queued counts the operations that a lingering transaction waits for.
func (g *Group) queued() int { return g.foreground.length + g.records.length }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run writes until Stop is called. After a failed transaction it pauses, up to a second. After Stop a failed transaction ends
// Run, so that an unreachable store does not keep the process from stopping.
func (g *Group) Run() {
	var pause time.Duration
	for range g.work {
		g.linger()
		b, stop := g.take()
		switch {
		case b.empty() || g.write(b):
			pause = 0
		case stop:
			g.abandon()
			return
		default:
			pause = min(max(2*pause, minPause), maxPause)
			g.pause(pause, nil)
		}
		if g.finished() && stop {
			return
		}
	}
}

// pause waits for d, or for a token on early.
func (g *Group) pause(d time.Duration, early <-chan struct{}) {
	passed := make(chan struct{})
	defer g.cfg.Pace.AfterFunc(d, func() { close(passed) }).Stop()
	select {
	case <-passed:
	case <-early:
	}
}

// linger waits, under load, until as many operations are queued as the last batch held, at most Config.Linger.
func (g *Group) linger() {
	g.mu.Lock()
	if g.last < crowd || g.queued() >= g.last || g.stopping {
		g.mu.Unlock()
		return
	}
	g.filled = g.last
	select {
	case <-g.full:
	default:
	}
	g.mu.Unlock()
	g.pause(g.cfg.Linger, g.full)
	g.mu.Lock()
	g.filled = 0
	g.mu.Unlock()
}

// take removes the operations of the next transaction from the queues.
func (g *Group) take() (b batch, stop bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b.requests = g.foreground.take(maxOps, MaxRows)
	b.records = g.records.take(maxOps, g.limit.rows)
	g.last = len(b.requests) + len(b.records)
	b.requests = append(b.requests, g.background.take(maxOps, MaxPart)...)
	g.busy = true
	return b, g.stopping
}

// A limit bounds the rows of records in a transaction. It shrinks while transactions are slow, because requests wait for them,
// and grows again when they are fast.
type limit struct{ rows int }

const (
	minRows   = 128
	slowWrite = 40 * time.Millisecond
	fastWrite = 15 * time.Millisecond
)

func (l *limit) learn(took time.Duration) {
	switch {
	case took > slowWrite:
		l.rows = max(l.rows/2, minRows)
	case took < fastWrite:
		l.rows = min(l.rows+l.rows/4, MaxRows)
	}
}

// finished ends a round; it reports whether nothing is left to write.
func (g *Group) finished() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy = false
	if g.queued()+g.background.length > 0 {
		signal(g.work)
		return false
	}
	g.idle.Broadcast()
	return true
}

// LastError returns the error of the last transaction, or nil if it succeeded.
func (g *Group) LastError() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failing
}

// written notes the duration and the error of a transaction.
func (g *Group) written(took time.Duration, err error) {
	g.mu.Lock()
	g.limit.learn(took)
	g.failing = err
	if err != nil {
		g.idle.Broadcast()
	}
	g.mu.Unlock()
}

// Flush waits until everything queued is written, or a write fails. It ignores earlier failures: the store may be back.
func (g *Group) Flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = nil
	for (g.busy || g.queued()+g.background.length > 0) && g.failing == nil {
		g.idle.Wait()
	}
}

// Stop makes Run write the queued operations once more and end.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopping = true
	signal(g.work)
	g.mu.Unlock()
}
