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
	nemeses  = flag.String("nemesis", "kill,restart-database,freeze,cut,failover,hang,half-open,disk-full,snapshot,delay,kill-database,leave",
		"nemeses of TestFaults, with commas, out of "+Names())
	nodes  = flag.Int("nodes", 1, "nodes of TestFaults")
	report = flag.String("report", "", "file for the report of TestFaults")
)

// The nodes keep under all faults what they promise.
func TestFaults(t *testing.T) {
	o := Options{Seed: *seed, Nodes: *nodes, Duration: *duration, Lease: 5 * time.Second}
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
