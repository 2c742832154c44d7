package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	busyTenants   = 100
	busyEndpoints = 100 // of each tenant
	busyMinutes   = 24 * 60
)

// BenchStats asks the questions of pages about a day on which each of 10,000 endpoints had traffic in every minute. processor returns the CPU time
// that the process has used; insert stores a log row that is ready to be folded.
func BenchStats(b *testing.B, open Open, processor func() time.Duration, insert func(s store.Store, row []byte)) {
	f := newFixture(b, open)
	end := stats.MinuteOf(f.now)
	r := rand.New(rand.NewPCG(1, 2))
	var tenants []godwit.TenantID
	var endpoints []godwit.EndpointID
	begin := time.Now()
	for range busyTenants {
		tenant := f.newTenant()
		tenants = append(tenants, tenant)
		list := make([]godwit.EndpointID, busyEndpoints)
		for i := range list {
			list[i] = mint[godwit.EndpointID](f.now)
		}
		endpoints = append(endpoints, list...)
		for part := 0; part < busyEndpoints; part += 2 {
			insert(f.s, busyRow(r, tenant, list[part:part+2], end))
		}
	}
	f.fold(true)
	b.Logf("folded %d endpoint-minutes in %s", len(endpoints)*busyMinutes, time.Since(begin))
	// What a busy server has not folded yet: five seconds of commits.
	for range 2_000 {
		s := stats.Segment{Tenant: tenants[r.IntN(len(tenants))], Minute: end, Events: 20}
		for range 20 {
			s.Delivery(endpoints[r.IntN(len(endpoints))])
		}
		insert(f.s, s.Append(nil))
	}
	day := func(level stats.Level) stats.Range {
		until := (end*60/level.Seconds() + 1) * level.Seconds()
		return stats.Range{Level: level, Since: until - 24*3600, Until: until}
	}
	for _, q := range []struct {
		name string
		ask  func() (int, error)
	}{
		{"server by minute", func() (int, error) { return read(f, stats.Selection{Kind: stats.OfServer}, day(stats.Minute)) }},
		{"environment by hour", func() (int, error) {
			return read(f, stats.Selection{Kind: stats.OfEnvironment, Owner: godwit.DefaultEnvironment}, day(stats.Hour))
		}},
		{"tenant by minute", func() (int, error) {
			return read(f, stats.Selection{Kind: stats.OfTenant, Owner: tenants[5]}, day(stats.Minute))
		}},
		{"endpoint by minute", func() (int, error) {
			return read(f, stats.Selection{Kind: stats.OfEndpoint, Owner: tenants[0], Endpoints: endpoints[5:6]}, day(stats.Minute))
		}},
		{"all endpoints, top 20 by hour", func() (int, error) { return top(f, stats.Selection{Kind: stats.OfEndpoint}, day(stats.Hour)) }},
		{"all endpoints, top 20 by minute", func() (int, error) { return top(f, stats.Selection{Kind: stats.OfEndpoint}, day(stats.Minute)) }},
		{"all tenants, top 20 by hour", func() (int, error) { return top(f, stats.Selection{Kind: stats.OfTenant}, day(stats.Hour)) }},
		{"endpoints of a tenant, top 20 by hour", func() (int, error) {
			return top(f, stats.Selection{Kind: stats.OfEndpoint, Owner: tenants[7]}, day(stats.Hour))
		}},
		{"causes of all endpoints", func() (int, error) {
			list, _, err := stats.Failures(f.ctx, f.s, stats.Selection{}, day(stats.Minute))
			return len(list), err
		}},
	} {
		b.Run(q.name, func(b *testing.B) {
			before := processor()
			for b.Loop() {
				if n, err := q.ask(); err != nil || n == 0 {
					b.Fatalf("%d (%v)", n, err)
				}
			}
			b.ReportMetric(float64((processor()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

func read(f *fixture, sel stats.Selection, r stats.Range) (int, error) {
	list, _, err := stats.Read(f.ctx, f.s, sel, r)
	return len(list), err
}

func top(f *fixture, sel stats.Selection, r stats.Range) (int, error) {
	list, _, _, err := stats.Top(f.ctx, f.s, sel, r, 20)
	return len(list), err
}

// busyRow is a log row with a day of some endpoints. One in ten of them fails sometimes.
func busyRow(r *rand.Rand, tenant godwit.TenantID, endpoints []godwit.EndpointID, end int64) (row []byte) {
	for minute := end - busyMinutes + 1; minute <= end; minute++ {
		s := stats.Segment{Tenant: tenant, Minute: minute, Events: int64(3 * len(endpoints))}
		at := time.Unix(minute*60, 0)
		for _, id := range endpoints {
			d := godwit.Delivery{EndpointID: id, CreatedAt: at, Run: godwit.Run{Trigger: godwit.TriggerAccept}, Status: godwit.DeliveryAccepted}
			for range 3 {
				s.Delivery(id)
				a := godwit.Attempt{StartedAt: at, Duration: time.Duration(r.ExpFloat64() * float64(50*time.Millisecond)), Verdict: godwit.Verdict{Outcome: godwit.Accepted}}
				if id[15]%10 == 0 && r.IntN(10) == 0 {
					a.Verdict.Outcome, a.Status = godwit.Transient, 500+r.IntN(5)
				}
				s.Attempt(&d, &a)
			}
		}
		row = s.Append(row)
	}
	return row
}
