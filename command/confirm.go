package command

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// confirmations continues commands that await confirmation.
type confirmations struct {
	*records
	limits     *limits
	executions *executions
}

// The purposes of a token. A token of one purpose is not valid for the other.
const (
	confirmation = "confirm"
	approval     = "step-up"
)

// mintToken makes a token of 256 random bits, in text that a person can paste.
func mintToken() string { return "cft_" + base64.RawURLEncoding.EncodeToString(random(32)) }

// tokenHash binds a token to its purpose, command and key: the same token has another hash under another command or key
// (IDS-CNF-2, -8).
func tokenHash(purpose, token, commandID, key string) []byte {
	sum := sha256.Sum256([]byte(purpose + "\x00" + commandID + "\x00" + key + "\x00" + token))
	return sum[:]
}

func matches(hash []byte, purpose, token string, rec *Record) bool {
	return len(hash) > 0 && subtle.ConstantTimeCompare(hash, tokenHash(purpose, token, rec.CommandID, rec.Key)) == 1
}

// confirm continues a command that awaits confirmation. If the command was confirmed before, confirm replays its outcome
// and does not execute it again.
func (x *confirmations) confirm(ctx context.Context, caller Caller, commandID, token, stepUp string) (*Answer, error) {
	for {
		rec, c, err := x.mine(ctx, caller, commandID)
		if err != nil {
			return nil, err
		}
		if rec == nil || rec.Confirmation == nil || !matches(rec.Confirmation.TokenHash, confirmation, token, rec) {
			return nil, x.guess(caller, &Refusal{Code: TokenInvalid, Field: "/confirmation_token", Detail: "is not the token of this command"})
		}
		if err := authorised(caller, c); err != nil {
			return nil, err
		}
		if rec.Substatus != AwaitingConfirmation {
			return x.replayConfirmed(caller, c, rec)
		}
		now := x.cfg.Now()
		if !now.Before(rec.Confirmation.ExpiresAt) {
			return nil, &Refusal{Code: TokenExpired, Field: "/confirmation_token", Detail: "came too late; submit the command again to get another"}
		}
		if c.StepUp {
			if !matches(rec.Confirmation.StepUpHash, approval, stepUp, rec) || !now.Before(rec.Confirmation.StepUpTill) {
				return nil, x.guess(caller, &Refusal{Code: StepUpRequired, Field: "/step_up_token",
					Detail: "this command also needs the approval of a second credential: POST to its step-up address with one"})
			}
		}
		answer, raced, err := x.confirmed(ctx, caller, c, rec)
		if err != nil || !raced {
			return answer, err
		}
	}
}

// guess counts wrong tokens. It refuses an actor that sends too many.
func (x *confirmations) guess(caller Caller, r *Refusal) error {
	if err := x.limits.actor(caller, x.cfg.Now()); err != nil {
		return err
	}
	return r
}

// confirmed spends the token and executes the command. raced reports that another confirmation spent the token first.
func (x *confirmations) confirmed(ctx context.Context, caller Caller, c *Registered, rec *Record) (*Answer, bool, error) {
	now := x.now()
	next := rec.next()
	next.Substatus, next.Owner, next.LeaseUntil = Running, x.ownName(), now.Add(x.cfg.Lease)
	next.Confirmation.ConfirmedAt = now
	x.authenticate(next)
	stored, ours, err := x.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
		return Change{Record: next, Evidence: []evidence.Entry{{Type: evidence.Confirmed, At: now, CommandID: rec.CommandID, SubmittedID: rec.CommandID,
			Key: rec.Key, Command: c.Name(), Target: rec.Intent.Target, Actor: caller.Actor, Session: caller.Session, User: caller.User, Fingerprint: rec.Fingerprint, OutcomeStatus: string(InProgress)}}}, nil
	}})
	if err != nil || !ours {
		return nil, !ours, err
	}
	x.cfg.fault("confirmed")
	call, err := x.recall(stored)
	if err != nil {
		return nil, false, err
	}
	e, err := x.executions.start(c, c.Handler, caller, call, stored)
	if err != nil {
		return nil, false, err
	}
	a, err := x.executions.wait(ctx, e)
	return a, false, err
}

