package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// A NoEffectError says that a call certainly had no effect: the provider refused it, or it was never sent.
type NoEffectError struct{ Err error }

func (e *NoEffectError) Error() string { return e.Err.Error() }
func (e *NoEffectError) Unwrap() error { return e.Err }

// NoEffect marks an error of a call that certainly had no effect.
func NoEffect(err error) error { return &NoEffectError{err} }

// Do makes a named call to an external system once. The ledger stores the call before it is made, and its result
// afterwards. After a crash, or when the handler runs again, a call with a known result is not repeated. A call without a
// known result is repeated only if the provider recognises repeats by its key (S1); otherwise reconciliation finds the
// result (S3, S4).
//
// The callback gets the key for the provider, which is the same on every try of this call. An error without the NoEffect
// mark means that the result is unknown.
func (c *Call) Do(ctx context.Context, name string, call func(ctx context.Context, key string) (any, error)) (json.RawMessage, error) {
	if c.ledger == nil {
		return nil, errors.New("a read-only command makes no calls")
	}
	if ctx.Err() != nil { // another executor may continue the command, and both would call
		return nil, Transient(fmt.Errorf("%s was not called: %w", name, context.Cause(ctx)))
	}
	entry, make, err := c.ledger.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	if !make {
		return entry.Result, nil
	}
	v, err := call(ctx, c.ProviderKey(name))
	if err != nil {
		return nil, c.ledger.broken(ctx, name, err)
	}
	result, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode result of %s: %w", name, err)
	}
	return result, c.ledger.done(ctx, name, result)
}

// ProviderKey is the idempotency key for a call of this command. It is derived from the command's own key and is the same
// on every try (IDS-SHD-3). A command with the same key in a later window gets another one, or the provider would take it
// for a repeat.
func (c *Call) ProviderKey(name string) string { return ProviderKey(c.Key, c.CommandID+" "+name) }

// begin records in the ledger that a call is about to be made. It reports false if the result is known.
func (e *execution) begin(ctx context.Context, name string) (LedgerEntry, bool, error) {
	e.calls.Lock()
	defer e.calls.Unlock()
	if known := e.rec.Load().entry(name); known != nil {
		switch known.State {
		case CallDone, CallCompensated:
			entry, err := e.opened(*known)
			return entry, false, err
		case CallStarted:
			if e.repeatable() {
				return *known, true, nil
			}
			return *known, false, ErrUnresolved
		}
	}
	entry := LedgerEntry{Name: name, State: CallStarted, StartedAt: e.x.now()}
	err := e.update(func(r *Record) []evidence.Entry {
		r.put(entry)
		return nil
	})
	switch {
	case errors.Is(err, errSuperseded) || errors.Is(err, errOver):
		return entry, false, e.lostCall(err)
	case err != nil: // nothing was called
		return entry, false, Transient(fmt.Errorf("write ledger: %w", err))
	}
	e.x.cfg.fault("ledgered")
	return entry, true, nil
}

// repeatable reports whether the provider recognises repeats.
func (e *execution) repeatable() bool { return slices.Contains(e.command.Shielding, S1) }

func (e *execution) done(ctx context.Context, name string, result []byte) error {
	e.x.cfg.fault("called")
	if err := e.close(name, CallDone, result); err != nil {
		return err
	}
	e.x.cfg.fault("recorded")
	return nil
}

// close records the end of a call in the ledger.
func (e *execution) close(name string, state LedgerState, result []byte) error {
	err := e.update(func(r *Record) []evidence.Entry {
		entry := LedgerEntry{Name: name, StartedAt: e.x.now()}
		if known := r.entry(name); known != nil {
			entry = *known
		}
		entry.State, entry.EndedAt, entry.Result = state, e.x.now(), e.sealed(name, result)
		r.put(entry)
		if !r.openCalls() {
			r.Substatus = Running
		}
		return nil
	})
	if err != nil {
		return e.lostCall(err)
	}
	return nil
}

// sealed returns a result in its stored form. It is encrypted, because it may hold secret or masked members of the
// outcome.
func (e *execution) sealed(name string, result []byte) []byte {
	if result == nil {
		return nil
	}
	last := e.rec.Load()
	return e.x.cfg.Sealer.Seal(result, callBound(last.Tenant, last.Key, name))
}

// opened returns an entry with its decrypted result.
func (e *execution) opened(entry LedgerEntry) (LedgerEntry, error) {
	if entry.Result == nil {
		return entry, nil
	}
	last := e.rec.Load()
	plain, err := e.x.cfg.Sealer.Open(entry.Result, callBound(last.Tenant, last.Key, entry.Name))
	if err != nil {
		return entry, fmt.Errorf("open result of %s: %w: %w", entry.Name, ErrUnresolved, errTampered)
	}
	entry.Result = plain
	return entry, nil
}

// broken classifies the error of a call: without effect, worth another try, or unknown.
func (e *execution) broken(ctx context.Context, name string, cause error) error {
	var (
		none    *NoEffectError
		passing *TransientError
	)
	switch {
	case errors.As(cause, &none):
		if err := e.close(name, CallFailed, nil); err != nil {
			return err
		}
		return cause
	case e.repeatable() && !errors.As(cause, &passing):
		return Transient(cause)
	case e.repeatable():
		return cause
	}
	e.x.cfg.Log.Warn("what became of a call is not known", "command_id", e.call.CommandID, "call", name, "error", cause)
	return ErrUnresolved
}

// lostCall returns the handler's error for a ledger that cannot be written.
func (e *execution) lostCall(err error) error {
	if errors.Is(err, errSuperseded) || errors.Is(err, errOver) {
		e.cancel(errSuperseded)
	}
	return fmt.Errorf("write ledger: %w: %w", ErrUnresolved, err)
}

func (r *Record) entry(name string) *LedgerEntry {
	for i := range r.Ledger {
		if r.Ledger[i].Name == name {
			return &r.Ledger[i]
		}
	}
	return nil
}

func (r *Record) put(entry LedgerEntry) {
	if known := r.entry(entry.Name); known != nil {
		*known = entry
		return
	}
	r.Ledger = append(r.Ledger, entry)
}

// open names the handler's calls whose results are not known.
func (e *execution) open() (names []string) {
	for _, entry := range e.rec.Load().Ledger {
		if entry.State == CallStarted && !strings.HasPrefix(entry.Name, undoing) {
			names = append(names, entry.Name)
		}
	}
	return names
}

// forgetResults removes the results from the ledger, but not the calls and their states. The outcome holds the results as
// far as they may be stored.
func (r *Record) forgetResults() {
	for i := range r.Ledger {
		r.Ledger[i].Result = nil
	}
}

// closeCalls sets the state of all open calls.
func (r *Record) closeCalls(state LedgerState, at time.Time) {
	for i := range r.Ledger {
		if entry := &r.Ledger[i]; entry.State == CallStarted {
			entry.State, entry.EndedAt = state, at
		}
	}
}

// openCalls reports whether the result of a call is not known.
func (r *Record) openCalls() bool {
	return slices.ContainsFunc(r.Ledger, func(e LedgerEntry) bool { return e.State == CallStarted })
}
