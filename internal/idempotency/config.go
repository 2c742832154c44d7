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

// Config holds a Guard's dependencies and settings. The published specification of idempotency keys is rendered from it.
type Config struct {
	Store store.Idempotency
	Ring  *keyring.Ring
	// Problems answers a request with an error.
	Problems interface {
		Write(w http.ResponseWriter, r *http.Request, err error)
	}
	Log *slog.Logger
	Now func() time.Time

	// Window is how long a response is kept after it was first given; a repeat does not extend it. Defaults to 24 h.
	Window time.Duration
	// TimeScale speeds up the window. Defaults to real time.
	TimeScale godwit.TimeScale
	// Timeout bounds the run of a handler. The handler continues if the client disconnects. Defaults to 30 s.
	Timeout time.Duration
	// Lease is how long a key stays reserved after a crash interrupted its request. It must be longer than Timeout. Defaults
	// to 60 s.
	Lease time.Duration
	// Format is the required form of keys. Defaults to 16 to 255 characters.
	Format Format
	// Fingerprint distinguishes requests with the same key. Defaults to WholePayload.
	Fingerprint Fingerprint
	// MaxStoredBody bounds the body that is stored for repeats; of a longer one the guard stores only the status. Defaults
	// to 64 KiB.
	MaxStoredBody int
	// Redact removes secrets from a response before the guard stores it for repeats. Defaults to no change.
	Redact func(body []byte) []byte
	// Decided records evidence of the decision about a request whose scope names a channel. The guard calls it before it
	// answers. If Decided fails, the guard refuses the request and, if it is the first one, does not run it. Defaults to
	// nothing.
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
