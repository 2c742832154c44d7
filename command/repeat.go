package command

import (
	"slices"

	"github.com/godwit-hq/godwit/evidence"
)

// repeat answers a submission whose key is taken. It stores the evidence of its decision before it answers.
func (x *Executor) repeat(s *submission, rec *Record) (*Answer, error) {
	now := x.cfg.Now()
	if after, ok := x.perKey.allow(rec.Tenant+"\x00"+rec.Key, now); !ok {
		return nil, x.limited(after)
	}
	if after, ok := x.perActor.allow(s.caller.Tenant+"\x00"+s.caller.Actor, now); !ok {
		return nil, x.limited(after)
	}
	entry := evidence.Entry{
		Type: evidence.Observation, At: now, Decision: string(DuplicateReplayed), CommandID: rec.CommandID, SubmittedID: s.envelope.CommandID,
		Key: rec.Key, Command: s.command.Name(), Actor: s.caller.Actor, Channel: s.envelope.Channel, Fingerprint: s.derived.Fingerprint,
		OutcomeRef: rec.OutcomeRef, OutcomeStatus: string(rec.Status),
	}
	if rec.Fingerprint != s.derived.Fingerprint {
		entry.Type, entry.Decision, entry.Reason = evidence.RejectedTy, string(ConflictRejected), string(Conflict)
		entry.Stored, entry.OutcomeRef, entry.OutcomeStatus = rec.Fingerprint, "", ""
		if err := x.observe(rec.Tenant, entry); err != nil {
			return nil, err
		}
		x.decided(ConflictRejected)
		return nil, &Refusal{Code: Conflict, Field: "/options", CommandID: rec.CommandID, Key: rec.Key,
			Detail: "a command with the same key differs in what is not part of the key; nothing was executed"}
	}
	if err := x.observe(rec.Tenant, entry); err != nil {
		return nil, err
	}
	x.fault("observed")
	x.decided(DuplicateReplayed)
	if !rec.Status.Terminal() && rec.Substatus != AwaitingConfirmation && !now.Before(rec.LeaseUntil) {
		x.look()
	}
	return x.answer(rec, s.command, s.caller, DuplicateReplayed)
}

// answer builds the answer from a record and omits what the caller may not see.
func (x *Executor) answer(rec *Record, c *Registered, caller Caller, d Decision) (*Answer, error) {
	a := standing(rec, c, d)
	if !rec.Status.Terminal() {
		return a, nil
	}
	var stored StoredOutcome
	if err := x.open(rec.Outcome, outcomeBound(rec.Tenant, rec.Key), &stored); err != nil {
		return nil, x.trust(&Record{Tenant: rec.Tenant, Key: rec.Key, CommandID: rec.CommandID})
	}
	a.Outcome = mask(&stored, c, caller)
	return a, nil
}

// standing returns an answer without the outcome.
func standing(rec *Record, c *Registered, d Decision) *Answer {
	a := &Answer{
		Decision: d, CommandID: rec.CommandID, Intent: rec.Intent, Key: rec.Key, KeyVersion: rec.KeyVersion, Fingerprint: rec.Fingerprint,
		Status: rec.Status, Substatus: rec.Substatus, OutcomeRef: rec.OutcomeRef,
		CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt, ExpiresAt: rec.ExpiresAt,
	}
	if rec.Substatus == AwaitingConfirmation {
		a.TokenExpiry, a.StepUp = rec.Confirmation.ExpiresAt, c.StepUp
	}
	return a
}

// mask hides the members that the caller may not see (IDS-SEC-4).
func mask(o *StoredOutcome, c *Registered, caller Caller) *StoredOutcome {
	masked := *o
	for _, m := range c.Masked {
		if !slices.Contains(caller.Scopes, m.Scope) {
			masked.Result = without(masked.Result, m.Member)
			masked.Masked = append(slices.Clone(masked.Masked), m.Member)
		}
	}
	return &masked
}
