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

// Config is what a Guard is made of. What it says is also what the published specification says.
type Config struct {
	Store store.Idempotency
	Ring  *keyring.Ring
	// Problems answers with what an error is to a client.
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
	// MaxStoredBody is the longest body that is kept for repeats; of a longer one the status alone is. Defaults to 64 KiB.
	MaxStoredBody int
	// Redact takes out of an answer what must not be shown again, before it is kept for repeats. Defaults to nothing.
	Redact func(body []byte) []byte
	// Decided is told what was decided about a request whose scope names a channel, before it is answered: to leave evidence. When it
	// fails the request is refused and, if it was a first one, not done. Defaults to nobody.
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
