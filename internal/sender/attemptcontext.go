package sender

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// An attemptContext is the context of one attempt: the caller's context with the attempt's deadline. A request over a link uses its
// connection's deadline. The timer is made only when something else waits for the context: a name server, a handshake, a token
// endpoint, net/http.
type attemptContext struct {
	context.Context // the caller's
	at              time.Time
	timing          godwit.Timing

	mu    sync.Mutex
	timed context.Context // nil until it is needed
	stop  context.CancelFunc
}

var errDeadline = fmt.Errorf("attempt: %w", context.DeadlineExceeded)

// newAttemptContext starts the deadline of an attempt. The deadline is in the machine's time, not the clock's.
func newAttemptContext(ctx context.Context, timeout time.Duration) *attemptContext {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	at := time.Now().Add(timeout)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(at) {
		at = earlier
	}
	return &attemptContext{Context: ctx, at: at}
}

func (b *attemptContext) Deadline() (time.Time, bool) { return b.at, true }

func (b *attemptContext) Done() <-chan struct{} { return b.withTimer().Done() }

func (b *attemptContext) Err() error {
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	switch {
	case timed != nil:
		return timed.Err()
	case b.Context.Err() == nil && time.Now().Before(b.at):
		return nil
	}
	return b.withTimer().Err() // so that context.Cause finds the cause as well
}

func (b *attemptContext) Value(key any) any {
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return b.Context.Value(key)
}

func (b *attemptContext) withTimer() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		// The cause distinguishes the attempt's deadline from other ends.
		b.timed, b.stop = context.WithDeadlineCause(b.Context, b.at, errDeadline)
	}
	return b.timed
}

// end frees what the bound holds.
func (b *attemptContext) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		b.stop()
	}
}
