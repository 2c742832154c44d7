package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// finish stores the outcome with its effects and its evidence in one transaction. If the store is not available, finish
// retries as long as this execution owns the command, so that external effects of the handler are not forgotten. If an
// effect failed because of a concurrent change, finish returns the reason why the handler has to run again.
func (e *execution) finish(o *Outcome, err error, again bool) *TransientError {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := ending{outcome: o, err: err}
	if err == nil && o != nil {
		end.effects = o.Effects
	}
	for {
		last := e.rec.Load()
		r, serr := e.x.commits.advance(&Step{Tenant: last.Tenant, Key: last.Key, Expect: last.Version, Effects: end.effects,
			Settle: func(a Applied) (Change, error) { return e.settled(last, end.outcome, end.err, a) }})
		var passing *TransientError
		switch {
		case serr == nil && r.Err != nil && errors.As(r.Err, &passing) && again:
			return passing
		case serr == nil && r.Err != nil && end.fail(r.Err):
			continue
		case serr == nil && r.Err != nil:
			e.err = r.Err
		case serr == nil && r.Refused && e.earlier(r.Stored):
			e.rec.Store(r.Stored)
			continue
		case serr == nil && r.Refused && !(r.Stored != nil && r.Stored.Owner == last.Owner && r.Stored.Status.Terminal()):
			e.err = e.takenOver()
		case serr == nil:
			e.final, e.applied = r.Stored, r.Applied
			e.rec.Store(r.Stored)
			e.x.cfg.fault("finished")
		case errors.Is(serr, errStopped) || e.x.isStopping():
			e.err = fmt.Errorf("store outcome: %w", serr)
		default:
			e.x.cfg.Log.Warn("outcome of a command not stored yet", "command_id", last.CommandID, "error", serr)
			e.outlast(&end, serr)
			continue
		}
		e.over = true
		return nil
	}
}

// ending is the final state that finish tries to store.
type ending struct {
	outcome *Outcome
	err     error
	effects []Effect

	failed  bool
	pause   time.Duration
	refused time.Time // since when the store accepts other steps but not this one
}

// fail turns the ending into a failure without effects, because the original could not be stored. It reports false if the
// ending already was such a failure.
func (n *ending) fail(cause error) bool {
	var back *undone
	if errors.As(cause, &back) {
		n.effects, n.err = nil, back.cause
		return true
	}
	if n.failed {
		return false
	}
	n.failed, n.effects, n.err = true, nil, fmt.Errorf("store outcome: %w", cause)
	return true
}

// outlast waits for a store that did not accept the ending, and renews the lease meanwhile. If the store does not accept the renewal
// either, which takes most of a second, the caller no longer waits. If the store accepts the
// renewals but not the effects for as long as transient errors are retried, the command fails without its effects.
func (e *execution) outlast(n *ending, cause error) {
	n.pause = min(max(2*n.pause, 50*time.Millisecond), 2*time.Second)
	e.x.rest(context.Background(), n.pause)
	now := e.x.now()
	err := e.change(func(r *Record) []evidence.Entry {
		r.LeaseUntil = now.Add(e.x.cfg.Lease)
		return nil
	})
	switch {
	case err != nil:
		n.refused = time.Time{}
		if e.stall == nil && len(e.command.Secret) == 0 { // secrets are in no later answer, so their caller waits on
			e.stall = fmt.Errorf("store outcome of a command that goes on: %w", cause)
			close(e.stalled)
		}
	case n.refused.IsZero():
		n.refused = now
	case len(n.effects) > 0 && now.Sub(n.refused) >= e.x.cfg.RetryFor:
		n.effects, n.err = nil, fmt.Errorf("apply effects: %w", cause)
	}
}

// settled returns the terminal record of an execution, with its evidence.
func (e *execution) settled(last *Record, o *Outcome, err error, a Applied) (Change, error) {
	shown := o
	if err == nil && o != nil {
		completed := *o
		shown = &completed
		if err = completed.complete(a); err != nil {
			// The effects of a refused command must not be stored: the whole step fails and is settled again without
			// effects.
			return Change{}, &undone{err}
		}
	}
	stored, first, cause := settle(e.command, shown, err)
	if err == nil && cause != nil { // nor may effects be stored whose outcome cannot be
		return Change{}, &undone{cause}
	}
	if cause != nil {
		e.x.cfg.Log.Error("command failed", "command", e.command.Name(), "command_id", last.CommandID, "error", cause)
	}
	now := e.x.now()
	next := last.next()
	next.Status, next.Substatus, next.UpdatedAt = stored.Status, Running, now
	next.OutcomeRef, next.Envelope, next.LeaseUntil = "outcome:"+last.CommandID, nil, time.Time{}
	if stored.Status == Compensated {
		next.closeCalls(CallDone, now)
	}
	next.forgetResults()
	sealed, digest, serr := e.x.seal(stored, outcomeBound(next.Tenant, next.Key))
	if serr != nil {
		return Change{}, serr
	}
	next.Outcome = sealed
	e.x.authenticate(next)
	e.outcome, e.value = first, nil
	if stored.Status == Executed && err == nil && shown != nil {
		e.value = shown.Result
	}
	return Change{Record: next, Evidence: []evidence.Entry{ended(e.command.Name(), next, digest, stored.Reason, now)}}, nil
}

