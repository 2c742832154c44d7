package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/evidence"
)

// Compensation is the declaration of the command that undoes another command. Its target is the id of that command. Its
// calls to providers are shielded like those of any other command.
func Compensation(scopes ...string) Declaration {
	return Declaration{
		Entity: "command", Action: "compensate", TargetRequired: true, Scopes: scopes, Class: I3, Shielding: []Strategy{S3},
		Description:   "Takes back what an executed command did at its provider. Its record then says compensated, for its duplicates too.",
		Justification: "It calls the provider of the command it takes back.",
		Confirmation:  true,
	}
}

// compensation is the handler of Compensation.
type compensation struct{ *records }

func (c *compensation) target(ctx context.Context, call *Call) (*Record, *Call, Compensator, error) {
	rec, command, err := c.mine(ctx, Caller{Tenant: call.Tenant}, call.Intent.Target)
	if refusal := (*Refusal)(nil); err != nil && !errors.As(err, &refusal) {
		return nil, nil, nil, Transient(err) // an error of the store
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if rec == nil {
		return nil, nil, nil, Reject("command_not_found", "there is no command "+call.Intent.Target)
	}
	comp, ok := command.Handler.(Compensator)
	if !ok {
		return nil, nil, nil, Reject("not_compensable", command.Name()+" cannot be taken back")
	}
	of := &Call{CommandID: rec.CommandID, Tenant: rec.Tenant, Actor: rec.Actor, Principal: rec.Principal, Intent: rec.Intent, Key: rec.Key, Try: rec.Try}
	return rec, of, comp, nil
}

// Execute undoes every effect that the provider reports for the command, then marks the command as compensated.
func (c *compensation) Execute(ctx context.Context, call *Call) (*Outcome, error) {
	rec, of, comp, err := c.target(ctx, call)
	if err != nil {
		return nil, err
	}
	if rec.Status != Executed && rec.Status != Compensated {
		return nil, Reject("not_executed", "only an executed command can be taken back; this one is "+string(rec.Status))
	}
	if rec, err = c.claim(ctx, call, rec); err != nil {
		return nil, err
	}
	found, err := comp.Reconcile(ctx, of)
	if err != nil || found.Uncertain {
		return nil, Transient(errors.Join(errors.New("the provider cannot say what it has of the command"), err))
	}
	for _, effect := range found.Effects {
		if _, err := call.Do(ctx, compensating+effect.ID, func(ctx context.Context, _ string) (any, error) {
			return nil, comp.Compensate(ctx, of, effect)
		}); err != nil {
			return nil, err
		}
	}
	if err := c.mark(ctx, rec); err != nil {
		return nil, Transient(err)
	}
	return &Outcome{Summary: fmt.Sprintf("Command %s was taken back.", rec.CommandID),
		Result: map[string]any{"command_id": rec.CommandID, "status": Compensated, "effects": len(found.Effects)}}, nil
}

const (
	claimed      = "compensate/"
	compensating = "compensate " // and the id of the effect: the call that undoes it
)

// claim assigns a command to this compensation until the compensation ends. Otherwise two compensations of the same
// command would both find its effects and both undo them.
func (c *compensation) claim(ctx context.Context, call *Call, rec *Record) (*Record, error) {
	mark := claimed + call.CommandID
	if rec.Owner == mark {
		return rec, nil
	}
	if other, ok := strings.CutPrefix(rec.Owner, claimed); ok {
		holder, err := c.cfg.Store.FindCommand(ctx, call.Tenant, other)
		if err != nil {
			return nil, Transient(fmt.Errorf("find command: %w", err))
		}
		if holder != nil && holder.Status == InProgress {
			return nil, Transient(fmt.Errorf("command %s is taking it back", other))
		}
	}
	next := rec.next()
	next.Owner = mark
	c.authenticate(next)
	stored, ours, err := c.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
		return Change{Record: next}, nil
	}})
	if err == nil && !ours {
		err = errors.New("the command changed meanwhile")
	}
	if err != nil {
		return nil, Transient(err)
	}
	return stored, nil
}

// Reconcile asks the provider whether the effect that was being undone still exists.
func (c *compensation) Reconcile(ctx context.Context, call *Call) (Found, error) {
	_, of, comp, err := c.target(ctx, call)
	if err != nil {
		return Found{}, err
	}
	found, err := comp.Reconcile(ctx, of)
	if err != nil || found.Uncertain {
		return found, err
	}
	for _, name := range call.Open() {
		for _, effect := range found.Effects {
			if name == compensating+effect.ID {
				return Found{}, nil // it still exists: the undoing did not happen
			}
		}
	}
	return Found{Effects: []ProviderEffect{{ID: "taken back", Result: []byte("null")}}}, nil
}

// mark changes an executed record. It leaves a record alone that is already compensated.
func (c *compensation) mark(ctx context.Context, rec *Record) error {
	for rec.Status == Executed {
		now := c.now()
		var kept StoredOutcome
		if err := c.open(rec.Outcome, outcomeBound(rec.Tenant, rec.Key), &kept); err != nil {
			return err
		}
		kept.Status = Compensated
		next := rec.next()
		next.Status, next.UpdatedAt, next.Owner = Compensated, now, c.ownName()
		var (
			digest [32]byte
			err    error
		)
		if next.Outcome, digest, err = c.seal(&kept, outcomeBound(rec.Tenant, rec.Key)); err != nil {
			return err
		}
		c.authenticate(next)
		entry := evidence.Entry{Type: evidence.Compensated, At: now, CommandID: rec.CommandID, SubmittedID: rec.CommandID, Key: rec.Key,
			Command: rec.Intent.Entity + "." + rec.Intent.Action, Target: rec.Intent.Target, Actor: rec.Actor, Fingerprint: rec.Fingerprint, OutcomeRef: rec.OutcomeRef,
			OutcomeStatus: string(Compensated), OutcomeDigest: digestText(digest)}
		_, ours, err := c.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
			return Change{Record: next, Evidence: []evidence.Entry{entry}}, nil
		}})
		if err != nil || ours {
			return err
		}
		id := rec.CommandID
		if rec, err = c.find(ctx, rec.Tenant, rec.Key); err != nil {
			return err
		}
		if rec == nil || rec.CommandID != id {
			return errors.New("the record is gone: its window is over")
		}
	}
	return nil
}
