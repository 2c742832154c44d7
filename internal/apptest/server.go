package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store/postgres"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// Options configure the server of a test. The zero value is SQLite in a temporary directory, real time, http and loopback
// allowed, and no limits on registrations.
type Options struct {
	// Postgres stores events in a PostgreSQL database that only this test uses.
	Postgres bool
	// Store, when set, is used unchanged: a PostgreSQL URL, for a second server on the same database.
	Store string
	// Data, when set, is the data directory, for a server that is restarted.
	Data string
	// Clock, when set, is a clock that the test moves.
	Clock *clock.Manual
	// TimeScale speeds up delays, windows and retentions.
	TimeScale godwit.TimeScale
	// KeepLimits keeps the limits on registrations.
	KeepLimits bool
	// Configure changes the configuration.
	Configure func(*config.Config)
	// Tune changes the engine's configuration.
	Tune func(*engine.Config)
	// TuneSQLite changes the options of an embedded store.
	TuneSQLite func(*sqlite.Options)
	// Commands registers additional commands. TuneCommands changes the configuration of their executor.
	Commands     func(*command.Registry) error
	TuneCommands func(*command.Config)
	// Timeouts of the HTTP server.
	Timeouts app.Timeouts
	// ClockTimeouts makes attempts time out by Clock, which is required, and not in real time.
	ClockTimeouts bool
}

// Backends runs a test on each store.
func Backends(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("sqlite", func(t *testing.T) { test(t, Options{}) })
	t.Run("postgres", func(t *testing.T) { test(t, Options{Postgres: true}) })
}

// PostgresURL returns a PostgreSQL database with the current schema that only this test uses.
func PostgresURL(t testing.TB) string {
	t.Helper()
	digest, err := postgres.SchemaDigest()
	if err != nil {
		t.Fatal(err)
	}
	return postgrestest.Template{Content: digest, Prepare: func(ctx context.Context, url string) error {
		s, err := postgres.Open(ctx, url, postgres.Options{})
		if err != nil {
			return err
		}
		return s.Close()
	}}.URL(t)
}

// A Server is the whole app, with a tenant and a key with all scopes.
type Server struct {
	t      testing.TB
	App    *app.App
	URL    string
	Tenant godwit.TenantID
	Key    string
	Clock  *clock.Manual // nil if time is real
	Config config.Config
	Log    *Log

	client  *http.Client
	stop    context.CancelFunc
	stopped chan struct{}
	runErr  error
}

// testRing encrypts the secrets of test servers. All servers of a test process share it, so that one can take over from
// another.
var testRing = sync.OnceValue(app.GenerateRing)

// Start starts a server and waits until it is ready. The server stops with the test; the test fails if it stops with an
// error.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.Data = o.Data
	if cfg.Data == "" {
		cfg.Data = t.TempDir()
	}
	cfg.Node = "test"
	cfg.Keyring = testRing()
	cfg.AllowHTTP = true
	for _, n := range []string{"127.0.0.0/8", "::1"} {
		var network config.Network
		if err := network.UnmarshalText([]byte(n)); err != nil {
			t.Fatal(err)
		}
		cfg.AllowAddress = append(cfg.AllowAddress, network)
	}
	switch {
	case o.Store != "":
		cfg.Store = o.Store
	case o.Postgres:
		cfg.Store = PostgresURL(t)
	}
	if o.Configure != nil {
		o.Configure(&cfg)
	}
	// All servers of a test process sign with the same key, because they share one ring.
	if err := app.EnsureEvidenceKey(cfg.Data, testRing()); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Clock: o.Clock, Config: cfg, Log: &Log{}, stopped: make(chan struct{}), client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	d := app.Dependencies{
		Log:       slog.New(slog.NewTextHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		TimeScale: o.TimeScale, NoLimits: !o.KeepLimits, Tune: o.Tune, TuneSQLite: o.TuneSQLite, Timeouts: o.Timeouts, Commands: o.Commands, TuneCommands: realPauses(o.TuneCommands),
	}
	if o.Clock != nil {
		d.Clock = o.Clock
		o.Tune = outlast(o.Tune)
		d.Tune = o.Tune
	}
	if o.ClockTimeouts {
		d.Tune = timeOutByClock(o.Tune)
	}
	s.boot(d)
	return s
}

// outlast makes leases outlast every step of a manual clock, unless tune says otherwise.
func outlast(tune func(*engine.Config)) func(*engine.Config) {
	return func(c *engine.Config) {
		c.LeaseTTL = 10000 * time.Hour
		if tune != nil {
			tune(c)
		}
	}
}

// realPauses makes the executor of commands wait in real time even if the server's clock is manual: tests move hours by
// hand, but not the pauses between two attempts or between scans for lost commands.
func realPauses(tune func(*command.Config)) func(*command.Config) {
	return func(c *command.Config) {
		c.AfterFunc = nil
		if tune != nil {
			tune(c)
		}
	}
}