// replayConfirmed answers a repeated confirmation.
func (x *confirmations) replayConfirmed(caller Caller, c *Registered, rec *Record) (*Answer, error) {
	now := x.cfg.Now()
	if err := x.limits.key(rec.Tenant, rec.Key, now); err != nil {
		return nil, err
	}
	err := x.observe(rec.Tenant, evidence.Entry{Type: evidence.Observation, At: now, Decision: string(DuplicateReplayed), CommandID: rec.CommandID,
		SubmittedID: rec.CommandID, Key: rec.Key, Command: c.Name(), Target: rec.Intent.Target, Actor: caller.Actor, Session: caller.Session, User: caller.User, Fingerprint: rec.Fingerprint, OutcomeRef: rec.OutcomeRef,
		OutcomeStatus: string(rec.Status), Reason: "confirmed_before"})
	if err != nil {
		return nil, err
	}
	x.cfg.decided(DuplicateReplayed)
	return x.answer(rec, c, caller, DuplicateReplayed)
}

// An Approval is the consent of a second principal. Its token is shown once.
type Approval struct {
	CommandID string
	Token     string
	ExpiresAt time.Time
}

// approve gives a second principal's consent to a command that awaits confirmation. The token is bound to the command like
// the confirmation token.
func (x *confirmations) approve(ctx context.Context, caller Caller, commandID string) (*Approval, error) {
	if err := x.limits.actor(caller, x.cfg.Now()); err != nil {
		return nil, err // each approval leaves evidence, so approvals are limited
	}
	for {
		rec, c, err := x.mine(ctx, caller, commandID)
		if err != nil {
			return nil, err
		}
		if rec == nil {
			return nil, &Refusal{Code: NotFound, Detail: "there is no such command"}
		}
		if err := authorised(caller, c); err != nil { // before the caller learns how the command stands (IDS-SEC-5)
			return nil, err
		}
		now := x.cfg.Now()
		switch {
		case !c.StepUp || rec.Substatus != AwaitingConfirmation:
			return nil, &Refusal{Code: NotAwaiting, Detail: "the command does not await an approval", CommandID: commandID}
		case !independent(caller, rec):
			return nil, &Refusal{Code: SelfApprovalRefused, CommandID: commandID, Detail: "the approver must be another principal than the submitter: " +
				"use a credential that is older than the command, that the submitter did not make, and that did not make the submitter's"}
		case !now.Before(rec.Confirmation.ExpiresAt):
			return nil, &Refusal{Code: TokenExpired, Detail: "the command was not confirmed in time; submit it again", CommandID: commandID}
		}
		token := mintToken()
		next := rec.next()
		next.Owner = x.ownName()
		next.Confirmation.StepUpHash, next.Confirmation.StepUpBy = tokenHash(approval, token, rec.CommandID, rec.Key), caller.Actor
		next.Confirmation.StepUpTill = rec.Confirmation.ExpiresAt
		x.authenticate(next)
		_, ours, err := x.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
			return Change{Record: next, Evidence: []evidence.Entry{{Type: evidence.Confirmed, At: now, CommandID: rec.CommandID, SubmittedID: rec.CommandID,
				Key: rec.Key, Command: c.Name(), Target: rec.Intent.Target, Actor: caller.Actor, Session: caller.Session, User: caller.User, Reason: "step_up", OutcomeStatus: string(InProgress)}}}, nil
		}})
		if err != nil {
			return nil, err
		}
		if ours {
			return &Approval{CommandID: commandID, Token: token, ExpiresAt: next.Confirmation.StepUpTill}, nil
		}
	}
}

// independent reports whether the approver is another principal than the submitter of a command. The maker of a credential
// can act with it, so neither may have made the other's credential. The approver's credential must be older than the
// command, so that it cannot have been made for this approval.
func independent(approver Caller, rec *Record) bool {
	for _, submitter := range []string{rec.Actor, rec.Principal} {
		if approver.Actor == submitter || slices.Contains(approver.Makers, submitter) {
			return false
		}
	}
	for _, maker := range approver.Makers {
		if isPerson(maker) && slices.Contains(rec.Confirmation.Makers, maker) {
			return false // both credentials are of one person; one key may have made those of several
		}
	}
	return !slices.Contains(rec.Confirmation.Makers, approver.Actor) && (approver.Since.IsZero() || approver.Since.Before(rec.CreatedAt))
}

// isPerson reports whether a principal is a person who signed in, and not a key.
func isPerson(principal string) bool { return strings.HasPrefix(principal, "usr_") }
