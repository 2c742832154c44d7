package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/profile"
)

// rounds is the number of turns of each profile. Each round begins with another profile, so that none is always the first.
const rounds = 4

// profiles measures all profiles at full load on one server, in turns: on a shared machine the speed changes by the minute, and
// a store slows down as it fills.
func (b *bench) profiles(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	names := profile.Names()
	sums := make([]sum, len(names))
	err = b.withServer(ctx, func(srv *server) error {
		for _, name := range names {
			if err := srv.subscribe(ctx, name, s.url(), eventTypeOf(name)); err != nil {
				return fmt.Errorf("subscribe with profile %s: %w", name, err)
			}
			if err := b.warm(ctx, srv.target(eventTypeOf(name)), s); err != nil {
				return err
			}
		}
		for turn := range rounds * len(names) {
			i := (turn + turn/len(names)) % len(names)
			length := b.share(90) / time.Duration(rounds*len(names))
			if err := b.turn(ctx, srv, s, names[i], length, &sums[i]); err != nil {
				return fmt.Errorf("measure profile %s: %w", names[i], err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.Profile = ""
	b.compare(names, sums)
	return nil
}

// eventTypeOf is the type of events to which only the profile's endpoint subscribes.
func eventTypeOf(name string) string { return "bench." + strings.ReplaceAll(name, "-", "_") }

// turn measures one profile for a while and adds the result to the earlier ones.
func (b *bench) turn(ctx context.Context, srv *server, s *sink, name string, length time.Duration, to *sum) error {
	before, err := srv.usage()
	if err != nil {
		return err
	}
	r, err := b.measure(ctx, b.load(srv.target(eventTypeOf(name)), length), s)
	if err != nil {
		return err
	}
	after, err := srv.usage()
	if err != nil {
		return err
	}
	b.count(r)
	to.add(r, after.cpu-before.cpu)
	b.o.Progress("%s: %.0f/s", name, r.deliveriesPerS)
	return nil
}

// compare computes the ratios to the default profile.
func (b *bench) compare(names []string, sums []sum) {
	var base sum
	for i, name := range names {
		if name == profile.Default {
			base = sums[i]
		}
	}
	for i, name := range names {
		s := sums[i]
		cpu, baseCPU := s.cpu.Seconds()/float64(s.events), base.cpu.Seconds()/float64(base.events)
		b.report.Profiles = append(b.report.Profiles, ProfileReport{
			Profile: name, Events: s.events,
			DeliveriesPerS: round(s.perSecond(), 0), ServerCPUEach: each(s.cpu, s.events),
			RatioRate: round(s.perSecond()/base.perSecond(), 3), RatioCPU: round(cpu/baseCPU, 3),
		})
	}
}
