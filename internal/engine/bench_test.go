package engine_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// yes accepts every request at once, so that the benchmark measures only the engine and its store.
type yes struct{ *sender.Sender }

func (y yes) Send(_ context.Context, r *sender.Request) godwit.Exchange {
	req := &http.Request{Method: r.Method, Header: r.Header.Clone(), Host: "example.org"}
	if u, err := http.NewRequest(http.MethodPost, r.URL, nil); err == nil {
		req.URL = u.URL
	}
	x := godwit.Exchange{URL: r.URL, Started: time.Now(), Status: 200, Proto: "HTTP/1.1"}
	if err := r.Prepare(req, false); err != nil {
		x.Failure = &godwit.Failure{Kind: godwit.FailureCredential, Detail: err.Error()}
	}
	return x
}

// BenchmarkDeliver takes an event from Submit to its recorded result, with as many concurrent submissions as on a busy server.
func BenchmarkDeliver(b *testing.B) {
	for _, profile := range []string{"eds", "cybercube"} {
		b.Run(profile, func(b *testing.B) { deliver(b, profile) })
	}
}

func deliver(b *testing.B, profile string) {
	ctx := b.Context()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	st, err := sqlite.Open(ctx, b.TempDir(), sqlite.Options{})
	check(err)
	defer st.Close()
	ring, err := keyring.Parse(keyring.Generate("k1"))
	check(err)
	send, err := sender.New(sender.Config{Clock: clock.Real{}.Now, AllowHTTP: true})
	check(err)
	log := slog.New(slog.DiscardHandler)
	delivered := &tally{want: b.N, done: make(chan struct{})}
	e, err := engine.New(ctx, engine.Config{Store: st, Sender: yes{send}, Ring: ring, Clock: clock.Real{}, Log: log, Node: godwit.Node{Name: "bench"}, Recorder: delivered})
	check(err)
	running, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	<-e.Started()
	m, err := management.New(management.Config{Store: st, Engine: e, URLs: send, Ring: ring, Log: log, Now: clock.Real{}.Now, Limits: management.NoLimits})
	check(err)
	tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	check(err)
	zero := 0
	spec := management.EndpointSpec{URL: "http://example.org/", Profile: profile, Patterns: []string{"order.*"}}
	if profile == "cybercube" { // its windows count, but do not limit the benchmark
		many := 100000
		spec.Policy = godwit.PolicyOverrides{PerMinute: &many, PerSecond: &zero, AccountPerMinute: &zero}
	}
	_, _, err = m.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: spec})
	check(err)
	body := make([]byte, 1024)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	work := make(chan struct{}, b.N)
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	for range 64 {
		wg.Go(func() {
			for range work {
				_, err := e.Submit(ctx, engine.Submission{TenantID: tenant.ID, Events: []engine.Publication{
					{Type: "order.paid", ContentType: "application/octet-stream", Body: body},
				}})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	<-delivered.done
	b.StopTimer()
	cancel()
	check(<-ended)
}

// tally counts finished deliveries.
type tally struct {
	engine.Silent
	mu   sync.Mutex
	n    int
	want int
	done chan struct{}
}

func (t *tally) Delivered(string, *godwit.Delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.n == t.want {
		close(t.done)
	}
}
