package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/registry"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Desk runs Godwit's own operations for its APIs: they have the same class, window and evidence as when they come as commands. The
// protocols of these APIs know no second step, so that a request is its own confirmation.
type Desk struct {
	Executor *command.Executor
	Now      func() time.Time
}

// An Order is an operation that an API was asked for.
type Order struct {
	Entity, Action string
	Target         string
	Args           map[string]any
	// Key is the caller's Idempotency-Key, which makes a repeat the same command. Without one every order is one of its own: these
	// operations are idempotent by nature or meant anew (IDS IT-15).
	Key     string
	Channel string // the API: "native", "ojs", "cybercube", "cli"
}

// Run executes an operation and returns the result of the first execution, with what is shown once. A rejection is the error that the
// API would give for it.
func (d *Desk) Run(ctx context.Context, caller *registry.Caller, o Order) (json.RawMessage, error) {
	args := map[string]any{"request": o.Key}
	if o.Key == "" {
		args["request"] = engine.MintKey()
	}
	for name, value := range o.Args {
		args[name] = value
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode arguments: %w", err)
	}
	who := Caller(caller)
	who.Confirmed = true
	now := d.Now()
	answer, err := d.Executor.Submit(ctx, who, &command.Envelope{
		CommandID: godwit.NewCommandID(now).String(), TenantID: who.Tenant, ActorID: who.Actor, Args: text, IssuedAt: now, Channel: o.Channel,
		Intent: command.Intent{Entity: o.Entity, Action: o.Action, Target: o.Target},
	})
	if err != nil {
		return nil, asProblem(err)
	}
	if answer.Outcome == nil {
		return nil, problem.Unavailable.With("it takes longer than expected; %s tells how it stands", "/ids/v1/commands/"+answer.CommandID)
	}
	if answer.Outcome.Status == command.Executed {
		return answer.Outcome.Result, nil
	}
	return nil, outcomeProblem(answer.Outcome)
}

// Caller is who submits, in the executor's words. The actor is the principal of the key, which a key that replaces another keeps: a
// rotation of keys does not make a retry a new command.
func Caller(c *registry.Caller) command.Caller {
	scopes := make([]string, len(c.Key.Scopes))
	for i, s := range c.Key.Scopes {
		scopes[i] = string(s)
	}
	return command.Caller{Tenant: c.Tenant.ID.String(), Actor: c.Key.Principal.String(), Scopes: scopes, MayActFor: c.Key.Has(godwit.ScopeAdmin)}
}

func outcomeProblem(o *command.StoredOutcome) error {
	switch o.Reason {
	case "not_found":
		return store.ErrNotFound
	case "invalid":
		return problem.Invalid.With("%s", o.Detail)
	}
	for _, k := range problem.Kinds() {
		if k.Code == o.Reason {
			return k.With("%s", o.Detail)
		}
	}
	if o.Status == command.Rejected {
		return problem.Conflict.With("%s", o.Detail)
	}
	return fmt.Errorf("operation failed: %s", o.Reason)
}

func asProblem(err error) error {
	var r *command.Refusal
	if !errors.As(err, &r) {
		return err
	}
	switch r.Code {
	case command.RateLimited:
		return problem.TooManyRequests.With("%s", r.Detail)
	case command.Forbidden:
		return problem.Forbidden.With("%s", r.Detail)
	case command.Conflict:
		return problem.KeyReused.With("%s", r.Detail)
	case command.ExecutorStopping:
		return problem.Unavailable.With("%s", r.Detail)
	case command.InvalidArgs, command.Malformed:
		return problem.Invalid.With("%s", r.Detail)
	}
	return err
}
