package app_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEventIsDeliveredAndRecorded(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		sink := apptest.NewSink(t)
		sink.Script("/a", apptest.Status(503), apptest.Status(204))
		o.TimeScale = 1000
		srv := apptest.Start(t, o)
		ep := srv.Endpoint(sink.URL("/a"), apptest.Fields{"patterns": []string{"order.*"}})
		ev := srv.Publish("order.paid", `{"n":1}`)
		d := srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		attempts := srv.Attempts(ev, ep)
		if d.Attempts != 2 || len(attempts) != 2 || attempts[0].Status != 503 || attempts[1].Status != 204 {
			t.Errorf("delivery %+v with attempts %+v", d, attempts)
		}
		seen := sink.Requests("/a")
		if len(seen) != 2 || string(seen[0].Body) != `{"n":1}` || seen[0].Key() != seen[1].Key() || seen[0].Key() == "" {
			t.Errorf("the sink saw %+v", seen)
		}
	})
}

func TestAClockMovedByHandRunsTheSchedule(t *testing.T) {
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(503))
	hands := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	srv := apptest.Start(t, apptest.Options{Clock: hands})
	ep := srv.Endpoint(sink.URL("/"), apptest.Fields{"policy": map[string]any{"max_retries": 3, "circuit_after": 0}})
	ev := srv.Publish("order.paid", `{}`)
	for n := 1; n <= 4; n++ {
		srv.WaitAttempts(ev, ep, n)
		srv.Advance(10 * time.Minute)
	}
	d := srv.WaitDelivery(ev, ep, godwit.DeliveryExhausted)
	if d.Attempts != 4 {
		t.Errorf("ended after %d attempts", d.Attempts)
	}
}

func TestPublicPaths(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	for path, want := range map[string]struct {
		status int
		holds  string
	}{
		"/healthz":          {200, `"alive"`},
		"/readyz":           {200, `"ready"`},
		"/openapi.json":     {200, `"openapi": "3.1`},
		"/docs/problems":    {200, "<html"},
		"/docs/idempotency": {200, "<html"},
		"/.well-known/http-message-signatures-directory": {200, `"keys"`},
		"/nowhere": {404, `"code"`},
		"/":        {404, `"code"`},
	} {
		r := srv.Call(apptest.Call{Path: path})
		if r.Status != want.status || !strings.Contains(string(r.Body), want.holds) {
			t.Errorf("%s: %d %.200s", path, r.Status, r.Body)
		}
	}
	if !srv.Log.Has("serving", "url="+srv.URL, "store=sqlite", "durability=") {
		t.Errorf("the log does not say what is served:\n%s", srv.Log)
	}
}

// TestMethodsOfPublicPaths: a path that exists refuses another method with 405 and names its own.
func TestMethodsOfPublicPaths(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		for method, want := range map[string]int{http.MethodDelete: 405, http.MethodPost: 405, http.MethodOptions: 204} {
			r := srv.Call(apptest.Call{Method: method, Path: path, Key: "-"})
			if r.Status != want || r.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, r.Status, r.Header.Get("Allow"))
			}
		}
	}
	if r := srv.Call(apptest.Call{Method: http.MethodDelete, Path: "/nowhere"}); r.Status != 404 || r.Header.Get("Allow") != "" {
		t.Errorf("nowhere: %d, Allow %q", r.Status, r.Header.Get("Allow"))
	}
}

// Metrics name subscriptions and event types of all tenants. On the API's address they require a key with the scope
// metrics.
func TestMetricsNeedAKey(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	tenant, _ := srv.NewTenant("other", godwit.ScopeRead)
	call := func(key string) *apptest.Response { return srv.Call(apptest.Call{Path: "/metrics", Key: key}) }
	for name, c := range map[string]struct {
		key    string
		status int
	}{
		"without a key":      {"-", http.StatusUnauthorized},
		"with a wrong key":   {"gdw_nonsense", http.StatusUnauthorized},
		"all but the scope":  {srv.NewKey(tenant, godwit.ScopeIngest, godwit.ScopeRead, godwit.ScopeManage, godwit.ScopeAudit), http.StatusForbidden},
		"the scope alone":    {srv.NewKey(tenant, godwit.ScopeMetrics), http.StatusOK},
		"an administrator's": {srv.NewKey(tenant, godwit.ScopeAdmin), http.StatusOK},
	} {
		r := call(c.key)
		if r.Status != c.status || strings.Contains(string(r.Body), "godwit_build{") != (c.status == http.StatusOK) {
			t.Errorf("%s: %d %.200s", name, r.Status, r.Body)
		}
	}
	// The key grants no other access.
	for _, path := range []string{"/v1/events", "/v1/endpoints", "/v1/keys", "/ids/v1/registry", "/ojs/v1/webhooks/subscriptions"} {
		if r := srv.Call(apptest.Call{Path: path, Key: srv.NewKey(tenant, godwit.ScopeMetrics)}); r.Status != http.StatusForbidden {
			t.Errorf("%s with the scope metrics: %d", path, r.Status)
		}
	}
}

