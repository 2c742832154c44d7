package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// alive answers as long as the process runs.
func alive(w http.ResponseWriter, _ *http.Request) { writeState(w, http.StatusOK, "alive", "") }

// readiness reports whether the server can accept events: the store accepts writes, the engine has started, and no stop is under
// way. It does not matter which shards the node has. It checks the store at most once a second, however many clients ask.
type readiness struct {
	stopping func() bool
	ping     func(context.Context) error
	dispatch func() error
	steady   func() time.Duration // not the time of day: if it were set back, an answer would be kept until the old time has come again
	log      *slog.Logger

	mu   sync.Mutex
	next time.Duration // on the steady clock: when to check the store again
	err  error
	was  bool // last answer, to log changes only
}

const pingEvery = time.Second

func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	reason := r.reason(req.Context())
	if reason == "" {
		writeState(w, http.StatusOK, "ready", "")
		return
	}
	unready(w, reason)
}

func unready(w http.ResponseWriter, reason string) {
	w.Header().Set("Retry-After", "1")
	writeState(w, http.StatusServiceUnavailable, "unavailable", reason)
}

// reason returns why the server is not ready, or "" if it is. Details go to the log only.
func (r *readiness) reason(ctx context.Context) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, err := "", r.dispatch()
	if r.stopping() {
		reason, err = "stopping", nil
	} else if err != nil {
		reason = "dispatch"
	} else {
		if r.steady() >= r.next {
			// A client that disconnects says nothing about the store, and other clients use the result too.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			r.err = r.ping(ctx)
			cancel()
			r.next = r.steady() + pingEvery
		}
		if err = r.err; err != nil {
			reason = "store"
		}
	}
	if ready := reason == ""; ready != r.was {
		r.was = ready
		switch {
		case ready:
			r.log.Info("ready")
		case err == nil: // the operator's own doing
			r.log.Info("not ready", "reason", reason)
		default:
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
