package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/management"
)

// NeighbourReport compares the posts of a tenant alone with the same while another tenant's batch goes to many endpoints.
type NeighbourReport struct {
	Endpoints  int     `json:"endpoints"`
	Events     int     `json:"events"`             // of the batch
	BatchMS    float64 `json:"batch_ms"`           // until the batch was acknowledged
	Posts      int     `json:"posts_beside"`       // of the other tenant, meanwhile
	P50Alone   float64 `json:"post_p50_alone_ms"`  // post to acknowledgement
	P99Alone   float64 `json:"post_p99_alone_ms"`  //
	P50Beside  float64 `json:"post_p50_beside_ms"` //
	P99Beside  float64 `json:"post_p99_beside_ms"` //
	MaxBeside  float64 `json:"post_max_beside_ms"` //
	NotReady   int     `json:"not_ready"`          // answers of /readyz other than 200
	IdleRSS    float64 `json:"idle_rss_mb"`        // with the endpoints loaded
	AddedRSS   float64 `json:"added_rss_mb"`       // the most that the batch added to it
	Deliveries int64   `json:"deliveries"`         // that arrived while it was measured
}

func (r *NeighbourReport) print(t *table) {
	t.row("batch", "%d events\tto %d endpoints each, acknowledged after %.0f ms", r.Events, r.Endpoints, r.BatchMS)
	t.row("another tenant's post, alone", "p50 %.1f ms\tp99 %.1f ms", r.P50Alone, r.P99Alone)
	t.row("the same beside the batch", "p50 %.1f ms\tp99 %.1f ms, at most %.1f ms, %d posts", r.P50Beside, r.P99Beside, r.MaxBeside, r.Posts)
	t.row("answers that the server is not ready", "%d", r.NotReady)
	t.row("memory that the batch adds", "%.1f MB\tto %.1f MB", r.AddedRSS, r.IdleRSS)
	t.row("deliveries that arrived meanwhile", "%d", r.Deliveries)
}

// neighbourPosters is how many clients the other tenant has.
const neighbourPosters = 4

// neighbour posts one batch for many endpoints of one tenant, and meanwhile single events of another.
func (b *bench) neighbour(ctx context.Context) error {
	s, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer s.close()
	specs := make([]management.EndpointSpec, b.o.Endpoints)
	for i := range specs {
		specs[i] = management.EndpointSpec{URL: s.url(), Profile: b.o.Profile, Patterns: []string{"bench.fan"}}
	}
	return b.withSeeded(ctx, specs, func(srv *server, other string) error { return b.neighbourOn(ctx, srv, other, s) })
}

func (b *bench) neighbourOn(ctx context.Context, srv *server, other string, s *sink) error {
	batcher, err := client.New(srv.url, srv.key)
	if err != nil {
		return err
	}
	poster, err := client.New(srv.url, other)
	if err != nil {
		return err
	}
	r := &NeighbourReport{Endpoints: b.o.Endpoints, Events: b.o.Events}
	b.report.Neighbour = r
	b.o.Progress("another tenant alone")
	alone := &posts{url: srv.url, client: poster}
	if err := alone.run(ctx, b.share(20), nil); err != nil {
		return err
	}
	r.P50Alone, r.P99Alone = ms(alone.latency.quantile(0.5)), ms(alone.latency.quantile(0.99))
	idle, err := srv.settledUsage(ctx)
	if err != nil {
		return err
	}
	r.IdleRSS = mb(idle.rss)
	b.o.Progress("a batch of %d events for %d endpoints, and another tenant beside it", b.o.Events, b.o.Endpoints)
	before := s.served.Load()
	beside := &posts{url: srv.url, client: poster}
	err = beside.run(ctx, b.share(80), func(ctx context.Context) error {
		began := time.Now()
		_, err := batcher.PublishBatch(ctx, batchOf(b.o.Events, b.o.Size))
		r.BatchMS = ms(time.Since(began))
		return err
	})
	if err != nil {
		return err
	}
	peak, err := srv.usage()
	if err != nil {
		return err
	}
	r.AddedRSS = round(mb(peak.peakRSS)-r.IdleRSS, 1)
	b.report.ServerIdleRSS, b.report.ServerPeakRSS = r.IdleRSS, mb(peak.peakRSS)
	r.P50Beside, r.P99Beside, r.MaxBeside = ms(beside.latency.quantile(0.5)), ms(beside.latency.quantile(0.99)), ms(time.Duration(beside.longest.Load()))
	r.Posts, r.NotReady, r.Deliveries = int(beside.n.Load()), int(beside.notReady.Load()), s.served.Load()-before
	return nil
}

func batchOf(n, size int) []client.Event {
	events := make([]client.Event, n)
	for i := range events {
		events[i] = client.Event{Type: "bench.fan", Body: newBody(0, size)}
	}
	return events
}

// posts are the events that a tenant posts one after the other, over a few connections, and how long each took.
type posts struct {
	url      string
	client   *client.Client
	n        atomic.Int64
	latency  histogram
	longest  atomic.Int64
	notReady atomic.Int64
}

// run posts for a while, and does something else beside it. It ends early when the other thing fails.
func (p *posts) run(ctx context.Context, length time.Duration, beside func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	worker := func(f func() error) {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				if err := f(); err != nil {
					cancel(err)
				}
			}
		})
	}
	for range neighbourPosters {
		worker(func() error { return p.post(ctx) })
	}
	worker(func() error { return p.ask(ctx) })
	if beside != nil {
		wg.Go(func() {
			if err := beside(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// post posts one event and rests for a moment: the tenant is an ordinary one.
func (p *posts) post(ctx context.Context) error {
	began := time.Now()
	_, err := p.client.Publish(ctx, client.Event{Type: "bench.other", Body: []byte(`{}`)})
	took := time.Since(began)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("post beside the batch: %w", err)
	}
	p.n.Add(1)
	p.latency.add(took)
	for {
		longest := p.longest.Load()
		if int64(took) <= longest || p.longest.CompareAndSwap(longest, int64(took)) {
			break
		}
	}
	return pause(ctx, 10*time.Millisecond)
}

// ask asks whether the server is ready.
func (p *posts) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if ctx.Err() == nil && (err != nil || resp.StatusCode != http.StatusOK) {
		p.notReady.Add(1)
	}
	return pause(ctx, 100*time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return nil
}
