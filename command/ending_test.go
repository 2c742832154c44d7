package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("boom") }

// A result that cannot be stored is a failure, and a failure has no effects.
func TestResultsThatCannotBeKept(t *testing.T) {
	for name, result := range map[string]any{
		"list": []string{"a"}, "unencodable": make(chan int), "long": map[string]string{"a": strings.Repeat("x", maxResult)}, "panicking": panicking{},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var n atomic.Int64
			r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
				return &Outcome{Result: result, Effects: []Effect{MemoryEffect[int64]{
					Do: func() (int64, error) { return n.Add(1), nil }, Undo: func() { n.Add(-1) },
				}}}, nil
			}))
			if a := r.submit(); a.Status != Failed || n.Load() != 0 {
				t.Errorf("%s with %d effects", a.Status, n.Load())
			}
		})
	}
}

// Evidence does not accept every text; the command ends nevertheless.
func TestReasonThatCannotBeKept(t *testing.T) {
	for _, reason := range []string{"a\x00b", "\xff", strings.Repeat("x", 5000)} {
		r := newRig(t)
		r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return nil, Reject(reason, "no") }))
		if a := r.submit(); a.Status != Failed {
			t.Errorf("%.10q: %+v", reason, a)
		}
	}
}

// However a handler ends, a command does not fail while the result of its call is not known (IDS-SHD-5).
func TestOpenCallsAreNotFailed(t *testing.T) {
	for name, after := range map[string]func() (any, error){
		"panic":       func() (any, error) { panic("after the call") },
		"unencodable": func() (any, error) { return make(chan int), nil },
		"error":       func() (any, error) { return nil, errors.New("connection reset") },
	} {
		t.Run(name, func(t *testing.T) {
			r, p := newRig(t, unlimited), &provider{}
			var runs atomic.Int64
			r.register(ledgered, acting{charging{p}, func(ctx context.Context, call *Call) (*Outcome, error) {
				if runs.Add(1) > 1 {
					return charging{p}.Execute(ctx, call)
				}
				_, err := call.Do(ctx, "charge", func(_ context.Context, key string) (any, error) { p.charge(key); return after() })
				return nil, fmt.Errorf("charge: %v", err)
			}})
			if a := r.submit(); a.Status != InProgress || a.Substatus != NeedsReconciliation {
				t.Fatalf("%s/%s after %d charges", a.Status, a.Substatus, p.count())
			}
			r.pass(31 * time.Second)
			if _, err := r.x.Recover(context.Background()); err != nil {
				t.Fatal(err)
			}
			r.eventually(func() bool { return r.submit().Status == Executed })
			if p.count() != 1 {
				t.Errorf("%d charges", p.count())
			}
		})
	}
}

// Concurrent parts of a handler that make the same call make it once.
func TestOneCallOfMany(t *testing.T) {
	r, p := newRig(t), &provider{}
	r.register(ledgered, acting{charging{p}, func(ctx context.Context, call *Call) (*Outcome, error) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { charging{p}.Execute(ctx, call) })
		}
		wg.Wait()
		return &Outcome{}, nil
	}})
	if r.submit(); p.count() != 1 {
		t.Errorf("%d charges", p.count())
	}
}

// A goroutine that a handler left running makes no calls once the command has ended.
func TestCallAfterTheEnd(t *testing.T) {
	r, p := newRig(t), &provider{}
	ended, late := make(chan struct{}), make(chan error)
	r.register(ledgered, acting{charging{p}, func(_ context.Context, call *Call) (*Outcome, error) {
		go func() {
			<-ended
			_, err := charging{p}.Execute(context.Background(), call)
			late <- err
		}()
		return &Outcome{}, nil
	}})
	r.submit()
	close(ended)
	if err := <-late; err == nil || p.count() != 0 {
		t.Errorf("%v, %d charges", err, p.count())
	}
}

// looking is a store that inspects the records it stores.
type looking struct {
	Store
	saw func(*Record)
}

func (l looking) Advance(ctx context.Context, now time.Time, steps []*Step) ([]Result, error) {
	results, err := l.Store.Advance(ctx, now, steps)
	for i := range results {
		if results[i].Stored != nil {
			l.saw(results[i].Stored)
		}
	}
	return results, err
}

