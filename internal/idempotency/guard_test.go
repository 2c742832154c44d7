package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestFirstRequestIsProcessed(t *testing.T) {
	trace.Covers(t, "IKH-SCN-1")
	f := newFixture(t, nil)
	f.handler = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Thing-Colour", "blue")
		w.Header().Add("Thing-Part", "one")
		w.Header().Add("Thing-Part", "two")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "as it is \x00\xff")
	}
	r := f.post(`{}`, "Idempotency-Key", key1)
	if r.status != 202 || r.body != "as it is \x00\xff" || r.header.Get("Thing-Colour") != "blue" ||
		len(r.header.Values("Thing-Part")) != 2 || r.header.Get("Content-Type") != "text/plain" || r.replayed() {
		t.Errorf("answer was altered: %+v", r)
	}
	f.wantCalls(1)
}

func TestRepeatGetsTheFirstAnswer(t *testing.T) {
	trace.Covers(t, "IKH-DEF-3", "IKH-SCN-3")
	f := newFixture(t, nil)
	first := f.post(`{"n":1}`, "Idempotency-Key", key1)
	for range 10 {
		again := f.post(`{"n":1}`, "Idempotency-Key", key1)
		if again.status != 201 || again.body != first.body || again.header.Get("Location") != first.header.Get("Location") ||
			again.header.Get("Content-Type") != first.header.Get("Content-Type") || !again.replayed() {
			t.Fatalf("repeat differs: %+v, first %+v", again, first)
		}
	}
	f.wantCalls(1)

	f.handler = func(w http.ResponseWriter, _ *http.Request) {
		f.guard.Policy().Problems.Write(w, &http.Request{}, problem.Invalid.In("n", "is not to my liking"))
	}
	refused := f.post(`{"n":2}`, "Idempotency-Key", key2)
	again := f.post(`{"n":2}`, "Idempotency-Key", key2)
	if refused.status != 422 || again.status != 422 || again.body != refused.body || !again.replayed() {
		t.Errorf("refusal %+v, repeat %+v", refused, again)
	}
	f.wantCalls(2)
}

func TestWhatIsADuplicate(t *testing.T) {
	trace.Covers(t, "IKH-SCN-2", "IKH-RSP-5", "IKH-FPR-1", "IKH-ERR-3", "IKH-ERR-4")
	f := newFixture(t, nil)
	first := f.post(`{"n":1}`, "Idempotency-Key", key1)
	if r := f.post(`{"n":1}`, "Idempotency-Key", key1); r.body != first.body || !r.replayed() {
		t.Errorf("same key, same body: %+v", r)
	}
	f.wantCalls(1)
	other := f.post(`{"n":2}`, "Idempotency-Key", key1)
	wantDocumented(t, other, 422, problem.KeyReused)
	f.wantCalls(1)
	if r := f.post(`{"n":1}`, "Idempotency-Key", key1); r.body != first.body || r.status != 201 {
		t.Errorf("the stored answer was touched by misuse: %+v", r)
	}
	if r := f.post(`{"n":1}`, "Idempotency-Key", key2); r.status != 201 || r.replayed() || r.body == first.body {
		t.Errorf("other key, same body: %+v", r)
	}
	f.wantCalls(2)
}

// wantDocumented checks that a refusal leads to the documentation in both ways.
func wantDocumented(t *testing.T, r reply, status int, kind *problem.Kind) {
	t.Helper()
	p := r.problem(t)
	if r.status != status || p.Status != status || p.Code != kind.Code {
		t.Errorf("got %d %s, want %d %s", r.status, p.Code, status, kind.Code)
	}
	if r.header.Get("Content-Type") != "application/problem+json" || p.Type != docs+"#"+kind.Code {
		t.Errorf("body does not lead to the documentation: %s %q", r.header.Get("Content-Type"), p.Type)
	}
	if got, want := r.header.Get("Link"), `<`+docs+`>; rel="describedby"; type="text/html"`; got != want {
		t.Errorf("Link is %q, want %q", got, want)
	}
}

func TestConcurrentRepeatsConflict(t *testing.T) {
	trace.Covers(t, "IKH-SCN-4", "IKH-ERR-5")
	f := newFixture(t, nil)
	running, release := make(chan struct{}), make(chan struct{})
	f.handler = func(w http.ResponseWriter, _ *http.Request) {
		close(running)
		<-release
		io.WriteString(w, "done")
	}
	first := make(chan reply, 1)
	go func() { first <- f.post(`{}`, "Idempotency-Key", key1) }()
	<-running
	// The first request cannot end before it is released, so any response shows that the guard did not wait.
	second := f.post(`{}`, "Idempotency-Key", key1)
	wantDocumented(t, second, 409, problem.KeyInProgress)
	if second.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", second.header.Get("Retry-After"))
	}
	close(release)
	if r := <-first; r.status != 200 || r.body != "done" || r.replayed() {
		t.Errorf("the original got %+v", r)
	}
	if r := f.post(`{}`, "Idempotency-Key", key1); r.body != "done" || !r.replayed() {
		t.Errorf("afterwards: %+v", r)
	}
	f.wantCalls(1)
}