func (s *Server) boot(d app.Dependencies) {
	s.t.Helper()
	a, err := app.New(context.Background(), s.Config, d)
	if err != nil {
		s.t.Fatalf("start server: %v", err)
	}
	s.App, s.URL = a, a.URL()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.stopped)
		s.runErr = a.Run(ctx)
	}()
	s.t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			s.t.Errorf("server ended: %v", err)
		}
		if s.t.Failed() {
			s.t.Logf("log of the server:\n%s", s.Log)
		}
	})
	select {
	case <-a.Ready():
	case <-s.stopped:
		s.t.Fatalf("server ended at once: %v", s.runErr)
	}
	s.Tenant, s.Key = s.NewTenant("test", godwit.AllScopes...)
}

// Stop stops the server as SIGTERM does, and returns the result of Run. It may be called more than once.
func (s *Server) Stop() error {
	s.stop()
	<-s.stopped
	s.client.CloseIdleConnections()
	return s.runErr
}

// NewTenant returns the tenant of this name, which it creates if necessary, and a new key with the scopes.
func (s *Server) NewTenant(name string, scopes ...godwit.Scope) (godwit.TenantID, string) {
	s.t.Helper()
	ctx := context.Background()
	tenant, err := app.TenantByName(ctx, s.App.Management(), name)
	if err != nil {
		s.t.Fatalf("make tenant: %v", err)
	}
	return tenant.ID, s.NewKey(tenant.ID, scopes...)
}

// NewKey makes a key of a tenant.
func (s *Server) NewKey(tenant godwit.TenantID, scopes ...godwit.Scope) string {
	s.t.Helper()
	_, token, err := s.App.Management().Keys.Create(context.Background(), nil, tenant, management.KeySpec{Name: "test", Scopes: scopes})
	if err != nil {
		s.t.Fatalf("make key: %v", err)
	}
	return token
}

// A Response is a response of the API with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body.
func (r *Response) JSON(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, into); err != nil {
		t.Fatalf("answer %d is not the JSON that was expected: %v\n%s", r.Status, err, r.Body)
	}
}

// A Call is a request to the API.
type Call struct {
	Method string // Defaults to GET, or POST with a body.
	Path   string
	Key    string // Defaults to the server's.
	Header map[string]string
	// Body is sent unchanged if it is a string or bytes, otherwise as JSON.
	Body any
}

// Call sends a request to the API and returns the response, whatever its status.
func (s *Server) Call(c Call) *Response {
	s.t.Helper()
	var body io.Reader
	kind := ""
	switch b := c.Body.(type) {
	case nil:
	case string:
		body, kind = strings.NewReader(b), "application/json"
	case []byte:
		body, kind = bytes.NewReader(b), "application/json"
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatalf("encode body: %v", err)
		}
		body, kind = bytes.NewReader(text), "application/json"
	}
	if c.Method == "" {
		c.Method = http.MethodGet
		if body != nil {
			c.Method = http.MethodPost
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), c.Method, s.URL+c.Path, body)
	if err != nil {
		s.t.Fatalf("make request: %v", err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.Key == "" {
		c.Key = s.Key
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	for name, value := range c.Header {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.Method, c.Path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: read answer: %v", c.Method, c.Path, err)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: text}
}

// Must sends a request that must succeed, and decodes the response if into is not nil.
func (s *Server) Must(c Call, into any) *Response {
	s.t.Helper()
	r := s.Call(c)
	if r.Status < 200 || r.Status > 299 {
		s.t.Fatalf("%s %s: %d\n%s", c.Method, c.Path, r.Status, r.Body)
	}
	if into != nil {
		r.JSON(s.t, into)
	}
	return r
}

// Log collects the log of a server.
type Log struct {
	mu    sync.Mutex
	text  bytes.Buffer
	added chan struct{} // closed when a line is added; nil if none waits for that
}

// Write adds a line.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.added != nil {
		close(l.added)
		l.added = nil
	}
	return l.text.Write(p)
}

// Wait returns once a line contains all parts.
func (l *Log) Wait(t testing.TB, parts ...string) {
	t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	for {
		l.mu.Lock()
		if l.added == nil {
			l.added = make(chan struct{})
		}
		added := l.added
		l.mu.Unlock()
		if l.Has(parts...) {
			return
		}
		select {
		case <-added:
		case <-deadline.C:
			t.Fatalf("no line with %q in the log:\n%s", parts, l)
		}
	}
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Has reports whether one line contains all parts.
func (l *Log) Has(parts ...string) bool {
	for line := range strings.Lines(l.String()) {
		found := true
		for _, p := range parts {
			found = found && strings.Contains(line, p)
		}
		if found {
			return true
		}
	}
	return false
}

var _ fmt.Stringer = (*Log)(nil)
