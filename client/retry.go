package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Retry says how a request is repeated whose answer was lost, or that may be accepted later. It is the same request, under
// the same key, so that the server does once what it is asked twice.
//
// What the server answers decides. 400 and 422 want a correction, which nobody but the caller can make; so do 401, 403, 404
// and the like: they are returned at once. 409 (the first request is still in progress), 408, 421, 425, 429 and 5xx pass by
// themselves; so may a connection that failed.
type Retry struct {
	// Max is how often a request is repeated at most. Defaults to 10.
	Max int
	// Elapsed is how long it goes on at most. It has to be shorter than the server remembers keys. Defaults to 30 s.
	Elapsed time.Duration
	// Base is the widest delay before the first repeat; it doubles with every further one. A delay is drawn between 0 and
	// that, and Retry-After is a floor under it. Defaults to 250 ms.
	Base time.Duration
	// Cap is the widest delay of all. Defaults to 10 s.
	Cap time.Duration
}

// WithRetry has the client repeat requests. Without it nothing is repeated.
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

// passes reports whether the same request may be answered otherwise later.
func passes(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var e *Error
	if !errors.As(err, &e) {
		return true // no complete answer: whether it was received is not known
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

// retryAfter reads the field's two forms; what is neither asks for nothing.
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

// insist makes a request, again and again where that is wanted and may help. The last error is the answer.
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

// sleep lets time pass; the error is the context's.
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
