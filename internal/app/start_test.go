package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
)

// A watchedContext tells when something waits for its end.
type watchedContext struct {
	context.Context
	waiting func()
}

func (c *watchedContext) Done() <-chan struct{} {
	c.waiting()
	return c.Context.Done()
}

// A post that comes before the engine runs waits for it and is accepted.
func TestPostWaitsForTheEngine(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		former := apptest.Start(t, o)
		if err := former.Stop(); err != nil {
			t.Fatal(err)
		}
		a, err := app.New(t.Context(), former.Config, app.Dependencies{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		waits, answered := make(chan struct{}), make(chan struct{})
		ctx := &watchedContext{t.Context(), sync.OnceFunc(func() { close(waits) })}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/events?type=order.paid", strings.NewReader(`{}`))
		r.Header.Set("Authorization", "Bearer "+former.Key)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		go func() { defer close(answered); a.Handler().ServeHTTP(w, r) }()
		<-waits
		select {
		case <-answered:
			t.Errorf("answered %d before the engine runs", w.Code)
		default:
		}
		running, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(running) }()
		<-answered
		if w.Code != http.StatusAccepted {
			t.Errorf("answered %d %s", w.Code, w.Body)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
