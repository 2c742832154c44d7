package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/app"
)

// server is `godwit serve` as a child process, with the bench's own tenant and key.
type server struct {
	*process
	key    string
	client *client.Client
	took   time.Duration // from the start of the process until it was ready
}

// withServer runs f beside a fresh server and stops it afterwards.
func (b *bench) withServer(ctx context.Context, f func(*server) error) error {
	data, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	b.o.Progress("starting godwit serve")
	srv, err := b.boot(ctx, data)
	if err != nil {
		return err
	}
	u, err := srv.usage()
	if err != nil {
		srv.kill()
		return err
	}
	b.report.ServerIdleRSS = mb(u.rss)
	err = f(srv)
	if err == nil {
		u, err = srv.usage()
		b.report.ServerPeakRSS = mb(u.peakRSS)
	}
	if err != nil {
		srv.kill()
		return err
	}
	return srv.stop()
}

// benchRing is no secret: a measurement that is repeated on the same database has to have the ring of the first.
const benchRing = "bench:Z29kd2l0IGJlbmNoOiB0aGlzIGlzIG5vIHNlY3JldCE="

// environment is that of a server with its own data and key ring.
func (b *bench) environment(data, ring string) []string {
	environment := append(cleanEnvironment(),
		"GODWIT_DATA="+data,
		"GODWIT_STORE="+b.o.Store,
		"GODWIT_KEYRING="+ring,
		"GODWIT_LISTEN=127.0.0.1:0",
		"GODWIT_NODE=bench",
		"GODWIT_ALLOW_HTTP=true",
		"GODWIT_ALLOW_ADDRESS=127.0.0.0/8",
		"GODWIT_LOG_FORMAT=json",
		"GODWIT_DRAIN_TIMEOUT=2s", // endpoints that hang on purpose are not waited for
	)
	if b.o.Scenario == "commands" {
		environment = append(environment, "GODWIT_COMMANDS_PROBE=true", "GODWIT_COMMANDS_REPEATS_PER_KEY=0", "GODWIT_COMMANDS_REPEATS_PER_ACTOR=0")
	}
	if b.caFile != "" {
		environment = append(environment, "GODWIT_CA_FILE="+b.caFile)
	}
	if b.o.CPUProfile != "" {
		environment = append(environment, "GODWIT_DEBUG_LISTEN=127.0.0.1:0")
	}
	return environment
}

func (b *bench) boot(ctx context.Context, data string) (*server, error) {
	if err := app.EnsureEvidenceKey(data, benchRing); err != nil {
		return nil, err
	}
	environment := b.environment(data, benchRing)
	cmd := exec.CommandContext(ctx, b.o.Executable, "keys", "create", "--json", "--scopes", "all",
		"--tenant-name", "bench "+time.Now().UTC().Format(time.RFC3339Nano))
	cmd.Env = environment
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("make an API key: %w\n%s", err, complaint.String())
	}
	var made struct {
		APIKey string `json:"api_key"`
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return nil, fmt.Errorf("make an API key: %w", err)
	}
	return b.restart(ctx, data, made.APIKey)
}

// restart starts a server on existing data, with further settings.
func (b *bench) restart(ctx context.Context, data, key string, settings ...string) (*server, error) {
	began := time.Now()
	p, err := start(ctx, b.o.Executable, append(b.environment(data, benchRing), settings...), "serve")
	if err != nil {
		return nil, err
	}
	srv := &server{process: p, key: key}
	if srv.client, err = client.New(p.url, key); err == nil {
		err = srv.awaitReady(ctx)
	}
	if err != nil {
		p.kill()
		return nil, err
	}
	srv.took = time.Since(began)
	return srv, nil
}

// cleanEnvironment is our environment without godwit's settings.
func cleanEnvironment() []string {
	var kept []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GODWIT_") {
			kept = append(kept, e)
		}
	}
	return kept
}

func (s *server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if resp, err := http.Get(s.url + "/readyz"); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.exited:
			return fmt.Errorf("the server ended: %w\n%s", s.err, s.lastLines())
		case <-tick.C:
		}
	}
	return errors.New("the server did not become ready within a minute\n" + s.lastLines())
}

// subscribe makes an endpoint for exactly one type of event, without the limits that its profile would set.
func (s *server) subscribe(ctx context.Context, profile, url, eventType string) error {
	_, err := s.client.CreateEndpoint(ctx, client.NewEndpoint{
		URL: url, Profile: profile, Patterns: []string{eventType},
		Policy: map[string]any{"per_second": 0, "per_minute": 0, "account_per_minute": 0},
	})
	if err != nil {
		return fmt.Errorf("create endpoint: %w", err)
	}
	return nil
}

func (s *server) target(eventType string) target {
	return target{addr: hostOf(s.url), path: "/v1/events?type=" + url.QueryEscape(eventType), header: []string{"Authorization: Bearer " + s.key}}
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Host
}

// pile posts the backlog in batches of a thousand, over a few connections.
func (s *server) pile(ctx context.Context, b *bench, eventType string) (time.Duration, error) {
	const each, workers = 1000, 4
	began := time.Now()
	body := newBody(0, b.o.Size)
	var posted atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := posted.Add(each)
				size := min(each, b.o.Backlog-int(n-each))
				if size <= 0 {
					return
				}
				events := make([]client.Event, size)
				for k := range events {
					events[k] = client.Event{Type: eventType, Body: body}
				}
				if _, err := s.client.PublishBatch(ctx, events); err != nil {
					errs[i] = err
					return
				}
				if n%100_000 == 0 {
					b.o.Progress("backlog: %d posted", n)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began), errors.Join(append(errs, ctx.Err())...)
}

// profile writes a CPU profile of the next so many seconds to a file.
func (s *server) profile(ctx context.Context, length time.Duration, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%sprofile?seconds=%d", s.debug, max(int(length.Seconds()), 1)), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// startProfile writes a CPU profile of the server if one was asked for. The channel yields the result.
func (b *bench) startProfile(ctx context.Context, srv *server, length time.Duration) <-chan error {
	done := make(chan error, 1)
	if b.o.CPUProfile == "" {
		done <- nil
		return done
	}
	go func() { done <- srv.profile(ctx, length, b.o.CPUProfile) }()
	return done
}

// settledUsage waits until the memory is stable: the runtime returns it with some delay.
func (s *server) settledUsage(ctx context.Context) (usage, error) {
	last := usage{rss: -1}
	for range 20 {
		u, err := s.usage()
		if err != nil {
			return u, err
		}
		if change := u.rss - last.rss; last.rss >= 0 && change <= 0 && change > -(1<<20) {
			return u, nil
		}
		last = u
		select {
		case <-ctx.Done():
			return u, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return last, nil
}
