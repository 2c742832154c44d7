package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// WorkerOptions configure a [Worker].
type WorkerOptions struct {
	// Inbox holds the jobs. Required.
	Inbox Inbox
	// Handler processes a delivery. An error or a panic costs an attempt; so does [RetryAfter], which sets the wait. [Reject]
	// ends the job as dead. Required.
	Handler Handler
	// Transactional runs the handler in the inbox's transaction, which also ends the job: what it writes with the store's
	// package happens exactly once. Needs an inbox that is a [JobTransactor]. Defaults to false.
	Transactional bool
	// Concurrency is the number of jobs processed at a time. Defaults to 4.
	Concurrency int
	// MaxAttempts is the number of attempts before a job is dead. Defaults to 20.
	MaxAttempts int
	// Base limits the first wait after a failure; the limit doubles with each failure. Defaults to 1 second.
	Base time.Duration
	// Cap is the longest wait. Defaults to 10 minutes.
	Cap time.Duration
	// Timeout limits a handler's run time. Defaults to 5 minutes.
	Timeout time.Duration
	// StopTimeout is how long handlers may continue after Run was told to stop. Defaults to 30 seconds.
	StopTimeout time.Duration
	// StoreTimeout limits an operation of the inbox. Defaults to 5 seconds.
	StoreTimeout time.Duration
	// Poll is how often an empty inbox is queried. Defaults to 1 second.
	Poll time.Duration
	// Retention is how long finished jobs are kept; it should be the receiver's window. Defaults to 30 days.
	Retention time.Duration
	// PurgeEvery is how often Run drops jobs older than that. If it is negative, call [Worker.Purge] instead. Defaults to 1
	// hour.
	PurgeEvery time.Duration
	// OnResult is called for every attempt.
	OnResult func(j ClaimedJob, kind ReportKind)
	// OnDead is called for jobs that end as dead.
	OnDead func(j ClaimedJob, reason string)
	// Log receives failures. Defaults to [slog.Default].
	Log *slog.Logger
	// Clock returns the time. Defaults to [time.Now].
	Clock func() time.Time
	// Random returns a number from 0 to 1 that spreads the waits. Defaults to [rand.Float64].
	Random func() float64
}

// A Worker processes the jobs of an inbox. One worker handles a job at a time. If the worker dies, another takes the job when
// its lease ends; so a handler may see a delivery twice, unless it is transactional.
//
// A Worker is also an [Enqueuer]: a receiver that has the worker as its inbox wakes it after each acknowledgement.
type Worker struct {
	o    WorkerOptions
	tx   JobTransactor // nil unless transactional
	wake chan struct{}
}

// NewWorker makes a worker.
func NewWorker(o WorkerOptions) (*Worker, error) {
	if o.Inbox == nil || o.Handler == nil {
		return nil, errors.New("make worker: an inbox and a handler are needed")
	}
	w := &Worker{}
	if o.Transactional {
		var ok bool
		if w.tx, ok = o.Inbox.(JobTransactor); !ok {
			return nil, errors.New("make worker: the inbox has no transactions")
		}
	}
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&o.Base, time.Second}, {&o.Cap, 10 * time.Minute}, {&o.Timeout, 5 * time.Minute}, {&o.StopTimeout, 30 * time.Second},
		{&o.StoreTimeout, 5 * time.Second}, {&o.Poll, time.Second}, {&o.Retention, 30 * 24 * time.Hour},
	} {
		if *d.value <= 0 {
			*d.value = d.usual
		}
	}
	if o.PurgeEvery == 0 {
		o.PurgeEvery = time.Hour
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 20
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	w.o, w.wake = o, make(chan struct{}, 1)
	return w, nil
}

// Enqueue stores a job in the inbox.
func (w *Worker) Enqueue(ctx context.Context, j Job) error { return w.o.Inbox.Enqueue(ctx, j) }

// Wake makes a waiting worker query the inbox.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// errStopped is the cause with which a handler's context ends when the worker stops.
var errStopped = errors.New("the worker is stopping")