func TestStopTakesNothingInAndLetsRequestsFinish(t *testing.T) {
	gate := make(chan struct{})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(200).Until(gate))
	srv := apptest.Start(t, apptest.Options{})
	ep := srv.Endpoint(sink.URL("/"))
	ev := srv.Publish("order.paid", `{}`)
	sink.Wait(1)

	stopped := make(chan error, 1)
	go func() { stopped <- srv.Stop() }()
	ready := func() int { return srv.Call(apptest.Call{Path: "/readyz"}).Status }
	for ready() != http.StatusServiceUnavailable { // each check is a request, so this does not spin
	}
	r := srv.Call(apptest.Call{Path: "/v1/events?type=a", Body: `{}`})
	if r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("intake during the drain: %d %s", r.Status, r.Body)
	}
	if r := srv.Call(apptest.Call{Path: "/healthz"}); r.Status != http.StatusOK {
		t.Errorf("not alive while it drains: %d", r.Status)
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request in flight: %v", err)
	default:
	}
	close(gate)
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}

	again := apptest.Start(t, apptest.Options{Data: srv.Config.Data})
	if d := again.Delivery(ev, ep); d.Status != godwit.DeliveryAccepted || d.Attempts != 1 {
		t.Errorf("after the stop the delivery is %+v", d)
	}
}

func TestDrainLimitCutsOffAndCostsNothing(t *testing.T) {
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Stall(), apptest.Status(200))
	limit := func(c *config.Config) { c.DrainTimeout = config.Duration(10 * time.Millisecond) }
	srv := apptest.Start(t, apptest.Options{Configure: limit})
	ep := srv.Endpoint(sink.URL("/"))
	ev := srv.Publish("order.paid", `{}`)
	sink.Wait(1)
	if err := srv.Stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	again := apptest.Start(t, apptest.Options{Data: srv.Config.Data})
	if d := again.WaitDelivery(ev, ep, godwit.DeliveryAccepted); d.Attempts != 1 {
		t.Errorf("an interrupted attempt was counted: %+v", d)
	}
}

func TestStopEndsLiveStreams(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/attempts/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+srv.Key)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("stream: %v %v", resp, err)
	}
	defer resp.Body.Close()
	if err := srv.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestMetricsOnAnAddressOfTheirOwn(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.MetricsListen = "127.0.0.1:0" }})
	_, said, _ := strings.Cut(srv.Log.String(), "metrics_url=http://")
	address, _, found := strings.Cut(said, "/metrics")
	if !found {
		t.Fatalf("the log does not tell where the metrics are:\n%s", srv.Log)
	}
	if r := srv.Call(apptest.Call{Path: "/metrics"}); r.Status != http.StatusNotFound {
		t.Errorf("/metrics on the API's address: %d", r.Status)
	}
	// The profiler is not served there: it needs debug-listen.
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/debug/pprof/": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := (&http.Transport{}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s on its own address: %d", path, resp.StatusCode)
		}
	}
}

func TestASecondServerIsRefused(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	cfg := srv.Config
	_, err := app.New(t.Context(), cfg, app.Dependencies{})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("on the same data: %v", err)
	}
	cfg.Data = t.TempDir()
	cfg.Listen = strings.TrimPrefix(srv.URL, "http://")
	_, err = app.New(t.Context(), cfg, app.Dependencies{})
	if err == nil || !strings.Contains(err.Error(), "listen") {
		t.Errorf("on the same address: %v", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "godwit.db")); err == nil {
		t.Error("a server that could not listen has made a database")
	}
}

func TestTuneReachesTheEngine(t *testing.T) {
	var node string
	apptest.Start(t, apptest.Options{Tune: func(c *engine.Config) { node = c.Node.Owner() }})
	if !strings.HasPrefix(node, "test ") {
		t.Errorf("node is %q", node)
	}
}

func TestCancelBeforeStart(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Node, cfg.Keyring = "127.0.0.1:0", t.TempDir(), "test", app.GenerateRing()
	log := &apptest.Log{}
	a, err := app.New(t.Context(), cfg, app.Dependencies{Log: app.NewLogger(cfg.Log, log)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx); err != nil {
		t.Errorf("run: %v\n%s", err, log)
	}
}
