package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// rig is an executor on a MemoryStore, with a clock that the test moves.
type rig struct {
	t     *testing.T
	x     *Executor
	store *MemoryStore
	reg   *Registry

	mu  sync.Mutex
	now time.Time
	ids int
}

func newRig(t *testing.T, tune ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, store: NewMemoryStore(), reg: NewRegistry(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	r.run(tune...)
	return r
}

// run starts an executor on the rig's store, as another process would.
func (r *rig) run(tune ...func(*Config)) (stop func()) {
	r.t.Helper()
	sealer, err := NewSealer(make([]byte, 32))
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := Config{Store: r.store, Registry: r.reg, Sealer: sealer, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: r.time}
	for _, f := range tune {
		f(&cfg)
	}
	x, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.x = x
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); x.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) register(d Declaration, h Handler) {
	r.t.Helper()
	if d.Entity == "" {
		d.Entity = "invoice"
	}
	if d.Action == "" {
		d.Action = "refund"
	}
	d.Description = "for a test"
	d.Scopes = append(d.Scopes, "pay")
	if err := r.reg.Register(d, h); err != nil {
		r.t.Fatal(err)
	}
}

var payer = Caller{Tenant: "t1", Actor: "a1", Scopes: []string{"pay"}}

func (r *rig) envelope(edit ...func(*Envelope)) *Envelope {
	r.mu.Lock()
	r.ids++
	e := &Envelope{CommandID: fmt.Sprintf("cmd_0190a1b2-0000-7000-8000-%012d", r.ids), TenantID: "t1", ActorID: "a1",
		Intent: Intent{Entity: "invoice", Action: "refund", Target: "INV-1"}, Args: json.RawMessage(`{"amount":500}`), IssuedAt: r.now}
	r.mu.Unlock()
	for _, f := range edit {
		f(e)
	}
	return e
}

func (r *rig) submit(edit ...func(*Envelope)) *Answer {
	r.t.Helper()
	a, err := r.x.Submit(context.Background(), payer, r.envelope(edit...))
	if err != nil {
		r.t.Fatalf("submit: %v", err)
	}
	return a
}

func (r *rig) refused(code RefusalCode, edit ...func(*Envelope)) {
	r.t.Helper()
	a, err := r.x.Submit(context.Background(), payer, r.envelope(edit...))
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		r.t.Fatalf("submit gave %+v, %v; want refusal %s", a, err, code)
	}
}

// counter counts its runs.
type counter struct {
	n    atomic.Int64
	gate chan struct{} // when not nil, a run waits for it
	err  error
}

func (c *counter) Execute(ctx context.Context, call *Call) (*Outcome, error) {
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if c.err != nil {
		c.n.Add(1)
		return nil, c.err
	}
	return &Outcome{Summary: "done", Result: map[string]any{"value": fmt.Sprintf("%x", random(8))},
		Effects: []Effect{InMemory(func() (int64, error) { return c.n.Add(1), nil })}}, nil
}

func TestRepeatsReplay(t *testing.T) {
	r := newRig(t)
	var c counter
	r.register(Declaration{}, &c)
	first := r.submit()
	if first.Decision != FirstSeen || !first.Executed || first.Status != Executed {
		t.Fatalf("first: %+v", first)
	}
	for range 5 {
		again := r.submit()
		if again.Decision != DuplicateReplayed || again.Executed || again.CommandID != first.CommandID ||
			string(again.Outcome.Result) != string(first.Outcome.Result) || again.OutcomeRef != first.OutcomeRef {
			t.Fatalf("repeat %+v of %+v", again, first)
		}
	}
	if n := c.n.Load(); n != 1 {
		t.Fatalf("%d effects", n)
	}
}

