package native

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// StreamedAttempt is an attempt in the live stream.
type StreamedAttempt struct {
	Attempt
	EventType      string `json:"event_type"`
	DeliveryStatus string `json:"delivery_status" doc:"Of the delivery, after the attempt"`
}

// streamAccess is the access of the stream, which is checked again while it is open.
var streamAccess = mayRead.Portal(godwit.ViewEndpoints)

// heartbeat is short enough to keep proxies from closing an idle stream.
const heartbeat = 15 * time.Second

// attemptStream sends the attempts of a tenant as they are recorded.
type attemptStream struct {
	engine streamEngine
	// authorize checks the API key of a running stream again.
	authorize func(r *http.Request, need access) (*management.Caller, error)
	running   *httpapi.Quota
	stall     time.Duration // how long a client may read nothing
	done      <-chan struct{}
	clock     clock.Clock
	log       *slog.Logger
}

// streamEngine is the part of the engine that tells of attempts.
type streamEngine interface {
	Watch(tenant godwit.TenantID) (items <-chan engine.FeedItem, stop func())
}

// serve sends every new attempt of the tenant as a server-sent event. A client that reads too slowly misses attempts,
// because delivery never waits for a stream.
func (s *attemptStream) serve(w http.ResponseWriter, r *http.Request, c *management.Caller) error {
	if _, err := httpapi.ReadQuery(r.URL, httpapi.NoParameters); err != nil {
		return err
	}
	if err := s.running.Acquire(c.Tenant.ID, "streams"); err != nil {
		return err
	}
	defer s.running.Release(c.Tenant.ID, 1)
	items, stop := s.engine.Watch(c.Tenant.ID)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	out := newReader(w, s.stall)
	defer out.end()
	beat := newPulse(s.clock)
	defer beat.stop()
	for line := ": attempts from now on\n\n"; ; {
		if out.write([]byte(line)) != nil || out.flush() != nil {
			return nil
		}
		var ok bool
		if line, ok = s.next(r, items, beat); !ok {
			return nil
		}
	}
}

// A pulse ticks for as long as a stream is open, even when it is busy. At every tick, and before each attempt, the stream checks its API key or session again.
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

// next waits for an attempt or a heartbeat to send.
func (s *attemptStream) next(r *http.Request, items <-chan engine.FeedItem, beat *pulse) (string, bool) {
	select {
	case item, open := <-items:
		if !open || !s.admitted(r) {
			return "", false
		}
		return s.line(&item), true
	case <-beat.beat:
		beat.again()
		if !s.admitted(r) {
			return "", false
		}
		return ": still here\n\n", true
	case <-r.Context().Done():
	case <-s.done:
		select { // attempts that were recorded before the end are still sent
		case item, open := <-items:
			if open {
				return s.line(&item), true
			}
		default:
		}
	}
	return "", false
}

// admitted reports whether the key or the session of a running stream may still read it. It costs a look into memory, so that a stream tells nothing after
// its session was ended.
func (s *attemptStream) admitted(r *http.Request) bool {
	_, err := s.authorize(r, streamAccess)
	return err == nil
}

func (s *attemptStream) line(item *engine.FeedItem) string {
	data, err := json.Marshal(StreamedAttempt{
		Attempt: attemptView(&item.Attempt), EventType: item.EventType, DeliveryStatus: string(item.Status),
	})
	if err != nil {
		s.log.Error("attempt cannot be streamed", "error", err)
		return ": skipped\n\n"
	}
	return "event: attempt\nid: " + item.Attempt.ID.String() + "\ndata: " + string(data) + "\n\n"
}
