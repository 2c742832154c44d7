package builtincommand

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Runner submits built-in commands for the APIs that have their own operations. The commands have the same class, window
// and evidence as over /ids/v1. A request that names the single object it destroys counts as its own confirmation (Run); a
// request that destroys many objects needs a confirmation (Ask).
type Runner struct {
	Executor *command.Executor
	Config   // the configuration that Register got
	Now      func() time.Time
	// KeyWindow is how long a repeat under the same Idempotency-Key counts as the same submission. Defaults to 24 h.
	KeyWindow time.Duration
	// Wait is how long a request waits for the command to end. The command continues after that. Defaults to 20 s.
	Wait time.Duration
}

// A Submission is a command that an API submits.
type Submission struct {
	Entity, Action string
	Target         string
	// Args are the command's args as /ids/v1 takes them: strings, numbers, booleans and lists. The member request is added.
	Args map[string]any
	// Plan runs instead of the registered handler, with the Go values of Args. If it is nil, the handler runs.
	Plan command.HandlerFunc
	// Key is the caller's Idempotency-Key. Without one, every submission is a new command: these operations are idempotent by
	// nature, or each request is meant anew (IDS IT-15).
	Key     string
	Channel string // the API: "native", "ojs", "cybercube"
}

// Done is the answer to a submission.
type Done struct {
	CommandID string
	Result    json.RawMessage
	value     any // the result before it was encoded; nil for a repeat
	// Redacted reports that the first answer showed a secret that this one does not (IDS IT-14).
	Redacted bool
	// Awaits is the confirmation that the command waits for; nil if it was executed.
	Awaits *Awaits
}

// Awaits is the confirmation that a command waits for.
type Awaits struct {
	Token     string
	ExpiresAt time.Time
	StepUp    bool // a second API key must also approve
}

// A Confirmation names the command to confirm, with its tokens.
type Confirmation struct{ CommandID, Token, StepUp string }

// Run executes a submission that is its own confirmation, and returns the result of the first execution. It returns a rejection as the
// error that the API answers with.
//
// A key can be used again if all its commands were rejected or its window is over, as for requests that are not commands.
// Run then submits the next command under the key.
func (d *Runner) Run(ctx context.Context, caller *management.Caller, s Submission) (*Done, error) {
	who := Caller(caller)
	who.Confirmed = true
	for turn := 1; ; turn++ {
		request := engine.NewKey()
		if s.Key != "" {
			request = fmt.Sprintf("%x/%d", sha256.Sum256([]byte(s.Key)), turn)
		}
		a, err := d.submit(ctx, who, s, godwit.NewCommandID(d.Now()).String(), request)
		if err != nil {
			return nil, err
		}
		if a.Decision == command.DuplicateReplayed && d.over(a) {
			continue
		}
		return done(a)
	}
}

// over reports whether the key of an earlier submission can be used again.
func (d *Runner) over(a *command.Answer) bool {
	window := d.KeyWindow
	if window == 0 {
		window = 24 * time.Hour
	}
	return a.Status.Terminal() && (a.Status != command.Executed || !d.Now().Before(a.UpdatedAt.Add(window)))
}

// Ask submits a command that must be confirmed. Without a confirmation it returns the confirmation that the command awaits;
// with one, it executes the same command.
func (d *Runner) Ask(ctx context.Context, caller *management.Caller, s Submission, c *Confirmation) (*Done, error) {
	who := Caller(caller)
	if c == nil {
		id := godwit.NewCommandID(d.Now()).String()
		a, err := d.submit(ctx, who, s, id, id)
		if err != nil {
			return nil, err
		}
		return done(a)
	}
	if err := d.same(ctx, who, s, c.CommandID); err != nil {
		return nil, err
	}
	ctx, cancel := d.withWait(ctx)
	defer cancel()
	a, err := d.Executor.Confirm(ctx, who, c.CommandID, c.Token, c.StepUp)
	if err != nil {
		return nil, Problem(err)
	}
	return done(a)
}

// same refuses a confirmation that comes with another submission than the one it was given for: the confirming request must
// show what will happen.
func (d *Runner) same(ctx context.Context, who command.Caller, s Submission, id string) error {
	other := problem.ConfirmationInvalid.With("the request is not the one that %.64q was given for", id)
	derived, err := d.Executor.Registry().Lookup(who.Tenant, s.Entity, s.Action).Derive(d.envelope(who, s, id, id))
	if err != nil {
		return other // the text is not a command id
	}
	a, err := d.Executor.Status(ctx, who, id)
	var r *command.Refusal
	switch {
	case errors.As(err, &r) && r.Code == command.NotFound:
		// A command that is not confirmed in time is removed soon after.
		return problem.ConfirmationExpired.With("%s awaits no confirmation, or no longer", id)
	case err != nil:
		return Problem(err)
	case a.Key != derived.Key:
		return other
	}
	return nil
}

