package native

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// StreamedAttempt is an attempt in the live stream.
type StreamedAttempt struct {
	Attempt
	EventType      string `json:"event_type"`
	DeliveryStatus string `json:"delivery_status" doc:"Of the delivery, after the attempt"`
}

// heartbeat is short enough to keep proxies from closing an idle stream.
const heartbeat = 15 * time.Second

func (s *server) streamRoutes() {
	s.raw(mayRead, streamOperation(s), s.streamAttempts)
}

// streamAttempts sends every new attempt of the tenant as a server-sent event. A client that reads too slowly misses
// attempts, because delivery never waits for a stream.
func (s *server) streamAttempts(w http.ResponseWriter, r *http.Request, c *management.Caller) {
	if r.URL.RawQuery != "" {
		s.fail(w, r, problem.InvalidRequest.In("query", "this operation takes no parameters"))
		return
	}
	if err := s.streams.Acquire(c.Tenant.ID, "streams"); err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.streams.Release(c.Tenant.ID, 1)
	items, stop := s.cfg.Engine.Watch(c.Tenant.ID)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	out := s.toReader(w)
	defer out.end()
	beat := newPulse(s.cfg.Clock)
	defer beat.stop()
	for line := ": attempts from now on\n\n"; ; {
		if out.write([]byte(line)) != nil || out.flush() != nil {
			return
		}
		var ok bool
		if line, ok = s.next(r, items, beat); !ok {
			return
		}
	}
}

// A pulse ticks for as long as a stream is open, even when it is busy. At every tick the stream checks its API key again.
type pulse struct {
	clock clock.Clock
	beat  chan struct{}
	timer clock.Timer
}

func newPulse(c clock.Clock) *pulse {
	p := &pulse{clock: c, beat: make(chan struct{}, 1)}
	p.again()
	return p
}

func (p *pulse) again() { p.timer = p.clock.AfterFunc(heartbeat, func() { p.beat <- struct{}{} }) }
func (p *pulse) stop()  { p.timer.Stop() }

// A reader is a client that must read in time; otherwise the server closes its connection. A client that reads nothing would
// hold memory and a connection without limit, and its key would never be checked again.
type reader struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func (s *server) toReader(w http.ResponseWriter) *reader {
	return &reader{w, http.NewResponseController(w), s.cfg.StallTimeout}
}

func (r *reader) write(b []byte) error {
	return r.within(func() error { _, err := r.Write(b); return err })
}

func (r *reader) flush() error { return r.within(r.control.Flush) }

// end sets a deadline for what net/http writes after the handler returns.
func (r *reader) end() { _ = r.control.SetWriteDeadline(clock.Real{}.Now().Add(r.stall)) }

// within runs f under the write deadline and removes the deadline afterwards: a stream may be idle for long, and HTTP/2 ends
// a stream whose deadline passes even if it is idle. Sockets use the machine's clock, even where the server's clock is a
// manual one.
func (r *reader) within(f func() error) error {
	_ = r.control.SetWriteDeadline(clock.Real{}.Now().Add(r.stall)) // test recorders do not support deadlines
	defer func() { _ = r.control.SetWriteDeadline(time.Time{}) }()
	return f()
}

// next waits for an attempt or a heartbeat to send.
func (s *server) next(r *http.Request, items <-chan engine.FeedItem, beat *pulse) (string, bool) {
	select {
	case item, open := <-items:
		if !open {
			return "", false
		}
		return s.streamed(&item), true
	case <-beat.beat:
		beat.again()
		if _, err := s.http.Authorize(r, mayRead...); err != nil {
			return "", false // the key was revoked or has expired
		}
		return ": still here\n\n", true
	case <-r.Context().Done():
	case <-s.cfg.Done:
		select { // attempts that were recorded before the end are still sent
		case item, open := <-items:
			if open {
				return s.streamed(&item), true
			}
		default:
		}
	}
	return "", false
}

func (s *server) streamed(item *engine.FeedItem) string {
	data, err := json.Marshal(StreamedAttempt{
		Attempt: attemptView(&item.Attempt), EventType: item.EventType, DeliveryStatus: string(item.Status),
	})
	if err != nil {
		s.cfg.Log.Error("attempt cannot be streamed", "error", err)
		return ": skipped\n\n"
	}
	return "event: attempt\nid: " + item.Attempt.ID.String() + "\ndata: " + string(data) + "\n\n"
}
