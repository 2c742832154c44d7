package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Retry says how a request is repeated if its response was lost or it may be accepted later. The repeat is the same request
// under the same key, so the server executes it once.
//
// The server's response decides. 400 and 422 need a correction by the caller, and so do 401, 403, 404 and the like: they are
// returned at once. 409 (the first request is still in progress), 408, 421, 425, 429, 5xx and failed connections are retried.
type Retry struct {
	// Max is the largest number of repeats. Defaults to 10.
	Max int
	// Elapsed limits the time of all repeats. It must be shorter than the server remembers keys. Defaults to 30 s.
	Elapsed time.Duration
	// Base is the largest delay before the first repeat; it doubles with every further one. A delay is drawn between 0 and
	// that, and Retry-After is its lower bound. Defaults to 250 ms.
	Base time.Duration
	// Cap is the largest delay. Defaults to 10 s.
	Cap time.Duration
}

// WithRetry makes the client repeat requests. Without it requests are not repeated.
func WithRetry(r Retry) Option {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&r.Elapsed, 30 * time.Second}, {&r.Base, 250 * time.Millisecond}, {&r.Cap, 10 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.usual
		}
	}
	if r.Max <= 0 {
		r.Max = 10
	}
	return func(c *Client) {
		own := r
		c.retry = &own
	}
}

// passes reports whether the same request may succeed later.
func passes(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var e *Error
	if !errors.As(err, &e) {
		return true // no complete response: the server may have received the request
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests:
		return e.Status != http.StatusConflict || e.Code == codeInProgress
	}
	return e.Status >= 500
}

// codeInProgress is the one conflict that ends by itself.
const codeInProgress = "idempotency-in-progress"

// delay is how long to wait before repeat n, counted from 0.
func (r *Retry) delay(n int, err error, now time.Time) time.Duration {
	window := r.Cap
	if n < 32 {
		window = min(r.Base<<n, r.Cap)
	}
	if window <= 0 { // shifted too far
		window = r.Cap
	}
	d := time.Duration(rand.Int64N(int64(window) + 1))
	var e *Error
	if errors.As(err, &e) {
		if asked := retryAfter(e.RetryAfter, now); asked > 0 {
			d += asked
		}
	}
	return d
}

// retryAfter reads both forms of the field; other text counts as absent.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// insist makes a request and repeats it if that is allowed and may help. It returns the last error.
func (c *Client) insist(ctx context.Context, request func() error) error {
	began := c.now()
	for n := 0; ; n++ {
		err := request()
		if err == nil || c.retry == nil || n >= c.retry.Max || !passes(ctx, err) {
			return err
		}
		wait := c.retry.delay(n, err, c.now())
		if c.now().Add(wait).Sub(began) > c.retry.Elapsed || c.sleep(ctx, wait) != nil {
			return err
		}
	}
}

// sleep waits; the error is the context's.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
