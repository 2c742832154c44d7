package sender

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A bound is the context of one attempt: the caller's, ended at the attempt's deadline. A request over a link has its
// connection's deadline and needs no other timer, so this one is made only when somebody waits for it: a name server, a
// handshake, a token endpoint, net/http.
type bound struct {
	context.Context // the caller's
	at              time.Time

	mu    sync.Mutex
	timed context.Context // nil until it is needed
	stop  context.CancelFunc
}

var errDeadline = fmt.Errorf("attempt: %w", context.DeadlineExceeded)

// newBound bounds an attempt that begins now. The deadline is a matter of the machine's time, whatever the clock says.
func newBound(ctx context.Context, timeout time.Duration) *bound {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	at := time.Now().Add(timeout)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(at) {
		at = earlier
	}
	return &bound{Context: ctx, at: at}
}

func (b *bound) Deadline() (time.Time, bool) { return b.at, true }

func (b *bound) Done() <-chan struct{} { return b.withTimer().Done() }

func (b *bound) Err() error {
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

func (b *bound) Value(key any) any {
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return b.Context.Value(key)
}

func (b *bound) withTimer() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		// The cause tells the attempt's deadline from everything else.
		b.timed, b.stop = context.WithDeadlineCause(b.Context, b.at, errDeadline)
	}
	return b.timed
}

// end frees what the bound holds.
func (b *bound) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		b.stop()
	}
}
