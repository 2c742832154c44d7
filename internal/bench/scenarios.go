package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// throughput is the whole comparison: raw, relay, godwit at full load, relay again, and godwit's latency at half of its load.
// The relay is measured before and after: on a shared machine the speed changes by the minute.
func (b *bench) throughput(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	if err := b.raw(ctx, s); err != nil {
		return fmt.Errorf("measure raw: %w", err)
	}
	relay, err := b.startRelay(ctx, RelayOptions{Targets: s.urls()})
	if err != nil {
		return err
	}
	defer relay.kill()
	if err := b.relay(ctx, relay, s); err != nil {
		return fmt.Errorf("measure relay: %w", err)
	}
	return b.withServer(ctx, func(srv *server) error {
		if err := srv.subscribe(ctx, b.o.Profile, s.url(), "bench.load"); err != nil {
			return err
		}
		if err := b.fullLoad(ctx, srv, s); err != nil {
			return fmt.Errorf("measure godwit: %w", err)
		}
		if err := b.relay(ctx, relay, s); err != nil {
			return fmt.Errorf("measure relay: %w", err)
		}
		b.report.RatioRelay = round(b.report.DeliveriesPerS/b.report.RelayPerS, 3)
		b.report.RatioRaw = round(b.report.DeliveriesPerS/b.report.RawPerS, 3)
		rate := b.o.Rate
		if rate == 0 {
			rate = b.report.DeliveriesPerS / 2
		}
		return b.atRate(ctx, srv, s, rate, b.share(20))
	})
}

func (b *bench) raw(ctx context.Context, s *sink) error {
	b.o.Progress("raw: generator → sink")
	t := target{addr: s.addr(), path: "/"}
	if err := b.warm(ctx, t, s); err != nil {
		return err
	}
	r, err := b.measure(ctx, b.load(t, b.share(10)), s)
	b.report.RawPerS = round(r.deliveriesPerS, 0)
	b.o.Progress("raw: %.0f/s", r.deliveriesPerS)
	return err
}

func (b *bench) relay(ctx context.Context, p *process, s *sink) error {
	b.o.Progress("relay: generator → in-memory queue → sink")
	t := target{addr: hostOf(p.url), path: "/"}
	if err := b.warm(ctx, t, s); err != nil {
		return err
	}
	before, err := p.usage()
	if err != nil {
		return err
	}
	r, err := b.measure(ctx, b.load(t, b.share(11)), s)
	if err != nil {
		return err
	}
	after, err := p.usage()
	b.relayed.add(r, after.cpu-before.cpu)
	b.report.RelayPerS = round(b.relayed.perSecond(), 0)
	b.report.RelayP99 = max(b.report.RelayP99, ms(r.p99))
	b.report.RelayCPUEach = each(b.relayed.cpu, b.relayed.events)
	b.o.Progress("relay: %.0f/s", r.deliveriesPerS)
	return err
}

// sum joins measurements of the same thing.
type sum struct {
	events  int64
	seconds float64
	cpu     time.Duration
}

func (s *sum) add(r result, cpu time.Duration) {
	s.cpu += cpu
	if r.arrived > 0 {
		s.events += r.arrived
		s.seconds += float64(r.arrived) / r.deliveriesPerS
	}
}

func (s *sum) perSecond() float64 { return float64(s.events) / s.seconds }

func (b *bench) fullLoad(ctx context.Context, srv *server, s *sink) error {
	t := srv.target("bench.load")
	b.o.Progress("godwit: full load on %s", b.report.Store)
	if err := b.warm(ctx, t, s); err != nil {
		return err
	}
	before, err := srv.usage()
	if err != nil {
		return err
	}
	profiled := b.startProfile(ctx, srv, b.share(28))
	r, err := b.measure(ctx, b.load(t, b.share(30)), s)
	if err = errors.Join(err, <-profiled); err != nil {
		return err
	}
	after, err := srv.usage()
	if err != nil {
		return err
	}
	b.count(r)
	b.report.AcksPerS, b.report.DeliveriesPerS = round(r.acksPerS, 0), round(r.deliveriesPerS, 0)
	b.report.P50Full, b.report.P99Full = ms(r.p50), ms(r.p99)
	b.report.ServerCPU = round((after.cpu - before.cpu).Seconds(), 2)
	b.report.ServerCPUEach = each(after.cpu-before.cpu, r.arrived)
	b.o.Progress("godwit: %.0f/s delivered, %.0f/s acknowledged", r.deliveriesPerS, r.acksPerS)
	return nil
}

func (b *bench) count(r result) {
	b.report.Events += r.acked
	b.report.Failed += r.failed
	b.report.Missing += r.missing
	b.report.Duplicate += r.duplicates
}

func each(cpu time.Duration, n int64) float64 {
	if n == 0 {
		return 0
	}
	return round(float64(cpu.Microseconds())/float64(n), 1)
}

// atRate posts at a fixed rate and measures from post to arrival.
func (b *bench) atRate(ctx context.Context, srv *server, s *sink, rate float64, length time.Duration) error {
	b.o.Progress("godwit: latency at %.0f/s", rate)
	l := b.load(srv.target("bench.load"), length)
	l.rate, l.events = rate, 0
	r, err := b.measure(ctx, l, s)
	if err != nil {
		return fmt.Errorf("measure latency: %w", err)
	}
	b.count(r)
	b.report.Rate, b.report.RateHeld = round(rate, 0), round(r.deliveriesPerS, 0)
	b.report.P50, b.report.P99, b.report.P999, b.report.Max = ms(r.p50), ms(r.p99), ms(r.p999), ms(r.max)
	return nil
}

