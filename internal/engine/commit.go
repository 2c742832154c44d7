package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	maxBatch       = 1024
	crowd          = 8 // a last batch of at least this size means load
	commitTimeout  = 30 * time.Second
	minCommitPause = 50 * time.Millisecond
	maxCommitPause = time.Second
)

// committer gathers what is to be written and writes it in shared transactions: while one is under way, the next one
// fills. Under load it also waits a moment for company, since the size of a batch is what its cost per event hangs on; a
// lone request does not wait.
type committer struct {
	engine *Engine

	mu       sync.Mutex
	accepts  []*acceptOp
	results  []*resultOp
	stopping bool
	failing  error
	last     int           // size of the last batch
	filled   int           // size at which a lingering batch goes at once; 0: nobody lingers
	work     chan struct{} // has one token when there is something to do
	full     chan struct{} // has one token when a lingering batch has filled up
	idle     *sync.Cond    // signalled when nothing is left or under way
	busy     bool
}

// acceptOp is the accepts of one Submit, or a change of an endpoint: what somebody waits for.
type acceptOp struct {
	accepts []store.Accept
	change  *store.EndpointChange
	notices []godwit.Notice
	done    chan acceptDone
}

type acceptDone struct {
	existing []*godwit.IdempotencyRecord
	err      error
}

// resultOp is one attempt's result, or the return of a claim.
type resultOp struct {
	lane *lane
	item *item
	j    *judgement
	done chan error // told when it is written; nil when nobody waits
}