// Run works until the context ends. Then it starts no more jobs and lets the running ones finish, for StopTimeout; the rest are
// cancelled and put back. It returns when nothing runs any more.
func (w *Worker) Run(ctx context.Context) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	finished := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-finished:
			return
		}
		timer := time.NewTimer(w.o.StopTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(errStopped)
		case <-finished:
		}
	}()
	var slots sync.WaitGroup
	for range w.o.Concurrency {
		slots.Go(func() { w.slot(ctx, work) })
	}
	if w.o.PurgeEvery > 0 {
		slots.Go(func() { w.purgeNowAndThen(ctx) })
	}
	slots.Wait()
	close(finished)
	return nil
}

// slot claims for itself, so that a slow job delays no other.
func (w *Worker) slot(ctx, work context.Context) {
	for ctx.Err() == nil {
		busy, err := w.turn(ctx, work)
		if err != nil {
			w.o.Log.Error("webhook worker: inbox failed", "error", err) // the job is due again when the lease ends
		}
		if !busy {
			w.pause(ctx)
		}
	}
}

func (w *Worker) pause(ctx context.Context) {
	timer := time.NewTimer(w.o.Poll)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Drain works until no job is due, and returns the number of attempts.
func (w *Worker) Drain(ctx context.Context) (int, error) {
	for n := 0; ; n++ {
		if err := context.Cause(ctx); err != nil {
			return n, err
		}
		busy, err := w.turn(ctx, ctx)
		if err != nil || !busy {
			return n, err
		}
	}
}

// Purge drops jobs that were done longer ago than Retention, in small steps. Run calls it.
func (w *Worker) Purge(ctx context.Context) (int, error) {
	before, total := w.o.Clock().Add(-w.o.Retention), 0
	for {
		step, cancel := context.WithTimeout(ctx, w.o.StoreTimeout)
		n, err := w.o.Inbox.PurgeJobs(step, before, purgeStep)
		cancel()
		total += n
		if err != nil || n < purgeStep {
			return total, err
		}
	}
}

// purgeNowAndThen begins at once: a process may end before the first PurgeEvery.
func (w *Worker) purgeNowAndThen(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if _, err := w.Purge(ctx); err != nil && ctx.Err() == nil {
			w.o.Log.Error("webhook worker: purge failed", "error", err)
		}
		timer.Reset(w.o.PurgeEvery)
	}
}

// turn processes one job, if one is due.
func (w *Worker) turn(ctx, work context.Context) (busy bool, err error) {
	now := w.o.Clock()
	// A stop must not cancel a claim that is under way: it may have succeeded, and then no worker would touch the job until its
	// lease ends.
	claim, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.StoreTimeout)
	defer cancel()
	jobs, err := w.o.Inbox.Claim(claim, 1, now, now.Add(w.o.Timeout+w.o.StopTimeout+time.Minute))
	if err != nil {
		return false, fmt.Errorf("claim job: %w", err)
	}
	if len(jobs) == 0 {
		return false, nil
	}
	w.Wake() // there may be another job for another slot
	return true, w.work(work, jobs[0])
}

func (w *Worker) work(work context.Context, j ClaimedJob) error {
	ctx, cancel := context.WithTimeoutCause(work, w.o.Timeout, errTimeUp)
	defer cancel()
	if j.Attempt > w.o.MaxAttempts { // it was started often enough and never ended: perhaps it kills workers
		reason := fmt.Sprintf("begun %d times, and no worker lived to finish it", j.Attempt-1)
		return w.settle(ctx, j, Settlement{State: JobDead, At: w.o.Clock(), Reason: reason}, KindFailed)
	}
	if w.tx != nil {
		return w.workTx(ctx, j)
	}
	result, err := callHandler(ctx, w.o.Handler, j.Delivery, true)
	s, kind := w.judge(ctx, j, result, err)
	return w.settle(ctx, j, s, kind)
}

func (w *Worker) settle(ctx context.Context, j ClaimedJob, s Settlement, kind ReportKind) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.StoreTimeout)
	defer cancel()
	done, err := w.o.Inbox.Settle(ctx, j, s)
	if err != nil {
		return fmt.Errorf("settle job: %w", err)
	}
	w.tell(j, s, kind, done)
	return nil
}

