package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/evidence"
)

// A NoEffectError says that a call certainly did nothing: the provider refused it, or it never left.
type NoEffectError struct{ Err error }

func (e *NoEffectError) Error() string { return e.Err.Error() }
func (e *NoEffectError) Unwrap() error { return e.Err }

// NoEffect marks an error of a call that certainly did nothing.
func NoEffect(err error) error { return &NoEffectError{err} }

// Do makes a named call to an external system once: the ledger has the call before it is made, and its result after. After
// a crash, or when the handler is run again, a call whose result is known is not made; one without a known result is not made either,
// unless the provider recognises repeats by the key it is given (S1). It is then for reconciliation to find out (S3, S4).
//
// The callback gets the key for the provider, which is the same whenever this call is made. An error that is not marked with NoEffect
// leaves open what happened.
func (c *Call) Do(ctx context.Context, name string, call func(ctx context.Context, key string) (any, error)) (json.RawMessage, error) {
	if c.ledger == nil {
		return nil, errors.New("a read-only command makes no calls")
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

// ProviderKey is the idempotency key for a call of this command: derived from the command's own, the same on every try (IDS-SHD-3). That of a
// command which has the same key in a later window differs, or the provider would take it for a repeat.
func (c *Call) ProviderKey(name string) string { return ProviderKey(c.Key, c.CommandID+" "+name) }

// begin writes down that a call is about to be made. It reports false when the result is known.
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
	e.x.fault("ledgered")
	return entry, true, nil
}

// repeatable reports whether the provider recognises repeats.
func (e *execution) repeatable() bool { return slices.Contains(e.command.Shielding, S1) }

func (e *execution) done(ctx context.Context, name string, result []byte) error {
	e.x.fault("called")
	if err := e.close(name, CallDone, result); err != nil {
		return err
	}
	e.x.fault("recorded")
	return nil
}

// close writes down how a call ended.
func (e *execution) close(name string, state LedgerState, result []byte) error {
	err := e.update(func(r *Record) []evidence.Entry {
		entry := LedgerEntry{Name: name, StartedAt: e.x.now()}
		if known := r.entry(name); known != nil {
			entry = *known
		}
		entry.State, entry.EndedAt, entry.Result = state, e.x.now(), e.sealed(name, result)
		r.put(entry)
		return nil
	})
	if err != nil {
		return e.lostCall(err)
	}
	return nil
}

// sealed is a result as it is kept: it may hold what the outcome shows once, or to some.
func (e *execution) sealed(name string, result []byte) []byte {
	if result == nil {
		return nil
	}
	last := e.rec.Load()
	return e.x.cfg.Sealer.Seal(result, callBound(last.Tenant, last.Key, name))
}

// opened is an entry with its result as it was given.
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

// broken judges a call that ended in an error: without effect, worth another try, or unknown.
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

// lostCall is what a handler is told when the ledger cannot be written.
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

func (e *execution) open() (names []string) {
	for _, entry := range e.rec.Load().Ledger {
		if entry.State == CallStarted {
			names = append(names, entry.Name)
		}
	}
	return names
}

// forgetResults leaves of the ledger what was called and how it ended: the results are in the outcome, as far as they may be kept.
func (r *Record) forgetResults() {
	for i := range r.Ledger {
		r.Ledger[i].Result = nil
	}
}

// open calls are those whose result is not known.
func (r *Record) openCalls() bool {
	return slices.ContainsFunc(r.Ledger, func(e LedgerEntry) bool { return e.State == CallStarted })
}
