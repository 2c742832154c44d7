package command

import (
	"context"
	"encoding/json"

	"github.com/godwit-hq/godwit/evidence"
)

// first reserves the key for a submission and executes it. raced reports that the key was
// taken already.
func (x *submissions) first(ctx context.Context, s *submission) (a *Answer, raced bool, err error) {
	x.cfg.fault("admitted")
	rec, token, err := x.newRecord(s)
	if err != nil {
		return nil, false, err
	}
	stored, ours, err := x.reserve(s, rec)
	if err != nil || !ours {
		return nil, !ours, err
	}
	x.cfg.fault("reserved")
	x.cfg.decided(FirstSeen)
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
	e, err := x.executions.start(s.command, s.handler(), s.caller, s.call(), stored)
	if err != nil {
		return nil, false, err
	}
	a, err = x.executions.wait(ctx, e)
	return a, false, err
}

// newRecord returns the record that reserves the key of a submission, and its confirmation token if it needs one.
func (x *submissions) newRecord(s *submission) (*Record, string, error) {
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

// reserve is the atomic check-and-set (IDS-STO-1).
func (x *submissions) reserve(s *submission, rec *Record) (*Record, bool, error) {
	return x.commit(rec, &Step{Tenant: rec.Tenant, Key: rec.Key, Settle: func(a Applied) (Change, error) {
		if err := x.trust(a.Previous); err != nil { // it may look free only because it was tampered with (IDS-SEC-2)
			return Change{}, err
		}
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
			PreviousID: fresh.Previous, Key: rec.Key, Command: s.command.Name(), Target: rec.Intent.Target, Actor: s.caller.Actor, Session: s.caller.Session, User: s.caller.User, Channel: s.envelope.Channel,
			Fingerprint: rec.Fingerprint, OutcomeStatus: string(InProgress),
		}}}, nil
	}})
}
