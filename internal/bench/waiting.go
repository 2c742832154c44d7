package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godwit-hq/godwit/client"
)

// WaitingReport shows the cost of very many deliveries that wait for a dead endpoint, found at the start of the server.
type WaitingReport struct {
	Waiting       int     `json:"waiting"`
	SeedSeconds   float64 `json:"seed_s"`
	StartEmpty    float64 `json:"start_empty_ms"` // from the start of the process until it is ready
	Start         float64 `json:"start_ms"`
	RSSAlone      float64 `json:"rss_alone_mb"` // after the same load
	RSSBeside     float64 `json:"rss_beside_mb"`
	AddedRSS      float64 `json:"added_rss_mb"`
	AlonePerS     float64 `json:"healthy_alone_per_s"`
	BesidePerS    float64 `json:"healthy_beside_per_s"`
	Rate          float64 `json:"rate"`       // of the latencies below: half of healthy_alone_per_s
	HeldAlone     float64 `json:"held_alone"` // deliveries a second that arrived at that rate
	HeldBeside    float64 `json:"held_beside"`
	P99Alone      float64 `json:"p99_alone_ms"`
	P99Beside     float64 `json:"p99_beside_ms"`
	StillWaiting  int64   `json:"still_waiting"` // at the end
	CPUEachAlone  float64 `json:"cpu_us_alone"`
	CPUEachBeside float64 `json:"cpu_us_beside"`
}

func (r *WaitingReport) print(t *table) {
	t.row("waiting for a dead endpoint", "%d\twritten in %.0f s; %d at the end", r.Waiting, r.SeedSeconds, r.StillWaiting)
	t.row("start of the server, empty", "%.0f ms", r.StartEmpty)
	t.row("start of the server beside them", "%.0f ms", r.Start)
	t.row("memory they add", "%.1f MB\t%.1f to %.1f MB, after the same load", r.AddedRSS, r.RSSAlone, r.RSSBeside)
	t.row("healthy endpoint alone", "%.0f/s\t%.0f µs of CPU; at %.0f/s p99 %.1f ms, held %.0f/s", r.AlonePerS, r.CPUEachAlone, r.Rate, r.P99Alone, r.HeldAlone)
	t.row("healthy endpoint beside them", "%.0f/s\t%.0f µs of CPU; at %.0f/s p99 %.1f ms, held %.0f/s", r.BesidePerS, r.CPUEachBeside, r.Rate, r.P99Beside, r.HeldBeside)
}

// waiting measures a healthy endpoint on a fresh server, writes the deliveries for the dead endpoint into the store of the
// stopped server, and measures again on a server that starts with them.
func (b *bench) waiting(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	dead, err := startSink(accepts)
	if err != nil {
		return err
	}
	deadURL := dead.url()
	dead.close()
	data, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	r := &WaitingReport{Waiting: b.o.Backlog}
	b.report.Waiting = r
	b.o.Progress("starting godwit serve")
	srv, err := b.boot(ctx, data)
	if err != nil {
		return err
	}
	alone, err := b.aloneBefore(ctx, srv, s, deadURL)
	if err != nil {
		srv.kill()
		return err
	}
	if err := srv.stop(); err != nil {
		return err
	}
	b.o.Progress("writing %d waiting deliveries into the store", b.o.Backlog)
	began := time.Now()
	if err := b.multiply(ctx, data); err != nil {
		return fmt.Errorf("write the waiting deliveries: %w", err)
	}
	r.SeedSeconds = round(time.Since(began).Seconds(), 1)
	again, err := b.restart(ctx, data, srv.key)
	if err != nil {
		return err
	}
	r.Start = ms(again.took)
	b.o.Progress("ready after %s", again.took.Round(time.Millisecond))
	beside, err := b.healthyTwice(ctx, again, s, "beside them", r.Rate)
	if err == nil {
		r.StillWaiting, err = b.countWaiting(ctx, data)
	}
	if err != nil {
		again.kill()
		return err
	}
	u, err := again.usage()
	if err != nil {
		return err
	}
	b.report.ServerPeakRSS = mb(u.peakRSS)
	r.RSSAlone, r.RSSBeside, r.AddedRSS = mb(alone.rss), mb(beside.rss), mb(beside.rss-alone.rss)
	r.AlonePerS, r.BesidePerS = round(alone.full.deliveriesPerS, 0), round(beside.full.deliveriesPerS, 0)
	r.HeldAlone, r.HeldBeside = round(alone.half.deliveriesPerS, 0), round(beside.half.deliveriesPerS, 0)
	r.P99Alone, r.P99Beside = ms(alone.half.p99), ms(beside.half.p99)
	r.CPUEachAlone, r.CPUEachBeside = alone.cpuEach, beside.cpuEach
	return again.stop()
}

// aloneBefore makes both endpoints, measures the healthy one, and gives the dead one a few events.
func (b *bench) aloneBefore(ctx context.Context, srv *server, s *sink, deadURL string) (*twice, error) {
	err := errors.Join(srv.subscribe(ctx, b.o.Profile, s.url(), "bench.load"), srv.subscribe(ctx, b.o.Profile, deadURL, "bench.dead"))
	if err != nil {
		return nil, err
	}
	b.report.Waiting.StartEmpty = ms(srv.took)
	alone, err := b.healthyTwice(ctx, srv, s, "alone", 0)
	if err != nil {
		return nil, err
	}
	b.report.Waiting.Rate = round(alone.rate, 0)
	events := make([]client.Event, 1000) // more than are in flight, so that some have not been tried yet
	for i := range events {
		events[i] = client.Event{Type: "bench.dead", Body: newBody(0, minSize)}
	}
	_, err = srv.client.PublishBatch(ctx, events)
	return alone, err
}

// twice is the healthy endpoint at full load, then at a fixed rate.
type twice struct {
	full, half result
	rate       float64
	cpuEach    float64
	rss        int64
}

// healthyTwice measures the healthy endpoint. A rate of 0 is half of the full one.
func (b *bench) healthyTwice(ctx context.Context, srv *server, s *sink, how string, rate float64) (*twice, error) {
	var m twice
	before, err := srv.usage()
	if err != nil {
		return nil, err
	}
	if m.full, err = b.healthy(ctx, srv, s, how, b.share(20)); err != nil {
		return nil, err
	}
	after, err := srv.usage()
	if err != nil {
		return nil, err
	}
	m.cpuEach = each(after.cpu-before.cpu, m.full.arrived)
	if m.rate = rate; rate == 0 {
		m.rate = m.full.deliveriesPerS / 2
	}
	l := b.load(srv.target("bench.load"), b.share(20))
	l.rate, l.events = m.rate, 0
	b.o.Progress("healthy endpoint %s at %.0f/s", how, m.rate)
	if m.half, err = b.measure(ctx, l, s); err != nil {
		return nil, err
	}
	b.count(m.half)
	settled, err := srv.settledUsage(ctx)
	m.rss = settled.rss
	return &m, err
}
