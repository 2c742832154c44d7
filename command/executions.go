package command

import (
	"context"
	"sync"
)

// executions are the commands that this process executes.
type executions struct {
	*records

	mu       sync.Mutex
	running  map[RecordID]*execution
	stopping bool
	wg       sync.WaitGroup
}

// start executes a command of ours on a new goroutine, which continues if the caller leaves.
func (x *executions) start(c *Registered, h Handler, caller Caller, call *Call, rec *Record) (*execution, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	e := &execution{x: x, command: c, handler: h, caller: caller, call: call, cancel: cancel, ended: make(chan struct{}), stalled: make(chan struct{})}
	e.rec.Store(rec)
	call.ledger = e
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopping {
		cancel(errShutdown)
		return nil, &Refusal{Code: ExecutorStopping, Detail: "the executor is shutting down; the command will be executed by another"}
	}
	x.running[rec.id()] = e
	x.wg.Add(1)
	go func() {
		defer x.wg.Done()
		e.run(ctx)
		cancel(nil)
		x.mu.Lock()
		if x.running[rec.id()] == e {
			delete(x.running, rec.id())
		}
		x.mu.Unlock()
		close(e.ended)
	}()
	return e, nil
}

// wait answers once the execution has ended. If the context ends first, it answers that the command is in progress. If the store
// cannot take the outcome, wait returns the store's error: the execution goes on, and a repeat is answered with its outcome.
func (x *executions) wait(ctx context.Context, e *execution) (*Answer, error) {
	select {
	case <-e.ended:
	case <-e.stalled:
		select {
		case <-e.ended:
		default:
			return nil, e.stall
		}
	case <-ctx.Done():
		if rec := e.rec.Load(); !rec.Status.Terminal() {
			return x.answer(rec, e.command, e.caller, FirstSeen)
		} // otherwise final and outcome are set, and only this answer can show the secrets
	}
	if e.err != nil {
		return nil, e.err
	}
	if !e.final.Status.Terminal() || e.outcome == nil {
		return x.answer(e.final, e.command, e.caller, FirstSeen)
	}
	a := standing(e.final, e.command, FirstSeen)
	a.Executed = e.final.Status != Rejected
	a.Outcome = mask(e.outcome, e.command, e.caller)
	if a.Executed {
		a.Value = e.value
	}
	return a, nil
}

// has reports whether this process executes the command of a record.
func (x *executions) has(id RecordID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.running[id] != nil
}

func (x *executions) isStopping() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stopping
}

// stop refuses further executions, asks the handlers to end, and waits until they have.
func (x *executions) stop() {
	x.mu.Lock()
	x.stopping = true
	for _, e := range x.running {
		e.cancel(errShutdown)
	}
	x.mu.Unlock()
	x.wg.Wait()
}
