package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// Config holds the dependencies and settings of an Executor.
type Config struct {
	Store    Store
	Registry *Registry
	Sealer   Sealer
	Log      *slog.Logger
	// Now and AfterFunc are the clock. AfterFunc calls f on a new goroutine once d has passed, unless stop is called
	// first. It defaults to time.AfterFunc.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// Owner names this process among those that share the store. Defaults to a random name.
	Owner string
	// Lease is the time after which another executor may continue a command whose executor has not renewed its lease.
	// Defaults to 60 s.
	Lease time.Duration
	// RetryFor is how long the executor retries a handler that returns transient errors. Defaults to 2 min; a remote
	// declaration sets its own.
	RetryFor time.Duration
	// ReconcileEvery is the wait before the executor asks the provider again about a call without a known result. Defaults
	// to 30 s.
	ReconcileEvery time.Duration
	// TokenLife is how long a confirmation token is valid. Defaults to 5 min, at most 15.
	TokenLife time.Duration
	// DuplicatesPerKey and DuplicatesPerActor limit, per minute, the duplicates of one key and the submissions of one
	// actor that execute nothing. The executor refuses more. Default to 30 and 300; a negative value removes the limit.
	DuplicatesPerKey, DuplicatesPerActor int
	// Scale shortens declared windows, for trials. Defaults to real time.
	Scale func(time.Duration) time.Duration

	// The executor calls Decided for every decision, Limited for every submission that a limit refuses, and Unresolved for
	// every command that comes to need reconciliation, for metrics. It calls Prompt when a person has to confirm. All may
	// be nil.
	Decided    func(Decision)
	Limited    func()
	Unresolved func()
	Prompt     func(tenant, commandID string, d *Declaration)
	// Fault, if not nil, is called at each point of FaultPoints, for tests that stop the process there.
	Fault func(point string)
}

// An Executor executes commands. Call Run before the first Submit.
type Executor struct {
	cfg      Config
	commits  *committer
	perKey   *limiter
	perActor *limiter

	mu       sync.Mutex
	running  map[string]*execution // by tenant and key
	stopping bool
	wg       sync.WaitGroup
	lost     chan struct{} // wakes the recovery of commands whose lease is over
}

// New makes an Executor.
func New(cfg Config) (*Executor, error) {
	if cfg.Store == nil || cfg.Registry == nil || cfg.Sealer == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("command: store, registry, sealer, log and now are required")
	}
	orElse(&cfg.Owner, fmt.Sprintf("%x", random(8)))
	orElse(&cfg.Lease, 60*time.Second)
	orElse(&cfg.RetryFor, 2*time.Minute)
	orElse(&cfg.ReconcileEvery, 30*time.Second)
	orElse(&cfg.TokenLife, 5*time.Minute)
	orElse(&cfg.DuplicatesPerKey, 30)
	orElse(&cfg.DuplicatesPerActor, 300)
	if cfg.TokenLife < time.Second || cfg.TokenLife > 15*time.Minute {
		return nil, errors.New("command: a confirmation may be given for at most 15 minutes")
	}
	if cfg.AfterFunc == nil {
		cfg.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if cfg.Scale == nil {
		cfg.Scale = func(d time.Duration) time.Duration { return d }
	}
	return &Executor{
		cfg: cfg, commits: newCommitter(cfg.Store, cfg.Now), running: map[string]*execution{}, lost: make(chan struct{}, 1),
		perKey:   newLimiter(cfg.DuplicatesPerKey, cfg.Scale(time.Minute)),
		perActor: newLimiter(cfg.DuplicatesPerActor, cfg.Scale(time.Minute)),
	}, nil
}

func orElse[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Registry returns the registry of commands.
func (x *Executor) Registry() *Registry { return x.cfg.Registry }

// submission is a command that is being admitted.
type submission struct {
	caller   Caller
	envelope *Envelope
	command  *Registered
	derived  *Derivation
}

// Submit executes a command, or answers with the state or outcome of an earlier submission. If the context ends before the
// execution does, the answer says that the command is in progress, and the execution continues. The error is a *Refusal or
// an error of the store.
func (x *Executor) Submit(ctx context.Context, caller Caller, e *Envelope) (*Answer, error) {
	s, err := x.admit(caller, e)
	if err != nil {
		return nil, x.refused(caller, e, err)
	}
	if s.command.ReadOnly() {
		return x.read(ctx, s)
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
func (x *Executor) admit(caller Caller, e *Envelope) (*submission, error) {
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
func (x *Executor) refused(caller Caller, e *Envelope, cause error) error {
	var r *Refusal
	if !errors.As(cause, &r) || e.Validate() != nil { // a malformed envelope has no content that could be recorded
		return cause
	}
	now := x.cfg.Now()
	if after, ok := x.perActor.allow(caller.Tenant+"\x00"+caller.Actor, now); !ok {
		return x.limited(after)
	}
	err := x.observe(caller.Tenant, evidence.Entry{Type: evidence.RejectedTy, At: now, SubmittedID: e.CommandID, Actor: caller.Actor,
		Command: e.Intent.Entity + "." + e.Intent.Action, Channel: e.Channel, Reason: string(r.Code)})
	if err != nil {
		return err
	}
	return cause
}

func (x *Executor) limited(after time.Duration) error {
	if x.cfg.Limited != nil {
		x.cfg.Limited()
	}
	return &Refusal{Code: RateLimited, Detail: "too many submissions that execute nothing; wait", RetryAfter: after}
}

func (x *Executor) decided(d Decision) {
	if x.cfg.Decided != nil {
		x.cfg.Decided(d)
	}
}

// Observe records evidence of a decision that was made outside the executor, for example about a request guarded by its
// caller's own key. The entry holds ids and fingerprints, never the request's content. The error of a stopping executor is
// a *Refusal.
func (x *Executor) Observe(tenant string, entries ...evidence.Entry) error {
	return x.observe(tenant, entries...)
}

// observe appends evidence without a record.
func (x *Executor) observe(tenant string, entries ...evidence.Entry) error {
	r, err := x.commits.advance(&Step{Tenant: tenant, Settle: func(Applied) (Change, error) { return Change{Evidence: entries}, nil }})
	return errors.Join(err, r.Err)
}

// read executes a command that changes nothing (IDS-CLS-2).
func (x *Executor) read(ctx context.Context, s *submission) (*Answer, error) {
	x.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "read-only command", slog.String("command", s.command.Name()),
		slog.String("command_id", s.envelope.CommandID), slog.String("tenant", s.caller.Tenant), slog.String("actor", s.caller.Actor))
	o, err := safely(ctx, s.handler(), s.call())
	stored, _, cause := x.settle(s.command, o, err)
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

// find reads the record under a key and refuses a record that was tampered with (IDS-SEC-2).
func (x *Executor) find(ctx context.Context, tenant, key string) (*Record, error) {
	rec, err := x.cfg.Store.Find(ctx, tenant, key)
	if err != nil {
		return nil, fmt.Errorf("find command: %w", err)
	}
	return rec, x.trust(rec)
}

func (x *Executor) trust(rec *Record) error {
	if err := x.genuine(rec); err != nil {
		x.cfg.Log.Error("the record of a command was changed in the store: it is neither replayed nor executed again",
			"tenant", rec.Tenant, "command_id", rec.CommandID, "key", rec.Key)
		return &Refusal{Code: StoreIntegrity, Detail: "the record under this key is not as it was written; an operator has to look at it",
			CommandID: rec.CommandID, Key: rec.Key}
	}
	return nil
}
