package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/godwit-hq/godwit/internal/management"
)

// FanoutReport tells how one event reaches many endpoints, beside a relay that forwards it as often.
type FanoutReport struct {
	Endpoints int     `json:"endpoints"`
	Events    int     `json:"events"` // one after the other
	Ack       float64 `json:"ack_ms"` // the longest time from post to acknowledgement
	P50       float64 `json:"p50_ms"` // from post to arrival, of all deliveries
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"` // until the last one has arrived
	PerS      float64 `json:"deliveries_per_s"`
	RelayP50  float64 `json:"relay_p50_ms"`
	RelayP99  float64 `json:"relay_p99_ms"`
	RelayMax  float64 `json:"relay_max_ms"`
	RelayPerS float64 `json:"relay_per_s"`
	Ratio     float64 `json:"ratio_relay"`
}

func (r *FanoutReport) print(t *table) {
	t.row("one event", "%d endpoints\t%d times", r.Endpoints, r.Events)
	t.row("in-memory relay: post to arrival", "p50 %.0f ms\tp99 %.0f ms, all after %.0f ms; %.0f/s", r.RelayP50, r.RelayP99, r.RelayMax, r.RelayPerS)
	t.row("godwit: post to arrival", "p50 %.0f ms\tp99 %.0f ms, all after %.0f ms; held %.0f/s, %.2f of the relay", r.P50, r.P99, r.Max, r.PerS, r.Ratio)
	t.row("godwit: acknowledged after", "%.0f ms\tat most", r.Ack)
}

// fans is how often the event is posted, after one that opens the connections.
const fans = 5

// fanout posts one event for many endpoints and waits until it has arrived at each.
func (b *bench) fanout(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	relay, err := b.startRelay(ctx, RelayOptions{Targets: s.urls(), Copies: b.o.Endpoints})
	if err != nil {
		return err
	}
	defer relay.kill()
	specs := make([]management.EndpointSpec, b.o.Endpoints)
	for i := range specs {
		specs[i] = management.EndpointSpec{URL: s.url() + strconv.Itoa(i), Profile: b.o.Profile, Patterns: []string{"bench.fan"}}
	}
	r := &FanoutReport{Endpoints: b.o.Endpoints, Events: fans}
	b.report.Fanout = r
	return b.withSeeded(ctx, specs, func(srv *server, _ string) error {
		relayed, err := b.fanTo(ctx, "relay", target{addr: hostOf(relay.url), path: "/"}, s)
		if err != nil {
			return err
		}
		delivered, err := b.fanTo(ctx, "godwit", srv.target("bench.fan"), s)
		if err != nil {
			return err
		}
		r.RelayP50, r.RelayP99, r.RelayMax = relayed.milliseconds()
		r.P50, r.P99, r.Max = delivered.milliseconds()
		r.RelayPerS, r.PerS = round(relayed.rate.perSecond(), 0), round(delivered.rate.perSecond(), 0)
		r.Ratio = round(r.PerS/r.RelayPerS, 3)
		r.Ack = ms(delivered.ack)
		b.report.Events, b.report.Missing, b.report.Duplicate = fans, delivered.missing, delivered.duplicates
		u, err := srv.usage()
		b.report.ServerPeakRSS = mb(u.peakRSS)
		return err
	})
}

// fanned is the result of several fan-outs.
type fanned struct {
	latency             histogram
	ack                 time.Duration // the longest
	rate                sum
	missing, duplicates int64
}

func (f *fanned) milliseconds() (p50, p99, longest float64) {
	return ms(f.latency.quantile(0.5)), ms(f.latency.quantile(0.99)), ms(f.latency.quantile(1))
}

// fanTo posts the event several times, each after the one before has arrived everywhere.
func (b *bench) fanTo(ctx context.Context, name string, to target, s *sink) (*fanned, error) {
	f := &fanned{}
	for i := range 1 + fans {
		into := f
		if i == 0 {
			into = &fanned{}
		}
		took, err := b.fanOnce(ctx, to, s, into)
		if err != nil {
			return nil, fmt.Errorf("fan out by %s: %w", name, err)
		}
		b.o.Progress("%s: one event to %d endpoints in %s", name, b.o.Endpoints, took.Round(time.Millisecond))
	}
	return f, nil
}

func (b *bench) fanOnce(ctx context.Context, to target, s *sink, f *fanned) (took time.Duration, err error) {
	b.runs++
	t := newTally(b.runs, b.clock)
	t.byPath = true
	for range b.o.Endpoints {
		t.take()
	}
	s.tally.Store(t)
	defer s.tally.Store(nil)
	l := b.load(to, 0)
	c, err := l.dial(ctx, t.run)
	if err != nil {
		return 0, err
	}
	defer c.close()
	began := t.clock.now()
	status, err := c.post(0, began)
	if err != nil || status >= 300 {
		return 0, fmt.Errorf("status %d: %w", status, err)
	}
	f.ack = max(f.ack, t.clock.now()-began)
	for i := range b.o.Endpoints {
		t.ack(uint64(i))
	}
	t.settle(ctx, quiet)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	took = time.Duration(t.lastArrival.Load()) - began
	f.latency.merge(&t.latency)
	f.rate.add(result{arrived: t.arrived.Load(), deliveriesPerS: perSecond(t.arrived.Load(), took)}, 0)
	missing, duplicates := t.count()
	f.missing, f.duplicates = f.missing+missing, f.duplicates+duplicates
	return took, nil
}
