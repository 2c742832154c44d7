package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/management"
)

// RestartReport tells how long a lone server refuses events when it is restarted under load.
type RestartReport struct {
	Endpoints int         `json:"endpoints"`
	Stopped   RestartTime `json:"sigterm"`
	Killed    RestartTime `json:"kill"`
}

// A RestartTime is the restart of one server.
type RestartTime struct {
	Ack     float64 `json:"first_ack_ms"` // from the start of the new process to its first acknowledgement
	Gap     float64 `json:"gap_ms"`       // from the signal to that acknowledgement, with the end of the old process
	Refused int64   `json:"refused"`      // posts that the new process answered with an error before that
}

func (r *RestartReport) print(t *table) {
	for _, row := range []struct {
		name string
		RestartTime
	}{{"SIGTERM", r.Stopped}, {"kill -9", r.Killed}} {
		t.row("after "+row.name, "%.0f ms\tfrom the start of the process to its first acknowledgement; %.0f ms from the signal, %d posts refused by the new process",
			row.Ack, row.Gap, row.Refused)
	}
	t.row("endpoints", "%d", r.Endpoints)
}

// restarts restarts a server under load, once in order and once after a kill, with many endpoints in the store.
func (b *bench) restarts(ctx context.Context) error {
	sink, err := startSink(accepts)
	if err != nil {
		return err
	}
	defer sink.close()
	data, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	if err := app.EnsureEvidenceKey(data, benchRing); err != nil {
		return err
	}
	specs := make([]management.EndpointSpec, b.o.Endpoints)
	for i := range specs {
		specs[i] = management.EndpointSpec{URL: sink.url(), Profile: b.o.Profile, Patterns: []string{fmt.Sprintf("restart.%d", i)}}
	}
	b.o.Progress("making %d endpoints", len(specs))
	made, err := b.seed(ctx, data, benchRing, specs)
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	r := &RestartReport{Endpoints: b.o.Endpoints}
	b.report.Restart = r
	srv, err := b.restart(ctx, data, made.key, "GODWIT_LISTEN="+address)
	if err != nil {
		return err
	}
	for _, way := range []struct {
		into *RestartTime
		end  func() error
	}{{&r.Stopped, func() error { return srv.stop() }}, {&r.Killed, func() error { srv.kill(); return nil }}} {
		p := b.postAlways(address, made.key)
		if err = p.await(ctx, time.Now()); err == nil {
			srv, err = b.again(ctx, srv, way.end, p, way.into, data, made.key, address)
		}
		p.stop()
		if err != nil {
			srv.kill()
			return err
		}
	}
	u, err := srv.usage()
	if err != nil {
		srv.kill()
		return err
	}
	b.report.ServerPeakRSS = mb(u.peakRSS)
	return srv.stop()
}

// again ends a server and starts another one in its place. It returns the one that runs.
func (b *bench) again(ctx context.Context, srv *server, end func() error, p *poster, into *RestartTime, data, key, address string) (*server, error) {
	signal := time.Now()
	if err := end(); err != nil {
		return srv, err
	}
	p.refused.Store(0)
	began := time.Now()
	next, err := b.restart(ctx, data, key, "GODWIT_LISTEN="+address)
	if err != nil {
		return srv, err
	}
	if err := p.await(ctx, began); err != nil {
		return next, err
	}
	first := p.firstAfter(began)
	into.Ack, into.Gap, into.Refused = ms(first.Sub(began)), ms(first.Sub(signal)), p.refused.Load()
	return next, nil
}

// freeAddress finds a port for a server that has to come back on it.
func freeAddress() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// A poster posts events all the time, whether a server answers or not.
type poster struct {
	cancel  context.CancelFunc
	done    sync.WaitGroup
	refused atomic.Int64 // answers other than 2xx

	mu    sync.Mutex
	acks  []time.Time   // one a millisecond at most
	acked chan struct{} // closed and replaced at each of them
}

func (b *bench) postAlways(address, key string) *poster {
	ctx, cancel := context.WithCancel(context.Background())
	p := &poster{cancel: cancel, acked: make(chan struct{})}
	body := newBody(0, b.o.Size)
	transport := &http.Transport{MaxIdleConnsPerHost: b.o.Connections}
	for range b.o.Connections {
		p.done.Go(func() {
			for ctx.Err() == nil {
				p.post(ctx, transport, "http://"+address+"/v1/events?type=restart.0", key, body)
			}
		})
	}
	return p
}

func (p *poster) post(ctx context.Context, transport *http.Transport, url, key string, body []byte) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		time.Sleep(time.Millisecond) // no server listens
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if answer.StatusCode >= 300 {
		p.refused.Add(1)
		return
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.acks); n == 0 || now.Sub(p.acks[n-1]) >= time.Millisecond {
		p.acks = append(p.acks, now)
		close(p.acked)
		p.acked = make(chan struct{})
	}
}

// firstAfter returns the time of the first acknowledgement after a time, or zero.
func (p *poster) firstAfter(t time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.acks {
		if at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// await waits for an acknowledgement after a time.
func (p *poster) await(ctx context.Context, after time.Time) error {
	for {
		p.mu.Lock()
		acked := p.acked
		p.mu.Unlock()
		if !p.firstAfter(after).IsZero() {
			return nil
		}
		select {
		case <-acked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *poster) stop() {
	p.cancel()
	p.done.Wait()
}
