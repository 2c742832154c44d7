package apptest

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
)

// clockTimeouts is a sender whose attempts time out by the test's clock. A test can then end a time limit of 30 seconds
// exactly, and a slow machine cannot end it early.
type clockTimeouts struct {
	attempt.Sender
	clock clock.Clock
}

// timeOutByClock makes the engine's attempts time out by its clock.
func timeOutByClock(tune func(*engine.Config)) func(*engine.Config) {
	return func(c *engine.Config) {
		if tune != nil {
			tune(c)
		}
		c.Sender = clockTimeouts{c.Sender, c.Clock}
	}
}

// Send makes an attempt that only the clock ends.
func (s clockTimeouts) Send(ctx context.Context, r *sender.Request) godwit.Exchange {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	limit := r.Timeout
	if limit <= 0 {
		limit = sender.DefaultTimeout
	}
	defer s.clock.AfterFunc(limit, func() { end(context.DeadlineExceeded) }).Stop()
	patient := *r
	patient.Timeout = waitLimit
	return s.Sender.Send(ctx, &patient)
}

// DoubleTimeout runs a scenario that must outlast a real time limit, such as a stream that outlives the server's read
// timeout. The limit is short at first and doubles while the scenario fails, because on a slow machine even its preparations
// may take longer than the limit. A scenario that the limit ends fails every time, and so does the test.
func DoubleTimeout(t testing.TB, scenario func(timeout time.Duration) error) {
	t.Helper()
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		err := scenario(timeout)
		if err == nil {
			return
		}
		t.Logf("with a limit of %v: %v", timeout, err)
		if timeout > time.Minute {
			t.Fatal("the scenario fails with any limit")
		}
	}
}
