package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-hq/godwit/internal/management"
)

// A variant is a way to deliver that is compared with the plain one: one endpoint, http, Options.Size. Both have a relay that
// forwards in the same way.
type variant struct {
	name  string
	sink  *sink
	types int // endpoints, each with an event type of its own; more than one take turns
	size  int
	relay *process

	relayed, delivered sum
	worst              result // the godwit turn with the highest p99
}

// VariantReport compares godwit with a relay that does the same without storing.
type VariantReport struct {
	Name           string  `json:"name"`
	RelayPerS      float64 `json:"relay_per_s"`
	DeliveriesPerS float64 `json:"deliveries_per_s"`
	Ratio          float64 `json:"ratio_relay"`
	OfPlain        float64 `json:"ratio_of_plain_ratio"` // Ratio over that of the plain variant
	P99            float64 `json:"p99_full_load_ms"`     // of the worst turn
	ServerCPUEach  float64 `json:"server_cpu_us_per_delivery"`
	RelayCPUEach   float64 `json:"relay_cpu_us_per_delivery"`
	Handshakes     int64   `json:"tls_handshakes,omitempty"` // with godwit and the relay together
	Resumed        int64   `json:"tls_resumed,omitempty"`
}

func (r *VariantReport) print(t *table) {
	t.row(r.Name+": in-memory relay", "%.0f/s\t%.0f µs of CPU a delivery", r.RelayPerS, r.RelayCPUEach)
	t.row(r.Name+": godwit, held", "%.0f/s\t%.2f of the relay, %.2f of the plain ratio; %.0f µs; p99 %.1f ms", r.DeliveriesPerS, r.Ratio, r.OfPlain, r.ServerCPUEach, r.P99)
	if r.Handshakes > 0 {
		t.row(r.Name+": TLS handshakes", "%d\t%d resumed", r.Handshakes, r.Resumed)
	}
}

// plain is the variant that the others are compared with.
func (b *bench) plain() (*variant, error) {
	s, err := startSink(accepts)
	return &variant{name: "plain", sink: s, types: 1, size: b.o.Size}, err
}

// tls delivers over https by HTTP/1.1 and by HTTP/2. The receivers close connections now and then, so sessions are resumed.
func (b *bench) tls(ctx context.Context) error {
	certificate, ca, err := newCertificate()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "godwit-bench-ca-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.caFile = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(b.caFile, ca, 0o600); err != nil {
		return err
	}
	variants := make([]*variant, 0, 3)
	plain, err := b.plain()
	if err != nil {
		return err
	}
	variants = append(variants, plain)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		s, err := startTLSSink(certificate, protocol == "HTTP/2")
		if err != nil {
			return err
		}
		variants = append(variants, &variant{name: protocol + " over TLS", sink: s, types: 1, size: b.o.Size})
	}
	return b.compareVariants(ctx, variants...)
}

// many delivers to many endpoints, each on a port of its own, one event to each in turn.
func (b *bench) many(ctx context.Context) error {
	plain, err := b.plain()
	if err != nil {
		return err
	}
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	if err := s.listen(b.o.Endpoints - 1); err != nil {
		return err
	}
	return b.compareVariants(ctx, plain, &variant{name: fmt.Sprintf("%d endpoints", b.o.Endpoints), sink: s, types: b.o.Endpoints, size: b.o.Size})
}

// largeSize is the size of the events in the scenario large.
const largeSize = 256 << 10

func (b *bench) large(ctx context.Context) error {
	plain, err := b.plain()
	if err != nil {
		return err
	}
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	return b.compareVariants(ctx, plain, &variant{name: fmt.Sprintf("%d KiB", largeSize>>10), sink: s, types: 1, size: largeSize})
}