// A secret in a provider's answer is never stored in plain text, also not in the ledger.
func TestLedgerKeepsNoSecrets(t *testing.T) {
	var records []*Record
	r := newRig(t, func(c *Config) {
		c.Store = looking{c.Store, func(rec *Record) { records = append(records, rec) }}
	})
	d := ledgered
	d.Shielding, d.Secret = []Strategy{S1}, []string{"secret"}
	r.register(d, HandlerFunc(func(ctx context.Context, call *Call) (*Outcome, error) {
		var v json.RawMessage
		for range 2 {
			var err error
			if v, err = call.Do(ctx, "make", func(context.Context, string) (any, error) { return map[string]string{"secret": "hunter2"}, nil }); err != nil {
				return nil, err
			}
		}
		return &Outcome{Result: v}, nil
	}))
	if a := r.submit(); !strings.Contains(string(a.Outcome.Result), "hunter2") {
		t.Errorf("the first answer has %s", a.Outcome.Result)
	}
	var results int
	for _, rec := range records {
		if strings.Contains(fmt.Sprintf("%s", rec.Ledger), "hunter2") {
			t.Errorf("version %d has it in its ledger", rec.Version)
		}
		for _, entry := range rec.Ledger {
			results += len(entry.Result)
			if rec.Status.Terminal() && entry.Result != nil {
				t.Error("a result outlives the end")
			}
		}
	}
	if results == 0 {
		t.Error("no result was ever stored")
	}
}

// The provider's report of an effect becomes the outcome of a compensated command, without its secrets.
func TestCompensatedOutcomeKeepsNoSecrets(t *testing.T) {
	r, p := newRig(t, unlimited), &provider{}
	d := ledgered
	d.Shielding, d.Secret = []Strategy{S4}, []string{"id"}
	r.register(d, acting{charging{p}, func(ctx context.Context, call *Call) (*Outcome, error) {
		_, err := call.Do(ctx, "charge", func(_ context.Context, key string) (any, error) {
			p.charge(key)
			p.charge(key)
			return nil, errors.New("connection reset")
		})
		return nil, err
	}})
	r.submit()
	r.pass(31 * time.Second)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.eventually(func() bool { return r.submit().Status == Compensated })
	if o := r.submit().Outcome; string(o.Result) != "{}" || !o.SecretRedacted {
		t.Errorf("%s %v", o.Result, o.SecretRedacted)
	}
}

// twoCalls charges, then ships; at first the result of the shipment is not known.
type twoCalls struct {
	charging
	shipped, lost *atomic.Int64
	asked         *[]string
}

func (h twoCalls) Execute(ctx context.Context, c *Call) (*Outcome, error) {
	if _, err := h.charging.Execute(ctx, c); err != nil {
		return nil, err
	}
	_, err := c.Do(ctx, "ship", func(context.Context, string) (any, error) {
		if h.lost.Add(1) == 1 {
			return nil, errors.New("connection reset")
		}
		return h.shipped.Add(1), nil
	})
	return &Outcome{}, err
}

func (h twoCalls) Reconcile(ctx context.Context, c *Call) (Found, error) {
	*h.asked = append(*h.asked, c.Open()...)
	if c.Open()[0] == "charge" {
		return h.charging.Reconcile(ctx, c)
	}
	return Found{}, nil // nothing was shipped
}

// A reconciler knows which of several calls it has to ask about.
func TestReconcileTheOpenCall(t *testing.T) {
	r, p := newRig(t, unlimited), &provider{}
	h := twoCalls{charging{p}, &atomic.Int64{}, &atomic.Int64{}, &[]string{}}
	r.register(ledgered, h)
	r.submit()
	r.pass(31 * time.Second)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.eventually(func() bool { return r.submit().Status == Executed })
	if p.count() != 1 || h.shipped.Load() != 1 || fmt.Sprint(*h.asked) != "[ship]" {
		t.Errorf("%d charges, %d shipments, asked about %v", p.count(), h.shipped.Load(), *h.asked)
	}
}
