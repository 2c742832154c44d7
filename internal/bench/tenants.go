package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
)

// endpointsEach is the number of endpoints of a tenant in the scenario tenants. One of them gets the events.
const endpointsEach = 3

// TenantsReport shows the cost of many tenants with few endpoints each, for which one key of their environment posts.
type TenantsReport struct {
	Tenants     int     `json:"tenants"`
	Endpoints   int     `json:"endpoints"`
	SeedSeconds float64 `json:"seed_s"`
	Start       float64 `json:"start_ms"` // from the start of the process until it is ready
	IdleRSS     float64 `json:"idle_rss_mb"`
	RSS         float64 `json:"rss_mb"`      // after a post for each tenant, and more
	FirstPerS   float64 `json:"first_per_s"` // the first post for each tenant
	OnePerS     float64 `json:"one_per_s"`
	TurnsPerS   float64 `json:"turns_per_s"`
	FirstCPU    float64 `json:"first_cpu_us"`
	OneCPU      float64 `json:"one_cpu_us"`
	TurnsCPU    float64 `json:"turns_cpu_us"`
}

func (r *TenantsReport) print(t *table) {
	t.row("tenants", "%d\twith %d endpoints, made in %.0f s", r.Tenants, r.Endpoints, r.SeedSeconds)
	t.row("start of the server", "%.0f ms", r.Start)
	t.row("memory", "%.1f MB\t%.1f MB after posts for all of them", r.IdleRSS, r.RSS)
	t.row("first post for each", "%.0f/s\t%.0f µs of CPU for a post and its delivery", r.FirstPerS, r.FirstCPU)
	t.row("posts for one tenant", "%.0f/s\t%.0f µs of CPU for a post and its delivery", r.OnePerS, r.OneCPU)
	t.row("posts for all in turn", "%.0f/s\t%.0f µs of CPU for a post and its delivery", r.TurnsPerS, r.TurnsCPU)
}

func (b *bench) tenants(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	data, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	if err := app.EnsureEvidenceKey(data, benchRing); err != nil {
		return err
	}
	r := &TenantsReport{Tenants: max(b.o.Endpoints/endpointsEach, 1)}
	r.Endpoints = r.Tenants * endpointsEach
	b.report.Tenants = r
	b.o.Progress("making %d tenants with %d endpoints each", r.Tenants, endpointsEach)
	began := time.Now()
	key, err := b.seedTenants(ctx, data, r.Tenants, s.url())
	if err != nil {
		return err
	}
	r.SeedSeconds = round(time.Since(began).Seconds(), 1)
	srv, err := b.restart(ctx, data, key)
	if err != nil {
		return err
	}
	r.Start = ms(srv.took)
	if err := b.postForTenants(ctx, srv, s, r); err != nil {
		srv.kill()
		return err
	}
	return srv.stop()
}

func (b *bench) postForTenants(ctx context.Context, srv *server, s *sink, r *TenantsReport) error {
	idle, err := srv.settledUsage(ctx)
	if err != nil {
		return err
	}
	r.IdleRSS = mb(idle.rss)
	for _, m := range []struct {
		what      string
		tenants   int
		length    time.Duration
		perS, cpu *float64
	}{
		{"each tenant, the first", r.Tenants, 0, &r.FirstPerS, &r.FirstCPU},
		{"one tenant", 1, b.share(45), &r.OnePerS, &r.OneCPU},
		{"all tenants in turn", r.Tenants, b.share(45), &r.TurnsPerS, &r.TurnsCPU},
	} {
		b.o.Progress("posts for %s", m.what)
		run := &tenantPosts{srv: srv, sink: s, tenants: m.tenants, body: newBody(0, b.o.Size), least: int64(m.tenants)}
		if err := run.do(ctx, b.o.Connections, m.length); err != nil {
			return err
		}
		*m.perS, *m.cpu = round(float64(run.posted.Load())/run.took.Seconds(), 0), run.cpuEach
		b.report.Events += run.posted.Load()
	}
	after, err := srv.settledUsage(ctx)
	if err != nil {
		return err
	}
	r.RSS, b.report.ServerPeakRSS = mb(after.rss), mb(after.peakRSS)
	return nil
}

// tenantPosts posts events for tenants in turn, by a key of their environment, and waits for the deliveries.
type tenantPosts struct {
	srv     *server
	sink    *sink
	tenants int
	body    []byte
	least   int64 // posts, however long they take
	posted  atomic.Int64
	took    time.Duration
	cpuEach float64
}

func (p *tenantPosts) do(ctx context.Context, connections int, length time.Duration) error {
	before, err := p.srv.usage()
	if err != nil {
		return err
	}
	arrived, began := p.sink.served.Load(), time.Now()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var clients sync.WaitGroup
	failed := make(chan error, connections)
	for range connections {
		clients.Go(func() {
			for ctx.Err() == nil && (time.Since(began) < length || next.Load() < p.least) {
				if err := p.post(ctx, client, next.Add(1)); err != nil {
					failed <- err
					return
				}
				p.posted.Add(1)
			}
		})
	}
	clients.Wait()
	p.took = time.Since(began)
	select {
	case err := <-failed:
		return err
	default:
	}
	for p.sink.served.Load()-arrived < p.posted.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	after, err := p.srv.usage()
	p.cpuEach = each(after.cpu-before.cpu, p.posted.Load())
	return errors.Join(err, ctx.Err())
}

func (p *tenantPosts) post(ctx context.Context, c *http.Client, n int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.srv.url+"/v1/events?type=bench.load", bytes.NewReader(p.body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.srv.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Godwit-Tenant", tenantUID(int(n)%p.tenants))
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("post an event: %s %.200s (%w)", resp.Status, answer, err)
	}
	return nil
}

func tenantUID(n int) string { return fmt.Sprintf("customer-%d", n) }

// seedTenants makes tenants of the first environment, and a key of the environment, in the store itself.
func (b *bench) seedTenants(ctx context.Context, data string, n int, url string) (key string, err error) {
	log := slog.New(slog.DiscardHandler)
	ring, err := keyring.Parse(benchRing)
	if err != nil {
		return "", err
	}
	st, err := app.OpenStore(ctx, &config.Storage{Data: data, Store: b.o.Store}, log)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	service, err := management.New(management.Config{
		Store: st, Engine: noEngine{}, URLs: anyURL{}, Ring: ring, Log: log, Now: time.Now, Limits: management.NoLimits,
	})
	if err != nil {
		return "", err
	}
	home := godwit.HomeOf(godwit.DefaultEnvironment)
	_, key, err = service.Keys.Create(ctx, nil, home, management.KeySpec{Name: "bench", Scopes: []godwit.Scope{godwit.ScopeIngest}})
	for i := 0; i < n && err == nil; i++ {
		err = seedCustomer(ctx, service, i, b.o.Profile, url)
		if i > 0 && i%1000 == 0 {
			b.o.Progress("%d tenants", i)
		}
	}
	return key, err
}

func seedCustomer(ctx context.Context, service *management.Service, n int, profile, url string) error {
	tenant, err := service.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{UID: tenantUID(n), Name: tenantUID(n)})
	if err != nil {
		return err
	}
	for i := range endpointsEach {
		pattern := "bench.load"
		if i > 0 {
			pattern = fmt.Sprintf("bench.other%d", i)
		}
		_, _, err := service.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
			URL: url, Profile: profile, Patterns: []string{pattern}, Policy: unlimited,
		}})
		if err != nil {
			return err
		}
	}
	return nil
}