// withWait bounds how long a request waits for its command to end.
func (d *Runner) withWait(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := d.Wait
	if wait == 0 {
		wait = 20 * time.Second
	}
	return context.WithTimeout(ctx, wait)
}

func (d *Runner) envelope(who command.Caller, s Submission, id, request string) *command.Envelope {
	args := map[string]any{"request": request}
	maps.Copy(args, s.Args)
	e := &command.Envelope{
		CommandID: id, TenantID: who.Tenant, ActorID: who.Actor, IssuedAt: d.Now(), Channel: s.Channel,
		Intent: command.Intent{Entity: s.Entity, Action: s.Action, Target: s.Target},
	}
	var plan command.Handler
	if s.Plan != nil {
		plan = s.Plan
	}
	e.Direct(args, plan)
	return e
}

func (d *Runner) submit(ctx context.Context, who command.Caller, s Submission, id, request string) (*command.Answer, error) {
	ctx, cancel := d.withWait(ctx)
	defer cancel()
	a, err := d.Executor.Submit(ctx, who, d.envelope(who, s, id, request))
	if err != nil {
		return nil, Problem(err)
	}
	return a, nil
}

// done translates the executor's answer for an API.
func done(a *command.Answer) (*Done, error) {
	switch {
	case a.Substatus == command.AwaitingConfirmation:
		return &Done{CommandID: a.CommandID, Awaits: &Awaits{Token: a.Token, ExpiresAt: a.TokenExpiry, StepUp: a.StepUp}}, nil
	case a.Outcome == nil:
		return nil, problem.Unavailable.With("it takes longer than expected; /ids/v1/commands/%s tells how it stands", a.CommandID)
	case a.Outcome.Status != command.Executed:
		return nil, outcomeProblem(a.Outcome)
	}
	return &Done{CommandID: a.CommandID, Result: a.Outcome.Result, value: a.Value, Redacted: a.Outcome.SecretRedacted}, nil
}

// resultOf returns the result of a command: the value that this execution made, or for a repeat the stored one, decoded.
func resultOf[T any](d *Done) (T, error) {
	if v, ok := d.value.(T); ok {
		return v, nil
	}
	var v T
	if err := json.Unmarshal(d.Result, &v); err != nil {
		return v, fmt.Errorf("read result of %s: %w", d.CommandID, err)
	}
	return v, nil
}

// Caller translates an authenticated caller for the executor. The actor is the principal of the key or of the user. A key that replaces
// another keeps its principal, so that a retry with the new key is the same command.
func Caller(c *management.Caller) command.Caller {
	scopes := make([]string, len(c.Key.Scopes))
	for i, s := range c.Key.Scopes {
		scopes[i] = string(s)
	}
	makers := make([]string, len(c.Key.Makers))
	for i, m := range c.Key.Makers {
		makers[i] = godwit.PrincipalText(m)
	}
	return command.Caller{Tenant: c.Tenant.ID.String(), Actor: c.Principal(), Session: c.SessionID(), User: c.User(), Scopes: scopes, MayActFor: c.Key.Has(godwit.ScopeAdmin),
		Since: c.Key.CreatedAt, Makers: makers}
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

var refusals = map[command.RefusalCode]*problem.Kind{
	command.RateLimited: problem.TooManyRequests, command.Forbidden: problem.Forbidden, command.Conflict: problem.KeyReused,
	command.ExecutorStopping: problem.Unavailable, command.ReservationUncertain: problem.Unavailable, command.InvalidArgs: problem.Invalid,
	command.Malformed: problem.Invalid, command.NotFound: problem.NotFound, command.TokenInvalid: problem.ConfirmationInvalid,
	command.TokenExpired: problem.ConfirmationExpired, command.StepUpRequired: problem.StepUpRequired,
}

// Problem turns a refusal of the executor into the error that an API answers with.
func Problem(err error) error {
	var r *command.Refusal
	if !errors.As(err, &r) || refusals[r.Code] == nil {
		return err
	}
	return refusals[r.Code].With("%s", r.Detail)
}
