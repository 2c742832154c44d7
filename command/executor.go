package command

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// An Executor executes commands. Call Run before the first Submit.
//
//	Submit ─────────── submissions ───┐
//	Confirm, Approve ─ confirmations ─┼─ executions ─┐
//	Run, Recover ───── recovery ──────┘              ├─ records ─ committer ─ Store.Advance
//	Checkpoint ─────── checkpoints ──────────────────┤
//	commands about commands: compensation, resolution┘
type Executor struct {
	cfg           Config
	records       *records
	executions    *executions
	submissions   *submissions
	confirmations *confirmations
	recovery      *recovery
	checkpoints   *checkpoints
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
	return newExecutor(cfg), nil
}

func newExecutor(cfg Config) *Executor {
	x := &Executor{cfg: cfg}
	x.records = &records{clock: clock{&x.cfg}, vault: vault{cfg.Sealer}, commits: newCommitter(cfg.Store, cfg.Now)}
	x.executions = &executions{records: x.records, running: map[RecordID]*execution{}}
	x.records.closing = x.executions.isStopping
	bounds := newLimits(&x.cfg)
	x.recovery = &recovery{x.records, x.executions, make(chan struct{}, 1)}
	x.submissions = &submissions{x.records, bounds, x.executions, newSeenKeys(), x.recovery.look}
	x.confirmations = &confirmations{x.records, bounds, x.executions}
	x.checkpoints = &checkpoints{x.records}
	return x
}

// Registry returns the registry of commands.
func (x *Executor) Registry() *Registry { return x.cfg.Registry }

// Observe records evidence of a decision that was made outside the executor, for example about a request guarded by its
// caller's own key. The entry holds ids and fingerprints, never the request's content. The error of a stopping executor is
// a *Refusal.
func (x *Executor) Observe(tenant string, entries ...evidence.Entry) error {
	return x.records.observe(tenant, entries...)
}

// Submit executes a command, or answers with the state or outcome of an earlier submission. If the context ends before the
// execution does, the answer says that the command is in progress, and the execution continues. The error is a *Refusal or
// an error of the store.
func (x *Executor) Submit(ctx context.Context, caller Caller, e *Envelope) (*Answer, error) {
	return x.submissions.submit(ctx, caller, e)
}

// Confirm continues a command that awaits confirmation. If the command was confirmed before, Confirm replays its outcome
// and does not execute it again.
func (x *Executor) Confirm(ctx context.Context, caller Caller, commandID, token, stepUp string) (*Answer, error) {
	return x.confirmations.confirm(ctx, caller, commandID, token, stepUp)
}

// Approve gives a second principal's consent to a command that awaits confirmation. The token is bound to the command like
// the confirmation token.
func (x *Executor) Approve(ctx context.Context, caller Caller, commandID string) (*Approval, error) {
	return x.confirmations.approve(ctx, caller, commandID)
}

// Status returns the state of a command. Every caller that may submit the command may call it.
func (x *Executor) Status(ctx context.Context, caller Caller, commandID string) (*Answer, error) {
	rec, c, err := x.records.mine(ctx, caller, commandID)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, &Refusal{Code: NotFound, Detail: "there is no such command, or its window is over"}
	}
	if err := authorised(caller, c); err != nil {
		return nil, err
	}
	return x.records.answer(rec, c, caller, "")
}

// Recover continues commands whose executor has not renewed its lease in time. It returns the number of commands it took
// over; they execute in the background. Run calls it every few seconds.
func (x *Executor) Recover(ctx context.Context) (int, error) { return x.recovery.takeOverLost(ctx) }

// Checkpoint signs the head of every chain that has grown since its last checkpoint. It returns the number of signed
// heads. Call it at intervals: items before a checkpoint cannot be rewritten without the key.
func (x *Executor) Checkpoint(ctx context.Context, key ed25519.PrivateKey) (int, error) {
	return x.checkpoints.signAll(ctx, key)
}

// Compensator executes Compensation.
func (x *Executor) Compensator() Handler { return &compensation{x.records} }

// Resolver executes Resolution.
func (x *Executor) Resolver() Handler { return &resolution{x.records} }

// Run writes, recovers and sweeps until the context ends. Then it asks handlers to end, waits for those that do, and
// stops.
func (x *Executor) Run(ctx context.Context) {
	written := make(chan struct{})
	go func() { defer close(written); x.records.commits.run() }()
	look, sweep := x.records.newTicker(lookEvery), x.records.newTicker(sweepEvery)
	defer look.stop()
	defer sweep.stop()
	x.recovery.look()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-look.C:
			x.recovery.recoverAll(ctx)
		case <-x.recovery.lost:
			x.recovery.recoverAll(ctx)
		case <-sweep.C:
			x.recovery.sweep(ctx)
		}
	}
	x.executions.stop()
	x.records.commits.stop()
	<-written
}
