package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
)

// While a stop is delayed, /readyz is off, requests are answered, and their connections are not kept, on the fast path and on
// net/http alike. A second signal ends the delay.
func TestStopIsDelayed(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Node = "127.0.0.1:0", t.TempDir(), "test"
	cfg.StopDelay = config.Duration(100 * time.Hour)
	hurry := make(chan struct{})
	a, err := app.New(t.Context(), cfg, app.Dependencies{Log: app.NewLogger(cfg.Log, &apptest.Log{}), Hurry: hurry})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-a.Ready()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	call := func(method, path string) (status int, closes bool) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Close
	}
	if status, closes := call(http.MethodGet, "/readyz"); status != http.StatusOK || closes {
		t.Errorf("before the stop: %d, closes %v", status, closes)
	}
	stop()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = call(http.MethodGet, "/readyz")
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/nowhere": http.StatusNotFound} {
		if status, closes := call(http.MethodGet, path); status != want || !closes {
			t.Errorf("%s during the delay: %d, closes %v", path, status, closes)
		}
	}
	if status, closes := call(http.MethodPost, "/v1/events"); status != http.StatusUnauthorized || !closes { // the fast path
		t.Errorf("an event during the delay: %d, closes %v", status, closes)
	}
	select {
	case err := <-ended:
		t.Fatalf("ended during the delay: %v", err)
	default:
	}
	close(hurry)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
