package native

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// waitLimit bounds a wait. No passing test reaches it.
const waitLimit = 5 * time.Minute

// shifted is the real clock plus an offset: windows of a day pass while timers run normally.
type shifted struct {
	clock.Real
	by atomic.Int64
}

func (s *shifted) Now() time.Time          { return s.Real.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) Advance(d time.Duration) { s.by.Add(int64(d)) }

// A harness is the API with a real store, a real engine and a real socket.
type harness struct {
	t          testing.TB
	dir        string
	store      *sqlite.Store
	losing     *interrupted // the store as management, sources and the guard see it
	engine     *engine.Engine
	management *management.Service
	executor   *command.Executor
	events     intake.Config
	api        *server
	http       *httptest.Server
	clock      *shifted
	log        *safeLog
	done       chan struct{}
	stop       func() // stops the engine
	contract   *contract

	tenant *godwit.Tenant
	token  string // token of a key with all scopes
	key    *godwit.APIKey
}

type safeLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type harnessOptions struct {
	dir     string
	limits  management.Limits
	maxBody int64
	strict  bool // https and public addresses only
}

func newHarness(t *testing.T) *harness {
	return startHarness(t, harnessOptions{limits: management.NoLimits})
}

const testRing = "k1:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

func startHarness(t testing.TB, o harnessOptions) *harness {
	t.Helper()
	if o.dir == "" {
		o.dir = t.TempDir()
	}
	h := &harness{t: t, dir: o.dir, clock: &shifted{}, log: &safeLog{}, done: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx := context.Background()
	var err error
	if h.store, err = sqlite.Open(ctx, o.dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	h.losing = &interrupted{Store: h.store}
	ring, err := keyring.Parse(testRing)
	must(t, err)
	sc := sender.Config{Clock: h.clock.Now}
	if !o.strict {
		sc.AllowHTTP = true
		sc.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	send, err := sender.New(sc)
	must(t, err)
	h.engine, err = engine.New(ctx, engine.Config{Store: h.store, Sender: send, Ring: ring, Clock: h.clock, Log: log, Node: godwit.Node{Name: "test"}})
	must(t, err)
	running, stopEngine := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.engine.Run(running) }()
	<-h.engine.Started()
	h.stop = sync.OnceFunc(func() {
		stopEngine()
		if err := <-ended; err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	h.management, err = management.New(management.Config{
		Store: h.losing, Engine: h.engine, URLs: send, Ring: ring, Log: log, Now: h.clock.Now, Limits: o.limits,
	})
	must(t, err)
	types, err := catalogue.New(catalogue.Config{Store: h.store, Now: h.clock.Now})
	must(t, err)
	problems := &problem.Writer{Base: "https://godwit.example", Log: log}
	guard, err := idempotency.New(idempotency.Config{Store: h.losing, Ring: ring, Problems: problems, Log: log, Now: h.clock.Now})
	must(t, err)
	upstreams, err := source.New(source.Config{
		Store: h.losing, Ring: ring, Log: log, Now: h.clock.Now, Terms: source.Terms{Durability: "synced", Retries: source.RetriesByProfile()},
	})
	must(t, err)
	h.events = intake.Config{
		Engine: h.engine, Store: h.store, Tenants: h.management.Tenants, Catalogue: types, Now: h.clock.Now, Keys: guard.Policy().Format, Fingerprint: guard.Policy().Fingerprint,
		Retention: time.Hour, MaxPayload: o.maxBody,
	}
	events, err := intake.New(h.events)
	must(t, err)
	commands := command.NewRegistry()
	builtin := builtincommand.Config{Management: h.management, Engine: h.engine, Store: h.store, Intake: events}
	must(t, builtincommand.Register(commands, builtin))
	h.executor, err = command.New(command.Config{Store: h.store, Registry: commands, Sealer: ring, Log: log, Now: h.clock.Now})
	must(t, err)
	executing, stopExecutor := context.WithCancel(ctx)
	executed := make(chan struct{})
	go func() { defer close(executed); h.executor.Run(executing) }()
	stop := h.stop
	h.stop = sync.OnceFunc(func() { stopExecutor(); <-executed; stop() })
	handler, err := New(Config{
		Commands: &builtincommand.Runner{Executor: h.executor, Config: builtin, Now: h.clock.Now}, Preview: builtincommand.NewPreviewer(builtin),
		Store: h.store, Engine: h.engine, Management: h.management, Catalogue: types, Sources: upstreams, Intake: events, Idempotency: guard, Problems: problems, Clock: h.clock, Log: log,
		Version: "test", Node: "test", Done: h.done,
	})
	must(t, err)
	h.api = handler.(*server)
	h.contract = newContract(t, h.api)
	h.http = httptest.NewServer(handler)
	t.Cleanup(h.close)
	h.tenant, err = h.management.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	must(t, err)
	h.key, h.token = h.mint(h.tenant.ID, godwit.AllScopes...)
	return h
}

func (h *harness) close() {
	select {
	case <-h.done:
	default:
		close(h.done)
	}
	h.http.Close()
	h.stop()
	if err := h.store.Close(); err != nil {
		h.t.Errorf("close store: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *harness) mint(tenant godwit.TenantID, scopes ...godwit.Scope) (*godwit.APIKey, string) {
	h.t.Helper()
	k, token, err := h.management.Keys.Create(context.Background(), nil, tenant, management.KeySpec{Name: "test", Scopes: scopes})
	must(h.t, err)
	return k, token
}

// A call is a request. The harness fills in fields that are not set.
type call struct {
	method string
	path   string
	body   string
	token  string   // "-" sends none
	header []string // name, value pairs
	noType bool
}

// An answer is a response with its whole body, checked against the OpenAPI document.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

func (h *harness) do(c call) *answer {
	h.t.Helper()
	req, err := http.NewRequest(c.method, h.http.URL+c.path, strings.NewReader(c.body))
	must(h.t, err)
	switch c.token {
	case "":
		req.Header.Set("Authorization", "Bearer "+h.token)
	case "-":
	default:
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.body != "" && !c.noType {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.header); i += 2 {
		if c.header[i] == "Content-Type" {
			req.Header.Set(c.header[i], c.header[i+1])
		} else {
			req.Header.Add(c.header[i], c.header[i+1])
		}
	}
	resp, err := h.http.Client().Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(h.t, err)
	a := &answer{h.t, resp.StatusCode, resp.Header, body}
	h.contract.check(h.t, req, a)
	return a
}

func (h *harness) get(path string) *answer {
	h.t.Helper()
	return h.do(call{method: "GET", path: path})
}
func (h *harness) post(path, body string, header ...string) *answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: path, body: body, header: header})
}

func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("got %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// into decodes the body.
func (a *answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("decode %q: %v", a.body, err)
	}
}

// problem is the body as problem details.
func (a *answer) problem() problem.Problem {
	a.t.Helper()
	var p problem.Problem
	a.into(&p)
	if a.header.Get("Content-Type") != problem.ContentType || p.Status != a.status {
		a.t.Fatalf("not problem details: %s %s", a.header.Get("Content-Type"), a.body)
	}
	return p
}

// refused checks a refusal: status, code and, when given, the field that it names.
func (a *answer) refused(status int, kind *problem.Kind, field string) *answer {
	a.t.Helper()
	p := a.problem()
	if a.status != status || p.Code != kind.Code {
		a.t.Errorf("got %d %s, want %d %s: %s", a.status, p.Code, status, kind.Code, a.body)
		return a
	}
	if field == "" {
		return a
	}
	for _, f := range p.Errors {
		if f.Field == field {
			return a
		}
	}
	a.t.Errorf("field %q is not named: %s", field, a.body)
	return a
}

func (a *answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// A sink is a receiver that the test scripts.
type sink struct {
	*httptest.Server
	arrived chan sinkRequest
	mu      sync.Mutex
	status  []int // one for each request; the last one repeats
	gate    chan struct{}
}

type sinkRequest struct {
	header http.Header
	body   []byte
}

func newSink(t *testing.T, status ...int) *sink {
	s := &sink{arrived: make(chan sinkRequest, 10000), status: status}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		code := 200
		if len(s.status) > 0 {
			code = s.status[0]
			if len(s.status) > 1 {
				s.status = s.status[1:]
			}
		}
		gate := s.gate
		s.mu.Unlock()
		s.arrived <- sinkRequest{r.Header, body}
		if gate != nil {
			<-gate
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) answer(status ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *sink) wait(t *testing.T) sinkRequest {
	t.Helper()
	select {
	case r := <-s.arrived:
		return r
	case <-time.After(waitLimit):
		t.Fatal("nothing arrived at the sink")
		panic("unreachable")
	}
}

// A watch sees attempts as they are recorded.
type watch struct {
	t     testing.TB
	items <-chan engine.FeedItem
}

func (h *harness) watch() *watch {
	items, stop := h.engine.Watch(h.tenant.ID)
	h.t.Cleanup(stop)
	return &watch{h.t, items}
}

// until waits for the delivery to reach the status.
func (w *watch) until(status godwit.DeliveryStatus) engine.FeedItem {
	w.t.Helper()
	timeout := time.After(waitLimit)
	for {
		select {
		case item := <-w.items:
			if item.Status == status {
				return item
			}
		case <-timeout:
			w.t.Fatalf("no delivery became %s", status)
		}
	}
}

// endpoint registers an endpoint and returns it as the API answered.
func (h *harness) endpoint(url string, more ...string) IssuedEndpoint {
	h.t.Helper()
	body := `{"url":` + quote(url)
	for _, m := range more {
		body += "," + m
	}
	var e IssuedEndpoint
	h.post("/v1/endpoints", body+"}").want(201).into(&e)
	return e
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// publish posts an event of the type with a JSON payload.
func (h *harness) publish(eventType, payload string, header ...string) Accepted {
	h.t.Helper()
	var a Accepted
	h.post("/v1/events?type="+eventType, payload, header...).want(202).into(&a)
	return a
}

// counts are the numbers of rows in the store, to show that nothing was added.
type counts struct{ events, endpoints, keys, tenants int }

func (h *harness) counts() counts {
	h.t.Helper()
	ctx := context.Background()
	page := store.Page{Limit: 10000}
	events, err := h.store.ListEvents(ctx, store.EventFilter{TenantID: h.tenant.ID}, page)
	must(h.t, err)
	endpoints, err := h.store.ListEndpoints(ctx, store.EndpointFilter{TenantID: h.tenant.ID}, page)
	must(h.t, err)
	keys, err := h.store.ListKeys(ctx, h.tenant.ID, page)
	must(h.t, err)
	tenants, err := h.store.ListTenants(ctx, store.TenantFilter{}, page)
	must(h.t, err)
	return counts{len(events), len(endpoints), len(keys), len(tenants)}
}
