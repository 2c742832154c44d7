package idempotency

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/store"
)

// Config is what a Guard is made of. The published specification of idempotency keys is rendered from it.
type Config struct {
	Store store.Idempotency
	Ring  *keyring.Ring
	// Problems answers a request with an error.
	Problems interface {
		Write(w http.ResponseWriter, r *http.Request, err error)
	}
	Log *slog.Logger
	Now func() time.Time

	// Window is how long an answer is kept, from when it was given; a repeat does not prolong it. Defaults to 24 h.
	Window time.Duration
	// TimeScale runs the window faster. Defaults to real time.
	TimeScale godwit.TimeScale
	// Timeout is how long a handler may run. It runs on when the client goes away. Defaults to 30 s.
	Timeout time.Duration
	// Lease is after how long a key whose request was cut off by a crash is free again. Longer than Timeout. Defaults to
	// 60 s.
	Lease time.Duration
	// Format is what keys look like. Defaults to 16 to 255 characters.
	Format Format
	// Fingerprint tells requests with one key apart. Defaults to WholePayload.
	Fingerprint Fingerprint
	// MaxStoredBody is the longest body that is kept for repeats; of a longer one the guard keeps the status alone. Defaults to 64 KiB.
	MaxStoredBody int
	// Redact removes secrets from an answer before the guard keeps it for repeats. Defaults to no change.
	Redact func(body []byte) []byte
	// Decided leaves evidence of what was decided about a request whose scope names a channel. The guard calls it before it answers;
	// when Decided fails, the guard refuses the request and, if it was the first one, does not run it. Defaults to nothing.
	Decided func(ctx context.Context, d Decision) error
}

func (c *Config) setDefaults() error {
	if c.Store == nil || c.Ring == nil || c.Problems == nil || c.Log == nil || c.Now == nil {
		return errors.New("idempotency: store, ring, problems, log and now are required")
	}
	defaultTo(&c.Window, 24*time.Hour)
	defaultTo(&c.Timeout, 30*time.Second)
	defaultTo(&c.Lease, 60*time.Second)
	defaultTo(&c.Format.MinLength, DefaultMinLength)
	defaultTo(&c.Format.MaxLength, DefaultMaxLength)
	defaultTo(&c.MaxStoredBody, 64<<10)
	if c.Fingerprint.Sum == nil {
		c.Fingerprint = WholePayload
	}
	if c.Lease <= c.Timeout {
		return errors.New("idempotency: lease must be longer than timeout, or a slow handler's key is given away")
	}
	return nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
