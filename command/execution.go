package command

import (
	"bytes"
	"context"
	"encoding/json"
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

func (x *Executor) fault(point string) {
	if x.cfg.Fault != nil {
		x.cfg.Fault(point)
	}
}

// execution is a command that this process executes. It owns the record as long as the version it knows is the stored one.
type execution struct {
	x       *Executor
	command *Registered
	handler Handler
	call    *Call
	caller  Caller
	cancel  context.CancelCauseFunc
	ended   chan struct{}

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

// first reserves the key for a submission and executes it. raced reports that another submission took the key first.
func (x *Executor) first(ctx context.Context, s *submission) (a *Answer, raced bool, err error) {
	x.fault("admitted")
	rec, token, err := x.newRecord(s)
	if err != nil {
		return nil, false, err
	}
	stored, ours, err := x.reserve(s, rec)
	if err != nil || !ours {
		return nil, !ours, err
	}
	x.fault("reserved")
	x.decided(FirstSeen)
	if stored.Substatus == AwaitingConfirmation {
		if x.cfg.Prompt != nil {
			x.cfg.Prompt(stored.Tenant, stored.CommandID, &s.command.Declaration)
		}
		a, err := x.answer(stored, s.command, s.caller, FirstSeen)
		if err == nil {
			a.Token = token
		}
		return a, false, err
	}
	e, err := x.start(s.command, s.handler(), s.caller, s.call(), stored)
	if err != nil {
		return nil, false, err
	}
	a, err = x.wait(ctx, e)
	return a, false, err
}

// newRecord returns the record that reserves the key of a submission, and its confirmation token if it needs one.
func (x *Executor) newRecord(s *submission) (*Record, string, error) {
	now := x.now()
	rec := &Record{
		Tenant: s.caller.Tenant, Key: s.derived.Key, KeyVersion: s.derived.KeyVersion, CommandID: s.envelope.CommandID, Intent: s.envelope.Intent,
		Class: s.command.Class, Actor: s.caller.Actor, Principal: s.derived.Principal, Fingerprint: s.derived.Fingerprint, Status: InProgress,
		CreatedAt: now, UpdatedAt: now, Owner: x.ownName(), LeaseUntil: now.Add(x.cfg.Lease), Try: 1,
		// Versions of a key never occur again, not even after its record was swept. An executor that wakes up after a long
		// time would otherwise change the record of a later command.
		Version: max(now.UnixMicro(), 1),
	}
	if s.command.Window != Forever {
		rec.ExpiresAt = now.Add(x.cfg.Scale(s.command.Window.Duration()))
	}
	var err error
	rec.Envelope, _, err = x.seal(kept{Args: s.derived.Args, Options: s.envelope.Options}, envelopeBound(rec.Tenant, rec.Key))
	if err != nil {
		return nil, "", err
	}
	if !s.command.Confirmation || s.caller.Confirmed {
		return rec, "", nil
	}
	token := mintToken()
	life := x.cfg.Scale(x.cfg.TokenLife)
	rec.Substatus, rec.LeaseUntil = AwaitingConfirmation, now.Add(life)
	rec.Confirmation = &Confirmation{TokenHash: tokenHash(confirmation, token, rec.CommandID, rec.Key), ExpiresAt: rec.LeaseUntil, Makers: s.caller.Makers}
	return rec, token, nil
}

// kept holds the values an execution needs that no other member of a record holds.
type kept struct {
	Args    json.RawMessage `json:"args"`
	Options json.RawMessage `json:"options,omitempty"`
}

// ownName returns an owner name that only this process and this try have. It identifies a step whose answer was lost as
// our own.
func (x *Executor) ownName() string { return fmt.Sprintf("%s/%x", x.cfg.Owner, random(8)) }

// reserve is the atomic check-and-set (IDS-STO-1).
func (x *Executor) reserve(s *submission, rec *Record) (*Record, bool, error) {
	return x.commit(rec, &Step{Tenant: rec.Tenant, Key: rec.Key, Settle: func(a Applied) (Change, error) {
		fresh := *rec
		if a.Previous != nil && a.Previous.Status.Terminal() {
			fresh.Previous = a.Previous.CommandID
		}
		if a.Previous != nil {
			fresh.Version = a.Previous.Version + 1
		}
		x.authenticate(&fresh)
		return Change{Record: &fresh, Evidence: []evidence.Entry{{
			Type: evidence.Reserved, At: rec.CreatedAt, Decision: string(FirstSeen), CommandID: rec.CommandID, SubmittedID: rec.CommandID,
			PreviousID: fresh.Previous, Key: rec.Key, Command: s.command.Name(), Actor: s.caller.Actor, Channel: s.envelope.Channel,
			Fingerprint: rec.Fingerprint, OutcomeStatus: string(InProgress),
		}}}, nil
	}})
}

// commit advances a record to our next version. If the store's answer was lost, commit tries the step again and recognises
// a step that was stored by the MAC of its record, which is unique. It reports false if another record is stored: that of
// another executor, or an earlier one of the same owner whose answer was lost.
func (x *Executor) commit(next *Record, step *Step) (*Record, bool, error) {
	var pause time.Duration
	for try := 1; ; try++ {
		r, err := x.commits.advance(step)
		switch {
		case err == nil && r.Err != nil:
			return nil, false, r.Err
		case err == nil && !r.Refused:
			return r.Stored, true, nil
		case err == nil:
			mine := r.Stored != nil && r.Stored.Owner == next.Owner && r.Stored.CommandID == next.CommandID && r.Stored.Version > step.Expect
			if next.MAC != nil { // a reservation has no MAC before it is settled, but a unique owner
				mine = mine && bytes.Equal(r.Stored.MAC, next.MAC)
			}
			return r.Stored, mine, nil
		case errors.Is(err, errStopped) || try == commitTries || x.isStopping():
			return nil, false, fmt.Errorf("store command: %w", err)
		}
		pause = max(2*pause, 20*time.Millisecond)
		x.rest(context.Background(), pause)
	}
}

// start executes a command of ours on a new goroutine, which continues if the caller leaves.
func (x *Executor) start(c *Registered, h Handler, caller Caller, call *Call, rec *Record) (*execution, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	e := &execution{x: x, command: c, handler: h, caller: caller, call: call, cancel: cancel, ended: make(chan struct{})}
	e.rec.Store(rec)
	call.ledger = e
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopping {
		cancel(errShutdown)
		return nil, &Refusal{Code: ExecutorStopping, Detail: "the executor is shutting down; the command will be executed by another"}
	}
	x.running[rec.Tenant+"\x00"+rec.Key] = e
	x.wg.Add(1)
	go func() {
		defer x.wg.Done()
		e.run(ctx)
		cancel(nil)
		x.mu.Lock()
		if place := rec.Tenant + "\x00" + rec.Key; x.running[place] == e {
			delete(x.running, place)
		}
		x.mu.Unlock()
		close(e.ended)
	}()
	return e, nil
}

// wait answers once the execution has ended. If the context ends first, it answers that the command is in progress.
func (x *Executor) wait(ctx context.Context, e *execution) (*Answer, error) {
	select {
	case <-e.ended:
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

// run executes the command until it has an outcome, or until it leaves the command to another execution.
func (e *execution) run(ctx context.Context) {
	stop := e.keepLease()
	defer stop()
	deadline := e.x.cfg.Now().Add(e.x.retryFor(e.command))
	for pause := time.Duration(0); ; {
		e.x.fault("started")
		o, err := safely(ctx, e.handler, e.call)
		e.x.fault("handled")
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

func (x *Executor) retryFor(c *Registered) time.Duration {
	if c.Remote != nil && c.Remote.Timeout > 0 {
		return c.Remote.Timeout.Duration()
	}
	return x.cfg.RetryFor
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
			Command: e.command.Name(), Actor: r.Actor, Fingerprint: r.Fingerprint, OutcomeStatus: string(InProgress)}}
	})
	if err != nil && !errors.Is(err, errSuperseded) {
		e.x.cfg.Log.Error("command not given up in the store; it goes on when its lease is over", "command_id", e.call.CommandID, "error", err)
	}
	if err == nil && sub == NeedsReconciliation && !known && e.x.cfg.Unresolved != nil {
		e.x.cfg.Unresolved()
	}
	e.over, e.final = true, e.rec.Load()
}
