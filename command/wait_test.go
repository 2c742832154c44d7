package command

import (
	"context"
	"testing"
	"testing/synctest"
)

// The caller's patience ends when the outcome is stored and the execution has not quite ended. The caller still gets the
// first answer: it is the only one with the secrets.
func TestPatienceEndsWithTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		r := newRig(t, func(c *Config) {
			c.Fault = func(point string) {
				if point == "finished" {
					cancel()
					synctest.Wait() // until the caller has its answer, or waits for the execution
				}
			}
		})
		r.register(Declaration{Secret: []string{"secret"}}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
			return &Outcome{Result: map[string]any{"secret": "s"}}, nil
		}))
		a, err := r.x.Submit(ctx, payer, r.envelope())
		if err != nil || !a.Executed || a.Outcome == nil || string(a.Outcome.Result) != `{"secret":"s"}` {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
