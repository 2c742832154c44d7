package client

import (
	"context"
	"time"
)

// WithClock passes time in: what the client waits is told, and is over at once.
func WithClock(now func() time.Time, waits func(time.Duration)) Option {
	return func(c *Client) {
		c.now = now
		c.sleep = func(ctx context.Context, d time.Duration) error {
			waits(d)
			return ctx.Err()
		}
	}
}

// WithMaxSilence changes how long a stream may bring nothing.
func WithMaxSilence(d time.Duration) Option { return func(c *Client) { c.maxSilence = d } }
