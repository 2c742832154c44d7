package cybercube

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// RateLimitOptions configure RateLimit.
type RateLimitOptions struct {
	// Window is the length of a window, which begins with a sender's first request. Defaults to 60 seconds.
	Window time.Duration
	// Max is the number of requests allowed in a window. Defaults to 1000.
	Max int
	// Key identifies the sender. Defaults to the address of the connection.
	Key func(*http.Request) string
	// Clock returns the time. Defaults to time.Now.
	Clock func() time.Time
}

// maxSenders limits the number of counted senders: their names come from outside.
const maxSenders = 10_000

type limiter struct {
	o RateLimitOptions

	mu      sync.Mutex
	windows map[string]window
}

type window struct {
	count int
	until time.Time
}

// RateLimit limits the requests to a handler, after the standard's sample (CCW-LIM-12). Beyond the limit a request is answered
// 429 {"error":"Rate limit exceeded"}, and the sender retries. The response has RateLimit-Limit, -Remaining and -Reset, without
// the older X-RateLimit-*.
func RateLimit(next http.Handler, o RateLimitOptions) (http.Handler, error) {
	if o.Window == 0 {
		o.Window = time.Minute
	}
	if o.Max == 0 {
		o.Max = 1000
	}
	if o.Window < 0 || o.Max < 0 {
		return nil, errors.New("limit rate: a limit is negative")
	}
	if o.Key == nil {
		o.Key = remoteHost
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	l := &limiter{o: o, windows: map[string]window{}}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		count, reset := l.count(o.Key(req))
		h := w.Header()
		h.Set("RateLimit-Limit", strconv.Itoa(o.Max))
		h.Set("RateLimit-Remaining", strconv.Itoa(max(0, o.Max-count)))
		h.Set("RateLimit-Reset", reset)
		if count > o.Max {
			h.Set("Retry-After", reset)
			answer(w, http.StatusTooManyRequests, failure{"Rate limit exceeded"})
			return
		}
		next.ServeHTTP(w, req)
	}), nil
}

// count counts a request and returns the number of requests in its window, and the window's end in seconds.
func (l *limiter) count(key string) (int, string) {
	now := l.o.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.windows[key]
	if !ok || !w.until.After(now) {
		if len(l.windows) >= maxSenders {
			l.makeRoom(now)
		}
		w = window{until: now.Add(l.o.Window)}
	}
	w.count++
	l.windows[key] = w
	left := (w.until.Sub(now) + time.Second - 1) / time.Second
	return w.count, strconv.FormatInt(int64(left), 10)
}

// makeRoom drops windows that have ended; if there are none, any one.
func (l *limiter) makeRoom(now time.Time) {
	for key, w := range l.windows {
		if !w.until.After(now) {
			delete(l.windows, key)
		}
	}
	for key := range l.windows {
		if len(l.windows) < maxSenders {
			return
		}
		delete(l.windows, key)
	}
}

func remoteHost(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	return host
}
