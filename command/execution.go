package command

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// FaultPoints names the moments at which a crash leaves a distinct combination of stored state and external effects.
var FaultPoints = []string{
	"admitted",  // nothing is stored
	"reserved",  // the key is taken, no effect has happened
	"confirmed", // the confirmation is spent, no effect has happened
	"started",   // the handler is about to run
	"ledgered",  // the ledger holds a call that is about to be made
	"called",    // a call was made, the ledger does not hold its result
	"recorded",  // the ledger holds the result of a call
	"handled",   // the handler has returned, nothing of its outcome is stored
	"finished",  // the outcome is stored, the caller has no answer yet
	"recovered", // another executor has taken over, and has done nothing yet
	"observed",  // the evidence of a repeat is stored, the caller has no answer yet
}

// execution is a command that this process executes. It owns the record as long as the version it knows is the stored one.
type execution struct {
	x       *executions
	command *Registered
	handler Handler
	call    *Call
	caller  Caller
	cancel  context.CancelCauseFunc
	ended   chan struct{}
	stalled chan struct{} // closed after stall is set
	stall   error         // why the outcome cannot be stored at present

	mu    sync.Mutex             // held while the record changes
	rec   atomic.Pointer[Record] // as stored
	over  bool                   // this execution stores nothing any more
	calls sync.Mutex             // held while the ledger is written

	// The following members are set before ended is closed, and before rec holds a terminal record.
	final   *Record
	outcome *StoredOutcome // as the first answer shows it, including secrets
	value   any            // the result of that outcome, before it was encoded
	applied Results        // results of the effects
	err     error
}

// commitTries is how often a step is tried that the store does not accept, over about a second.
const commitTries = 6

var (
	errSuperseded = errors.New("another executor has taken the command over")
	errLapsed     = errors.New("the lease could not be renewed in time")
	errOver       = errors.New("the execution is over")
	errShutdown   = errors.New("the executor is shutting down")
)

// run executes the command until it has an outcome, or until it leaves the command to another execution.
func (e *execution) run(ctx context.Context) {
	stop := e.keepLease()
	defer stop()
	deadline := e.x.cfg.Now().Add(e.x.cfg.retryFor(e.command))
	for pause := time.Duration(0); ; {
		e.x.cfg.fault("started")
		o, err := safely(ctx, e.handler, e.call)
		e.x.cfg.fault("handled")
		passing := e.end(ctx, o, err, deadline)
		e.tell(o, err == nil && e.final != nil && e.final.Status == Executed)
		if passing == nil {
			return
		}
		e.x.cfg.Log.Info("command is tried again", "command_id", e.call.CommandID, "try", e.call.Try, "error", passing)
		pause = min(max(2*pause, 100*time.Millisecond, passing.After), 10*time.Second)
		e.x.rest(ctx, pause)
		e.call.Try++
	}
}

// tell calls Outcome.Done and recovers from a panic in it, so that other commands are not affected.
func (e *execution) tell(o *Outcome, stored bool) {
	if o == nil || o.Done == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			e.x.cfg.Log.Error("the end of a command panicked", "command_id", e.call.CommandID, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	o.Done(stored, e.applied)
}

// end handles a handler's return. It returns the reason if the handler has to run again, or nil.
func (e *execution) end(ctx context.Context, o *Outcome, err error, deadline time.Time) *TransientError {
	var (
		passing *TransientError
		taken   *errCompensated
	)
	cause := context.Cause(ctx)
	again := cause == nil && e.x.cfg.Now().Before(deadline)
	switch {
	case errors.Is(cause, errSuperseded):
		e.err = e.takenOver()
	case cause != nil && err != nil:
		e.leave(Running, e.x.cfg.Now())
		e.err = &Refusal{Code: ExecutorStopping, Detail: cause.Error() + "; the command goes on later", CommandID: e.call.CommandID, Key: e.call.Key}
	case errors.As(err, &passing) && again:
		return passing
	case errors.Is(err, ErrUnresolved) || err != nil && e.uncertain() && !errors.As(err, &taken):
		e.leave(NeedsReconciliation, e.x.cfg.Now().Add(e.x.cfg.ReconcileEvery))
	default:
		return e.finish(o, err, again)
	}
	return nil
}

// uncertain reports whether the result of a started call is not known. The executor must then ask the provider before it
// calls the command failed, even if the handler panicked, returned another error or ran out of time (IDS-SHD-5). A
// provider that recognises repeats is asked by making the call again.
func (e *execution) uncertain() bool { return e.rec.Load().openCalls() }

func (e *execution) takenOver() error {
	return &Refusal{Code: ExecutorStopping, Detail: "another executor has taken the command over; ask for its status", CommandID: e.call.CommandID, Key: e.call.Key}
}

// safely runs a handler and turns its panic into an error, so that other commands are not affected.
func safely(ctx context.Context, h Handler, c *Call) (o *Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			o, err = nil, fmt.Errorf("handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return h.Execute(ctx, c)
}

// update changes the record if this execution still owns it; otherwise it returns errSuperseded.
func (e *execution) update(change func(*Record) []evidence.Entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.change(change)
}

// change is update for callers that hold the lock. If the store holds an earlier step of this execution whose answer was
// lost, change applies the new step on top of that one.
func (e *execution) change(change func(*Record) []evidence.Entry) error {
	for {
		if e.over {
			return errOver
		}
		last := e.rec.Load()
		next := last.next()
		entries := change(next)
		e.x.authenticate(next)
		stored, ours, err := e.x.commit(next, &Step{Tenant: next.Tenant, Key: next.Key, Expect: last.Version, Settle: func(Applied) (Change, error) {
			return Change{Record: next, Evidence: entries}, nil
		}})
		switch {
		case err != nil:
			return err
		case ours:
			e.rec.Store(stored)
			return nil
		case !e.earlier(stored):
			return errSuperseded
		}
		e.rec.Store(stored)
	}
}

// earlier reports whether a stored record comes from a step of this execution whose answer was lost.
func (e *execution) earlier(stored *Record) bool {
	last := e.rec.Load()
	return stored != nil && stored.Owner == last.Owner && stored.CommandID == last.CommandID && stored.Version > last.Version &&
		!stored.Status.Terminal() && e.x.trust(stored) == nil
}

// leave ends the execution without an outcome. Another execution continues the command after the given time.
func (e *execution) leave(sub Substatus, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.rec.Load().Substatus == sub
	err := e.change(func(r *Record) []evidence.Entry {
		r.Substatus, r.LeaseUntil = sub, until.Truncate(time.Microsecond)
		if sub != NeedsReconciliation || known {
			return nil
		}
		return []evidence.Entry{{Type: evidence.Unresolved, At: e.x.cfg.Now(), CommandID: r.CommandID, SubmittedID: r.CommandID, Key: r.Key,
			Command: e.command.Name(), Target: r.Intent.Target, Actor: r.Actor, Fingerprint: r.Fingerprint, OutcomeStatus: string(InProgress)}}
	})
	if err != nil && !errors.Is(err, errSuperseded) {
		e.x.cfg.Log.Error("command not given up in the store; it goes on when its lease is over", "command_id", e.call.CommandID, "error", err)
	}
	if err == nil && sub == NeedsReconciliation && !known && e.x.cfg.Unresolved != nil {
		e.x.cfg.Unresolved()
	}
	e.over, e.final = true, e.rec.Load()
}
