// Package ids tests the rows of RFC-WF-0010 (IDS) on the whole product, table by table in the order of the document: the
// real app, both stores, real sockets, a manual clock. It contains only tests.
//
// Effects are counted outside the server: by the handlers of commands that the tests register (probe_test.go), by a provider
// that acts as often as it is asked (provider_test.go), and by receivers of webhooks. Each test has its own tenant, so that
// tests on the same server do not affect each other.
package ids

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // lets a test read and change the database
	_ "modernc.org/sqlite"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// object is decoded JSON.
type object = map[string]any

// start is the initial time of the clock.
var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// A rig is a server with a manual clock and the tests' commands.
type rig struct {
	*apptest.Server
	t        testing.TB
	probe    *probe
	provider *provider
	prompts  *tally
	fault    *fault
	real     bool            // time is the machine's
	made     *command.Config // what the server's executor is made of
	http     *http.Client
	options  apptest.Options
}

// newRig starts a server. Limits on repeats are lifted unless the options set them.
func newRig(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	return (&rig{t: t, probe: newProbe(), provider: newProvider(t), prompts: &tally{}, fault: &fault{}}).start(o)
}

// newRealRig starts a server in real time.
func newRealRig(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	return (&rig{t: t, probe: newProbe(), provider: newProvider(t), prompts: &tally{}, fault: &fault{}, real: true}).start(o)
}

func (r *rig) start(o apptest.Options) *rig {
	r.t.Helper()
	if o.Clock == nil && !r.real {
		o.Clock = clock.NewManual(start)
	}
	r.options = o
	r.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	r.t.Cleanup(r.http.CloseIdleConnections)
	configure, tune := o.Configure, o.TuneCommands
	o.Configure = func(c *config.Config) {
		c.Commands.Probe = true
		c.Commands.RepeatsPerKey, c.Commands.RepeatsPerActor = 0, 0
		if configure != nil {
			configure(c)
		}
	}
	if !r.real {
		o.Tune = func(c *engine.Config) { c.LeaseTTL = 100000 * time.Hour } // other suites test the ownership of deliveries
	}
	o.Commands = func(reg *command.Registry) error { return register(reg, r.probe, r.provider) }
	o.TuneCommands = func(c *command.Config) {
		c.Prompt = func(_, id string, _ *command.Declaration) { r.prompts.add(id) }
		c.Fault = r.fault.hit
		if tune != nil {
			tune(c)
		}
		made := *c
		r.made = &made
	}
	r.Server = apptest.Start(r.t, o)
	return r
}

// again starts another server on the data of this one, at the time it ended.
func (r *rig) again(edit ...func(*apptest.Options)) *rig {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Errorf("server ended: %v", err)
	}
	o := r.options
	o.Data, o.Store, o.Postgres, o.Clock = r.Config.Data, r.Config.Store, false, r.Clock
	for _, f := range edit {
		f(&o)
	}
	return (&rig{t: r.t, probe: r.probe, provider: r.provider, prompts: r.prompts, fault: &fault{}, real: r.real}).start(o)
}

// now is the server's time.
func (r *rig) now() time.Time {
	if r.real {
		return time.Now()
	}
	return r.Clock.Now()
}

// successor returns another executor on the same store, like that of a process that takes over after a crash.
func (r *rig) successor(t testing.TB) *command.Executor {
	t.Helper()
	cfg := *r.made
	cfg.Owner, cfg.Fault = "successor", nil
	x, err := command.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); x.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return x
}

