package problem

import (
	"log/slog"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// outageReport is how often an outage is reported while it lasts, and how long no request must have been refused for its end.
const outageReport = 10 * time.Second

// An Outage keeps requests that are refused as unavailable from filling the log while the store is away: the first one is logged, then how
// many there were every ten seconds, and the end. The others are logged at the level of debugging.
type Outage struct {
	log   *slog.Logger
	clock clock.Clock
	done  <-chan struct{}

	mu     sync.Mutex
	began  time.Duration // on the steady clock
	lasts  bool
	recent int // refused since the last report
	all    int
	cause  error // of the latest
}

// NewOutage makes one that reports nothing more once done is closed.
func NewOutage(log *slog.Logger, c clock.Clock, done <-chan struct{}) *Outage {
	return &Outage{log: log, clock: c, done: done}
}

// refused counts a request and returns the level to log it at. A nil Outage logs each request.
func (o *Outage) refused(cause error) slog.Level {
	if o == nil {
		return slog.LevelWarn
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all++
	if o.lasts {
		o.recent, o.cause = o.recent+1, cause
		return slog.LevelDebug
	}
	o.lasts, o.began = true, o.clock.Steady()
	o.clock.AfterFunc(outageReport, o.report)
	return slog.LevelWarn
}

func (o *Outage) report() {
	select {
	case <-o.done:
		return
	default:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.recent == 0 {
		o.log.Info("requests are no longer refused", "refused", o.all, "after", o.clock.Steady()-o.began)
		o.lasts, o.all, o.cause = false, 0, nil
		return
	}
	o.log.Warn("requests are refused, and not logged one by one", "refused", o.recent, "error", o.cause)
	o.recent = 0
	o.clock.AfterFunc(outageReport, o.report)
}
