package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// A second node on the same store logs that it waits and for which process, and logs its URL only when it has taken over and is ready.
func TestWaitingNodeSaysSoAndServesLater(t *testing.T) {
	first := apptest.Start(t, apptest.Options{Postgres: true})
	cfg := first.Config
	cfg.Node = "second"
	log := &apptest.Log{}
	second, err := app.New(t.Context(), cfg, app.Dependencies{Log: app.NewLogger(cfg.Log, log)})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- second.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("second node ended: %v\n%s", err, log)
		}
	})
	readyz := func() int {
		w := httptest.NewRecorder()
		second.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w.Code
	}
	<-second.Waiting()
	if log.Has("msg=serving") || !log.Has("waiting", "another node", `node="second `, `holder="`+first.Config.Node+` (process `) || !strings.HasPrefix(second.Holder(), first.Config.Node+" (process ") || readyz() != http.StatusServiceUnavailable {
		t.Errorf("while it waits, /readyz answers %d and the log says:\n%s", readyz(), log)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	<-second.Ready()
	if !log.Has("msg=serving", "url="+second.URL()) || readyz() != http.StatusOK {
		t.Errorf("after it took over, /readyz answers %d and the log says:\n%s", readyz(), log)
	}
}

// A node that waits for another one to end accepts no changes: the delivering node would not learn of them.
func TestWaitingNodeTakesNoChanges(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Node, cfg.Keyring = "127.0.0.1:0", t.TempDir(), "test", app.GenerateRing()
	a, err := app.New(t.Context(), cfg, app.Dependencies{Log: app.NewLogger(cfg.Log, &apptest.Log{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		if err := a.Run(ended); err != nil { // which closes it
			t.Error(err)
		}
	})
	tenant, err := app.TenantByName(t.Context(), a.Management(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := a.Management().Keys.Create(t.Context(), nil, tenant.ID, management.KeySpec{Name: "test", Scopes: godwit.AllScopes})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "/v1/endpoints", `{"url":"https://example.com/"}`, http.StatusServiceUnavailable},
		{http.MethodPost, "/v1/events?type=x", `{}`, http.StatusServiceUnavailable},
		{http.MethodDelete, "/v1/endpoints/sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f", ``, http.StatusServiceUnavailable},
		{http.MethodGet, "/v1/endpoints", ``, http.StatusOK},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		a.Handler().ServeHTTP(w, r)
		if w.Code != c.want || w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
}
