package receiver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

var (
	tortureEvents     = flag.Int("torture.events", 20, "events of the torture test; the full size is 1000")
	tortureDuplicates = flag.Int("torture.duplicates", 50, "concurrent duplicates of each event")
)

const (
	tortureSecret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	tortureLease  = 3 * time.Second
	processes     = 2 // receivers that share the store
	atATime       = 4 // events whose duplicates are under way together
	patience      = 8 * time.Minute
)

// TestTorture: fifty concurrent duplicates of each event, connections that drop before and after the handler, handlers that
// fail, and two receivers on one store that are killed (-9) at any moment, also between a handler's effect and its
// completion. The effect is written in the transaction that completes the key, and so it is there once for each event.
//
// When a receiver dies, its successor's clock is ahead by a lease: keys that the dead one held are free at once, and so are
// some that the other receiver still holds, which then must not complete them.
func TestTorture(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres", "redis"} {
		t.Run(kind, func(t *testing.T) {
			trace.Covers(t, "IKH-DEF-4", "CCW-IDM-1", "CCW-IDM-7", "OJS-DLV-19")
			newTorture(t, kind).run(t.Context())
		})
	}
}

// TestTortureOfInbox is TestTorture with an inbox: senders are answered when their delivery is in the inbox, and workers in
// the killed processes do the rest, each effect in the transaction that ends its job.
func TestTortureOfInbox(t *testing.T) {
	for _, kind := range []string{"sqlite inbox", "postgres inbox"} {
		t.Run(kind, func(t *testing.T) {
			trace.Covers(t, "CCW-RCV-7", "CCW-IDM-1", "CCW-IDM-7")
			newTorture(t, kind).run(t.Context())
		})
	}
}

