package idempotency_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	docs = "https://godwit.example/docs/idempotency"
	key1 = `"8e03978e-40d5-43e8-bc93-6894a57f9324"`
	key2 = `"clkyoesmbgybucifusbbtdsbohtyuuwz"`
)

// counting sees how often the store is touched.
type counting struct {
	store.Idempotency
	touched atomic.Int64
}

func (c *counting) Reserve(ctx context.Context, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error) {
	c.touched.Add(1)
	return c.Idempotency.Reserve(ctx, r)
}

// A fixture is a guarded handler behind a real server over a real store.
type fixture struct {
	t       *testing.T
	dir     string
	store   *sqlite.Store
	spy     *counting
	clock   *clock.Manual
	guard   *idempotency.Guard
	ring    *keyring.Ring
	log     *strings.Builder
	server  *httptest.Server
	handler http.HandlerFunc // what is guarded
	calls   atomic.Int64     // how often it ran
}

func openStore(t testing.TB, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const ringText = "k1:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

func newFixture(t *testing.T, tune func(*idempotency.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), clock: clock.NewManual(start), log: &strings.Builder{}}
	f.store = openStore(t, f.dir)
	f.spy = &counting{Idempotency: f.store}
	ring, err := keyring.Parse(ringText)
	if err != nil {
		t.Fatal(err)
	}
	f.ring = ring
	cfg := idempotency.Config{
		Store: f.spy, Ring: ring, Now: f.clock.Now, Log: slog.New(slog.NewTextHandler(f.log, nil)),
		Problems: &problem.Writer{Base: "https://godwit.example", Log: slog.New(slog.NewTextHandler(f.log, nil))},
	}
	if tune != nil {
		tune(&cfg)
	}
	if f.guard, err = idempotency.New(cfg); err != nil {
		t.Fatal(err)
	}
	f.handler = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", fmt.Sprintf("/things/%d", f.calls.Load()))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"thing":%d,"got":%q}`, f.calls.Load(), body)
	}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.server.Close)
	return f
}

// principals are the callers that the fixture knows. They share one tenant.
var principals = map[string]godwit.KeyID{"alice": {1}, "bob": {2}}

// serve authenticates by a header, as a stand-in for API keys, then guards.
func (f *fixture) serve(w http.ResponseWriter, r *http.Request) {
	who, ok := principals[r.Header.Get("Test-Principal")]
	if !ok {
		f.guard.Policy().Problems.Write(w, r, problem.Unauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	scope := idempotency.Scope{Principal: who, Tenant: godwit.TenantID{9}, Operation: r.Method + " " + r.URL.Path, Channel: r.Header.Get("Test-Channel"), Route: "POST /things"}
	f.guard.Serve(w, r, scope, body, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		f.handler(w, r)
	}))
}

// A reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) problem(t *testing.T) problem.Problem {
	t.Helper()
	var p problem.Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatalf("not problem details: %q", r.body)
	}
	return p
}

func (r reply) replayed() bool { return r.header.Get("Idempotency-Replayed") == "true" }

// send makes a request; headers are name, value pairs.
func (f *fixture) send(method, path, body string, headers ...string) reply {
	f.t.Helper()
	req, err := http.NewRequest(method, f.server.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Test-Principal", "alice")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Idempotency-Key" {
			req.Header.Add(headers[i], headers[i+1])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.server.Client().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

func (f *fixture) post(body string, headers ...string) reply {
	f.t.Helper()
	return f.send(http.MethodPost, "/things", body, headers...)
}

// recorded finds the record of a key.
func (f *fixture) recorded(who, operation, key string) (*godwit.IdempotencyRecord, error) {
	scope := idempotency.Scope{Principal: principals[who], Tenant: godwit.TenantID{9}, Operation: operation}
	return f.store.Recorded(context.Background(), scope.ID(strings.Trim(key, `"`)), f.clock.Now())
}

func (f *fixture) wantCalls(n int64) {
	f.t.Helper()
	if got := f.calls.Load(); got != n {
		f.t.Fatalf("handler ran %d times, want %d", got, n)
	}
}

const childVariable = "GODWIT_IDEMPOTENCY_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child is another server process on the same store, in whose handler a request hangs until the process is killed.
func child(dir string) {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	ring, err := keyring.Parse(ringText)
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	log := slog.New(slog.DiscardHandler)
	guard, err := idempotency.New(idempotency.Config{
		Store: s, Ring: ring, Log: log, Problems: &problem.Writer{Log: log}, Now: func() time.Time { return start },
	})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	body := `{"n":1}`
	r := httptest.NewRequest(http.MethodPost, "/things", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key1)
	r.Header.Set("Content-Type", "application/json")
	scope := idempotency.Scope{Principal: principals["alice"], Tenant: godwit.TenantID{9}, Operation: "POST /things"}
	guard.Serve(httptest.NewRecorder(), r, scope, []byte(body), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		fmt.Println("running")
		io.Copy(io.Discard, os.Stdin) // until it is killed
	}))
	os.Exit(0)
}

// startChild returns once the child's handler runs.
func startChild(t *testing.T, dir string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			cmd.Process.Kill()
			cmd.Wait()
			stdin.Close()
		}
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "running\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	return kill
}