func newCommitter(e *Engine) *committer {
	c := &committer{engine: e, work: make(chan struct{}, 1), full: make(chan struct{}, 1)}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// accept commits the accepts of one submission and waits for it.
func (c *committer) accept(accepts []store.Accept) acceptDone {
	op := acceptOps.Get().(*acceptOp)
	op.accepts = accepts
	done := c.await(op)
	op.accepts = nil // whoever has answered it does not look at it again
	acceptOps.Put(op)
	return done
}

var acceptOps = sync.Pool{New: func() any { return &acceptOp{done: make(chan acceptDone, 1)} }}

// change commits what the engine changes about an endpoint by itself, and waits for it.
func (c *committer) change(change store.EndpointChange, notices ...godwit.Notice) error {
	return c.await(&acceptOp{change: &change, notices: notices, done: make(chan acceptDone, 1)}).err
}

func (c *committer) await(op *acceptOp) acceptDone {
	c.mu.Lock()
	if c.stopping {
		c.mu.Unlock()
		return acceptDone{err: ErrStopping}
	}
	c.accepts = append(c.accepts, op)
	c.notify()
	c.mu.Unlock()
	return <-op.done
}

// result queues an attempt's result. It never blocks: windows bound how many there can be.
func (c *committer) result(l *lane, it *item, j *judgement) {
	c.mu.Lock()
	c.results = append(c.results, &resultOp{lane: l, item: it, j: j})
	c.notify()
	c.mu.Unlock()
}

// release queues the return of a claim to the store, due as it was.
func (c *committer) release(l *lane, it *item, done chan error) {
	d := it.work.Delivery
	if d.DueAt.IsZero() {
		d.DueAt = d.UpdatedAt
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping && done != nil {
		done <- ErrStopping
		return
	}
	c.results = append(c.results, &resultOp{lane: l, item: it, done: done,
		j: &judgement{result: store.Result{Delivery: d, Epoch: it.epoch}}})
	c.notify()
}

// notify is called with mu held.
func (c *committer) notify() {
	signal(c.work)
	if c.filled > 0 && len(c.accepts)+len(c.results) >= c.filled {
		signal(c.full)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (c *committer) run() {
	var pause time.Duration
	for range c.work {
		c.linger()
		accepts, results, stop := c.take()
		switch {
		case len(accepts)+len(results) == 0 || c.write(accepts, results):
			pause = 0
		case stop:
			c.giveUp() // a store that is away must not keep us from stopping
			return
		default:
			pause = min(max(2*pause, minCommitPause), maxCommitPause)
			timer := time.NewTimer(pause)
			<-timer.C
		}
		if c.finished() && stop {
			return
		}
	}
}

// giveUp leaves what is queued unwritten, and says so to whoever waits.
func (c *committer) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.accepts {
		op.done <- acceptDone{err: ErrStopping}
	}
	for _, op := range c.results {
		if op.done != nil {
			op.done <- ErrStopping
		}
	}
	if n := len(c.results); n > 0 {
		c.engine.log.Error("stopped with results that could not be written: their deliveries will be sent again", "results", n)
	}
	c.accepts, c.results, c.busy = nil, nil, false
	c.idle.Broadcast()
}

// linger waits for as many to come together as last time, but not long: the fixed cost of a transaction is then shared by
// more. Waiting longer for a larger batch gains nothing, since whoever posts waits too.
func (c *committer) linger() {
	c.mu.Lock()
	queued := len(c.accepts) + len(c.results)
	if c.last < crowd || queued >= c.last || c.stopping {
		c.mu.Unlock()
		return
	}
	c.filled = c.last
	select {
	case <-c.full:
	default:
	}
	c.mu.Unlock()
	timer := time.NewTimer(c.engine.cfg.Linger)
	select {
	case <-timer.C:
	case <-c.full:
		timer.Stop()
	}
	c.mu.Lock()
	c.filled = 0
	c.mu.Unlock()
}

func (c *committer) take() (accepts []*acceptOp, results []*resultOp, stop bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	accepts, c.accepts = split(c.accepts, maxBatch)
	results, c.results = split(c.results, maxBatch)
	c.last = len(accepts) + len(results)
	c.busy = true
	return accepts, results, c.stopping
}

func split[T any](list []T, n int) (head, tail []T) {
	if len(list) <= n {
		return list, nil
	}
	return list[:n:n], list[n:]
}

// finished ends a round; it reports whether nothing is left.
func (c *committer) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if len(c.accepts)+len(c.results) > 0 {
		signal(c.work)
		return false
	}
	c.idle.Broadcast()
	return true
}

// write commits one batch. On failure accepts are answered with the error and results are kept for the next round.
func (c *committer) write(accepts []*acceptOp, results []*resultOp) bool {
	batch := c.assemble(accepts, results)
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	started := time.Now()
	committed, err := c.engine.store.Commit(ctx, batch)
	c.engine.cfg.Recorder.Committed(len(accepts), len(results), time.Since(started), err)
	c.setError(err)
	if err == nil {
		c.settle(accepts, results, committed)
		for i := range batch.Notices {
			c.engine.cfg.OnNotice(batch.Notices[i])
		}
		return true
	}
	c.engine.log.Error("commit", "accepts", len(accepts), "results", len(results), "error", err)
	if !passing(err) && len(accepts)+len(results) > 1 {
		return c.isolate(accepts, results)
	}
	for _, op := range accepts {
		op.done <- acceptDone{err: err}
	}
	if len(results) == 1 && len(accepts) == 0 && !passing(err) && results[0].bare() {
		return c.write(nil, results)
	}
	if len(results) == 1 && len(accepts) == 0 && !passing(err) {
		// This very result cannot be written, and never will be. Its delivery goes back to the store and is tried again.
		c.engine.log.Error("result dropped", "delivery", results[0].item.work.Delivery.ID.String())
		if results[0].done != nil {
			results[0].done <- err
		}
		if change := results[0].j.change; change != nil {
			results[0].lane.changed(change, false)
		}
		c.engine.unpublished(results[0].j.news)
		results[0].lane.lost(results[0].item)
		return true
	}
	c.mu.Lock()
	for _, op := range results {
		if op.done != nil { // it is written later; whoever waits is not kept waiting
			op.done <- err
			op.done = nil
		}
	}
	c.results = append(results, c.results...)
	c.mu.Unlock()
	return false
}

// passing reports a failure that says nothing against what was to be written: the store is away, or was too slow.
func passing(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// bare strips a result of what a receiver could have put into it, and then of what is told of it, so that neither makes an
// outcome impossible to store; it reports whether there was anything to strip.
func (op *resultOp) bare() bool {
	if a := op.j.result.Attempt; a != nil && a.Trace.Detail != strippedDetail {
		a.Trace = godwit.Trace{Detail: strippedDetail, SignedWith: a.Trace.SignedWith, Actor: a.Trace.Actor}
		a.Verdict.Problem = nil
		for i := range op.j.notices {
			op.j.notices[i].Link = "" // what it is about stays; what the receiver wrote goes
		}
		return true
	}
	if op.j.news == nil {
		return false
	}
	op.lane.engine.log.Error("news of a result dropped", "delivery", op.item.work.Delivery.ID.String())
	op.lane.engine.unpublished(op.j.news)
	op.j.news = nil
	return true
}

const strippedDetail = "the response could not be stored"

// isolate writes a batch piece by piece after it failed for no passing reason, so that one bad row does not hold up all.
func (c *committer) isolate(accepts []*acceptOp, results []*resultOp) bool {
	ok := true
	for i := range accepts {
		ok = c.write(accepts[i:i+1], nil) && ok
	}
	for i := range results {
		ok = c.write(nil, results[i:i+1:i+1]) && ok
	}
	return ok
}

func (c *committer) assemble(accepts []*acceptOp, results []*resultOp) *store.Batch {
	b := &store.Batch{Now: c.engine.clock.Now()}
	b.Accepts = make([]store.Accept, 0, len(accepts))
	for _, op := range accepts {
		b.Accepts = append(b.Accepts, op.accepts...)
		b.Notices = append(b.Notices, op.notices...)
		if op.change != nil {
			b.Changes = append(b.Changes, *op.change)
		}
	}
	touched := map[*lane]struct{}{}
	if len(results) > 0 {
		b.Results = make([]store.Result, 0, len(results))
	}
	for _, op := range results {
		if op.j.news != nil {
			b.Accepts = append(b.Accepts, op.j.news.accept)
		}
		b.Results = append(b.Results, op.j.result)
		milestone(b, len(b.Results)-1, op.item.work.Event, b.Now)
		b.Notices = append(b.Notices, op.j.notices...)
		if op.j.change != nil {
			b.Changes = append(b.Changes, *op.j.change)
		}
		if op.j.result.Attempt != nil {
			touched[op.lane] = struct{}{}
		}
	}
	for l := range touched {
		l.mu.Lock()
		b.Health = append(b.Health, l.health)
		l.mu.Unlock()
	}
	return b
}

// settle tells everybody what became of their part of a batch.
func (c *committer) settle(accepts []*acceptOp, results []*resultOp, committed *store.Committed) {
	existing := committed.Existing
	for _, op := range accepts {
		n := len(op.accepts)
		op.done <- acceptDone{existing: existing[:n:n]}
		existing = existing[n:]
	}
	fenced := map[int]bool{}
	for _, i := range committed.Fenced {
		fenced[i] = true
	}
	watched := !c.engine.feed.empty()
	for i, op := range results {
		// Also with a result that was refused: its news are stored, perhaps by an earlier commit whose answer was lost.
		c.engine.published(op.j.news)
		if fenced[i] {
			c.engine.log.Warn("result refused: the delivery is no longer ours", "delivery", op.item.work.Delivery.ID.String())
			op.lane.refused(op.item)
			c.engine.waiting.wake(op.item.work.Delivery.EventID) // what becomes of it is another node's to tell
			if op.done != nil {
				op.done <- store.ErrConflict
			}
			if op.j.change != nil {
				op.lane.changed(op.j.change, false)
			}
			continue
		}
		r := &op.j.result
		switch {
		case r.Attempt != nil:
			c.engine.recorded(op, watched)
		case r.Delivery.Status != godwit.DeliveryPending:
			c.engine.cfg.Recorder.Delivered(op.item.work.Event.Type, &r.Delivery) // its time was over before another attempt
		}
		if !r.KeepClaim {
			c.engine.waiting.tell(&r.Delivery) // else it is tried once more at once, and that is what counts
		}
		if op.done != nil {
			op.done <- nil
		}
		if op.j.change != nil {
			op.lane.changed(op.j.change, true)
		}
		op.lane.recorded(op.item, &r.Delivery, r.KeepClaim)
	}
}

// recorded tells watchers, metrics and the log of an attempt that is stored now.
func (e *Engine) recorded(op *resultOp, watched bool) {
	r := &op.j.result
	e.cfg.Recorder.Attempted(op.j.profile, op.item.work.Event.Type, r.Attempt, &r.Delivery)
	if r.Delivery.Status != godwit.DeliveryPending {
		e.cfg.Recorder.Delivered(op.item.work.Event.Type, &r.Delivery)
	}
	e.logAttempt(op.j.profile, r.Attempt, r.Delivery.Status)
	if watched {
		e.feed.publish(FeedItem{Attempt: *r.Attempt, EventType: op.item.work.Event.Type, Status: r.Delivery.Status})
	}
}

func (c *committer) setError(err error) {
	c.mu.Lock()
	c.failing = err
	if err != nil {
		c.idle.Broadcast()
	}
	c.mu.Unlock()
}

func (c *committer) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing
}

// flush waits until everything queued is written, or writing fails. A failure in the past does not count: the store may be
// back.
func (c *committer) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = nil
	for (c.busy || len(c.accepts)+len(c.results) > 0) && c.failing == nil {
		c.idle.Wait()
	}
}

// stop writes what is queued once more and ends run.
func (c *committer) stop() {
	c.mu.Lock()
	c.stopping = true
	signal(c.work)
	c.mu.Unlock()
}