// TestTortureInMemory: a store in memory ends with its process, so no process is killed here. Nor does it have transactions:
// handlers fail before the effect, and not after it.
func TestTortureInMemory(t *testing.T) {
	trace.Covers(t, "IKH-DEF-4", "CCW-IDM-1", "OJS-DLV-19")
	x := newTorture(t, "memory")
	var mu sync.Mutex
	effects := map[string]int{}
	r, err := receiver.New(tortured(receiver.Options{
		Store: receiver.NewMemory(receiver.MemoryOptions{}), Clock: time.Now,
		Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
			if result, err := fail(rand.IntN(100)); result != nil || err != nil {
				return result, err
			}
			dawdle(ctx)
			mu.Lock()
			defer mu.Unlock()
			effects[d.Key]++
			return receiver.Accepted{Body: []byte(d.Key)}, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: dropping(r), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = server.Serve(x.listener) }()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	x.deliverAll(ctx, func(int) {})
	mu.Lock()
	defer mu.Unlock()
	x.judge(effects, 0)
}

type torture struct {
	t        *testing.T
	place    place
	listener *net.TCPListener
	client   *http.Client
	ahead    atomic.Int64 // of the clock, in nanoseconds

	mu       sync.Mutex
	children []*exec.Cmd
	stopping bool
	watched  sync.WaitGroup

	deaths, requests, dropped, refused, replayed atomic.Int64
}

func newTorture(t *testing.T, kind string) *torture {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return &torture{t: t, place: newPlace(t, kind), listener: l, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

func (x *torture) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := range processes {
		x.start(n)
	}
	defer x.stop()
	every := max(1, *tortureEvents/10)
	x.deliverAll(ctx, func(event int) {
		if event%every == every/2 {
			x.killOne() // whatever it is doing
		}
	})
	if x.place.inbox {
		x.waitForEffects(ctx)
	}
	x.stop()
	x.judge(x.place.effects(x.t), 5)
}

// deliverAll returns when every delivery is acknowledged, and calls a function between them.
func (x *torture) deliverAll(ctx context.Context, between func(event int)) {
	events := make(chan int)
	var all sync.WaitGroup
	for range atATime {
		all.Go(func() {
			for event := range events {
				x.deliver(ctx, event)
			}
		})
	}
	for event := range *tortureEvents {
		events <- event
		between(event)
	}
	close(events)
	all.Wait()
}

// waitForEffects waits until workers have processed the acknowledged deliveries.
func (x *torture) waitForEffects(ctx context.Context) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for len(x.place.effects(x.t)) < *tortureEvents {
		select {
		case <-again.C:
		case <-ctx.Done():
			return // and be judged
		}
	}
}

// judge checks the effects and prints the injected faults.
func (x *torture) judge(effects map[string]int, deaths int64) {
	x.t.Helper()
	for event := range *tortureEvents {
		if n := effects[eventID(event)]; n != 1 {
			x.t.Errorf("%s had its effect %d times", eventID(event), n)
		}
	}
	if len(effects) != *tortureEvents {
		x.t.Errorf("%d of %d events had an effect", len(effects), *tortureEvents)
	}
	x.t.Logf("%d events, %d requests: %d dropped, %d refused for a while, %d replayed; %d deaths", *tortureEvents, x.requests.Load(),
		x.dropped.Load(), x.refused.Load(), x.replayed.Load(), x.deaths.Load())
	if x.deaths.Load() < deaths || x.dropped.Load() == 0 || x.refused.Load() == 0 || x.replayed.Load() == 0 {
		x.t.Error("that was no torture")
	}
}

func eventID(n int) string { return fmt.Sprintf("evt_%d", n) }

// deliver sends all duplicates of an event, each until it is acknowledged.
func (x *torture) deliver(ctx context.Context, event int) {
	var all sync.WaitGroup
	for range *tortureDuplicates {
		all.Go(func() {
			for !x.attempt(ctx, event) {
				if ctx.Err() != nil {
					x.t.Errorf("%s was not acknowledged in time", eventID(event))
					return
				}
				backoff := time.NewTimer(time.Duration(1+rand.IntN(20)) * time.Millisecond)
				select {
				case <-backoff.C:
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

// attempt is one request. Some senders hang up before they have an answer.
func (x *torture) attempt(ctx context.Context, event int) (acknowledged bool) {
	x.requests.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := fmt.Sprintf(`{"type":"order.paid","order":%d}`, event)
	var sent io.Reader = strings.NewReader(body)
	if rand.IntN(50) == 0 {
		sent = &hangUp{sent, cancel}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+x.listener.Addr().String()+"/hooks", sent)
	if err != nil {
		x.t.Error(err)
		return true
	}
	req.ContentLength = int64(len(body))
	timestamp := strconv.FormatInt(time.Now().Add(time.Duration(x.ahead.Load())).Unix(), 10)
	secret, _ := base64.StdEncoding.DecodeString(tortureSecret)
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", eventID(event), timestamp, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", eventID(event))
	req.Header.Set("Webhook-Timestamp", timestamp)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := x.client.Do(req)
	if err != nil {
		x.dropped.Add(1)
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	switch {
	case resp.StatusCode/100 == 2:
		if resp.Header.Get("Idempotency-Replayed") == "true" {
			x.replayed.Add(1)
		}
		return true
	case resp.StatusCode >= 500:
		x.refused.Add(1)
		return false
	}
	x.t.Errorf("%s was answered %d", eventID(event), resp.StatusCode)
	return true
}

// hangUp ends the request when its body has gone.
type hangUp struct {
	io.Reader
	cancel context.CancelFunc
}

func (h *hangUp) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if errors.Is(err, io.EOF) || n > 0 && rand.IntN(2) == 0 {
		h.cancel()
	}
	return n, err
}

// start starts a receiver, and another when it dies. All of them accept from one socket, which the test holds open.
func (x *torture) start(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopping {
		return
	}
	socket, err := x.listener.File()
	if err != nil {
		x.t.Error(err)
		return
	}
	defer socket.Close()
	cmd := exec.Command(os.Args[0])
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Env = append(os.Environ(), childKind+"="+x.place.String(), childPlace+"="+x.place.name, childAhead+"="+strconv.FormatInt(x.ahead.Load(), 10))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		x.t.Error(err)
		return
	}
	for len(x.children) <= n {
		x.children = append(x.children, nil)
	}
	x.children[n] = cmd
	x.watched.Go(func() {
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != -1 { // it was not killed
			x.t.Errorf("a receiver ended with %d", code)
			return
		}
		x.deaths.Add(1)
		x.ahead.Add(int64(x.place.lease()))
		x.start(n)
	})
}

func (x *torture) killOne() {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.children[rand.IntN(len(x.children))].Process.Kill()
}

func (x *torture) stop() {
	x.mu.Lock()
	x.stopping = true
	for _, cmd := range x.children {
		_ = cmd.Process.Kill()
	}
	x.mu.Unlock()
	x.watched.Wait()
}
