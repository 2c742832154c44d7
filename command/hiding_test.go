package command

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// Commands that cannot be recovered do not hide one that can.
func TestLostCommandsHideNoOthers(t *testing.T) {
	r := newRig(t)
	unknown := HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return nil, ErrUnresolved })
	r.register(Declaration{}, unknown)
	r.register(Declaration{Entity: "other"}, unknown)
	for i := range atOnce + 10 {
		r.submit(func(e *Envelope) { e.Args = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)) })
	}
	r.pass(time.Second)
	r.submit(func(e *Envelope) { e.Intent.Entity = "other" })
	r.reg = NewRegistry() // as in a process that no longer has the first command
	var runs atomic.Int64
	r.register(Declaration{Entity: "other"}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { runs.Add(1); return &Outcome{}, nil }))
	r.run()
	r.pass(time.Minute)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.eventually(func() bool { return runs.Load() == 1 })
}

// damaged is a store in which the evidence of one tenant was tampered with.
type damaged struct {
	Store
	tenant string
}

func (d damaged) Evidence(ctx context.Context, q EvidenceQuery) ([]evidence.Item, error) {
	if q.Tenant == d.tenant {
		return nil, errors.New("damaged")
	}
	return d.Store.Evidence(ctx, q)
}

// A chain that cannot be read does not prevent others from being signed.
func TestDamagedChainHidesNoOthers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Store = damaged{c.Store, "t1"} })
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return &Outcome{}, nil }))
	r.submit()
	other := payer
	other.Tenant = "t2"
	if _, err := r.x.Submit(context.Background(), other, r.envelope(func(e *Envelope) { e.TenantID = "t2" })); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.x.Checkpoint(context.Background(), key); n != 1 || err == nil {
		t.Errorf("signed %d: %v", n, err)
	}
}

// gated undoes effects when the gate opens, as often as it is called.
type gated struct {
	charging
	begun, gate chan struct{}
}

func (g gated) Compensate(context.Context, *Call, ProviderEffect) error {
	g.begun <- struct{}{}
	<-g.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refunds++
	g.charges = nil
	return nil
}

// Two concurrent compensations of the same command undo it once.
func TestTwoCompensations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newRig(t, unlimited), &provider{}
		g := gated{charging{p}, make(chan struct{}, 2), make(chan struct{})}
		d := ledgered
		d.Shielding = []Strategy{S4}
		r.register(d, g)
		comp := Compensation("pay")
		comp.Confirmation = false
		if err := r.reg.Register(comp, r.x.Compensator()); err != nil {
			t.Fatal(err)
		}
		charged := r.submit()
		compensate := func(ctx context.Context, actor string) *Answer {
			a, err := r.x.Submit(ctx, Caller{Tenant: "t1", Actor: actor, Scopes: []string{"pay"}}, r.envelope(func(e *Envelope) {
				e.ActorID, e.Intent, e.Args = actor, Intent{Entity: "command", Action: "compensate", Target: charged.CommandID}, nil
			}))
			if err != nil {
				t.Error(err)
				return &Answer{}
			}
			return a
		}
		first := make(chan *Answer)
		go func() { first <- compensate(context.Background(), "a2") }()
		<-g.begun
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if a := compensate(ctx, "a3"); a.Status != InProgress {
			t.Errorf("the second is %s", a.Status)
		}
		close(g.gate)
		if a := <-first; a.Status != Executed {
			t.Errorf("the first is %s", a.Status)
		}
		for compensate(context.Background(), "a3").Status != Executed {
			time.Sleep(time.Second) // of the bubble
		}
		if p.refunds != 1 {
			t.Errorf("%d refunds", p.refunds)
		}
	})
}

// Approvals leave evidence, so their number is limited.
func TestApprovalsAreLimited(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DuplicatesPerActor = 5 })
	r.register(Declaration{Confirmation: true, StepUp: true}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return &Outcome{}, nil }))
	a := r.submit()
	second := payer
	second.Actor = "a2"
	for i := range 6 {
		_, err := r.x.Approve(context.Background(), second, a.CommandID)
		var refusal *Refusal
		if limited := errors.As(err, &refusal) && refusal.Code == RateLimited; limited != (i == 5) {
			t.Errorf("approval %d: %v", i+1, err)
		}
	}
}

// A caller without the command's scopes does not learn from Approve how the command stands (IDS-SEC-5).
func TestApproveTellsNothingWithoutScopes(t *testing.T) {
	r := newRig(t)
	r.register(Declaration{Confirmation: true, StepUp: true}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return &Outcome{}, nil }))
	r.register(Declaration{Action: "pay"}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return &Outcome{}, nil }))
	ended := r.submit(func(e *Envelope) { e.Intent.Action = "pay" })
	for _, id := range []string{r.submit().CommandID, ended.CommandID} {
		_, err := r.x.Approve(context.Background(), Caller{Tenant: "t1", Actor: "a1"}, id)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != Forbidden {
			t.Errorf("%v", err)
		}
	}
}
