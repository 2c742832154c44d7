package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// A Report is the result of a run. The names are stable: scripts read them.
type Report struct {
	Scenario    string  `json:"scenario"`
	Store       string  `json:"store"`
	Profile     string  `json:"profile"`
	Events      int64   `json:"events"` // acknowledged by godwit in the throughput measurement
	Connections int     `json:"connections"`
	Size        int     `json:"size"`
	CPUs        int     `json:"cpus"`
	Seconds     float64 `json:"seconds"` // the whole run

	AcksPerS       float64 `json:"acks_per_s"`
	DeliveriesPerS float64 `json:"deliveries_per_s"` // up to the last arrival
	RawPerS        float64 `json:"raw_per_s"`
	RelayPerS      float64 `json:"relay_per_s"`
	RatioRelay     float64 `json:"ratio_relay"`
	RatioRaw       float64 `json:"ratio_raw"`

	Rate      float64 `json:"rate"`   // posted in the latency measurement
	P50       float64 `json:"p50_ms"` // from post to arrival at that rate
	P99       float64 `json:"p99_ms"`
	P999      float64 `json:"p999_ms"`
	Max       float64 `json:"max_ms"`
	RateHeld  float64 `json:"rate_held"` // deliveries a second that arrived at that rate
	P50Full   float64 `json:"p50_full_load_ms"`
	P99Full   float64 `json:"p99_full_load_ms"`
	RelayP99  float64 `json:"relay_p99_full_load_ms"`
	Failed    int64   `json:"failed"` // posts that were not acknowledged
	Duplicate int64   `json:"duplicates"`
	Missing   int64   `json:"missing"` // acknowledged, never arrived

	ServerCPU        float64 `json:"server_cpu_s"` // throughput measurement
	ServerCPUEach    float64 `json:"server_cpu_us_per_delivery"`
	ServerPeakRSS    float64 `json:"server_peak_rss_mb"`
	ServerIdleRSS    float64 `json:"server_idle_rss_mb"`
	RelayCPUEach     float64 `json:"relay_cpu_us_per_delivery"`
	StoreDescription string  `json:"store_description,omitempty"`

	Backlog   *BacklogReport   `json:"backlog,omitempty"`
	Waiting   *WaitingReport   `json:"waiting,omitempty"`
	Isolation *IsolationReport `json:"isolation,omitempty"`
	Variants  []VariantReport  `json:"variants,omitempty"`
	Fanout    *FanoutReport    `json:"fanout,omitempty"`
	Neighbour *NeighbourReport `json:"neighbour,omitempty"`
	Profiles  []ProfileReport  `json:"profiles,omitempty"`
	Nodes     *NodesReport     `json:"nodes,omitempty"`
	Restart   *RestartReport   `json:"restart,omitempty"`
	Tenants   *TenantsReport   `json:"tenants,omitempty"`
	Commands  *CommandsReport  `json:"commands,omitempty"`
}

// BacklogReport shows the cost of deliveries that wait for a dead endpoint.
type BacklogReport struct {
	Waiting     int     `json:"waiting"`
	LoadPerS    float64 `json:"load_per_s"` // rate at which the backlog was posted
	AddedRSS    float64 `json:"added_rss_mb"`
	AlonePerS   float64 `json:"healthy_alone_per_s"`
	BesidePerS  float64 `json:"healthy_beside_per_s"`
	LostPercent float64 `json:"lost_percent"`
	P99Alone    float64 `json:"p99_alone_ms"`
	P99Beside   float64 `json:"p99_beside_ms"`
	DataMB      float64 `json:"data_mb,omitempty"`
}

// IsolationReport compares a healthy endpoint alone with the same endpoint beside one that hangs and one that fails.
type IsolationReport struct {
	Rate       float64 `json:"rate"` // posted in both
	AlonePerS  float64 `json:"healthy_alone_per_s"`
	BesidePerS float64 `json:"healthy_beside_per_s"`
	P50Alone   float64 `json:"p50_alone_ms"`
	P99Alone   float64 `json:"p99_alone_ms"`
	P50Beside  float64 `json:"p50_beside_ms"`
	P99Beside  float64 `json:"p99_beside_ms"`
}

// ProfileReport tells what a profile costs beside the others, which were measured by turns on the same server.
type ProfileReport struct {
	Profile        string  `json:"profile"`
	Events         int64   `json:"events"`
	DeliveriesPerS float64 `json:"deliveries_per_s"`
	ServerCPUEach  float64 `json:"server_cpu_us_per_delivery"`
	RatioRate      float64 `json:"ratio_rate_eds"` // deliveries a second over those of eds
	RatioCPU       float64 `json:"ratio_cpu_eds"`  // CPU time of a delivery over that of eds
}

func round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

func ms(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 2) }
func mb(bytes int64) float64     { return round(float64(bytes)/(1<<20), 1) }