func TestConcurrentMisuse(t *testing.T) {
	f := newFixture(t, nil)
	running, release := make(chan struct{}), make(chan struct{})
	f.handler = func(http.ResponseWriter, *http.Request) { close(running); <-release }
	done := make(chan reply, 1)
	go func() { done <- f.post(`{"n":1}`, "Idempotency-Key", key1) }()
	<-running
	// A 409 would tell the client to send this again unchanged (K-5).
	wantDocumented(t, f.post(`{"n":2}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	close(release)
	<-done
	f.wantCalls(1)
}

func TestLedgerHasOneRow(t *testing.T) {
	trace.Covers(t, "IKH-DEF-4", "IKH-RSP-7")
	f := newFixture(t, nil)
	var mu sync.Mutex
	var ledger []string
	f.handler = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		ledger = append(ledger, string(body))
		w.WriteHeader(http.StatusCreated)
	}
	const payment = `{"pay":"100.00"}`
	var wg sync.WaitGroup
	var answered, conflicts atomic.Int64
	for range 100 {
		wg.Go(func() {
			switch f.post(payment, "Idempotency-Key", key1).status {
			case 201:
				answered.Add(1)
			case 409:
				conflicts.Add(1)
			}
		})
	}
	wg.Wait()
	for range 100 {
		if r := f.post(payment, "Idempotency-Key", key1); r.status != 201 || !r.replayed() {
			t.Fatalf("sequential repeat: %+v", r)
		}
	}
	if len(ledger) != 1 {
		t.Errorf("ledger has %d rows", len(ledger))
	}
	if answered.Load() == 0 || answered.Load()+conflicts.Load() != 100 {
		t.Errorf("%d answered, %d in conflict, of 100", answered.Load(), conflicts.Load())
	}
	f.wantCalls(1)
}

func TestMissingKey(t *testing.T) {
	trace.Covers(t, "IKH-ERR-1", "IKH-ERR-2", "IKH-DEF-1", "IKH-REG-1")
	f := newFixture(t, nil)
	for name, send := range map[string]func() reply{
		"nowhere": func() reply { return f.post(`{}`) },
		"in query": func() reply {
			return f.send("POST", "/things?Idempotency-Key=8e03978e-40d5-43e8-bc93-6894a57f9324", `{}`)
		},
		"in body":     func() reply { return f.post(`{"Idempotency-Key":"8e03978e-40d5-43e8-bc93-6894a57f9324"}`) },
		"in trailer":  func() reply { return f.postTrailer() },
		"x- prefixed": func() reply { return f.post(`{}`, "X-Idempotency-Key", key1) },
		"vendor": func() reply {
			return f.post(`{}`, "PayPal-Request-Id", key1, "I-Twilio-Idempotency-Token", key1, "X-Request-Id", key1)
		},
	} {
		t.Run(name, func(t *testing.T) { wantDocumented(t, send(), 400, problem.KeyMissing) })
	}
	f.wantCalls(0)
	if n := f.spy.touched.Load(); n != 0 {
		t.Errorf("store was touched %d times", n)
	}
	if r := f.post(`{}`, "iDEMPOTENCY-kEY", key1); r.status != 201 {
		t.Errorf("name in another case: %+v", r)
	}
}

func (f *fixture) postTrailer() reply {
	f.t.Helper()
	req, err := http.NewRequest("POST", f.server.URL+"/things", struct{ io.Reader }{strings.NewReader(`{}`)})
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Test-Principal", "alice")
	req.Trailer = http.Header{"Idempotency-Key": {key1}}
	resp, err := f.server.Client().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text)}
}

func TestBadKeyTouchesNothing(t *testing.T) {
	trace.Covers(t, "IKH-SYN-3", "IKH-SYN-5", "IKH-SEC-1", "IKH-SEC-5")
	f := newFixture(t, nil)
	for _, c := range []struct {
		name string
		keys []string
		kind *problem.Kind
	}{
		{"token", []string{"abc-def-abc-def-abc-def"}, problem.KeyMalformed},
		{"bare uuid", []string{"8e03978e-40d5-43e8-bc93-6894a57f9324"}, problem.KeyMalformed},
		{"integer", []string{"123"}, problem.KeyMalformed},
		{"list", []string{key1 + ", " + key2}, problem.KeyMalformed},
		{"two lines", []string{key1, key1}, problem.KeyRepeated},
		{"empty", []string{`""`}, problem.KeyTooShort},
		{"short", []string{`"` + strings.Repeat("k", 15) + `"`}, problem.KeyTooShort},
		{"long", []string{`"` + strings.Repeat("k", 256) + `"`}, problem.KeyTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			var headers []string
			for _, k := range c.keys {
				headers = append(headers, "Idempotency-Key", k)
			}
			wantDocumented(t, f.post(`{"valid":true}`, headers...), 400, c.kind)
		})
	}
	f.wantCalls(0)
	if n := f.spy.touched.Load(); n != 0 {
		t.Errorf("store was touched %d times", n)
	}
}

func TestUncorrectedResendFailsAgain(t *testing.T) {
	trace.Covers(t, "IKH-ERR-7")
	f := newFixture(t, nil)
	f.post(`{"n":1}`, "Idempotency-Key", key1)
	for range 5 {
		wantDocumented(t, f.post(`{"n":1}`), 400, problem.KeyMissing)
		wantDocumented(t, f.post(`{"n":2}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	}
	f.wantCalls(1)
}

func TestMethods(t *testing.T) {
	trace.Covers(t, "IKH-DEF-2")
	f := newFixture(t, nil)
	for i, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch} {
		first := f.send(method, "/things", `{}`, "Idempotency-Key", key1)
		again := f.send(method, "/things", `{}`, "Idempotency-Key", key1)
		if first.replayed() || !again.replayed() || again.body != first.body {
			t.Errorf("%s: %+v, %+v", method, first, again)
		}
		wantDocumented(t, f.send(method, "/things", `{"n":2}`, "Idempotency-Key", key1), 422, problem.KeyReused)
		f.wantCalls(int64(i + 1))
	}
	touched := f.spy.touched.Load()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete} {
		for range 2 {
			if r := f.send(method, "/things", ``, "Idempotency-Key", key1); r.replayed() {
				t.Errorf("%s was replayed", method)
			}
		}
		if _, err := f.recorded("alice", method+" /things", key1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s left a record: %v", method, err)
		}
	}
	if n := f.spy.touched.Load(); n != touched {
		t.Errorf("store was touched %d times by idempotent methods", n-touched)
	}
	f.wantCalls(3 + 8)
}

