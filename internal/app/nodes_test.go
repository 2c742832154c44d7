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

// pair starts two nodes on one store, and returns an endpoint of each.
func pair(t *testing.T, sink *apptest.Sink, fields apptest.Fields) (first, second *apptest.Server, ofFirst, ofSecond apptest.Endpoint) {
	t.Helper()
	first = apptest.Start(t, apptest.Options{Postgres: true})
	second = apptest.Start(t, apptest.Options{Store: first.Config.Store, Configure: func(c *config.Config) { c.Node = "second" }})
	for first.App.Engine().Stats().Shards != godwit.Shards/2 || second.App.Engine().Stats().Shards != godwit.Shards/2 {
		runtime.Gosched()
	}
	for ofFirst.ID.IsZero() || ofSecond.ID.IsZero() {
		ep := first.Endpoint(sink.URL("/spare"), fields)
		switch {
		case first.App.Engine().Owns(ep.ID):
			ofFirst = ep
		case second.App.Engine().Owns(ep.ID):
			ofSecond = ep
		}
	}
	return first, second, ofFirst, ofSecond
}

// The live feed of a node shows the attempts of all nodes.
func TestLiveFeedShowsTheAttemptsOfAllNodes(t *testing.T) {
	sink := apptest.NewSink(t)
	first, second, ofFirst, ofSecond := pair(t, sink, apptest.Fields{"patterns": []string{"none"}})
	items, stop := first.App.Engine().Watch(godwit.TenantID{})
	defer stop()
	for _, ep := range []apptest.Endpoint{ofFirst, ofSecond} {
		first.EndpointCall(ep, "PATCH", "", apptest.Fields{"patterns": []string{"order.*"}})
	}
	seen := map[godwit.EndpointID]int{}
	// The other node may not know of the watcher yet.
	for seen[ofSecond.ID] == 0 {
		second.Publish("order.first", `{}`)
		for seen[ofFirst.ID], seen[ofSecond.ID] = 0, 0; seen[ofFirst.ID] == 0; {
			seen[(<-items).Attempt.EndpointID]++
		}
		for len(items) > 0 {
			seen[(<-items).Attempt.EndpointID]++
		}
	}
	const events = 20
	ids := map[godwit.EventID]map[godwit.EndpointID]bool{}
	for i := range events {
		s := []*apptest.Server{first, second}[i%2]
		ids[s.Publish("order.paid", `{}`)] = map[godwit.EndpointID]bool{}
	}
	for left := 2 * events; left > 0; {
		item := <-items
		if of, ok := ids[item.Attempt.EventID]; ok && !of[item.Attempt.EndpointID] {
			of[item.Attempt.EndpointID] = true
			left--
		}
	}
}

// A delivery that waits in the memory of one node can be cancelled at another one.
func TestCancelAtAnotherNode(t *testing.T) {
	sink := apptest.NewSink(t)
	open := make(chan struct{})
	defer close(open)
	first, _, _, ep := pair(t, sink, apptest.Fields{"patterns": []string{"none"}, "policy": apptest.Fields{"concurrency": 1}})
	sink.Script("/hangs", apptest.Status(200).Until(open), apptest.Status(200))
	first.EndpointCall(ep, "PATCH", "", apptest.Fields{"url": sink.URL("/hangs"), "patterns": []string{"order.*"}})
	inFlight := first.Publish("order.paid", `{"n":1}`)
	sink.WaitOn("/hangs", 1)
	queued := first.Publish("order.paid", `{"n":2}`)
	cancel := func(event godwit.EventID) int {
		d := first.Delivery(event, ep)
		return first.Call(apptest.Call{Method: "POST", Path: "/v1/deliveries/" + d.ID.String() + "/cancel"}).Status
	}
	if got := cancel(queued); got != http.StatusOK {
		t.Errorf("the queued delivery: %d", got)
	}
	if got := cancel(inFlight); got != http.StatusConflict {
		t.Errorf("the one in flight: %d", got)
	}
}
