package command

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// compensate submits the command that takes another one back to an executor that crashes at a point, and lets another continue it.
func (r *rig) compensate(target, at string) (id string) {
	r.t.Helper()
	if err := r.reg.Register(Compensation("pay"), r.x.Compensator()); err != nil {
		r.t.Fatal(err)
	}
	tune, reached, revive := crash(at)
	r.run(tune)
	r.t.Cleanup(revive)
	caller := payer
	caller.Confirmed = true
	e := r.envelope(func(e *Envelope) {
		e.Intent, e.Args = Intent{Entity: "command", Action: "compensate", Target: target}, nil
	})
	go r.x.Submit(context.Background(), caller, e)
	<-reached
	r.pass(61 * time.Second)
	r.run()
	if _, err := r.x.Recover(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	return e.CommandID
}

// ends waits for the end of a command.
func (r *rig) ends(id string) (a *Answer) {
	r.t.Helper()
	r.eventually(func() (ended bool) {
		var err error
		a, err = r.x.Status(context.Background(), payer, id)
		return err == nil && a.Status.Terminal()
	})
	return a
}

// A compensation whose executor dies goes on: it ends as executed, and its target as compensated.
func TestCompensationSurvivesACrash(t *testing.T) {
	for _, at := range []string{"started", "ledgered", "called", "recorded", "handled"} {
		t.Run(at, func(t *testing.T) {
			r, p := newRig(t), &provider{}
			r.register(Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S4}}, charging{p})
			first := r.submit()
			p.charge("by some other way") // both have to go
			id := r.compensate(first.CommandID, at)
			if a := r.ends(id); a.Status != Executed {
				t.Errorf("the compensation is %+v", a.Outcome)
			}
			if a := r.ends(first.CommandID); a.Status != Compensated || p.count() != 0 || p.refunds != 2 {
				t.Errorf("the command is %s, with %d charges and %d refunds", a.Status, p.count(), p.refunds)
			}
		})
	}
}

// An executor dies with two calls open, of which the provider has performed one. Recovery asks about each: it keeps the one
// and makes the other.
func TestEachOpenCallIsReconciled(t *testing.T) {
	var made sync.Map // names of calls that the provider has performed
	var total atomic.Int64
	ask := func(_ context.Context, c *Call) (found Found, err error) {
		for _, name := range c.Open() {
			if _, has := made.Load(name); has {
				found.Effects = append(found.Effects, ProviderEffect{ID: name, Result: json.RawMessage(`{"id":"` + name + `"}`)})
			}
		}
		return found, nil
	}
	var runs atomic.Int64
	act := func(ctx context.Context, c *Call) (*Outcome, error) {
		first := runs.Add(1) == 1
		results := map[string]json.RawMessage{}
		for _, name := range []string{"a", "b"} {
			result, err := c.Do(ctx, name, func(context.Context, string) (any, error) {
				if first && name == "b" {
					return nil, errors.New("never sent")
				}
				total.Add(1)
				made.Store(name, true)
				if first {
					return nil, errors.New("the answer is lost")
				}
				return map[string]string{"id": name}, nil
			})
			if err != nil && !first {
				return nil, err
			}
			results[name] = result
		}
		if first {
			return nil, ErrUnresolved
		}
		return &Outcome{Result: results}, nil
	}
	r := newRig(t, unlimited)
	r.register(ledgered, asking{act, ask})
	a := r.submit()
	if a.Substatus != NeedsReconciliation {
		t.Fatalf("%+v", a)
	}
	r.pass(31 * time.Second)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a = r.ends(a.CommandID); a.Status != Executed || string(a.Outcome.Result) != `{"a":{"id":"a"},"b":{"id":"b"}}` || total.Load() != 2 {
		t.Errorf("%s with %s after %d calls", a.Status, a.Outcome.Result, total.Load())
	}
}

// asking is a handler made of two functions.
type asking struct {
	act func(context.Context, *Call) (*Outcome, error)
	ask func(context.Context, *Call) (Found, error)
}

func (a asking) Execute(ctx context.Context, c *Call) (*Outcome, error) { return a.act(ctx, c) }
func (a asking) Reconcile(ctx context.Context, c *Call) (Found, error)  { return a.ask(ctx, c) }

// An executor dies at every point at which it undoes what a provider did twice. The command ends as compensated.
func TestUndoingSurvivesACrash(t *testing.T) {
	for _, at := range []string{"ledgered", "called", "recorded", "handled"} {
		t.Run(at, func(t *testing.T) {
			p := &provider{}
			p.charge("by some other way")
			r := &rig{t: t, store: NewMemoryStore(), reg: NewRegistry(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
			r.register(Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S4}}, charging{p})
			tune, reached, revive := crash("called")
			r.run(tune)
			t.Cleanup(revive)
			e := r.envelope()
			go r.x.Submit(context.Background(), payer, e)
			<-reached
			for _, point := range []string{at, ""} {
				r.pass(61 * time.Second)
				tune, reached, revive := crash(point)
				r.run(tune)
				t.Cleanup(revive)
				if _, err := r.x.Recover(context.Background()); err != nil {
					t.Fatal(err)
				}
				if point != "" {
					<-reached
				}
			}
			if a := r.ends(e.CommandID); a.Status != Compensated || p.count() != 1 || p.refunds != 1 {
				t.Errorf("%s with %d charges and %d refunds", a.Status, p.count(), p.refunds)
			}
		})
	}
}