// workTx runs the handler in the transaction that ends its job.
func (w *Worker) workTx(ctx context.Context, j ClaimedJob) error {
	txCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.Timeout+w.o.StopTimeout+w.o.StoreTimeout)
	defer cancel()
	tx, err := w.tx.BeginJob(txCtx, j)
	if err != nil { // nothing was done, and nothing needs to wait for the lease
		s := Settlement{State: JobWaiting, At: w.o.Clock().Add(w.backoff(j.Attempt)), Reason: "could not begin", Interrupted: true}
		return errors.Join(fmt.Errorf("begin job: %w", err), w.settle(ctx, j, s, KindFailed))
	}
	result, err := callHandler(tx.Context(ctx), w.o.Handler, j.Delivery, true)
	s, kind := w.judge(ctx, j, result, err)
	if s.State != JobDone { // what the handler wrote is rolled back
		if err := tx.Rollback(txCtx); err != nil { // the transaction is lost with its connection
			w.o.Log.Error("webhook worker: roll back failed", "event", j.Delivery.EventID, "error", err)
		}
		return w.settle(ctx, j, s, kind)
	}
	done, err := tx.Settle(txCtx, s)
	if err != nil { // if it was committed all the same, this ends no hold
		s = Settlement{State: JobWaiting, At: w.o.Clock().Add(w.backoff(j.Attempt)), Reason: "could not commit"}
		return errors.Join(fmt.Errorf("settle job: %w", err), tx.Rollback(txCtx), w.settle(ctx, j, s, KindFailed))
	}
	w.tell(j, s, kind, done)
	return nil
}

// judge decides what happens to a job after an attempt.
func (w *Worker) judge(ctx context.Context, j ClaimedJob, result Result, err error) (Settlement, ReportKind) {
	now := w.o.Clock()
	if err != nil {
		if errors.Is(context.Cause(ctx), errStopped) {
			return Settlement{State: JobWaiting, At: now, Reason: "interrupted", Interrupted: true}, KindFailed
		}
		w.o.Log.Error("webhook worker: handler failed", "event", j.Delivery.EventID, "attempt", j.Attempt, "error", err)
		if j.Attempt >= w.o.MaxAttempts {
			return Settlement{State: JobDead, At: now, Reason: fmt.Sprintf("failed %d times", j.Attempt)}, KindFailed
		}
		return Settlement{State: JobWaiting, At: now.Add(w.backoff(j.Attempt)), Reason: "failed"}, KindFailed
	}
	switch v := result.(type) {
	case Reject:
		return Settlement{State: JobDead, At: now, Reason: v.Reason}, KindReject
	case RetryAfter:
		if j.Attempt >= w.o.MaxAttempts {
			return Settlement{State: JobDead, At: now, Reason: fmt.Sprintf("put off %d times: %s", j.Attempt, v.Reason)}, KindRetryAfter
		}
		if v.After == 0 {
			v.After = w.backoff(j.Attempt)
		}
		return Settlement{State: JobWaiting, At: now.Add(v.After), Reason: v.Reason}, KindRetryAfter
	}
	return Settlement{State: JobDone, At: now}, KindAccepted
}

// backoff is full jitter below a doubling limit.
func (w *Worker) backoff(attempt int) time.Duration {
	bound := w.o.Cap
	if shift := attempt - 1; shift < 32 && w.o.Base<<shift < bound && w.o.Base<<shift > 0 {
		bound = w.o.Base << shift
	}
	return time.Duration(w.o.Random() * float64(bound))
}

func (w *Worker) tell(j ClaimedJob, s Settlement, kind ReportKind, done bool) {
	if !done {
		w.o.Log.Error("webhook worker: settle job failed", "event", j.Delivery.EventID, "error", ErrLeaseLost)
		return
	}
	if w.o.OnResult != nil {
		tell(func() { w.o.OnResult(j, kind) })
	}
	if s.State == JobDead {
		w.o.Log.Warn("webhook worker: job given up", "event", j.Delivery.EventID, "reason", s.Reason)
		if w.o.OnDead != nil {
			tell(func() { w.o.OnDead(j, s.Reason) })
		}
	}
}
