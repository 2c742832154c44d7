// Package telemetry turns what the engine reports into OpenTelemetry metrics and serves them to Prometheus.
//
//	engine ─► Recorder (counters, histograms; label sets built once) ─┐
//	api/inbound ─► Inbound (what upstreams deliver) ──────────────────┤
//	engine.Stats ─► gauges, read when scraped ────────────────────────┼─► OpenTelemetry SDK ─► /metrics
//	Go runtime, process, build ───────────────────────────────────────┘
//
// Labels are few and bounded: outcome, reason, profile, scheme, verdict. Never an endpoint, a tenant or anything else that grows with use,
// but for the five metrics that the Open Job Spec asks for by name. Those have event types and subscriptions as labels, up to a
// bound; what comes after it is counted together.
package telemetry
