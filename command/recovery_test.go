package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// provider is an external system that acts on every call.
type provider struct {
	mu      sync.Mutex
	charges []string // ids
	keys    []string // keys that it was given
	refunds int
	known   map[string]string // by key, if it recognises repeats
	silent  bool              // it cannot report its effects
}

func (p *provider) charge(key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key)
	if id, ok := p.known[key]; ok {
		return id
	}
	id := fmt.Sprintf("ch_%d", len(p.charges)+1)
	p.charges = append(p.charges, id)
	if p.known != nil {
		p.known[key] = id
	}
	return id
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.charges)
}

// charging is a handler that calls the provider.
type charging struct{ *provider }

func (c charging) Execute(ctx context.Context, call *Call) (*Outcome, error) {
	result, err := call.Do(ctx, "charge", func(_ context.Context, key string) (any, error) {
		return map[string]string{"id": c.charge(key)}, nil
	})
	if err != nil {
		return nil, err
	}
	return &Outcome{Summary: "charged", Result: result}, nil
}

func (c charging) Reconcile(context.Context, *Call) (Found, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent {
		return Found{}, errors.New("no answer")
	}
	var f Found
	for _, id := range c.charges {
		f.Effects = append(f.Effects, ProviderEffect{ID: id, Result: json.RawMessage(`{"id":"` + id + `"}`)})
	}
	return f, nil
}

func (c charging) Compensate(_ context.Context, _ *Call, e ProviderEffect) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range c.charges {
		if id == e.ID {
			c.charges = append(c.charges[:i], c.charges[i+1:]...)
			c.refunds++
			return nil
		}
	}
	return NoEffect(errors.New("no such charge"))
}

// crash stops an executor at a point until the test ends. Other executors see it as dead.
func crash(at string) (tune func(*Config), reached <-chan struct{}, revive func()) {
	hit, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	return func(c *Config) {
		c.Fault = func(point string) {
			if point == at {
				once.Do(func() { close(hit) })
				<-end
			}
		}
	}, hit, sync.OnceFunc(func() { close(end) })
}

// survive submits a command to an executor that crashes, and lets another continue it.
func survive(t *testing.T, d Declaration, h Handler, at string) (*rig, *Answer) {
	t.Helper()
	r := &rig{t: t, store: NewMemoryStore(), reg: NewRegistry(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	r.register(d, h)
	tune, reached, revive := crash(at)
	r.run(tune)
	t.Cleanup(revive) // before its executor is stopped
	e := r.envelope()
	go r.x.Submit(context.Background(), payer, e)
	<-reached
	r.pass(61 * time.Second)
	r.run()
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r, &Answer{CommandID: e.CommandID}
}

func (r *rig) becomes(id string, want Status, sub Substatus) *Answer {
	r.t.Helper()
	var a *Answer
	r.eventually(func() bool {
		var err error
		a, err = r.x.Status(context.Background(), payer, id)
		return err == nil && a.Status == want && a.Substatus == sub
	})
	return a
}

func TestCrashPoints(t *testing.T) {
	strict := Declaration{}
	s1 := Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S1}}
	s3 := Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S3}}
	for _, at := range []string{"reserved", "started", "ledgered", "called", "recorded", "handled", "finished"} {
		t.Run(at, func(t *testing.T) {
			if at != "ledgered" && at != "called" && at != "recorded" {
				var c counter
				r, a := survive(t, strict, &c, at)
				r.becomes(a.CommandID, Executed, Running)
				if c.n.Load() != 1 {
					t.Errorf("strict: %d effects", c.n.Load())
				}
			}
			p := &provider{known: map[string]string{}}
			r, a := survive(t, s1, charging{p}, at)
			r.becomes(a.CommandID, Executed, Running)
			if p.count() != 1 {
				t.Errorf("S1: %d charges", p.count())
			}
			for _, k := range p.keys {
				if k != p.keys[0] {
					t.Errorf("S1: keys %v", p.keys)
				}
			}
			p = &provider{}
			r, a = survive(t, s3, charging{p}, at)
			r.becomes(a.CommandID, Executed, Running)
			if p.count() != 1 {
				t.Errorf("S3: %d charges", p.count())
			}
			if again := r.submit(); again.Status != Executed || p.count() != 1 {
				t.Errorf("S3: %+v, %d charges", again, p.count())
			}
		})
	}
}

