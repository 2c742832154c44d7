package native

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/registry"
)

// StreamedAttempt is an attempt on the live feed.
type StreamedAttempt struct {
	Attempt
	EventType      string `json:"event_type"`
	DeliveryStatus string `json:"delivery_status" doc:"Of the delivery, after the attempt"`
}

// heartbeat keeps proxies from closing a quiet stream.
const heartbeat = 15 * time.Second

func (s *server) streamRoutes() {
	s.raw(mayRead, streamOperation(s), s.streamAttempts)
}

// streamAttempts sends every attempt of the tenant from now on as a server-sent event. A client that reads too slowly misses
// some: delivery waits for nobody.
func (s *server) streamAttempts(w http.ResponseWriter, r *http.Request, c *registry.Caller) {
	if r.URL.RawQuery != "" {
		s.fail(w, r, problem.InvalidRequest.In("query", "this operation takes no parameters"))
		return
	}
	items, stop := s.cfg.Engine.Watch(c.Tenant.ID)
	defer stop()
	out := http.NewResponseController(w)
	out.SetWriteDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	beat := make(chan struct{}, 1)
	for line := ": attempts from now on\n\n"; ; {
		if _, err := w.Write([]byte(line)); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		timer := s.cfg.Clock.AfterFunc(heartbeat, func() { notify(beat) })
		var ok bool
		line, ok = s.next(r, items, beat)
		timer.Stop()
		if !ok {
			return
		}
	}
}

func notify(beat chan<- struct{}) {
	select {
	case beat <- struct{}{}:
	default:
	}
}

// next waits for something to send.
func (s *server) next(r *http.Request, items <-chan engine.FeedItem, beat <-chan struct{}) (string, bool) {
	select {
	case item, open := <-items:
		if !open {
			return "", false
		}
		return s.streamed(&item), true
	case <-beat:
		if _, err := s.authorize(r, mayRead); err != nil {
			return "", false // the key was revoked or has expired
		}
		return ": still here\n\n", true
	case <-r.Context().Done():
	case <-s.cfg.Done:
		select { // what was recorded before the end is still shown
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