// takeOver lets the lease of a dead executor expire and runs the successor.
func (r *rig) takeOver(t testing.TB, x *command.Executor) {
	t.Helper()
	r.Advance(61 * time.Second)
	if _, err := x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A fault stops an executor at one of its points; to other executors it looks dead.
type fault struct {
	mu           sync.Mutex
	at           string
	reached, end chan struct{}
}

func (f *fault) hit(point string) {
	f.mu.Lock()
	if f.at != point {
		f.mu.Unlock()
		return
	}
	f.at = ""
	f.mu.Unlock()
	close(f.reached)
	<-f.end
}

// dies submits a command to a server whose executor dies at the given point. The blocked goroutine ends with the test.
func (c *caller) dies(at string, envelope object) (id string) {
	c.t.Helper()
	f := c.fault
	f.mu.Lock()
	f.at, f.reached, f.end = at, make(chan struct{}), make(chan struct{})
	reached, end := f.reached, f.end
	f.mu.Unlock()
	answered := make(chan struct{})
	go func() { defer close(answered); c.post(envelope) }()
	c.t.Cleanup(func() { close(end); <-answered })
	select {
	case <-reached:
	case <-time.After(5 * time.Minute):
		c.t.Fatalf("the executor did not come to %q", at)
	}
	return envelope["command_id"].(string)
}

// until polls for a condition that nothing signals. The condition queries the server, which limits the rate.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// database opens the server's database beside it.
func (r *rig) database(t testing.TB) *sql.DB {
	t.Helper()
	driver, source := "pgx", r.Config.Store
	if !r.Config.Postgres() {
		driver, source = "sqlite", "file:"+app.DatabaseFile(&r.Config.Storage)+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// alter executes statements in the database.
func alter(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// records counts the rows of a tenant.
func (r *rig) records(t testing.TB, tenant string) (n int) {
	t.Helper()
	if err := r.database(t).QueryRow(fmt.Sprintf("SELECT count(*) FROM command_records WHERE tenant = '%s'", tenant)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// record reads the record of a key.
func (r *rig) record(t testing.TB, tenant, key string) *command.Record {
	t.Helper()
	rec, err := r.made.Store.Find(context.Background(), tenant, key)
	if err != nil || rec == nil {
		t.Fatalf("no record under %s: %v", key, err)
	}
	return rec
}

// A caller is an API key of a tenant.
type caller struct {
	*rig
	t             testing.TB
	tenant, actor string
	key           string
}

var names struct {
	sync.Mutex
	n int
}

// tenant makes a tenant and a key of it, with all scopes unless some are named.
func (r *rig) tenant(t testing.TB, scopes ...godwit.Scope) *caller {
	t.Helper()
	names.Lock()
	names.n++
	name := fmt.Sprintf("tenant-%d", names.n)
	names.Unlock()
	if len(scopes) == 0 {
		scopes = godwit.AllScopes
	}
	_, key := r.NewTenant(name, scopes...)
	return r.caller(t, key)
}

// caller is the holder of the key.
func (r *rig) caller(t testing.TB, key string) *caller {
	t.Helper()
	c := &caller{rig: r, t: t, key: key}
	var got struct {
		Caller struct {
			Tenant string `json:"tenant_id"`
			Actor  string `json:"actor_id"`
		} `json:"caller"`
	}
	c.get("/ids/v1/registry", &got)
	c.tenant, c.actor = got.Caller.Tenant, got.Caller.Actor
	return c
}

// colleague is another key of the same tenant.
func (c *caller) colleague(scopes ...godwit.Scope) *caller {
	c.t.Helper()
	id, err := godwit.ParseTenantID(c.tenant)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.rig.caller(c.t, c.NewKey(id, scopes...))
}

// on is the same caller at another server.
func (c *caller) on(r *rig) *caller {
	other := *c
	other.rig = r
	return &other
}

// An answer is a response of the API of any status.
type answer struct {
	Code   int
	Header http.Header
	Raw    []byte

	Status      string          `json:"status"`
	Substatus   string          `json:"substatus"`
	Decision    string          `json:"decision"`
	Executed    bool            `json:"executed"`
	CommandID   string          `json:"command_id"`
	Key         string          `json:"idempotency_key"`
	KeyVersion  int             `json:"key_version"`
	Fingerprint string          `json:"envelope_fingerprint"`
	Summary     string          `json:"summary"`
	Outcome     json.RawMessage `json:"outcome"`
	OutcomeRef  string          `json:"outcome_ref"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	WindowEnd   time.Time       `json:"ttl_expires_at"`
	StatusURL   string          `json:"status_url"`
	Token       string          `json:"confirmation_token"`
	StepUpToken string          `json:"step_up_token"`
	ExpiresAt   time.Time       `json:"expires_at"`
	Type        string          `json:"type"`
	Reason      string          `json:"reason"`
}

// result returns the part of the outcome that the handler produced.
func (a *answer) result() (v object) {
	var o struct {
		Result object `json:"result"`
	}
	_ = json.Unmarshal(a.Outcome, &o)
	return o.Result
}

// send sends a request. It is safe for concurrent use.
func (c *caller) send(method, path string, body any) *answer {
	a := &answer{}
	var in io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Error(err)
			return a
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, c.URL+path, in)
	if err != nil {
		c.t.Error(err)
		return a
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return a
	}
	defer resp.Body.Close()
	a.Code, a.Header = resp.StatusCode, resp.Header
	if a.Raw, err = io.ReadAll(resp.Body); err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
	}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") && resp.Header.Get("Content-Type") != "application/x-ndjson" {
		// The status of a problem is a number; Code then holds it.
		_ = json.Unmarshal(a.Raw, a)
	}
	return a
}

// get reads an object that must exist.
func (c *caller) get(path string, into any) {
	c.t.Helper()
	a := c.send("GET", path, nil)
	if a.Code != 200 {
		c.t.Fatalf("GET %s: %d\n%s", path, a.Code, a.Raw)
	}
	if err := json.Unmarshal(a.Raw, into); err != nil {
		c.t.Fatalf("GET %s: %v\n%s", path, err, a.Raw)
	}
}

// envelope returns a command of the caller with new ephemeral members. more overrides members; nil removes one.
func (c *caller) envelope(name string, args object, more ...object) object {
	entity, action, _ := strings.Cut(name, ".")
	action, target, _ := strings.Cut(action, " ")
	intent := object{"entity": entity, "action": action}
	if target != "" {
		intent["target"] = target
	}
	e := object{
		"command_id": godwit.NewCommandID(c.now()).String(), "tenant_id": c.tenant, "actor_id": c.actor, "intent": intent,
		"issued_at": c.now().Format(time.RFC3339Nano),
	}
	if args != nil {
		e["args"] = args
	}
	for _, m := range more {
		maps.Copy(e, m)
	}
	maps.DeleteFunc(e, func(_ string, v any) bool { return v == nil })
	return e
}

// post submits an envelope unchanged.
func (c *caller) post(envelope any) *answer { return c.send("POST", "/ids/v1/commands", envelope) }

// submit submits a new envelope with the same command.
func (c *caller) submit(name string, args object, more ...object) *answer {
	return c.post(c.envelope(name, args, more...))
}

// must submits a command and requires a status code.
func (c *caller) must(code int, name string, args object, more ...object) *answer {
	c.t.Helper()
	a := c.submit(name, args, more...)
	c.expect(a, code)
	return a
}

func (c *caller) expect(a *answer, code int) {
	c.t.Helper()
	if a.Code != code {
		c.t.Fatalf("answered %d, want %d\n%s", a.Code, code, a.Raw)
	}
}

// many submits the same command n times at once.
func (c *caller) many(n int, name string, args object, more ...object) []*answer {
	answers := make([]*answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i] = c.submit(name, args, more...) })
	}
	wg.Wait()
	return answers
}

// status reads the status of a command.
func (c *caller) status(id string) *answer { return c.send("GET", "/ids/v1/commands/"+id, nil) }

// becomes waits until a command has a status.
func (c *caller) becomes(id, status, substatus string) *answer {
	c.t.Helper()
	var a *answer
	until(c.t, id+" is "+status+" "+substatus, func() bool {
		a = c.status(id)
		return a.Code == 200 && a.Status == status && a.Substatus == substatus
	})
	return a
}

// confirm gives a command's confirmation.
func (c *caller) confirm(id, token string, more ...object) *answer {
	body := object{"confirmation_token": token}
	for _, m := range more {
		maps.Copy(body, m)
	}
	return c.send("POST", "/ids/v1/commands/"+id+"/confirm", body)
}

// effects returns how often the handler of a command took effect.
func (c *caller) effects(id string) int { return c.probe.effects.of(c.tenant + "/" + id) }

// runs returns how often the handler was started.
func (c *caller) runs(id string) int { return c.probe.runs.of(c.tenant + "/" + id) }

// once checks that the effect of a command has happened once.
func (c *caller) once(id string) {
	c.t.Helper()
	if n := c.effects(id); n != 1 {
		c.t.Errorf("%s took effect %d times", id, n)
	}
}

// evidence reads a tenant's evidence of a key or a command, all of it by an empty query.
func (c *caller) evidence(query string) []evidence.Item {
	c.t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, memory := c.made.Store.(*command.MemoryStore); memory { // no API shows it
		items, err := c.made.Store.Evidence(context.Background(),
			command.EvidenceQuery{Tenant: c.tenant, Key: q.Get("idempotency_key"), CommandID: q.Get("command_id"), Limit: 1000})
		if err != nil {
			c.t.Fatal(err)
		}
		return items
	}
	var got struct {
		Evidence []evidence.Item `json:"evidence"`
	}
	c.get("/ids/v1/evidence?limit=1000&"+query, &got)
	return got.Evidence
}

// decided counts the decisions and the executions in a key's evidence.
func decided(items []evidence.Item) (decisions map[string]int, executions int) {
	decisions = map[string]int{}
	for i := range items {
		it := &items[i]
		if it.Executed {
			executions++
		}
		if it.Decision != "" && it.Type != evidence.Reserved { // the end of a first submission repeats the decision
			decisions[it.Decision]++
		}
	}
	return decisions, executions
}

// same checks that a repeat got the outcome of the first response, byte for byte.
func same(t testing.TB, first, repeat *answer) {
	t.Helper()
	if len(first.Outcome) == 0 || !bytes.Equal(first.Outcome, repeat.Outcome) || repeat.Code != first.Code || repeat.OutcomeRef != first.OutcomeRef {
		t.Errorf("repeat differs:\nfirst  %d %s\nrepeat %d %s", first.Code, first.Raw, repeat.Code, repeat.Raw)
	}
	if repeat.Decision != "duplicate_replayed" || repeat.Executed || repeat.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("not told as a repeat: %v %s", repeat.Header, repeat.Raw)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A tally counts by name.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
	return c.n[name]
}

func (c *tally) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}