// latencyOnly posts at the given rate, or at half of the full rate, which a short run measures first.
func (b *bench) latencyOnly(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	return b.withServer(ctx, func(srv *server) error {
		if err := srv.subscribe(ctx, b.o.Profile, s.url(), "bench.load"); err != nil {
			return err
		}
		rate, length := b.o.Rate, b.share(90)
		if rate == 0 {
			if err := b.fullLoad(ctx, srv, s); err != nil {
				return err
			}
			rate, length = b.report.DeliveriesPerS/2, b.share(60)
		} else if err := b.warm(ctx, srv.target("bench.load"), s); err != nil {
			return err
		}
		return b.atRate(ctx, srv, s, rate, length)
	})
}

// idle measures an idle server.
func (b *bench) idle(ctx context.Context) error {
	return b.withServer(ctx, func(srv *server) error {
		b.o.Progress("idle: waiting for the memory to settle")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(b.o.Length, 5*time.Second)):
		}
		u, err := srv.usage()
		b.report.ServerIdleRSS = mb(u.rss)
		return err
	})
}

// backlog measures a healthy endpoint, queues many deliveries for a dead one, and measures again.
func (b *bench) backlog(ctx context.Context) error {
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
	dead.close() // connections are refused from now on
	return b.withServer(ctx, func(srv *server) error {
		if err := errors.Join(srv.subscribe(ctx, b.o.Profile, s.url(), "bench.load"), srv.subscribe(ctx, b.o.Profile, deadURL, "bench.dead")); err != nil {
			return err
		}
		rep := &BacklogReport{Waiting: b.o.Backlog}
		b.report.Backlog = rep
		alone, err := b.healthy(ctx, srv, s, "alone", b.share(30))
		if err != nil {
			return err
		}
		before, err := srv.settledUsage(ctx)
		if err != nil {
			return err
		}
		took, err := srv.pile(ctx, b, "bench.dead")
		if err != nil {
			return fmt.Errorf("post the backlog: %w", err)
		}
		rep.LoadPerS = round(float64(b.o.Backlog)/took.Seconds(), 0)
		after, err := srv.settledUsage(ctx)
		if err != nil {
			return err
		}
		beside, err := b.healthy(ctx, srv, s, "beside the backlog", b.share(30))
		if err != nil {
			return err
		}
		rep.AddedRSS = mb(after.rss - before.rss)
		rep.AlonePerS, rep.BesidePerS = round(alone.deliveriesPerS, 0), round(beside.deliveriesPerS, 0)
		rep.LostPercent = round(100*(1-beside.deliveriesPerS/alone.deliveriesPerS), 1)
		rep.P99Alone, rep.P99Beside = ms(alone.p99), ms(beside.p99)
		return nil
	})
}

// healthy measures the healthy endpoint at full load.
func (b *bench) healthy(ctx context.Context, srv *server, s *sink, how string, length time.Duration) (result, error) {
	b.o.Progress("healthy endpoint %s", how)
	t := srv.target("bench.load")
	if err := b.warm(ctx, t, s); err != nil {
		return result{}, err
	}
	r, err := b.measure(ctx, b.load(t, length), s)
	if err != nil {
		return r, fmt.Errorf("measure healthy endpoint %s: %w", how, err)
	}
	b.count(r)
	b.o.Progress("healthy endpoint %s: %.0f/s", how, r.deliveriesPerS)
	return r, nil
}

// isolation posts half of the full rate to a healthy endpoint: alone, then with each event also going to one endpoint that
// hangs and one that answers 500.
func (b *bench) isolation(ctx context.Context) error {
	var sinks [3]*sink
	for i, m := range []manner{accepts, hangs, fails} {
		s, err := startSink(m)
		if err != nil {
			return err
		}
		defer s.close()
		sinks[i] = s
	}
	return b.withServer(ctx, func(srv *server) error {
		if err := srv.subscribe(ctx, b.o.Profile, sinks[0].url(), "bench.load"); err != nil {
			return err
		}
		full, err := b.healthy(ctx, srv, sinks[0], "at full load", b.share(20))
		if err != nil {
			return err
		}
		rate := b.o.Rate
		if rate == 0 {
			rate = full.deliveriesPerS / 3
		}
		rep := &IsolationReport{Rate: round(rate, 0)}
		b.report.Isolation = rep
		l := b.load(srv.target("bench.load"), b.share(30))
		l.rate, l.events = rate, 0
		b.o.Progress("healthy endpoint alone at %.0f/s", rate)
		alone, err := b.measure(ctx, l, sinks[0])
		if err != nil {
			return err
		}
		if err := errors.Join(srv.subscribe(ctx, b.o.Profile, sinks[1].url(), "bench.load"), srv.subscribe(ctx, b.o.Profile, sinks[2].url(), "bench.load")); err != nil {
			return err
		}
		b.o.Progress("the same beside one that hangs and one that answers 500")
		beside, err := b.measure(ctx, l, sinks[0])
		if err != nil {
			return err
		}
		b.count(alone)
		b.count(beside)
		rep.AlonePerS, rep.BesidePerS = round(alone.deliveriesPerS, 0), round(beside.deliveriesPerS, 0)
		rep.P50Alone, rep.P99Alone, rep.P50Beside, rep.P99Beside = ms(alone.p50), ms(alone.p99), ms(beside.p50), ms(beside.p99)
		return nil
	})
}