// compareVariants measures the variants at full load on one server, by turns with their relays. The first is the plain one.
func (b *bench) compareVariants(ctx context.Context, variants ...*variant) error {
	var specs []management.EndpointSpec
	for i, v := range variants {
		defer v.sink.close()
		var err error
		if v.relay, err = b.startRelay(ctx, RelayOptions{Targets: v.sink.urls(), CAFile: b.caFile}); err != nil {
			return err
		}
		defer v.relay.kill()
		for n, url := range v.sink.urls() {
			specs = append(specs, management.EndpointSpec{URL: url, Profile: b.o.Profile, Patterns: []string{variantType(i, n)}})
		}
	}
	return b.withSeeded(ctx, specs, func(srv *server, _ string) error {
		targets := make([][2]target, len(variants))
		for i, v := range variants {
			targets[i] = [2]target{{addr: hostOf(v.relay.url), path: "/" + turnDigits, turns: v.types}, srv.target(variantType(i, 0))}
			targets[i][1].turns = v.types
			for _, t := range targets[i] {
				if err := b.warmVariant(ctx, v, t); err != nil {
					return err
				}
			}
		}
		const rounds = 3
		length := b.share(90) / time.Duration(2*rounds*len(variants))
		for range rounds {
			for i, v := range variants {
				if err := b.turnOf(ctx, v, srv.process, targets[i], length); err != nil {
					return fmt.Errorf("measure %s: %w", v.name, err)
				}
			}
		}
		b.reportVariants(variants)
		u, err := srv.usage()
		b.report.ServerPeakRSS = mb(u.peakRSS)
		return err
	})
}

// variantType is the event type of a variant's n-th endpoint.
func variantType(variant, n int) string { return fmt.Sprintf("bench.v%d.n%04d", variant, n) }

func (b *bench) loadOf(v *variant, t target, length time.Duration) load {
	l := b.load(t, length)
	l.size = v.size
	return l
}

// warmVariant opens connections to every endpoint.
func (b *bench) warmVariant(ctx context.Context, v *variant, t target) error {
	l := b.loadOf(v, t, 10*time.Second)
	l.events = max(20*b.o.Connections, 2*v.types)
	_, err := b.measure(ctx, l, v.sink)
	return err
}

// turnOf measures the relay and then godwit for a while, and adds the results to the earlier ones.
func (b *bench) turnOf(ctx context.Context, v *variant, srv *process, targets [2]target, length time.Duration) error {
	for i, p := range []*process{v.relay, srv} {
		before, err := p.usage()
		if err != nil {
			return err
		}
		r, err := b.measure(ctx, b.loadOf(v, targets[i], length), v.sink)
		if err != nil {
			return err
		}
		after, err := p.usage()
		if err != nil {
			return err
		}
		if i == 0 {
			v.relayed.add(r, after.cpu-before.cpu)
			b.o.Progress("%s: relay %.0f/s", v.name, r.deliveriesPerS)
			continue
		}
		b.count(r)
		v.delivered.add(r, after.cpu-before.cpu)
		if r.p99 > v.worst.p99 {
			v.worst = r
		}
		b.o.Progress("%s: godwit %.0f/s", v.name, r.deliveriesPerS)
	}
	return nil
}

func (b *bench) reportVariants(variants []*variant) {
	var plain float64
	for i, v := range variants {
		ratio := v.delivered.perSecond() / v.relayed.perSecond()
		if i == 0 {
			plain = ratio
		}
		b.report.Variants = append(b.report.Variants, VariantReport{
			Name: v.name, RelayPerS: round(v.relayed.perSecond(), 0), DeliveriesPerS: round(v.delivered.perSecond(), 0),
			Ratio: round(ratio, 3), OfPlain: round(ratio/plain, 3), P99: ms(v.worst.p99),
			ServerCPUEach: each(v.delivered.cpu, v.delivered.events), RelayCPUEach: each(v.relayed.cpu, v.relayed.events),
			Handshakes: v.sink.handshakes.Load(), Resumed: v.sink.resumed.Load(),
		})
	}
}