// complete calls Outcome.After with the results of the effects. A panic becomes the command's failure, because other
// commands share the transaction.
func (o *Outcome) complete(a Applied) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("outcome panicked: %v\n%s", v, debug.Stack())
		}
	}()
	switch {
	case a.Err != nil && o.Refused != nil:
		return o.Refused(a.Err)
	case a.Err != nil:
		return a.Err
	case o.After != nil:
		return o.After(o, a.Results)
	}
	return nil
}

// ended returns the evidence of an execution's end.
func ended(name string, r *Record, digest [32]byte, reason string, now time.Time) evidence.Entry {
	types := map[Status]string{Executed: evidence.ExecutedOK, Failed: evidence.FailedType, Rejected: evidence.RejectedTy, Compensated: evidence.Compensated}
	return evidence.Entry{
		Type: types[r.Status], At: now, Decision: string(FirstSeen), Executed: r.Status != Rejected, CommandID: r.CommandID, SubmittedID: r.CommandID,
		PreviousID: r.Previous, Key: r.Key, Command: name, Target: r.Intent.Target, Actor: r.Actor, Fingerprint: r.Fingerprint, OutcomeRef: r.OutcomeRef,
		OutcomeStatus: string(r.Status), OutcomeDigest: digestText(digest), Reason: reason,
	}
}

// undone reports that the effects must be rolled back with the step.
type undone struct{ cause error }

func (u *undone) Error() string { return u.cause.Error() }
func (u *undone) Unwrap() error { return u.cause }

// settle turns a handler's return into the outcome to store and the outcome of the first answer; only the latter holds
// secrets. The cause is for the log and not for the answer.
func settle(c *Registered, o *Outcome, err error) (stored, first *StoredOutcome, cause error) {
	var (
		rejection *Rejection
		failure   *Failure
		taken     *errCompensated
	)
	switch {
	case errors.As(err, &taken):
		first = &taken.outcome
		if first.Result, err = resultJSON(first.Result); err != nil {
			first.Result = nil // it comes from the provider and is not a valid result
		}
		return c.withoutSecrets(first), first, nil
	case errors.As(err, &rejection):
		stored = &StoredOutcome{Status: Rejected, Reason: rejection.Reason, Detail: rejection.Detail, Summary: rejection.Detail}
		return stored, stored, nil
	case errors.As(err, &failure):
		stored = &StoredOutcome{Status: Failed, Reason: failure.Reason, Detail: failure.Detail, Summary: failure.Detail}
		return stored, stored, err
	case err == nil && o == nil:
		err = errors.New("the handler returned neither an outcome nor an error")
	}
	var result []byte
	if err == nil {
		result, err = resultJSON(o.Result)
	}
	if err != nil {
		stored = &StoredOutcome{Status: Failed, Reason: "handler_failed", Detail: "the handler failed; the operator's log says why",
			Summary: c.Name() + " failed."}
		return stored, stored, err
	}
	first = &StoredOutcome{Status: Executed, Summary: o.Summary, Result: result}
	return c.withoutSecrets(first), first, nil
}

// withoutSecrets returns the part of an outcome that is stored (IDS IT-14).
func (c *Registered) withoutSecrets(first *StoredOutcome) *StoredOutcome {
	kept := *first
	for _, member := range c.Secret {
		if rest := without(kept.Result, member); !bytes.Equal(rest, kept.Result) {
			kept.Result, kept.SecretRedacted = rest, true
		}
	}
	return &kept
}

// maxResult is the longest result that is stored.
const maxResult = 256 << 10

// resultJSON encodes a result. It turns a panic of the result's own encoding into an error, because other commands share
// the transaction.
func resultJSON(v any) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("result panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if v == nil {
		return []byte("{}"), nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	result = bytes.TrimSpace(buf.Bytes())
	switch {
	case len(result) > maxResult:
		return nil, fmt.Errorf("the result has %d bytes, more than %d", len(result), maxResult)
	case len(result) == 0 || result[0] != '{':
		return nil, errors.New("the result is not an object")
	}
	return result, nil
}

// without returns a JSON object without one member; the other members keep their bytes and their order.
func without(object json.RawMessage, member string) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return object
	}
	out := []byte{'{'}
	found := false
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return object
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return object
		}
		if name == member {
			found = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return object
		}
		out = append(append(append(out, quoted...), ':'), value...)
	}
	if !found {
		return object
	}
	return append(out, '}')
}
