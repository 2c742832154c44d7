package command

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// The store takes nothing more once a command is reserved, as on a disk that has become full. The caller is told soon; the command
// goes on when the store does, and a repeat gets its outcome.
func TestCallerDoesNotWaitForTheStore(t *testing.T) {
	u := &unreliable{}
	r := newRig(t, unreliably(u, unlimited))
	var full atomic.Bool
	u.become(func([]*Step) (bool, bool) { return full.Load(), false })
	var runs atomic.Int64
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		full.Store(true)
		runs.Add(1)
		return &Outcome{Summary: "done"}, nil
	}))
	e := r.envelope()
	if a, err := r.x.Submit(context.Background(), payer, e); !errors.Is(err, errAway) {
		t.Fatalf("%+v, %v", a, err)
	}
	full.Store(false)
	for {
		a, err := r.x.Submit(context.Background(), payer, e)
		if err != nil {
			t.Fatal(err)
		}
		if a.Outcome == nil {
			continue // still in progress
		}
		if a.Status != Executed || a.Outcome.Summary != "done" || runs.Load() != 1 {
			t.Errorf("%s, %+v after %d runs", a.Status, a.Outcome, runs.Load())
		}
		return
	}
}
