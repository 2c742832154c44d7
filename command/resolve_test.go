package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

func (r *rig) resolve(target, verdict string) *Answer {
	r.t.Helper()
	operator := Caller{Tenant: "t1", Actor: "operator", Scopes: []string{"admin"}, Confirmed: true}
	a, err := r.x.Submit(context.Background(), operator, r.envelope(func(e *Envelope) {
		e.ActorID, e.Intent = "operator", Intent{Entity: "command", Action: "resolve", Target: target}
		e.Args = json.RawMessage(fmt.Sprintf(`{"verdict":%q,"note":"the provider's statement of March shows it"}`, verdict))
	}))
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func TestOperatorResolves(t *testing.T) {
	for _, verdict := range []Status{Executed, Failed} {
		t.Run(string(verdict), func(t *testing.T) {
			p := &provider{silent: true}
			r, a := survive(t, Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S3}}, charging{p}, "called")
			if err := r.reg.Register(Resolution("admin"), r.x.Resolver()); err != nil {
				t.Fatal(err)
			}
			r.becomes(a.CommandID, InProgress, NeedsReconciliation)
			first := r.resolve(a.CommandID, string(verdict))
			if first.Status != Executed {
				t.Fatalf("resolve: %+v", first.Outcome)
			}
			done := r.becomes(a.CommandID, verdict, Running)
			if done.Outcome.Reason != "resolved_by_operator" || done.Outcome.Status != verdict {
				t.Errorf("outcome %+v", done.Outcome)
			}
			if again := r.submit(); again.Status != verdict || again.Outcome.Detail == "" || p.count() != 1 {
				t.Errorf("repeat %+v, %d charges", again, p.count())
			}
			if again := r.resolve(a.CommandID, string(verdict)); again.Decision != DuplicateReplayed || again.Status != Executed {
				t.Errorf("resolved again: %+v", again)
			}
			r.pass(time.Hour) // no executor takes it over
			if n, err := r.x.Recover(context.Background()); err != nil || n != 0 {
				t.Errorf("recovered %d, %v", n, err)
			}
			r.sayWho(a.CommandID, verdict)
		})
	}
}

// sayWho checks the evidence of a verdict: its actor, and that the chain verifies.
func (r *rig) sayWho(id string, verdict Status) {
	r.t.Helper()
	items, err := r.store.Evidence(context.Background(), EvidenceQuery{Tenant: "t1", CommandID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	want := map[Status]string{Executed: evidence.ExecutedOK, Failed: evidence.FailedType}[verdict]
	n := 0
	for _, it := range items {
		if it.Type == want {
			n++
			if it.Actor != "operator" || it.Reason != "resolved_by_operator" || it.OutcomeStatus != string(verdict) {
				r.t.Errorf("evidence %+v", it.Entry)
			}
		}
	}
	if n != 1 {
		r.t.Errorf("%d items tell of the end", n)
	}
}

func TestOnlyTheUnresolvedIsResolved(t *testing.T) {
	r := newRig(t)
	var c counter
	r.register(Declaration{}, &c)
	if err := r.reg.Register(Resolution("admin"), r.x.Resolver()); err != nil {
		t.Fatal(err)
	}
	done := r.submit()
	for target, reason := range map[string]string{
		done.CommandID: "not_unresolved", "cmd_0190a1b2-0000-7000-8000-999999999999": "command_not_found",
	} {
		if a := r.resolve(target, "failed"); a.Status != Rejected || a.Outcome.Reason != reason {
			t.Errorf("%s: %+v", reason, a.Outcome)
		}
	}
	if again := r.submit(); again.Status != Executed {
		t.Errorf("the command is now %+v", again)
	}
	r.refused(Forbidden, func(e *Envelope) {
		e.Intent, e.Args = Intent{Entity: "command", Action: "resolve", Target: done.CommandID}, json.RawMessage(`{"verdict":"failed","note":"x"}`)
	})
}

// TestResolveSurvivesItsOwnCrash: the verdict is stored, but not the end of the command that gave it.
func TestResolveSurvivesItsOwnCrash(t *testing.T) {
	p := &provider{silent: true}
	r, a := survive(t, Declaration{Class: I3, Justification: "pays", Shielding: []Strategy{S3}}, charging{p}, "called")
	r.becomes(a.CommandID, InProgress, NeedsReconciliation)
	tune, reached, revive := crash("handled")
	if err := r.reg.Register(Resolution("admin"), HandlerFunc(func(ctx context.Context, c *Call) (*Outcome, error) { return r.x.Resolver().Execute(ctx, c) })); err != nil {
		t.Fatal(err)
	}
	r.run(tune)
	t.Cleanup(revive)
	x := r.x
	id := make(chan string, 1)
	go func() {
		e := r.envelope(func(e *Envelope) {
			e.ActorID, e.Intent = "operator", Intent{Entity: "command", Action: "resolve", Target: a.CommandID}
			e.Args = json.RawMessage(`{"verdict":"executed","note":"seen"}`)
		})
		id <- e.CommandID
		x.Submit(context.Background(), Caller{Tenant: "t1", Actor: "operator", Scopes: []string{"admin"}, Confirmed: true}, e)
	}()
	<-reached
	r.pass(61 * time.Second)
	r.run()
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	resolving := <-id
	r.eventually(func() bool {
		rec, err := r.store.FindCommand(context.Background(), "t1", resolving)
		return err == nil && rec != nil && rec.Status == Executed
	})
	if done, err := r.x.Status(context.Background(), payer, a.CommandID); err != nil || done.Status != Executed || p.count() != 1 {
		t.Fatalf("%+v, %v, %d charges", done, err, p.count())
	}
	r.sayWho(a.CommandID, Executed)
}

// TestPanicsEndOneCommand: a panic in an outcome's functions cannot stop the executor.
func TestPanicsEndOneCommand(t *testing.T) {
	r := newRig(t)
	var n int
	outcomes := []*Outcome{
		{After: func(*Outcome, Results) error { panic("after") }, Effects: []Effect{MemoryEffect[int]{Do: func() (int, error) { n++; return n, nil }, Undo: func() { n-- }}}},
		{Refused: func(error) error { panic("refused") }, Effects: []Effect{InMemory(func() (int, error) { return 0, errors.New("no") })}},
		{Effects: []Effect{InMemory(func() (int, error) { panic("effect") })}},
		{Done: func(bool, Results) { panic("done") }},
	}
	r.register(Declaration{}, HandlerFunc(func(_ context.Context, c *Call) (*Outcome, error) {
		var in struct{ N int }
		err := json.Unmarshal(c.Args, &in)
		return outcomes[in.N], err
	}))
	for i := range outcomes {
		want := Failed
		if i == 3 {
			want = Executed
		}
		a := r.submit(func(e *Envelope) { e.Args = json.RawMessage(fmt.Sprintf(`{"N":%d}`, i)) })
		if a.Status != want {
			t.Errorf("outcome %d: %+v", i, a.Outcome)
		}
	}
	if n != 0 {
		t.Errorf("%d effects of a command that failed", n)
	}
}

func TestUnresolvedIsToldOnce(t *testing.T) {
	var told, runs atomic.Int64
	r := newRig(t, func(c *Config) { c.Unresolved = func() { told.Add(1) } })
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { runs.Add(1); return nil, ErrUnresolved }))
	if a := r.submit(); a.Substatus != NeedsReconciliation {
		t.Fatalf("%+v", a)
	}
	r.pass(31 * time.Second)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.eventually(func() bool { return runs.Load() == 2 })
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
}
