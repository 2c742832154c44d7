package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/godwit-hq/godwit/internal/changes"
	"github.com/godwit-hq/godwit/internal/engine"
)

// Metrics holds the metrics of one process.
type Metrics struct {
	Recorder
	Inbound  Inbound
	registry *prometheus.Registry
	provider *sdk.MeterProvider
	meter    metric.Meter
}

// Config bounds the metrics.
type Config struct {
	// Series bounds the label combinations of a metric with event types or subscriptions; further combinations are counted
	// together. Defaults to 2000.
	Series int
}

// New registers the metrics. Nothing is global: a process may have several Metrics.
func New(cfg Config) (*Metrics, error) {
	if cfg.Series == 0 {
		cfg.Series = 2000
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(exporter))
	m := &Metrics{registry: registry, provider: provider, meter: provider.Meter("godwit")}
	err = errors.Join(
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		m.build(m.meter),
		m.Inbound.build(m.meter),
		m.webhooks.build(registry, cfg.Series),
		m.describeBuild(),
	)
	return m, err
}

// Watch adds gauges that are read from the engine at each scrape.
func (m *Metrics) Watch(stats func() engine.Stats) error {
	gauges := []struct {
		name, help string
		value      func(engine.Stats) int64
	}{
		{"godwit.requests.in_flight", "Requests to endpoints on the wire.", func(s engine.Stats) int64 { return int64(s.InFlight) }},
		{"godwit.deliveries.held", "Deliveries in memory over all endpoints' windows.", func(s engine.Stats) int64 { return int64(s.Held) }},
		{"godwit.deliveries.held.bytes", "Payloads of the deliveries in memory.", func(s engine.Stats) int64 { return s.HeldBytes }},
		{"godwit.endpoints", "Endpoints known to this process.", func(s engine.Stats) int64 { return int64(s.Endpoints) }},
		{"ojs.webhook.subscription.count", "ojs.webhook.subscription.count: subscriptions that are active.", func(s engine.Stats) int64 { return int64(s.Active) }},
		{"godwit.endpoints.circuit_open", "Endpoints that are probed instead of sent to.", func(s engine.Stats) int64 { return int64(s.OpenCircuit) }},
		{"godwit.fanouts.open", "Large fan-outs whose deliveries are not all stored yet.", func(s engine.Stats) int64 { return int64(s.Fanouts) }},
		{"godwit.broadcasts.open", "Broadcasts whose events are not all stored yet, on this node.", func(s engine.Stats) int64 { return int64(s.Broadcasts) }},
		{"godwit.shards.owned", "Shards this process delivers for.", func(s engine.Stats) int64 { return int64(s.Shards) }},
		{"godwit.nodes.alive", "Nodes that were alive at this process's last beat, itself included.", func(s engine.Stats) int64 { return int64(s.Nodes) }},
	}
	instruments := make([]metric.Observable, len(gauges))
	for i, g := range gauges {
		o, err := m.meter.Int64ObservableGauge(g.name, metric.WithDescription(g.help))
		if err != nil {
			return err
		}
		instruments[i] = o
	}
	lag, err := m.meter.Float64ObservableGauge("godwit.lag", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest delivery has been waiting for this process, whose endpoint could take it."))
	if err != nil {
		return err
	}
	_, err = m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := stats()
		o.ObserveFloat64(lag, s.Lag.Seconds())
		for i, g := range gauges {
			o.ObserveInt64(instruments[i].(metric.Int64Observable), g.value(s))
		}
		return nil
	}, append(instruments, lag)...)
	return err
}

// WatchChanges adds gauges for how far this node may be behind the configuration that other nodes store.
func (m *Metrics) WatchChanges(staleness func() changes.Staleness) error {
	age, err := m.meter.Float64ObservableGauge("godwit.config.age", metric.WithUnit("s"),
		metric.WithDescription("Time since this node last found its configuration to be the store's."))
	if err != nil {
		return err
	}
	behind, err := m.meter.Int64ObservableGauge("godwit.config.behind",
		metric.WithDescription("Changes of the configuration that this node has seen and not applied yet."))
	if err != nil {
		return err
	}
	_, err = m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := staleness()
		o.ObserveFloat64(age, s.Age.Seconds())
		o.ObserveInt64(behind, s.Behind)
		return nil
	}, age, behind)
	return err
}

// WatchClock adds a gauge of how far the machine's clock is ahead of the database's.
func (m *Metrics) WatchClock(ahead func() time.Duration) error {
	_, err := m.meter.Float64ObservableGauge("godwit.clock.ahead", metric.WithUnit("s"),
		metric.WithDescription("How far the clock of this machine is ahead of the database's, which the process uses."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(ahead().Seconds())
			return nil
		}))
	return err
}

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Close releases the resources of the SDK.
func (m *Metrics) Close(ctx context.Context) error { return m.provider.Shutdown(ctx) }

func (m *Metrics) describeBuild() error {
	b := Build()
	set := attribute.NewSet(attribute.String("version", b.Version), attribute.String("revision", b.Revision), attribute.String("go", b.Go))
	_, err := m.meter.Int64ObservableGauge("godwit.build", metric.WithDescription("Always 1; the labels tell what runs."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, metric.WithAttributeSet(set))
			return nil
		}))
	return err
}

// BuildInfo identifies the build of this binary.
type BuildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

// version is set by the linker in a release build. If it is empty, Build uses the module's version.
var version string

// Build returns the build information that the linker recorded.
func Build() BuildInfo {
	b := BuildInfo{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