func TestUnknownCallWaitsForReconciliation(t *testing.T) {
	p := &provider{silent: true}
	r, a := survive(t, Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S3}}, charging{p}, "called")
	r.becomes(a.CommandID, InProgress, NeedsReconciliation)
	if again := r.submit(); again.Status != InProgress || p.count() != 1 {
		t.Fatalf("%+v, %d charges", again, p.count())
	}
	p.mu.Lock()
	p.silent = false
	p.mu.Unlock()
	r.pass(31 * time.Second)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if done := r.becomes(a.CommandID, Executed, Running); string(done.Outcome.Result) != `{"id":"ch_1"}` || p.count() != 1 {
		t.Fatalf("%+v, %d charges", done.Outcome, p.count())
	}
}

func TestDuplicatesAtTheProviderAreCompensated(t *testing.T) {
	p := &provider{}
	p.charge("by some other way")
	r, a := survive(t, Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S4}}, charging{p}, "called")
	done := r.becomes(a.CommandID, Compensated, Running)
	if p.count() != 1 || p.refunds != 1 {
		t.Fatalf("%d charges, %d refunds: %+v", p.count(), p.refunds, done)
	}
	if again := r.submit(); again.Status != Compensated || p.refunds != 1 || p.count() != 1 {
		t.Fatalf("%+v", again)
	}
}

func TestCompensationIsACommand(t *testing.T) {
	r := newRig(t)
	p := &provider{}
	r.register(Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S4}}, charging{p})
	if err := r.reg.Register(Compensation("pay"), r.x.Compensator()); err != nil {
		t.Fatal(err)
	}
	first := r.submit()
	caller := payer
	caller.Confirmed = true
	take := func() *Answer {
		a, err := r.x.Submit(context.Background(), caller, r.envelope(func(e *Envelope) {
			e.Intent = Intent{Entity: "command", Action: "compensate", Target: first.CommandID}
			e.Args = nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := take(); a.Status != Executed || p.count() != 0 || p.refunds != 1 {
		t.Fatalf("%+v", a.Outcome)
	}
	take()
	again := r.submit()
	if again.Status != Compensated || p.count() != 0 || p.refunds != 1 {
		t.Fatalf("%+v, %d charges, %d refunds", again, p.count(), p.refunds)
	}
}

func TestStopLeavesCommandsToOthers(t *testing.T) {
	r := &rig{t: t, store: NewMemoryStore(), reg: NewRegistry(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c := counter{gate: make(chan struct{})}
	r.register(Declaration{}, &c)
	stop := r.run()
	soon, cancel := context.WithCancel(context.Background())
	cancel()
	a, err := r.x.Submit(soon, payer, r.envelope())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	close(c.gate)
	r.run() // it looks for lost commands when it starts
	r.becomes(a.CommandID, Executed, Running)
	if c.n.Load() != 1 {
		t.Fatalf("%d effects", c.n.Load())
	}
}

// A service that recognises repeats and does not answer in time may have acted: the command does not fail, and the
// executor asks again.
func TestRepeatableCallWithoutAnAnswerIsAskedAgain(t *testing.T) {
	r := newRig(t, func(c *Config) { c.RetryFor = time.Nanosecond })
	p := &provider{known: map[string]string{}}
	var silent atomic.Bool
	silent.Store(true)
	r.register(Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S1}}, HandlerFunc(func(ctx context.Context, call *Call) (*Outcome, error) {
		r.pass(time.Second)
		result, err := call.Do(ctx, "charge", func(_ context.Context, key string) (any, error) {
			id := p.charge(key)
			if silent.Load() {
				return nil, errors.New("no answer")
			}
			return map[string]string{"id": id}, nil
		})
		if err != nil {
			return nil, err
		}
		return &Outcome{Result: result}, nil
	}))
	a := r.submit()
	if a.Status != InProgress || a.Substatus != NeedsReconciliation {
		t.Fatalf("%+v", a)
	}
	silent.Store(false)
	r.pass(31 * time.Second)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if done := r.becomes(a.CommandID, Executed, Running); string(done.Outcome.Result) != `{"id":"ch_1"}` || p.count() != 1 {
		t.Fatalf("%+v, %d charges", done.Outcome, p.count())
	}
}
