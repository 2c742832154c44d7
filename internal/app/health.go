package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// alive answers as long as the process can.
func alive(w http.ResponseWriter, _ *http.Request) { writeState(w, http.StatusOK, "alive", "") }

// readiness tells whether events can be taken in and delivered: the store takes writes, shards are held, nobody asked us
// to stop. Many may ask; the store is asked once a second.
type readiness struct {
	ping     func(context.Context) error
	dispatch func() error
	now      func() time.Time
	log      *slog.Logger

	mu      sync.Mutex
	checked time.Time
	err     error
	was     bool // last answer, to log changes only
}

const pingEvery = time.Second

func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	reason := r.reason(req.Context())
	if reason == "" {
		writeState(w, http.StatusOK, "ready", "")
		return
	}
	w.Header().Set("Retry-After", "1")
	writeState(w, http.StatusServiceUnavailable, "unavailable", reason)
}

// reason is empty when ready. Details go to the log alone.
func (r *readiness) reason(ctx context.Context) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, err := "", r.dispatch()
	if err != nil {
		reason = "dispatch"
	} else {
		if r.now().Sub(r.checked) >= pingEvery {
			// Who asks may go away, which says nothing about the store, and the answer is for others too.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			r.err = r.ping(ctx)
			cancel()
			r.checked = r.now()
		}
		if err = r.err; err != nil {
			reason = "store"
		}
	}
	if ready := reason == ""; ready != r.was {
		r.was = ready
		if ready {
			r.log.Info("ready")
		} else {
			r.log.Warn("not ready", "reason", reason, "error", err)
		}
	}
	return reason
}

func writeState(w http.ResponseWriter, status int, state, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{state, reason})
}
