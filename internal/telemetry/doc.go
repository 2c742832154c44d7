// Package telemetry turns the engine's measurements into OpenTelemetry metrics and serves them to Prometheus.
//
//	engine ─► Recorder (counters, histograms; label sets built once) ─┐
//	api/inbound ─► Inbound (what upstreams deliver) ──────────────────┤
//	engine.Stats ─► gauges, read when scraped ────────────────────────┼─► OpenTelemetry SDK ─► /metrics
//	Go runtime, process, build ───────────────────────────────────────┘
//
// Labels are few and bounded: outcome, reason, profile, scheme, verdict. Endpoints, tenants and other values that grow with
// use are never labels, except in the five metrics that the Open Job Spec names. Those have event types and subscriptions as
// labels, up to a bound; further values share one label.
package telemetry