func TestWindow(t *testing.T) {
	trace.Covers(t, "IKH-EXP-2")
	f := newFixture(t, nil)
	f.handler = func(http.ResponseWriter, *http.Request) { f.clock.Advance(20 * time.Second) } // the window begins when it ends
	f.post(`{}`, "Idempotency-Key", key1)
	f.clock.Advance(24*time.Hour - time.Millisecond)
	if r := f.post(`{}`, "Idempotency-Key", key1); !r.replayed() {
		t.Errorf("just inside the window: %+v", r)
	}
	f.wantCalls(1)
	f.clock.Advance(time.Millisecond) // a repeat does not prolong it
	if r := f.post(`{"other":true}`, "Idempotency-Key", key1); r.replayed() || r.status != 200 {
		t.Errorf("just outside the window: %+v", r)
	}
	f.wantCalls(2)
}

func TestWindowFollowsConfigAndTimeScale(t *testing.T) {
	f := newFixture(t, func(c *idempotency.Config) { c.Window, c.TimeScale = 48*time.Hour, 100 })
	f.post(`{}`, "Idempotency-Key", key1)
	f.clock.Advance(48*time.Hour/100 - time.Millisecond)
	if !f.post(`{}`, "Idempotency-Key", key1).replayed() {
		t.Error("forgotten too early")
	}
	f.clock.Advance(time.Millisecond)
	if f.post(`{}`, "Idempotency-Key", key1).replayed() {
		t.Error("remembered too long")
	}
}

