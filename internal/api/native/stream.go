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

// streamAccess is the access of the stream. A page connects again whenever a stream ends, so that a stream is no use of its session.
var streamAccess = mayRead.Portal(godwit.ViewEndpoints).Watched()

// heartbeat is short enough to keep proxies from closing an idle stream.
const heartbeat = 15 * time.Second

// A recheck authorizes the client of an answer that takes long once more.
type recheck func(r *http.Request, need access) error

// attemptStream sends the attempts of a tenant as they are recorded.
type attemptStream struct {
	engine  streamEngine
	again   recheck
	running *httpapi.Quota
	stall   time.Duration // how long a client may read nothing
	done    <-chan struct{}
	clock   clock.Clock
	log     *slog.Logger
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
	beat, check := httpapi.NewPulse(s.clock, heartbeat), httpapi.NewPulse(s.clock, httpapi.RecheckEvery)
	defer beat.Stop()
	defer check.Stop()
	for line := ": attempts from now on\n\n"; ; {
		if out.write([]byte(line)) != nil || out.flush() != nil {
			return nil
		}
		var ok bool
		if line, ok = s.next(r, items, beat, check); !ok {
			return nil
		}
	}
}

// next waits for an attempt or a heartbeat to send. Before each attempt, and often in between, it checks that the client may still read.
func (s *attemptStream) next(r *http.Request, items <-chan engine.FeedItem, beat, check *httpapi.Pulse) (string, bool) {
	for {
		select {
		case item, open := <-items:
			if !open || s.again(r, streamAccess) != nil {
				return "", false
			}
			return s.line(&item), true
		case <-beat.Beat:
			beat.Again()
			return ": still here\n\n", true
		case <-check.Beat:
			check.Again()
			if s.again(r, streamAccess) != nil {
				return "", false
			}
		case <-r.Context().Done():
			return "", false
		case <-s.done:
			select { // attempts that were recorded before the end are still sent
			case item, open := <-items:
				if open {
					return s.line(&item), true
				}
			default:
			}
			return "", false
		}
	}
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
