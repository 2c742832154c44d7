package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// A client that disconnects during the check must not make the server look unavailable to the next client: a load balancer
// would remove it.
func TestReadinessOutlivesWhoAsked(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	r := &readiness{
		stopping: func() bool { return false },
		ping: func(ctx context.Context) error {
			hangUp() // while the store is being checked
			return ctx.Err()
		},
		dispatch: func() error { return nil },
		steady:   clock.NewManual(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)).Steady,
		log:      slog.New(slog.DiscardHandler),
	}
	for _, ctx := range []context.Context{ctx, t.Context()} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		if w.Code != http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
}

// A stop is no error, and is logged as what it is.
func TestStopIsLoggedWithoutAnError(t *testing.T) {
	var log bytes.Buffer
	r := &readiness{
		stopping: func() bool { return true },
		dispatch: func() error { return nil },
		steady:   clock.NewManual(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)).Steady,
		log:      slog.New(slog.NewTextHandler(&log, nil)),
		was:      true,
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
	if line := log.String(); !strings.Contains(line, `level=INFO msg="not ready" reason=stopping`) || strings.Contains(line, "error") {
		t.Errorf("logged %s", line)
	}
}

// The clock of a database is set back, or another server with a slower clock takes over while the store is away: the server is ready again as soon as
// the store is back.
func TestReadinessAfterAClockThatWasSetBack(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	away := errors.New("away")
	r := &readiness{
		stopping: func() bool { return false },
		ping:     func(context.Context) error { return away },
		dispatch: func() error { return nil },
		steady:   c.Steady,
		log:      slog.New(slog.DiscardHandler),
	}
	if reason := r.reason(t.Context()); reason != "store" {
		t.Fatalf("not ready for %q", reason)
	}
	away = nil
	c.Step(-time.Hour)
	if reason := r.reason(t.Context()); reason != "store" {
		t.Errorf("the store was checked again at once: %q", reason)
	}
	c.Advance(pingEvery)
	if reason := r.reason(t.Context()); reason != "" {
		t.Errorf("not ready for %q", reason)
	}
}