func TestExpiredKeysAreSwept(t *testing.T) {
	trace.Covers(t, "IKH-EXP-1")
	f := newFixture(t, nil)
	f.post(`{}`, "Idempotency-Key", key1)
	sweep := func() int64 {
		t.Helper()
		swept, err := f.store.Sweep(context.Background(), store.Sweep{Now: f.clock.Now(), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return swept.Records
	}
	if n := sweep(); n != 0 {
		t.Errorf("%d live records were swept", n)
	}
	f.clock.Advance(24*time.Hour + time.Second)
	if n := sweep(); n != 1 {
		t.Errorf("%d records were swept, want 1", n)
	}
	if _, err := f.recorded("alice", "POST /things", key1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("record is still there: %v", err)
	}
	if r := f.post(`{}`, "Idempotency-Key", key1); r.replayed() {
		t.Error("a forgotten key is not a first request")
	}
	f.wantCalls(2)
}

// TestKilledProcess has a request in progress in another process, which is then killed.
func TestKilledProcess(t *testing.T) {
	trace.Covers(t, "IKH-EXP-3", "IKH-SCN-4")
	slowtest.Needs(t, "a process that is killed")
	f := newFixture(t, nil)
	kill := startChild(t, f.dir)
	wantDocumented(t, f.post(`{"n":1}`, "Idempotency-Key", key1), 409, problem.KeyInProgress)
	wantDocumented(t, f.post(`{"n":2}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	kill()
	f.clock.Advance(60*time.Second - time.Millisecond)
	wantDocumented(t, f.post(`{"n":1}`, "Idempotency-Key", key1), 409, problem.KeyInProgress)
	f.wantCalls(0)
	f.clock.Advance(time.Millisecond)
	if r := f.post(`{"n":1}`, "Idempotency-Key", key1); r.status != 201 || r.replayed() {
		t.Errorf("after the lease: %+v", r)
	}
	f.wantCalls(1)
	if r := f.post(`{"n":1}`, "Idempotency-Key", key1); !r.replayed() {
		t.Errorf("repeat: %+v", r)
	}
}

func TestAnswersOutliveARestart(t *testing.T) {
	f := newFixture(t, nil)
	first := f.post(`{"n":1}`, "Idempotency-Key", key1)
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	f.store = openStore(t, f.dir)
	f.spy.Idempotency = f.store
	if r := f.post(`{"n":1}`, "Idempotency-Key", key1); !r.replayed() || r.body != first.body {
		t.Errorf("after a restart: %+v", r)
	}
	f.wantCalls(1)
}

func TestPrincipalsDoNotMeet(t *testing.T) {
	trace.Covers(t, "IKH-SEC-3", "IKH-SEC-6", "IKH-SEC-7")
	f := newFixture(t, nil)
	f.handler = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "for %s only", r.Header.Get("Test-Principal"))
	}
	alice := f.post(`{}`, "Idempotency-Key", key1)
	bob := f.post(`{}`, "Idempotency-Key", key1, "Test-Principal", "bob")
	if alice.body != "for alice only" || bob.body != "for bob only" || bob.replayed() {
		t.Errorf("alice %+v, bob %+v", alice, bob)
	}
	f.wantCalls(2)
	for _, who := range []string{"alice", "bob"} {
		if _, err := f.recorded(who, "POST /things", key1); err != nil {
			t.Errorf("%s has no record of their own: %v", who, err)
		}
	}
	// No part of the composite can run into the next.
	a := idempotency.Scope{Operation: "POST /a"}.ID("b-key-key-key-key-key")
	b := idempotency.Scope{Operation: "POST /ab"}.ID("-key-key-key-key-key")
	if a == b {
		t.Error("operation and key run together")
	}
	// An unauthenticated caller learns nothing about keys: authentication comes first (K-13).
	if r := f.post(`{}`, "Test-Principal", "eve"); r.status != 401 || r.header.Get("Link") != "" || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("stranger: %+v", r)
	}
}

func TestHostileKeys(t *testing.T) {
	trace.Covers(t, "IKH-SEC-2")
	f := newFixture(t, nil)
	hostile := []string{
		`' OR 1=1 -- ' OR 1=1 --`, `../../../../etc/passwd`, `a\"b-a\"b-a\"b-a\"b-a\"b`, `%00%00%00%00%00%00%00%00`, `{{7*7}}{{7*7}}{{7*7}}`,
		`'; DROP TABLE idempotency; --`, `<script>alert(1)</script>`, `${jndi:ldap://x/a}${jndi}`, `level=ERROR msg=forged ok=true`,
	}
	for i, key := range hostile {
		first := f.post(`{}`, "Idempotency-Key", `"`+key+`"`)
		again := f.post(`{}`, "Idempotency-Key", `"`+key+`"`)
		if first.status != 201 || first.replayed() || !again.replayed() || again.body != first.body {
			t.Errorf("%s: %+v, %+v", key, first, again)
		}
		f.wantCalls(int64(i + 1))
	}
	wantDocumented(t, f.post(`{"other":1}`, "Idempotency-Key", `"`+hostile[0]+`"`), 422, problem.KeyReused)
	if _, err := f.store.Recorded(context.Background(), [32]byte{}, f.clock.Now()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("store is not well: %v", err)
	}
	for _, key := range hostile {
		if strings.Contains(f.log.String(), key) {
			t.Errorf("key in the log: %s", f.log)
		}
	}
}