func TestConcurrentRepeatsExecuteOnce(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DuplicatesPerKey, c.DuplicatesPerActor = -1, -1 })
	var c counter
	r.register(Declaration{}, &c)
	var first atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if a, err := r.x.Submit(context.Background(), payer, r.envelope()); err != nil {
				t.Error(err)
			} else if a.Decision == FirstSeen {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if c.n.Load() != 1 || first.Load() != 1 {
		t.Fatalf("%d effects, %d first", c.n.Load(), first.Load())
	}
}

func TestInProgressConflictAndWindow(t *testing.T) {
	r := newRig(t)
	c := counter{gate: make(chan struct{})}
	r.register(Declaration{Class: I2, Window: Window(10 * time.Minute), Justification: "cheap"}, &c)
	soon, cancel := context.WithCancel(context.Background())
	cancel()
	a, err := r.x.Submit(soon, payer, r.envelope())
	if err != nil || a.Status != InProgress || a.Decision != FirstSeen {
		t.Fatalf("%+v %v", a, err)
	}
	r.pass(20 * time.Minute) // the window is over, the execution is not
	if again := r.submit(); again.Status != InProgress || again.Decision != DuplicateReplayed || again.CommandID != a.CommandID {
		t.Fatalf("%+v", again)
	}
	r.refused(Conflict, func(e *Envelope) { e.Options = json.RawMessage(`{"notify":true}`) })
	close(c.gate)
	r.eventually(func() bool {
		s, err := r.x.Status(context.Background(), payer, a.CommandID)
		return err == nil && s.Status == Executed
	})
	// The window began with the submission, so the key is free now.
	if next := r.submit(); next.Decision != FirstSeen || c.n.Load() != 2 {
		t.Fatalf("%+v after %d effects", next, c.n.Load())
	}
	items, err := r.store.Evidence(context.Background(), EvidenceQuery{Tenant: "t1"})
	if err != nil {
		t.Fatal(err)
	}
	last := items[len(items)-1]
	if last.PreviousID != a.CommandID || last.Type != evidence.ExecutedOK {
		t.Fatalf("%+v", last)
	}
}

