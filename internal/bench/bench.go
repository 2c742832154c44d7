package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// Options configure a run.
type Options struct {
	// Executable is the godwit binary. Required.
	Executable string
	// Store is "sqlite", or the URL of a PostgreSQL database that the bench may fill. Defaults to sqlite.
	Store string
	// Scenario is one of Scenarios. Defaults to throughput.
	Scenario string
	// Profile is the dialect of the endpoints, with its rate limits lifted. Defaults to eds.
	Profile string
	// Connections is the number of concurrent clients. Defaults to 64.
	Connections int
	// Size of an event's body in bytes. Defaults to 1024.
	Size int
	// Events limits each measurement by number. Defaults to 0: by time only.
	Events int
	// Length is the approximate duration of the whole run. Defaults to 30 s.
	Length time.Duration
	// Rate of the latency measurement, in events a second. Defaults to half of the measured throughput.
	Rate float64
	// Backlog is the number of waiting deliveries in the scenarios backlog (defaults to a million) and waiting (ten million).
	Backlog int
	// Endpoints is the number of endpoints in the scenarios fanout and restart (defaults to 10000), many and neighbour (1000), and tenants (30000, three
	// for each tenant).
	Endpoints int
	// Nodes is the number of server processes in the scenario nodes. Defaults to 3.
	Nodes int
	// HeldTransaction is how long the scenario nodes holds a transaction open in the database, under full load. Defaults to 0: it
	// does not.
	HeldTransaction time.Duration
	// CPUProfile is a file for a CPU profile of the server at full load. Defaults to none.
	CPUProfile string
	// Progress receives messages about the run. Defaults to none.
	Progress func(format string, args ...any)
}

// Scenarios lists the available measurements.
var Scenarios = []string{
	"throughput", "latency", "tls", "many", "large", "fanout", "neighbour", "backlog", "waiting", "isolation", "profiles", "nodes", "restart", "tenants", "idle", "commands",
}

func (o *Options) setDefaults() error {
	if o.Executable == "" {
		return errors.New("bench: the executable is required")
	}
	defaultTo(&o.Store, "sqlite")
	defaultTo(&o.Scenario, "throughput")
	defaultTo(&o.Profile, profile.Default)
	defaultTo(&o.Connections, 64)
	defaultTo(&o.Size, 1024)
	defaultTo(&o.Length, 30*time.Second)
	defaultTo(&o.Nodes, 3)
	if o.Scenario == "waiting" {
		defaultTo(&o.Backlog, 10_000_000)
	}
	defaultTo(&o.Backlog, 1_000_000)
	if o.Scenario == "fanout" || o.Scenario == "restart" {
		defaultTo(&o.Endpoints, 10_000)
	}
	if o.Scenario == "tenants" {
		defaultTo(&o.Endpoints, 30_000)
	}
	defaultTo(&o.Endpoints, 1000)
	if o.Scenario == "neighbour" {
		defaultTo(&o.Events, godwit.MaxEventsPerBatch)
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if o.Connections < 1 || o.Size < minSize || o.Length < time.Second {
		return fmt.Errorf("bench: needs at least 1 connection, %d bytes an event and 1 s", minSize)
	}
	return nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Run runs a scenario.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	b := &bench{o: o, clock: &stopwatch{time.Now()}}
	b.report = Report{
		Store: storeName(o.Store), Scenario: o.Scenario, Profile: o.Profile, Connections: o.Connections, Size: o.Size,
		CPUs: runtime.NumCPU(),
	}
	scenario := map[string]func(context.Context) error{
		"throughput": b.throughput, "latency": b.latencyOnly, "backlog": b.backlog, "waiting": b.waiting, "isolation": b.isolation,
		"tls": b.tls, "many": b.many, "large": b.large, "fanout": b.fanout, "neighbour": b.neighbour, "profiles": b.profiles, "nodes": b.nodes, "restart": b.restarts, "tenants": b.tenants, "idle": b.idle, "commands": b.commands,
	}[o.Scenario]
	if scenario == nil {
		return nil, fmt.Errorf("bench: no scenario %q; there are %v", o.Scenario, Scenarios)
	}
	began := time.Now()
	if err := scenario(ctx); err != nil {
		return nil, err
	}
	b.report.Seconds = round(time.Since(began).Seconds(), 1)
	return &b.report, nil
}

// bench is one run.
type bench struct {
	o       Options
	clock   *stopwatch
	runs    uint32
	relayed sum
	caFile  string // authority of https receivers; empty: none
	report  Report
}

// share is a part of the run's whole length.
func (b *bench) share(percent int) time.Duration { return b.o.Length * time.Duration(percent) / 100 }

// result is the result of one measurement.
type result struct {
	acked, arrived, failed   int64
	acksPerS, deliveriesPerS float64
	p50, p99, p999, max      time.Duration
	missing, duplicates      int64
}

// quiet is the time without an arrival after which the remaining events count as missing.
const quiet = 15 * time.Second

// measure runs a load into the sink and waits until every acknowledged event has arrived there.
func (b *bench) measure(ctx context.Context, l load, s *sink) (result, error) {
	b.runs++
	t := newTally(b.runs, b.clock)
	s.tally.Store(t)
	defer s.tally.Store(nil)
	start, err := l.run(ctx, t)
	if err != nil {
		return result{}, err
	}
	t.settle(ctx, quiet)
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	r := result{
		acked: t.acked.Load(), arrived: t.arrived.Load(), failed: t.failed.Load(),
		p50: t.latency.quantile(0.5), p99: t.latency.quantile(0.99), p999: t.latency.quantile(0.999), max: t.latency.quantile(1),
	}
	r.missing, r.duplicates = t.count()
	r.acksPerS = perSecond(r.acked, time.Duration(t.lastAck.Load())-start)
	r.deliveriesPerS = perSecond(r.arrived, time.Duration(t.lastArrival.Load())-start)
	return r, nil
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// load is the options' load on a target for a while.
func (b *bench) load(t target, length time.Duration) load {
	return load{
		addr: t.addr, path: t.path, turns: t.turns, header: t.header,
		connections: b.o.Connections, size: b.o.Size, length: length, events: b.o.Events,
	}
}

// warm opens connections and fills caches, so that a measurement does not begin with them.
func (b *bench) warm(ctx context.Context, t target, s *sink) error {
	l := b.load(t, 5*time.Second)
	l.events = 20 * b.o.Connections
	_, err := b.measure(ctx, l, s)
	return err
}

// target is the address to which the generator posts.
type target struct {
	addr   string
	path   string
	turns  int // see load
	header []string
}
