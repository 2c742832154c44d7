package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// A second node on the same store is ready at once, and both get half of the shards. When the first stops, the second has all.
func TestSecondNodeIsReadyAndSharesTheShards(t *testing.T) {
	first := apptest.Start(t, apptest.Options{Postgres: true})
	second := apptest.Start(t, apptest.Options{Store: first.Config.Store, Configure: func(c *config.Config) { c.Node = "second" }})
	has := func(s *apptest.Server, n int) {
		for s.App.Engine().Stats().Shards != n {
			runtime.Gosched()
		}
	}
	has(first, godwit.Shards/2)
	has(second, godwit.Shards/2)
	for _, s := range []*apptest.Server{first, second} {
		if r := s.Call(apptest.Call{Path: "/readyz"}); r.Status != http.StatusOK {
			t.Errorf("/readyz answers %d %s", r.Status, r.Body)
		}
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	has(second, godwit.Shards)
	if !second.Log.Has("shards taken") || !first.Log.Has("shards given up") {
		t.Errorf("the logs do not tell of it:\n%s\n%s", first.Log, second.Log)
	}
}

// Three nodes: all are ready, all accept, and each delivers for its own shards what any of them accepted.
func TestThreeNodesAcceptAndDeliver(t *testing.T) {
	first := apptest.Start(t, apptest.Options{Postgres: true})
	sink := apptest.NewSink(t)
	endpoints := make([]apptest.Endpoint, 12)
	for i := range endpoints {
		endpoints[i] = first.Endpoint(sink.URL(fmt.Sprintf("/%d", i)), apptest.Fields{"patterns": []string{"order.*"}})
	}
	nodes := []*apptest.Server{first}
	for _, name := range []string{"second", "third"} {
		nodes = append(nodes, apptest.Start(t, apptest.Options{Store: first.Config.Store, Configure: func(c *config.Config) { c.Node = name }}))
	}
	for total := 0; total != godwit.Shards; { // shared out, and none in between
		total = 0
		for _, s := range nodes {
			if n := s.App.Engine().Stats().Shards; n == godwit.Shards/3 || n == godwit.Shards/3+1 {
				total += n
			}
		}
		runtime.Gosched()
	}
	const each = 5
	for n := range each {
		for _, s := range nodes {
			s.Publish("order.paid", fmt.Sprintf(`{"n":%d}`, n))
		}
	}
	for i := range endpoints {
		sink.WaitOn(fmt.Sprintf("/%d", i), each*len(nodes))
	}
	for _, s := range nodes {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range endpoints {
		if n := len(sink.Requests(fmt.Sprintf("/%d", i))); n != each*len(nodes) {
			t.Errorf("endpoint %d got %d requests for %d events", i, n, each*len(nodes))
		}
	}
}

// A node accepts nothing before it runs.
func TestNodeThatDoesNotRunTakesNoChanges(t *testing.T) {
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
