//go:build unix

package faults

import (
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

var (
	seed     = flag.Uint64("seed", 0, "seed of TestFaults; 0 chooses one")
	duration = flag.Duration("duration", 0, "how long TestFaults goes on; 0: each nemesis once")
	nemeses  = flag.String("nemesis", "", "nemeses of TestFaults, with commas, out of "+Names()+"; all if empty")
	nodes    = flag.Int("nodes", 3, "nodes of TestFaults")
	logs     = flag.String("logs", "", "folder in which TestFaults leaves the logs of nodes and PostgreSQL servers")
	report   = flag.String("report", "", "file for the report of TestFaults")
)

// A rolling restart under load costs no request: behind a balancer that heeds /readyz nothing fails, nothing is lost, nothing is sent twice.
func TestRollingRestart(t *testing.T) {
	r := Execute(t, Options{Seed: rand.Uint64(), Nodes: 3, Nemeses: []string{"rolling"}, Faults: 2, Lease: 5 * time.Second, Balanced: true})
	t.Logf("report:\n%s", r)
}

// The nodes keep under all faults what they promise.
func TestFaults(t *testing.T) {
	o := Options{Seed: *seed, Nodes: *nodes, Duration: *duration, Lease: 5 * time.Second, Logs: *logs}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if *nemeses != "" {
		o.Nemeses = strings.Split(*nemeses, ",")
	}
	r := Execute(t, o)
	t.Logf("report:\n%s", r)
	if *report != "" {
		if err := os.WriteFile(*report, []byte(r.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