func storeName(store string) string {
	name, _, _ := strings.Cut(store, ":")
	if name == "postgresql" {
		return "postgres"
	}
	return name
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s on %s, %d CPUs, %d connections, %d-byte events, %.0f s in all\n\n", r.Scenario, r.Store, r.CPUs, r.Connections, r.Size, r.Seconds)
	t := &table{w: w}
	switch {
	case r.Backlog != nil:
		r.Backlog.print(t)
	case r.Nodes != nil:
		r.Nodes.print(t)
		t.row("events", "%d\t%d refused, %d missing, %d twice", r.Events, r.Failed, r.Missing, r.Duplicate)
	case r.Tenants != nil:
		r.Tenants.print(t)
	case r.Restart != nil:
		r.Restart.print(t)
	case r.Waiting != nil:
		r.Waiting.print(t)
	case r.Commands != nil:
		r.Commands.print(t)
	case r.Isolation != nil:
		r.Isolation.print(t)
	case r.Fanout != nil:
		r.Fanout.print(t)
	case r.Neighbour != nil:
		r.Neighbour.print(t)
	case r.Variants != nil:
		for i := range r.Variants {
			r.Variants[i].print(t)
		}
		t.row("events", "%d\t%d refused, %d missing, %d twice", r.Events, r.Failed, r.Missing, r.Duplicate)
	case r.Profiles != nil:
		for i := range r.Profiles {
			r.Profiles[i].print(t)
		}
		t.row("events", "%d\t%d refused, %d missing, %d twice", r.Events, r.Failed, r.Missing, r.Duplicate)
	default:
		r.printMain(t)
	}
	if r.ServerIdleRSS > 0 {
		t.row("idle memory of the server", "%.1f MB", r.ServerIdleRSS)
	}
	if r.ServerPeakRSS > 0 {
		t.row("peak memory of the server", "%.1f MB", r.ServerPeakRSS)
	}
	return t.err
}

func (r *Report) printMain(t *table) {
	if r.RawPerS > 0 {
		t.row("raw client→sink", "%.0f/s", r.RawPerS)
		t.row("in-memory relay, not durable", "%.0f/s", r.RelayPerS)
	}
	if r.DeliveriesPerS > 0 {
		t.row("godwit: acknowledged", "%.0f/s\tdurable", r.AcksPerS)
		t.row("godwit: delivered", "%.0f/s\t%.2f of the relay, %.2f of raw", r.DeliveriesPerS, r.RatioRelay, r.RatioRaw)
		t.row("post to arrival at full load", "p50 %.1f ms\tp99 %.1f ms", r.P50Full, r.P99Full)
	}
	if r.Rate > 0 {
		t.row(fmt.Sprintf("post to arrival at %.0f/s", r.Rate), "p50 %.1f ms\tp99 %.1f ms, p99.9 %.1f ms, max %.1f ms; held %.0f/s",
			r.P50, r.P99, r.P999, r.Max, r.RateHeld)
	}
	if r.Scenario == "idle" {
		return
	}
	t.row("events", "%d\t%d refused, %d missing, %d twice", r.Events, r.Failed, r.Missing, r.Duplicate)
	t.row("CPU of the server", "%.1f s\t%.0f µs a delivery (relay: %.0f)", r.ServerCPU, r.ServerCPUEach, r.RelayCPUEach)
}

func (r *BacklogReport) print(t *table) {
	t.row("waiting for a dead endpoint", "%d\tposted at %.0f/s", r.Waiting, r.LoadPerS)
	t.row("memory they add", "%.1f MB", r.AddedRSS)
	t.row("healthy endpoint alone", "%.0f/s\tp99 %.1f ms", r.AlonePerS, r.P99Alone)
	t.row("healthy endpoint beside them", "%.0f/s\tp99 %.1f ms, %.1f %% less", r.BesidePerS, r.P99Beside, r.LostPercent)
}

func (r *IsolationReport) print(t *table) {
	t.row("offered", "%.0f/s", r.Rate)
	t.row("healthy endpoint alone", "%.0f/s\tp50 %.1f ms, p99 %.1f ms", r.AlonePerS, r.P50Alone, r.P99Alone)
	t.row("beside one that hangs and one that fails", "%.0f/s\tp50 %.1f ms, p99 %.1f ms", r.BesidePerS, r.P50Beside, r.P99Beside)
}

func (r *ProfileReport) print(t *table) {
	t.row(r.Profile, "%.0f/s\t%.2f of eds; %.1f µs of CPU a delivery, %.2f of eds", r.DeliveriesPerS, r.RatioRate, r.ServerCPUEach, r.RatioCPU)
}

// table lines a report up: what, how much, more about it.
type table struct {
	w   io.Writer
	err error
}

func (t *table) row(what, format string, args ...any) {
	value, more, _ := strings.Cut(fmt.Sprintf(format, args...), "\t")
	if _, err := fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf("  %-42s%14s   %s", what, value, more), " ")); err != nil {
		t.err = err
	}
}
