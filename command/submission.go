package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/godwit-hq/godwit/evidence"
)

// submissions admits commands: it refuses them, answers repeats, or reserves their key and starts their execution.
type submissions struct {
	*records
	limits     *limits
	executions *executions
	seen       *seenKeys
	look       func() // asks for a search for lost commands
}

// submission is a command that is being admitted.
type submission struct {
	caller   Caller
	envelope *Envelope
	command  *Registered
	derived  *Derivation
}

// submit executes a command, or answers with the state or outcome of an earlier submission. If the context ends before the
// execution does, the answer says that the command is in progress, and the execution continues. The error is a *Refusal or
// an error of the store.
func (x *submissions) submit(ctx context.Context, caller Caller, e *Envelope) (*Answer, error) {
	s, err := x.admit(caller, e)
	if err != nil {
		return nil, x.refused(caller, e, err)
	}
	if s.command.ReadOnly() {
		return x.read(ctx, s)
	}
	if x.seen.isNew(caller.Tenant, s.derived.Key) {
		answer, raced, err := x.first(ctx, s)
		if err != nil {
			return nil, err
		}
		if !raced {
			x.seen.wasNew()
			return answer, nil
		}
		x.seen.wasTaken()
	}
	for {
		rec, err := x.find(ctx, caller.Tenant, s.derived.Key)
		if err != nil {
			return nil, err
		}
		if rec != nil && !rec.FreeAt(x.cfg.Now()) {
			return x.repeat(s, rec)
		}
		answer, raced, err := x.first(ctx, s)
		if err != nil || !raced {
			return answer, err
		}
	}
}

// admit makes all checks that precede the lookup of the key. A submission that fails here is not stored under
// its key (IDS IT-6).
func (x *submissions) admit(caller Caller, e *Envelope) (*submission, error) {
	switch {
	case e.TenantID != caller.Tenant:
		return nil, &Refusal{Code: Forbidden, Field: "/tenant_id", Detail: "is not the tenant of the credential"}
	case e.ActorID != caller.Actor:
		return nil, &Refusal{Code: Forbidden, Field: "/actor_id", Detail: "is not the actor of the credential"}
	case e.EffectiveActorID != "" && e.EffectiveActorID != caller.Actor && !caller.MayActFor:
		return nil, &Refusal{Code: Forbidden, Field: "/effective_actor_id", Detail: "this credential may not act for others"}
	}
	c := x.cfg.Registry.Lookup(caller.Tenant, e.Intent.Entity, e.Intent.Action)
	if c == nil {
		return nil, &Refusal{Code: UnknownCommand, Field: "/intent", Detail: fmt.Sprintf("no command %s.%s is registered; see the registry", e.Intent.Entity, e.Intent.Action)}
	}
	if err := authorised(caller, c); err != nil {
		return nil, err
	}
	d, err := c.Derive(e)
	if err != nil {
		return nil, err
	}
	return &submission{caller, e, c, d}, nil
}

func authorised(caller Caller, c *Registered) error {
	for _, scope := range c.Scopes {
		if !slices.Contains(caller.Scopes, scope) {
			return &Refusal{Code: Forbidden, Detail: fmt.Sprintf("%s needs the scope %s", c.Name(), scope)}
		}
	}
	return nil
}

// refused records evidence of a refused submission, unless its actor sends too many.
func (x *submissions) refused(caller Caller, e *Envelope, cause error) error {
	var r *Refusal
	if !errors.As(cause, &r) || e.Validate() != nil { // a malformed envelope has no content that could be recorded
		return cause
	}
	now := x.cfg.Now()
	if err := x.limits.actor(caller, now); err != nil {
		return err
	}
	err := x.observe(caller.Tenant, evidence.Entry{Type: evidence.RejectedTy, At: now, SubmittedID: e.CommandID, Actor: caller.Actor, Session: caller.Session, User: caller.User,
		Command: e.Intent.Entity + "." + e.Intent.Action, Target: e.Intent.Target, Channel: e.Channel, Reason: string(r.Code)})
	if err != nil {
		return err
	}
	return cause
}

// read executes a command that changes nothing (IDS-CLS-2).
func (x *submissions) read(ctx context.Context, s *submission) (*Answer, error) {
	x.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "read-only command", slog.String("command", s.command.Name()),
		slog.String("command_id", s.envelope.CommandID), slog.String("tenant", s.caller.Tenant), slog.String("actor", s.caller.Actor))
	o, err := safely(ctx, s.handler(), s.call())
	stored, _, cause := settle(s.command, o, err)
	if cause != nil {
		x.cfg.Log.LogAttrs(ctx, slog.LevelError, "read-only command failed", slog.String("command_id", s.envelope.CommandID), slog.Any("error", cause))
	}
	now := x.cfg.Now()
	return &Answer{CommandID: s.envelope.CommandID, Intent: s.envelope.Intent, Key: s.derived.Key, Executed: true, Status: stored.Status, Outcome: mask(stored, s.command, s.caller),
		CreatedAt: now, UpdatedAt: now}, nil
}

// handler returns the plan of a direct submission, or the registered handler.
func (s *submission) handler() Handler {
	if d := s.envelope.direct; d != nil && d.plan != nil {
		return d.plan
	}
	return s.command.Handler
}

func (s *submission) call() *Call {
	return &Call{CommandID: s.envelope.CommandID, Tenant: s.caller.Tenant, Actor: s.caller.Actor, Principal: s.derived.Principal,
		Intent: s.envelope.Intent, Args: s.derived.Args, Options: s.envelope.Options, Key: s.derived.Key, Try: 1}
}
