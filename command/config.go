package command

import (
	"log/slog"
	"time"
)

// Config holds the dependencies and settings of an Executor.
type Config struct {
	Store    Store
	Registry *Registry
	Sealer   Sealer
	Log      *slog.Logger
	// Now and AfterFunc are the clock. AfterFunc calls f on a new goroutine once d has passed, unless stop is called
	// first. It defaults to time.AfterFunc.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// Owner names this process among those that share the store. Defaults to a random name.
	Owner string
	// Lease is the time after which another executor may continue a command whose executor has not renewed its lease.
	// Defaults to 60 s.
	Lease time.Duration
	// RetryFor is how long the executor retries a handler that returns transient errors. Defaults to 2 min; a remote
	// declaration sets its own.
	RetryFor time.Duration
	// ReconcileEvery is the wait before the executor asks the provider again about a call without a known result. Defaults
	// to 30 s.
	ReconcileEvery time.Duration
	// TokenLife is how long a confirmation token is valid. Defaults to 5 min, at most 15.
	TokenLife time.Duration
	// DuplicatesPerKey and DuplicatesPerActor limit, per minute, the duplicates of one key and the submissions of one
	// actor that execute nothing. The executor refuses more. Default to 30 and 300; a negative value removes the limit.
	DuplicatesPerKey, DuplicatesPerActor int
	// Scale shortens declared windows, for trials. Defaults to real time.
	Scale func(time.Duration) time.Duration

	// The executor calls Decided for every decision, Limited for every submission that a limit refuses, and Unresolved for
	// every command that comes to need reconciliation, for metrics. It calls Prompt when a person has to confirm. All may
	// be nil.
	Decided    func(Decision)
	Limited    func()
	Unresolved func()
	Prompt     func(tenant, commandID string, d *Declaration)
	// Fault, if not nil, is called at each point of FaultPoints, for tests that stop the process there.
	Fault func(point string)
}

func orElse[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (c *Config) fault(point string) {
	if c.Fault != nil {
		c.Fault(point)
	}
}

func (c *Config) decided(d Decision) {
	if c.Decided != nil {
		c.Decided(d)
	}
}

func (c *Config) retryFor(d *Registered) time.Duration {
	if d.Remote != nil && d.Remote.Timeout > 0 {
		return d.Remote.Timeout.Duration()
	}
	return c.RetryFor
}
