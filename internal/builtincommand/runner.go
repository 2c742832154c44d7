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

// A Runner runs Godwit's own operations for its APIs: they have the same class, window and evidence as when they come as commands. A
// request that names the one thing it destroys is its own confirmation (Run); one that destroys many asks first (Ask).
type Runner struct {
	Executor *command.Executor
	Config   // that the commands were registered with
	Now      func() time.Time
	// KeyWindow is for how long a caller's Idempotency-Key makes a repeat the same order. Defaults to 24 h.
	KeyWindow time.Duration
	// Wait is how long an answer waits for the end of the operation, which goes on. Defaults to 20 s.
	Wait time.Duration
}

// An Order is an operation that an API was asked for.
type Order struct {
	Entity, Action string
	Target         string
	// Args are the command's args as /ids/v1 takes them: strings, numbers, booleans and lists. The member request is added.
	Args map[string]any
	// Plan runs in place of the registered handler, with the values that Args were made of. Nil runs the handler.
	Plan command.HandlerFunc
	// Key is the caller's Idempotency-Key, which makes a repeat the same order. Without one every order is one of its own: these
	// operations are idempotent by nature or meant anew (IDS IT-15).
	Key     string
	Channel string // the API: "native", "ojs", "cybercube"
}

// Done is what became of an order.
type Done struct {
	CommandID string
	Result    json.RawMessage
	value     any // the result before it was encoded; nil for a repeat
	// Redacted: the first answer showed a secret that this one does not (IDS IT-14).
	Redacted bool
	// Awaits, when not nil, is what has to be given before anything is done.
	Awaits *Awaits
}

// Awaits is a confirmation that is asked for.
type Awaits struct {
	Token     string
	ExpiresAt time.Time
	StepUp    bool // a second API key has to approve, too
}

// A Confirmation is what an order that asked comes back with.
type Confirmation struct{ CommandID, Token, StepUp string }

// Run executes an order that is its own confirmation, and returns the result of the first execution. A rejection is the error that
// the API would give for it.
//
// A key that was only ever rejected is not used up, nor is one whose window is over: what is published about keys holds whether an
// operation is a command or not. Such an order takes its next turn under the key.
func (d *Runner) Run(ctx context.Context, caller *management.Caller, o Order) (*Done, error) {
	who := Caller(caller)
	who.Confirmed = true
	for turn := 1; ; turn++ {
		request := engine.MintKey()
		if o.Key != "" {
			request = fmt.Sprintf("%x/%d", sha256.Sum256([]byte(o.Key)), turn)
		}
		a, err := d.submit(ctx, who, o, godwit.NewCommandID(d.Now()).String(), request)
		if err != nil {
			return nil, err
		}
		if a.Decision == command.DuplicateReplayed && d.over(a) {
			continue
		}
		return done(a)
	}
}

// over reports whether an earlier order under the same key no longer counts.
func (d *Runner) over(a *command.Answer) bool {
	window := d.KeyWindow
	if window == 0 {
		window = 24 * time.Hour
	}
	return a.Status.Terminal() && (a.Status != command.Executed || !d.Now().Before(a.UpdatedAt.Add(window)))
}

// Ask takes an order that has to be confirmed: first it answers what it awaits; the same order with that executes.
func (d *Runner) Ask(ctx context.Context, caller *management.Caller, o Order, c *Confirmation) (*Done, error) {
	who := Caller(caller)
	if c == nil {
		id := godwit.NewCommandID(d.Now()).String()
		a, err := d.submit(ctx, who, o, id, id)
		if err != nil {
			return nil, err
		}
		return done(a)
	}
	if err := d.same(ctx, who, o, c.CommandID); err != nil {
		return nil, err
	}
	ctx, cancel := d.patience(ctx)
	defer cancel()
	a, err := d.Executor.Confirm(ctx, who, c.CommandID, c.Token, c.StepUp)
	if err != nil {
		return nil, Problem(err)
	}
	return done(a)
}

// same sees that a confirmation comes with the order that it was asked for: whoever confirms sees what happens in the request, not in
// one of a while ago.
func (d *Runner) same(ctx context.Context, who command.Caller, o Order, id string) error {
	other := problem.ConfirmationInvalid.With("the request is not the one that %.64q was given for", id)
	derived, err := d.Executor.Registry().Lookup(who.Tenant, o.Entity, o.Action).Derive(d.envelope(who, o, id, id))
	if err != nil {
		return other // an id that is none
	}
	a, err := d.Executor.Status(ctx, who, id)
	var r *command.Refusal
	switch {
	case errors.As(err, &r) && r.Code == command.NotFound:
		// Those that nobody confirmed are forgotten soon after.
		return problem.ConfirmationExpired.With("%s awaits no confirmation, or no longer", id)
	case err != nil:
		return Problem(err)
	case a.Key != derived.Key:
		return other
	}
	return nil
}

func (d *Runner) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := d.Wait
	if wait == 0 {
		wait = 20 * time.Second
	}
	return context.WithTimeout(ctx, wait)
}

func (d *Runner) envelope(who command.Caller, o Order, id, request string) *command.Envelope {
	args := map[string]any{"request": request}
	maps.Copy(args, o.Args)
	e := &command.Envelope{
		CommandID: id, TenantID: who.Tenant, ActorID: who.Actor, IssuedAt: d.Now(), Channel: o.Channel,
		Intent: command.Intent{Entity: o.Entity, Action: o.Action, Target: o.Target},
	}
	var plan command.Handler
	if o.Plan != nil {
		plan = o.Plan
	}
	e.Direct(args, plan)
	return e
}

func (d *Runner) submit(ctx context.Context, who command.Caller, o Order, id, request string) (*command.Answer, error) {
	ctx, cancel := d.patience(ctx)
	defer cancel()
	a, err := d.Executor.Submit(ctx, who, d.envelope(who, o, id, request))
	if err != nil {
		return nil, Problem(err)
	}
	return a, nil
}

// done is what an answer says, in the words of an API.
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

// resultOf returns the result of a command: the value that this execution made, or for a repeat the one that is kept, decoded.
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

// Caller is who submits, in the executor's words. The actor is the principal of the key, which a key that replaces another keeps: a
// rotation of keys does not make a retry a new command.
func Caller(c *management.Caller) command.Caller {
	scopes := make([]string, len(c.Key.Scopes))
	for i, s := range c.Key.Scopes {
		scopes[i] = string(s)
	}
	makers := make([]string, len(c.Key.Makers))
	for i, m := range c.Key.Makers {
		makers[i] = m.String()
	}
	return command.Caller{Tenant: c.Tenant.ID.String(), Actor: c.Key.Principal.String(), Scopes: scopes, MayActFor: c.Key.Has(godwit.ScopeAdmin),
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

// Problem turns a refusal of the executor into the error that an API would give for it.
func Problem(err error) error {
	var r *command.Refusal
	if !errors.As(err, &r) || refusals[r.Code] == nil {
		return err
	}
	return refusals[r.Code].With("%s", r.Detail)
}