// eventually waits for a condition that another goroutine fulfils. It checks after each step of the store.
func (r *rig) eventually(ok func() bool) {
	r.t.Helper()
	deadline := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-deadline:
			r.t.Fatal("it did not happen in time")
		default:
			if err := r.x.Observe("elsewhere", evidence.Entry{Type: evidence.Observation, At: r.time()}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

func TestConfirmation(t *testing.T) {
	r := newRig(t)
	var c counter
	r.register(Declaration{Confirmation: true}, &c)
	ctx := context.Background()
	first := r.submit()
	if first.Substatus != AwaitingConfirmation || first.Token == "" {
		t.Fatalf("%+v", first)
	}
	if again := r.submit(); again.Token != "" || again.Substatus != AwaitingConfirmation || c.n.Load() != 0 {
		t.Fatalf("%+v", again)
	}
	other := r.submit(func(e *Envelope) { e.Args = json.RawMessage(`{"amount":1}`) })
	var refusal *Refusal
	if _, err := r.x.Confirm(ctx, payer, other.CommandID, first.Token, ""); !errors.As(err, &refusal) || refusal.Code != TokenInvalid {
		t.Fatalf("a token confirmed another command: %v", err)
	}
	for i := range 2 {
		a, err := r.x.Confirm(ctx, payer, first.CommandID, first.Token, "")
		if err != nil || a.Status != Executed || a.Executed != (i == 0) {
			t.Fatalf("confirm %d: %+v %v", i, a, err)
		}
	}
	if again := r.submit(); again.Status != Executed || again.Token != "" || c.n.Load() != 1 {
		t.Fatalf("%+v, %d effects", again, c.n.Load())
	}
	r.pass(5 * time.Minute)
	if _, err := r.x.Confirm(ctx, payer, other.CommandID, other.Token, ""); !errors.As(err, &refusal) || refusal.Code != TokenExpired {
		t.Fatalf("confirmed too late: %v", err)
	}
	if next := r.submit(func(e *Envelope) { e.Args = json.RawMessage(`{"amount":1}`) }); next.Token == "" || next.Token == other.Token {
		t.Fatalf("%+v", next)
	}
}

func TestOutcomesAreFinal(t *testing.T) {
	for _, end := range []struct {
		err    error
		status Status
		reason string
	}{
		{Reject("too_late", "it was refunded"), Rejected, "too_late"},
		{errors.New("password hunter2"), Failed, "handler_failed"},
		{&Failure{Reason: "gone", Detail: "the account is closed"}, Failed, "gone"},
	} {
		r := newRig(t)
		c := counter{err: end.err}
		r.register(Declaration{}, &c)
		first, again := r.submit(), r.submit()
		if first.Status != end.status || again.Status != end.status || again.Outcome.Reason != end.reason || c.n.Load() != 1 {
			t.Errorf("%v: %+v then %+v, %d runs", end.err, first.Outcome, again.Outcome, c.n.Load())
		}
	}
}

func TestTransientIsTriedAgain(t *testing.T) {
	r := newRig(t)
	var tries atomic.Int64
	r.register(Declaration{}, HandlerFunc(func(_ context.Context, call *Call) (*Outcome, error) {
		if tries.Add(1) < 3 {
			return nil, Transient(errors.New("busy"))
		}
		return &Outcome{Result: map[string]int{"try": call.Try}}, nil
	}))
	if a := r.submit(); a.Status != Executed || string(a.Outcome.Result) != `{"try":3}` {
		t.Fatalf("%+v", a)
	}
}

func TestEffectsAndAfter(t *testing.T) {
	r := newRig(t)
	runs := 0
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		runs++
		o := &Outcome{Refused: func(err error) error { return Transient(err) }}
		Add(o, InMemory(func() (Nothing, error) { return Nothing{}, nil }))
		seven := Add(o, InMemory(func() (int, error) {
			if runs == 1 {
				return 0, errors.New("changed meanwhile")
			}
			return 7, nil
		}))
		o.After = func(o *Outcome, results Results) error {
			o.Result = map[string]any{"got": seven.In(results), "unknown": seven.In(nil)}
			return nil
		}
		return o, nil
	}))
	if a := r.submit(); a.Status != Executed || string(a.Outcome.Result) != `{"got":7,"unknown":0}` || runs != 2 {
		t.Fatalf("%+v after %d runs", a, runs)
	}
}

func TestTamperedRecordFailsClosed(t *testing.T) {
	r := newRig(t)
	var c counter
	r.register(Declaration{}, &c)
	first := r.submit()
	r.store.mu.Lock()
	for _, rec := range r.store.records {
		rec.Status = Rejected
	}
	r.store.mu.Unlock()
	r.refused(StoreIntegrity)
	if c.n.Load() != 1 {
		t.Fatalf("executed again: %+v", first)
	}
}

func TestSecretsAreShownOnce(t *testing.T) {
	r := newRig(t)
	r.register(Declaration{Secret: []string{"secret"}, Masked: []Mask{{Member: "iban", Scope: "bank"}}}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		return &Outcome{Result: json.RawMessage(`{"id":"x","secret":"s3cr3t","iban":"DE00"}`)}, nil
	}))
	first, again := r.submit(), r.submit()
	if string(first.Outcome.Result) != `{"id":"x","secret":"s3cr3t"}` || string(again.Outcome.Result) != `{"id":"x"}` || !again.Outcome.SecretRedacted {
		t.Fatalf("%s then %s", first.Outcome.Result, again.Outcome.Result)
	}
}

func TestRateLimit(t *testing.T) {
	r := newRig(t)
	var c counter
	r.register(Declaration{}, &c)
	for range 31 {
		r.submit()
	}
	r.refused(RateLimited)
	r.pass(time.Minute)
	if a := r.submit(); a.Decision != DuplicateReplayed || c.n.Load() != 1 {
		t.Fatalf("%+v", a)
	}
}
