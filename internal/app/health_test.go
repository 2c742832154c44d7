package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
		now:      clock.NewManual(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)).Now,
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
