package command

import (
	"context"
	"slices"
	"strings"
)

// resume continues an interrupted execution. Its effects in the store did not happen, or the record would be terminal, so
// the handler may run again. The provider is asked first about calls without a known result, unless it recognises repeats
// (IDS-STO-17).
func (e *execution) resume(ctx context.Context) (*Outcome, error) {
	if !e.repeatable() {
		for _, name := range e.open() {
			if err := e.reconcile(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	return e.command.Handler.Execute(ctx, e.call)
}

// reconcile asks the provider about one open call and records the answer. An error ends this execution.
func (e *execution) reconcile(ctx context.Context, name string) error {
	r, ok := e.command.Handler.(Reconciler)
	if !ok {
		return ErrUnresolved
	}
	about := *e.call
	about.ledger = oneCall{e, name}
	found, err := r.Reconcile(ctx, &about)
	switch {
	case err != nil:
		e.x.cfg.Log.Warn("provider cannot be asked what became of a call", "command_id", e.call.CommandID, "call", name, "error", err)
		return ErrUnresolved
	case found.Uncertain:
		return ErrUnresolved
	case len(found.Effects) > 1:
		return e.undoExtra(ctx, name, found.Effects)
	case len(found.Effects) == 1 && e.rec.Load().undid(name):
		return compensatedBut(found.Effects[0])
	case len(found.Effects) == 1:
		err = e.close(name, CallDone, found.Effects[0].Result)
	default:
		err = e.close(name, CallFailed, nil)
	}
	return err
}

// oneCall is the ledger of a call about which a provider is asked: no other call is open in it.
type oneCall struct {
	*execution
	name string
}

func (c oneCall) open() []string { return []string{c.name} }

// errCompensated ends an execution in the state compensated.
type errCompensated struct{ outcome StoredOutcome }

func (*errCompensated) Error() string { return "compensated" }

func compensatedBut(first ProviderEffect) error {
	return &errCompensated{StoredOutcome{Status: Compensated, Result: first.Result, Summary: "The provider had done it more than once; all but one were taken back."}}
}

// undoing begins the names of ledger entries with which the executor undoes extra effects of a call. Handlers do not see them.
const undoing = "executor: undo "

// undid reports whether the executor has begun to undo extra effects of a call.
func (r *Record) undid(name string) bool {
	return slices.ContainsFunc(r.Ledger, func(e LedgerEntry) bool { return strings.HasPrefix(e.Name, undoing+name+" ") })
}

// undoExtra undoes all but the first effect of a call that a provider performed more than once, and ends the command as
// compensated (IDS-SHD-6). The ledger records each undoing like any other call. The call itself stays open until the end of
// the command is stored: after a crash the provider is asked again for the remaining effects.
func (e *execution) undoExtra(ctx context.Context, name string, effects []ProviderEffect) error {
	comp, ok := e.command.Handler.(Compensator)
	if !ok {
		return ErrUnresolved
	}
	for _, extra := range effects[1:] {
		undo := undoing + name + " " + extra.ID
		if known := e.rec.Load().entry(undo); known != nil && known.State == CallStarted {
			// The provider still has the effect: that call did nothing.
			if err := e.close(undo, CallFailed, nil); err != nil {
				return err
			}
		}
		if _, err := e.call.Do(ctx, undo, func(ctx context.Context, _ string) (any, error) {
			return nil, comp.Compensate(ctx, e.call, extra)
		}); err != nil {
			return err
		}
	}
	return compensatedBut(effects[0])
}
