package command

import "github.com/godwit-hq/godwit/evidence"

// repeat answers a submission whose key is taken. It stores the evidence of its decision before it answers.
func (x *submissions) repeat(s *submission, rec *Record) (*Answer, error) {
	now := x.cfg.Now()
	if err := x.limits.key(rec.Tenant, rec.Key, now); err != nil {
		return nil, err
	}
	if err := x.limits.actor(s.caller, now); err != nil {
		return nil, err
	}
	entry := evidence.Entry{
		Type: evidence.Observation, At: now, Decision: string(DuplicateReplayed), CommandID: rec.CommandID, SubmittedID: s.envelope.CommandID,
		Key: rec.Key, Command: s.command.Name(), Target: rec.Intent.Target, Actor: s.caller.Actor, Session: s.caller.Session, User: s.caller.User, Channel: s.envelope.Channel, Fingerprint: s.derived.Fingerprint,
		OutcomeRef: rec.OutcomeRef, OutcomeStatus: string(rec.Status),
	}
	if rec.Fingerprint != s.derived.Fingerprint {
		entry.Type, entry.Decision, entry.Reason = evidence.RejectedTy, string(ConflictRejected), string(Conflict)
		entry.Stored, entry.OutcomeRef, entry.OutcomeStatus = rec.Fingerprint, "", ""
		if err := x.observe(rec.Tenant, entry); err != nil {
			return nil, err
		}
		x.cfg.decided(ConflictRejected)
		return nil, &Refusal{Code: Conflict, Field: "/options", CommandID: rec.CommandID, Key: rec.Key,
			Detail: "a command with the same key differs in what is not part of the key; nothing was executed"}
	}
	if err := x.observe(rec.Tenant, entry); err != nil {
		return nil, err
	}
	x.cfg.fault("observed")
	x.cfg.decided(DuplicateReplayed)
	if !rec.Status.Terminal() && rec.Substatus != AwaitingConfirmation && !now.Before(rec.LeaseUntil) {
		x.look()
	}
	return x.answer(rec, s.command, s.caller, DuplicateReplayed)
}
