//go:build unix

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Report tells what a run did and what its checkers found.
type Report struct {
	Seed       uint64
	Nodes      int
	Duration   time.Duration
	Posts      int // requests
	Events     int // acknowledged
	Checked    int // pairs of event and endpoint that had to be delivered
	Losses     int // of these
	Arrivals   int
	Nameless   int // arrivals from a node that the system's table of sockets did not tell
	Changes    int
	Commands   int
	Faults     map[string]int
	Skipped    []string
	Duplicates map[string]int           // by the fault that explains them
	Unrecorded map[string]time.Duration // how long before the fault the earliest of these requests was answered
	HandOvers  []time.Duration
	Repeats    int                               // requests that the balancer gave to a second node
	Memory     struct{ First, Last, Most int64 } // bytes; see Resident
	Violations []string
}

// report checks the history. Violations fail the test.
func (x *Run) report(t testing.TB, o Options) *Report {
	t.Helper()
	h := x.History
	r := &Report{
		Seed: o.Seed, Nodes: o.Nodes, Duration: h.Now(), Posts: len(h.Posts), Arrivals: len(h.Arrivals), Changes: len(h.Changes),
		Commands: len(h.commandOperations()), Faults: map[string]int{}, Skipped: x.skipped, Duplicates: map[string]int{}, Unrecorded: map[string]time.Duration{}, HandOvers: h.HandOvers(o.Lease),
		Repeats: x.Cluster.Balancer.Repeats(),
	}
	r.Memory.First, r.Memory.Last, r.Memory.Most = h.Resident()
	for _, f := range h.Faults {
		r.Faults[f.Kind]++
	}
	for _, a := range h.Arrivals {
		if a.Node == "" {
			r.Nameless++
		}
	}
	for _, e := range h.events() {
		if e.acknowledged {
			r.Events++
		}
	}
	var losses []string
	losses, r.Checked = h.Delivered()
	r.Losses = len(losses)
	r.Violations = slices.Concat(losses, h.Unwanted(), h.Refused(), h.Failed(), h.Paced(), h.Linearisable(), h.Flat(), x.stored())
	for _, d := range h.Duplicates() {
		r.Duplicates[d.Kind()]++
		if d.Fault != nil {
			r.Unrecorded[d.Kind()] = max(r.Unrecorded[d.Kind()], d.Fault.From-d.First.To)
		} else {
			r.Violations = append(r.Violations, fmt.Sprintf("%s came to %s from %q at %s and again from %q at %s, without a fault between",
				d.First.Key, d.First.Endpoint, d.First.Node, d.First.From, d.Again.Node, d.Again.From))
		}
	}
	const shown = 20
	for i, v := range r.Violations {
		if i == shown {
			t.Errorf("and %d more violations", len(r.Violations)-shown)
			break
		}
		t.Error(v)
	}
	return r
}

// String is the report for people.
func (r *Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("run", "seed %d, %d nodes, %s", r.Seed, r.Nodes, r.Duration.Round(time.Second))
	line("events", "%d acknowledged in %d posts; %d deliveries were due, %d requests arrived, %d from an unknown node", r.Events, r.Posts, r.Checked, r.Arrivals, r.Nameless)
	line("changes", "%d of endpoints; %d commands", r.Changes, r.Commands)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		line("fault", "%s: %d, explains %d duplicates; the earliest was answered %s before it", kind, r.Faults[kind], r.Duplicates[kind],
			r.Unrecorded[kind].Round(time.Millisecond))
	}
	for _, s := range r.Skipped {
		line("left out", "%s", s)
	}
	if n := len(r.HandOvers); n > 0 {
		line("hand-over", "after a kill: median %s, longest %s, of %d endpoints", r.HandOvers[n/2].Round(time.Millisecond),
			r.HandOvers[n-1].Round(time.Millisecond), n)
	}
	line("balancer", "%d requests given to a second node", r.Repeats)
	line("memory", "of a node: median %d MiB in the first tenth of the run, %d MiB in the last; at most %d MiB", r.Memory.First>>20, r.Memory.Last>>20, r.Memory.Most>>20)
	line("losses", "%d", r.Losses)
	line("unexplained", "%d duplicates", r.Duplicates[""])
	line("violations", "%d", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}
