package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// Resolution is the declaration of the command with which an operator ends a command that needs reconciliation when the
// provider cannot be asked or does not know. Its target is the id of that command, and its verdict is the operator's
// finding. It calls no other system.
func Resolution(scopes ...string) Declaration {
	return Declaration{
		Entity: "command", Action: "resolve", TargetRequired: true, Scopes: scopes, Critical: true, Confirmation: true,
		Description: "Ends a command that needs reconciliation by what an operator found out at its provider. Its duplicates then get that outcome.",
		Args: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["verdict","note"],"properties":{` +
			`"verdict":{"enum":["executed","failed"],"description":"whether the call had its effect"},` +
			`"note":{"type":"string","minLength":1,"maxLength":500,"description":"how that was found out; the command's callers see it"}}}`),
	}
}

// resolution is the handler of Resolution.
type resolution struct{ *records }

// resolvedByOperator is the reason of an outcome that an operator gave.
const resolvedByOperator = "resolved_by_operator"

// Execute ends the target.
func (x *resolution) Execute(ctx context.Context, call *Call) (*Outcome, error) {
	var in struct {
		Verdict Status `json:"verdict"`
		Note    string `json:"note"`
	}
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return nil, err
	}
	rec, err := x.cfg.Store.FindCommand(ctx, call.Tenant, call.Intent.Target)
	if err != nil {
		return nil, Transient(fmt.Errorf("find command: %w", err))
	}
	if rec == nil {
		return nil, Reject("command_not_found", "there is no command "+call.Intent.Target)
	}
	if err := x.trust(rec); err != nil {
		return nil, err
	}
	// After a crash this resolution may already own the record; its owner then is mark.
	mark := "resolve/" + call.CommandID
	if rec.Owner != mark {
		if rec.Status != InProgress || rec.Substatus != NeedsReconciliation {
			return nil, Reject("not_unresolved", "only a command that needs reconciliation can be resolved; this one is "+state(rec))
		}
		if err := x.mark(call, rec, mark, in.Verdict, in.Note); err != nil {
			return nil, err
		}
	}
	return &Outcome{Summary: fmt.Sprintf("Command %s was resolved as %s.", rec.CommandID, in.Verdict),
		Result: map[string]any{"command_id": rec.CommandID, "status": in.Verdict}}, nil
}

func state(rec *Record) string {
	if rec.Substatus != Running {
		return string(rec.Substatus)
	}
	return string(rec.Status)
}

// mark ends a record with an operator's verdict. An execution that is asking the provider meanwhile finds that it
// has lost the record.
func (x *resolution) mark(call *Call, rec *Record, mark string, verdict Status, note string) error {
	now := x.now()
	next := rec.next()
	next.Status, next.Substatus, next.UpdatedAt, next.Owner = verdict, Running, now, mark
	next.OutcomeRef, next.Envelope, next.LeaseUntil = "outcome:"+rec.CommandID, nil, time.Time{}
	next.closeCalls(map[Status]LedgerState{Executed: CallDone, Failed: CallFailed}[verdict], now)
	next.forgetResults()
	kept := StoredOutcome{Status: verdict, Summary: "Resolved by an operator: " + note, Reason: resolvedByOperator, Detail: note}
	if verdict == Executed {
		kept.Result = json.RawMessage("{}")
	}
	sealed, digest, err := x.seal(&kept, outcomeBound(rec.Tenant, rec.Key))
	if err != nil {
		return err
	}
	next.Outcome = sealed
	x.authenticate(next)
	entry := ended(rec.Intent.Entity+"."+rec.Intent.Action, next, digest, resolvedByOperator, now)
	entry.Actor = call.Actor
	_, ours, err := x.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
		return Change{Record: next, Evidence: []evidence.Entry{entry}}, nil
	}})
	switch {
	case err != nil:
		return Transient(err)
	case !ours: // the provider was just asked again, and its answer may have ended the command
		return Transient(errors.New("the command changed meanwhile"))
	}
	return nil
}
