package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

// receiver accepts deliveries, refuses some at first, and remembers in which life of the server each was accepted.
type receiver struct {
	*httptest.Server
	life atomic.Int64 // grows with every end of the server

	mu       sync.Mutex
	arrived  *sync.Cond
	accepted map[string][]int64 // key → lives in which it was accepted
	bodies   map[string]string
	faults   []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{accepted: map[string][]int64{}, bodies: map[string]string{}}
	r.arrived = sync.NewCond(&r.mu)
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.take))
	// A request counts to the life in which its connection was made: what a dead server had sent may be read late.
	r.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, lifeKey{}, r.life.Load())
	}
	r.Start()
	t.Cleanup(r.Close)
	return r
}

type lifeKey struct{}

// endLife is called when the server is dead. Connections are taken in turn, so once this one is answered all of the dead
// server's have been.
func (r *receiver) endLife(t *testing.T) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.life.Add(1)
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		return
	}
	life := req.Context().Value(lifeKey{}).(int64)
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	if rand.IntN(20) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	key := req.Header.Get("Idempotency-Key")
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.bodies[key]; ok && known != string(body) {
		r.faults = append(r.faults, fmt.Sprintf("key %s came with %q, then with %q", key, known, body))
	}
	r.bodies[key] = string(body)
	r.accepted[key] = append(r.accepted[key], life)
	r.arrived.Broadcast()
}

// await waits until every key was accepted.
func (r *receiver) await(t *testing.T, keys []string) {
	t.Helper()
	timeout := time.AfterFunc(5*time.Minute, func() {
		r.mu.Lock()
		r.faults = append(r.faults, "timeout")
		r.arrived.Broadcast()
		r.mu.Unlock()
	})
	defer timeout.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		for len(r.accepted[key]) == 0 && len(r.faults) == 0 {
			r.arrived.Wait()
		}
	}
	missing := 0
	for _, key := range keys {
		if len(r.accepted[key]) == 0 {
			missing++
		}
	}
	if missing > 0 || len(r.faults) > 0 {
		t.Fatalf("%d of %d acknowledged events never arrived; faults: %v", missing, len(keys), r.faults)
	}
}

// lives tells, for each key, in which lives it was accepted so far; more may be on their way.
func (r *receiver) lives() map[string][]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string][]int64, len(r.accepted))
	for key, lives := range r.accepted {
		seen[key] = slices.Clone(lives)
	}
	return seen
}

// producers post events with keys of their own and repeat each until it is acknowledged.
type producers struct {
	wg    sync.WaitGroup
	stop  atomic.Bool
	mu    sync.Mutex
	acked *sync.Cond // signals a new key
	keys  []string
	ids   map[string]string // event id → key
}

// more waits until so many more events are acknowledged. A kill then meets a server under load, however slow the machine is.
func (ps *producers) more(n int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for n += len(ps.keys); len(ps.keys) < n; {
		ps.acked.Wait()
	}
}

func produce(t *testing.T, p *apptest.Process, n int) *producers {
	return produceAs(t, p, n, "producer")
}

// produceAs is produce with a name, for producers of several nodes.
func produceAs(t *testing.T, p *apptest.Process, n int, name string) *producers {
	ps := &producers{ids: map[string]string{}}
	ps.acked = sync.NewCond(&ps.mu)
	client := p.NewClient()
	url := p.URL + "/v1/events?type=crash.test"
	for i := range n {
		ps.wg.Go(func() {
			for k := 0; !ps.stop.Load(); k++ {
				key := fmt.Sprintf(`"%s-%d-event-%08d"`, name, i, k)
				id := post(client, url, key)
				ps.mu.Lock()
				if other, twice := ps.ids[id]; twice && other != key {
					t.Errorf("keys %s and %s were answered with the same event %s", other, key, id)
				}
				ps.ids[id] = key
				ps.keys = append(ps.keys, key)
				ps.acked.Broadcast()
				ps.mu.Unlock()
			}
		})
	}
	return ps
}

// post repeats one request, with the same key, until the server acknowledges it.
func post(client *http.Client, url, key string) (id string) {
	for {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"key":`+key+`}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		var answer struct {
			ID string `json:"id"`
		}
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusAccepted {
			return answer.ID
		}
	}
}

func (ps *producers) end() []string {
	ps.stop.Store(true)
	ps.wg.Wait()
	return ps.keys
}

// subscribe creates an endpoint for all events and returns its id.
func subscribe(t *testing.T, p *apptest.Process, url string) (id string) {
	t.Helper()
	resp, err := p.NewClient().Post(p.URL+"/v1/endpoints", "application/json", strings.NewReader(
		`{"url":"`+url+`","patterns":["*"],"policy":{"base_seconds":0.05,"cap_seconds":0.2,"circuit_after":0}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct {
		ID string `json:"id"`
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated || json.Unmarshal(answer, &made) != nil {
		t.Fatalf("create endpoint: %d %s (%v)", resp.StatusCode, answer, err)
	}
	return made.ID
}

func onStores(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite") })
	t.Run("postgres", func(t *testing.T) { test(t, apptest.PostgresURL(t)) })
}

// Ten kills at random moments under load: every acknowledged event arrives, and one that was accepted by the receiver is
// sent again only if the server died before it could record that.
func TestKillsLoseNothing(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		trace.Covers(t, "EDS-IDM-2", "EDS-KEY-3", "EDS-OUT-3")
		r := newReceiver(t)
		p := apptest.StartProcess(t, apptest.ProcessOptions{Store: store})
		subscribe(t, p, r.URL)
		ps := produce(t, p, 8)
		for range 10 {
			ps.more(10)
			moment := time.NewTimer(time.Duration(50+rand.IntN(350)) * time.Millisecond)
			<-moment.C
			p.Kill()
			r.endLife(t)
			p.Restart()
		}
		keys := ps.end()
		r.await(t, keys)

		twice := 0
		for key, lives := range r.lives() {
			for i := 1; i < len(lives); i++ {
				twice++
				if lives[i] == lives[i-1] {
					t.Errorf("%s was sent again in life %d although the server had its answer", key, lives[i])
				}
			}
		}
		t.Logf("%d events acknowledged over 10 kills, %d sent twice", len(keys), twice)
		if code := p.Terminate(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	})
}

// A stop by SIGTERM under load: everything acknowledged arrives, nothing twice.
func TestStopsSendNothingTwice(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		p := apptest.StartProcess(t, apptest.ProcessOptions{Store: store})
		subscribe(t, p, r.URL)
		ps := produce(t, p, 8)
		for range 3 {
			ps.more(10)
			moment := time.NewTimer(time.Duration(100+rand.IntN(300)) * time.Millisecond)
			<-moment.C
			if code := p.Terminate(); code != 0 {
				t.Fatalf("exit code %d after SIGTERM", code)
			}
			r.endLife(t)
			p.Restart()
		}
		keys := ps.end()
		r.await(t, keys)
		for key, lives := range r.lives() {
			if len(lives) > 1 {
				t.Errorf("%s was accepted %d times, in lives %v", key, len(lives), lives)
			}
		}
		t.Logf("%d events acknowledged over 3 stops", len(keys))
	})
}
