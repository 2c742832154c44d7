package receiver

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A Handler processes a delivery. Its context is not cancelled when the sender disconnects, only when [Options.Timeout] is
// over. A nil result without an error is [Accepted]. An error or a panic is answered with 500, and the key is free for a retry.
// The sender does not see the error.
type Handler func(ctx context.Context, d *Delivery) (Result, error)

// A Result is a handler's answer to a delivery: [Accepted], [RetryAfter] or [Reject].
type Result interface {
	// fault says why the result is invalid; "" if it is valid.
	fault(allowMultiStatus bool) string
}

// Accepted says that the event is processed and need not be sent again. It is kept, and returned to every repeat.
type Accepted struct {
	// Status is 2xx. Defaults to the scheme's own; to 200 if there is a body and the scheme's status allows none.
	Status int
	// Header is added to the answer. Retry-After is dropped.
	Header http.Header
	// Body defaults to the scheme's own. Beyond 64 KiB it is sent, but not kept for repeats.
	Body []byte
}

// RetryAfter says that the event cannot be processed now and should be sent again after a wait. The key is free.
type RetryAfter struct {
	// After is rounded up to seconds. Defaults to [Options.RetryAfter].
	After time.Duration
	// Reason is told to the sender.
	Reason string
	// TooMany answers 429 in place of 503, because the sender sends too much.
	TooMany bool
}

// Reject says that the event will never be accepted as it is. It is kept, and returned to every repeat.
type Reject struct {
	// Status is from 400 to 499, except those that ask for a retry (408, 425, 429). Defaults to 422.
	Status int
	// Reason is told to the sender.
	Reason string
}

func (a Accepted) fault(allowMultiStatus bool) string {
	switch {
	case a.Status == 0:
		return ""
	case a.Status < 200 || a.Status > 299:
		return "accepted with status " + strconv.Itoa(a.Status)
	case a.Status == http.StatusMultiStatus && !allowMultiStatus:
		return "answered 207 without an agreement on its meaning" // EDS-STA-207b
	}
	return ""
}

func (a RetryAfter) fault(bool) string {
	if a.After < 0 {
		return "retry after a negative time"
	}
	return ""
}

func (a Reject) fault(bool) string {
	switch s := a.Status; {
	case s == 0:
		return ""
	case s < 400 || s > 499, s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests:
		return fmt.Sprintf("rejected with status %d", s)
	}
	return ""
}

// seconds rounds up: a sender that waits as long as it is told must not be early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
