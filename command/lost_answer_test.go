package command

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testclock "github.com/godwit-hq/godwit/internal/clock"
)

// unreliable is a store that fails for some steps, or whose answers are lost.
type unreliable struct {
	Store
	mu   sync.Mutex
	lose func(steps []*Step) (away, lost bool)
}

var errAway = errors.New("away")

func unreliably(u *unreliable, tune ...func(*Config)) func(*Config) {
	return func(c *Config) {
		u.Store, c.Store = c.Store, u
		for _, f := range tune {
			f(c)
		}
	}
}

func (u *unreliable) become(f func(steps []*Step) (away, lost bool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lose = f
}

func (u *unreliable) Advance(ctx context.Context, now time.Time, steps []*Step) ([]Result, error) {
	u.mu.Lock()
	lose := u.lose
	u.mu.Unlock()
	var away, lost bool
	if lose != nil {
		away, lost = lose(steps)
	}
	if away {
		return nil, errAway
	}
	results, err := u.Store.Advance(ctx, now, steps)
	if lost {
		return nil, errors.New("the answer is lost")
	}
	return results, err
}

// acting is the provider's handler with another Execute.
type acting struct {
	charging
	act func(context.Context, *Call) (*Outcome, error)
}

func (a acting) Execute(ctx context.Context, c *Call) (*Outcome, error) { return a.act(ctx, c) }

// lease is long in these tests: only the hands of a test renew it or let it run out.
const lease = time.Hour

// byHand gives the timers of leases to a clock that the test moves. The pauses between two tries stay real.
func byHand(hands *testclock.Manual) func(*Config) {
	return func(c *Config) {
		c.Lease = lease
		c.AfterFunc = func(d time.Duration, f func()) func() bool {
			if d >= lease/3 {
				return hands.AfterFunc(d, f).Stop
			}
			return time.AfterFunc(d, f).Stop
		}
	}
}

// unlimited is for tests that submit until a condition holds.
func unlimited(c *Config) { c.DuplicatesPerKey, c.DuplicatesPerActor = -1, -1 }

var ledgered = Declaration{Class: I3, Justification: "for a test", Shielding: []Strategy{S3}}

// A renewal of the lease is stored, and its answer is lost. The next step is applied on top of the renewal and is not
// mistaken for it.
func TestStepsAfterALostAnswer(t *testing.T) {
	u, p, hands := &unreliable{}, &provider{}, testclock.NewManual(time.Time{})
	r := newRig(t, unreliably(u, byHand(hands)))
	r.register(ledgered, acting{charging{p}, func(ctx context.Context, call *Call) (*Outcome, error) {
		tries, given := 0, make(chan struct{})
		u.become(func([]*Step) (bool, bool) {
			if tries++; tries == commitTries {
				close(given)
			}
			return false, tries <= commitTries
		})
		hands.Advance(lease / 3) // the renewal
		<-given
		return charging{p}.Execute(ctx, call)
	}})
	a := r.submit()
	rec, err := r.store.FindCommand(context.Background(), "t1", a.CommandID)
	if err != nil || len(rec.Ledger) != 1 || rec.Ledger[0].State != CallDone {
		t.Errorf("a call was made and the ledger says %+v (%v)", rec.Ledger, err)
	}
	if a.Status != Executed || p.count() != 1 {
		t.Errorf("%s after %d charges", a.Status, p.count())
	}
}

// A renewal is stored and its answer is lost, and the end of the command comes next.
func TestEndAfterALostAnswer(t *testing.T) {
	u, hands := &unreliable{}, testclock.NewManual(time.Time{})
	r := newRig(t, unreliably(u, byHand(hands)))
	var runs atomic.Int64
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		runs.Add(1)
		tries, given := 0, make(chan struct{})
		u.become(func([]*Step) (bool, bool) {
			if tries++; tries == commitTries {
				close(given)
			}
			return false, tries <= commitTries
		})
		hands.Advance(lease / 3) // the renewal
		<-given
		return &Outcome{}, nil
	}))
	if a := r.submit(); a.Status != Executed || runs.Load() != 1 {
		t.Errorf("%s after %d runs", a.Status, runs.Load())
	}
}

// A step that the store does not accept while it accepts others ends as a failure; it is not retried for ever.
func TestEffectsThatAreNeverStored(t *testing.T) {
	u := &unreliable{}
	r := newRig(t, unreliably(u))
	u.become(func(steps []*Step) (bool, bool) {
		for _, s := range steps {
			if len(s.Effects) > 0 {
				r.pass(time.Minute)
				return true, false
			}
		}
		return false, false
	})
	var effects atomic.Int64
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		return &Outcome{Effects: []Effect{InMemory(func() (int64, error) { return effects.Add(1), nil })}}, nil
	}))
	if a := r.submit(); a.Status != Failed || effects.Load() != 0 {
		t.Errorf("%s with %d effects", a.Status, effects.Load())
	}
}

// The execution waits for a store that is away for longer than that. So does the caller if the outcome has secrets, which no later
// answer shows.
func TestEndOutlastsTheStore(t *testing.T) {
	u := &unreliable{}
	r := newRig(t, unreliably(u))
	tries := 0
	r.register(Declaration{Secret: []string{"secret"}}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		u.become(func([]*Step) (bool, bool) { tries++; r.pass(10 * time.Minute); return tries <= 10, false })
		return &Outcome{}, nil
	}))
	if a := r.submit(); a.Status != Executed {
		t.Errorf("%+v", a)
	}
}

// An execution whose lease cannot be renewed is cancelled before another may continue.
func TestLeaseRunsOut(t *testing.T) {
	u, hands := &unreliable{}, testclock.NewManual(time.Time{})
	r := newRig(t, unreliably(u, unlimited, byHand(hands)))
	var runs atomic.Int64
	r.register(Declaration{}, HandlerFunc(func(ctx context.Context, _ *Call) (*Outcome, error) {
		if runs.Add(1) > 1 {
			return &Outcome{}, nil
		}
		u.become(func([]*Step) (bool, bool) { return true, false })
		hands.Advance(lease)
		<-ctx.Done()
		cause := context.Cause(ctx)
		u.become(nil)
		return nil, cause
	}))
	var refusal *Refusal
	if _, err := r.x.Submit(context.Background(), payer, r.envelope()); !errors.As(err, &refusal) || refusal.Code != ExecutorStopping {
		t.Fatalf("%v", err)
	}
	r.pass(2 * lease)
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.eventually(func() bool { return r.submit().Status == Executed })
}

// A process whose lease ran out while the store was away does not take over from itself.
func TestExecutorDoesNotTakeOverFromItself(t *testing.T) {
	r := newRig(t)
	started, gate := make(chan struct{}, 2), make(chan struct{})
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		started <- struct{}{}
		<-gate
		return &Outcome{}, nil
	}))
	ended := make(chan *Answer)
	go func() { ended <- r.submit() }()
	<-started
	r.pass(2 * time.Minute)
	if n, err := r.x.Recover(context.Background()); n != 0 || err != nil {
		t.Errorf("took %d over: %v", n, err)
	}
	close(gate)
	if a := <-ended; a.Status != Executed || len(started) != 0 {
		t.Errorf("%s, %d more at once", a.Status, len(started))
	}
}
