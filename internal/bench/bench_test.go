package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/bench"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

// The runs are short: what is tested is that the tool counts rightly, not how fast this machine is.
func TestThroughputCountsEverything(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			o := bench.Options{Executable: apptest.Binary(t), Length: 3 * time.Second, Connections: 8, Events: 2000}
			if store == "postgres" {
				o.Store = apptest.PostgresURL(t)
			}
			r, err := bench.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Store != store || r.Missing != 0 || r.Duplicate != 0 || r.Failed != 0 || r.Events == 0 ||
				r.DeliveriesPerS <= 0 || r.RelayPerS <= 0 || r.RawPerS <= r.RelayPerS || r.RatioRelay <= 0 || r.P99 < r.P50 || r.P50 <= 0 {
				t.Errorf("report %+v", r)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]any
			if err := json.Unmarshal(text, &members); err != nil {
				t.Fatal(err)
			}
			for _, name := range strings.Fields("store events connections acks_per_s deliveries_per_s raw_per_s relay_per_s ratio_relay " +
				"ratio_raw p50_ms p99_ms duplicates missing server_cpu_s server_peak_rss_mb") {
				if _, ok := members[name]; !ok {
					t.Errorf("no member %s", name)
				}
			}
		})
	}
}

func TestOtherScenarios(t *testing.T) {
	for scenario, check := range map[string]func(*bench.Report) bool{
		"latency": func(r *bench.Report) bool {
			return r.Rate == 200 && r.RateHeld > 0 && r.P50 > 0 && r.P999 >= r.P99 && r.Max >= r.P999
		},
		"tls":       variants(3),
		"many":      variants(2),
		"large":     variants(2),
		"backlog":   func(r *bench.Report) bool { return r.Backlog.Waiting == 3000 && r.Backlog.BesidePerS > 0 },
		"waiting":   waited,
		"isolation": func(r *bench.Report) bool { return r.Isolation.BesidePerS > 0 && r.Isolation.P99Beside > 0 },
		"profiles": func(r *bench.Report) bool {
			for _, p := range r.Profiles {
				if p.Events == 0 || p.DeliveriesPerS <= 0 || p.RatioRate <= 0 || p.RatioCPU <= 0 || p.Profile == "eds" && p.RatioCPU != 1 {
					return false
				}
			}
			return len(r.Profiles) == 4
		},
		"fanout": func(r *bench.Report) bool {
			f := r.Fanout
			return f.Endpoints == 20 && f.P50 > 0 && f.P99 >= f.P50 && f.Max >= f.P99 && f.RelayMax > 0 && f.PerS > 0 && f.Ratio > 0
		},
		"neighbour": func(r *bench.Report) bool {
			f := r.Neighbour
			return f.Endpoints == 20 && f.Events == 500 && f.P99Alone > 0 && f.P99Beside > 0 && f.MaxBeside > 0 && f.Posts > 0 && f.Deliveries > 0
		},
		"restart": func(r *bench.Report) bool {
			f := r.Restart
			return f.Endpoints == 20 && f.Stopped.Ack > 0 && f.Stopped.Gap > f.Stopped.Ack && f.Killed.Ack > 0 && f.Killed.Gap > f.Killed.Ack
		},
		"tenants": func(r *bench.Report) bool {
			f := r.Tenants
			return f.Tenants == 6 && f.Endpoints == 18 && f.Start > 0 && f.IdleRSS > 0 && f.RSS > 0 && f.OnePerS > 0 && f.TurnsPerS > 0 && f.OneCPU > 0
		},
		"idle": func(r *bench.Report) bool { return r.ServerIdleRSS > 0 },
	} {
		t.Run(scenario, func(t *testing.T) {
			r, err := bench.Run(t.Context(), bench.Options{
				Executable: apptest.Binary(t), Scenario: scenario, Length: 2 * time.Second, Connections: 4, Events: 500, Rate: 200, Backlog: 3000, Endpoints: 20,
			})
			if err != nil {
				t.Fatal(err)
			}
			var page bytes.Buffer
			if err := r.Print(&page); err != nil {
				t.Fatal(err)
			}
			if !check(r) || r.Missing != 0 || r.Duplicate != 0 || r.ServerPeakRSS <= 0 || !strings.Contains(page.String(), scenario) {
				t.Errorf("report %+v\n%s", r, &page)
			}
		})
	}
}

func waited(r *bench.Report) bool {
	w := r.Waiting
	return w.Waiting == 3000 && w.StillWaiting >= 3000 && w.StillWaiting <= 4000 && w.Start > 0 && w.RSSBeside > 0 && w.P99Beside > 0 && w.BesidePerS > 0
}

// Several nodes share one database, and events reach endpoints that another node owns.
func TestNodes(t *testing.T) {
	r, err := bench.Run(t.Context(), bench.Options{
		Executable: apptest.Binary(t), Scenario: "nodes", Store: apptest.PostgresURL(t), Length: 4 * time.Second, Connections: 6, Rate: 200, HeldTransaction: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Nodes
	if n.Nodes != 3 || n.OnePerS <= 0 || n.PerS <= 0 || n.OwnP99 <= 0 || n.OtherP99 <= 0 || n.OtherHeld <= 0 || n.HeldPerS <= 0 || r.Missing != 0 || r.Duplicate != 0 {
		t.Errorf("report %+v, %+v", r, n)
	}
}

// The waiting deliveries are written into PostgreSQL as well.
func TestWaitingOnPostgres(t *testing.T) {
	r, err := bench.Run(t.Context(), bench.Options{
		Executable: apptest.Binary(t), Scenario: "waiting", Store: apptest.PostgresURL(t), Length: 2 * time.Second, Connections: 4, Events: 500, Backlog: 3000,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !waited(r) || r.Missing != 0 || r.Duplicate != 0 {
		t.Errorf("report %+v, %+v", r, r.Waiting)
	}
}

// variants checks that each variant was measured beside its relay, and that TLS was used where it should be.
func variants(n int) func(*bench.Report) bool {
	return func(r *bench.Report) bool {
		for i, v := range r.Variants {
			if v.RelayPerS <= 0 || v.DeliveriesPerS <= 0 || v.Ratio <= 0 || v.OfPlain <= 0 || i == 0 && v.OfPlain != 1 || v.P99 <= 0 {
				return false
			}
			if tls := strings.Contains(v.Name, "TLS"); tls != (v.Handshakes > 0) {
				return false
			}
		}
		return len(r.Variants) == n && r.Events > 0
	}
}

// The events of every profile are counted, also within its envelope.
func TestProfile(t *testing.T) {
	for _, name := range []string{"ojs", "cybercube", "standard-webhooks"} {
		t.Run(name, func(t *testing.T) {
			r, err := bench.Run(t.Context(), bench.Options{
				Executable: apptest.Binary(t), Profile: name, Scenario: "latency", Length: 2 * time.Second, Connections: 4, Rate: 300,
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Profile != name || r.Events == 0 || r.Missing != 0 || r.Duplicate != 0 || r.Failed != 0 || r.P50 <= 0 {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, o := range []bench.Options{
		{}, {Executable: "x", Scenario: "nonsense"}, {Executable: "x", Size: 1}, {Executable: "x", Length: 1},
		{Executable: "/does/not/exist", Length: time.Second, Scenario: "idle"},
	} {
		if _, err := bench.Run(t.Context(), o); err == nil {
			t.Errorf("%+v was run", o)
		}
	}
}
