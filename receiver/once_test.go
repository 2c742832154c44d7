package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/sqlitestore"
)

// TestRepeatsGetTheFirstAnswer: as often as they come, whatever it was.
func TestRepeatsGetTheFirstAnswer(t *testing.T) {
	trace.Covers(t, "IKH-DEF-3", "IKH-DEF-5", "IKH-SCN-1", "IKH-SCN-3", "EDS-DUP-1", "IKH-DEF-6")
	for name, result := range map[string]receiver.Result{
		"created": receiver.Accepted{Status: 201, Header: http.Header{"x-receipt": {"r1"}, "Content-Type": {"text/plain"}}, Body: []byte("made")},
		"usual":   nil,
		"refused": receiver.Reject{Status: 422, Reason: "No such order"},
		"no body": receiver.Accepted{Status: 202},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) { return result, nil }
			first := g.do(g.eds(event{id: id("x")}))
			if first.Header.Get("Idempotency-Replayed") != "" {
				t.Error("the first answer says that it is a repeat")
			}
			if name == "created" && (first.Status != 201 || first.Body != "made" || first.Header.Get("X-Receipt") != "r1") {
				t.Errorf("first answer %+v", first)
			}
			for range 9 {
				g.clock.Advance(time.Minute)
				next := g.do(g.eds(event{id: id("x")}))
				if next.Status != first.Status || next.Body != first.Body || next.Header.Get("X-Receipt") != first.Header.Get("X-Receipt") ||
					next.Header.Get("Content-Type") != first.Header.Get("Content-Type") || next.Header.Get("Idempotency-Replayed") != "true" {
					t.Fatalf("answer %+v, first %+v", next, first)
				}
			}
			g.wantCalls(1)
		})
	}
}

// TestWhatIsKept: not what belongs to one answer only.
func TestWhatIsKept(t *testing.T) {
	g := newRig(t)
	large := strings.Repeat("x", 65<<10)
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		header := http.Header{"Set-Cookie": {"a=b"}, "Traceparent": {"t"}, "X-Own": {"o"}, "Retry-After": {"3"}}
		if d.Key == id("large") {
			return receiver.Accepted{Header: header, Body: []byte(large)}, nil
		}
		return receiver.Accepted{Header: header, Body: []byte("small")}, nil
	}
	first := g.want(g.do(g.eds(event{id: id("small")})), 200)
	if first.Header.Get("Set-Cookie") == "" || first.Header.Get("Retry-After") != "" {
		t.Errorf("first answer %v", first.Header)
	}
	next := g.want(g.do(g.eds(event{id: id("small")})), 200)
	if next.Header.Get("Set-Cookie") != "" || next.Header.Get("Traceparent") != "" || next.Header.Get("X-Own") != "o" || next.Body != "small" {
		t.Errorf("repeat %v %q", next.Header, next.Body)
	}
	if a := g.want(g.do(g.eds(event{id: id("large")})), 200); a.Body != large {
		t.Error("the large answer was not given")
	}
	if a := g.want(g.do(g.eds(event{id: id("large")})), 200); a.Body != "" {
		t.Error("the large answer was kept")
	}
	g.wantCalls(2)
}

// TestLedger: concurrent and later posts of one payment make one row.
func TestLedger(t *testing.T) {
	trace.Covers(t, "IKH-DEF-4", "IKH-RSP-7", "EDS-IDM-3", "CCW-RCV-5", "OJS-DLV-19")
	g := newRig(t)
	var ledger atomic.Int32
	g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) { ledger.Add(1); return nil, nil }
	var all sync.WaitGroup
	for range 100 {
		req := g.eds(event{id: id("payment")})
		all.Go(func() {
			a, err := g.try(req)
			if err != nil || a.Status != 204 && a.Status != 503 {
				t.Errorf("%d, %v", a.Status, err)
			}
		})
	}
	all.Wait()
	for range 100 {
		g.want(g.do(g.eds(event{id: id("payment")})), 204)
	}
	if ledger.Load() != 1 {
		t.Errorf("%d rows", ledger.Load())
	}
}

// TestInProgress: a repeat neither waits nor runs, whichever process it comes to.
func TestInProgress(t *testing.T) {
	trace.Covers(t, "IKH-SCN-4", "IKH-ERR-5", "CCW-IDM-5")
	for _, api := range []bool{true, false} {
		store, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "webhooks.db"), sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		shared := func(o *receiver.Options) {
			o.Store, o.API = store, api
			o.TargetURI = func(req *http.Request) string { return "https://hooks.example.com" + req.RequestURI }
		}
		first, second := newRig(t, shared), newRig(t, shared)
		running, release := make(chan struct{}), make(chan struct{})
		first.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			close(running)
			<-release
			return receiver.Accepted{Body: []byte("mine")}, nil
		}
		send := func(g *rig, e event) *http.Request {
			e = e.withDefaults()
			req := g.request(e)
			req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
			host := req.URL.Host
			req.URL.Host, req.Host = "hooks.example.com", "hooks.example.com" // as the sender knows it
			g.signEDS(req, e)
			req.URL.Host = host
			return req
		}
		original := make(chan answer, 1)
		req := send(first, event{id: id("x")})
		go func() {
			a, err := first.try(req)
			if err != nil {
				t.Error(err)
			}
			original <- a
		}()
		select {
		case <-running:
		case a := <-original:
			t.Fatalf("the original got %d %s", a.Status, a.Body)
		}
		status := 503
		if api {
			status = 409
		}
		for _, g := range []*rig{first, second} {
			a := g.do(send(g, event{id: id("x")}))
			g.wantProblem(a, status, receiver.CodeInProgress)
			if a.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After: %q", a.Header.Get("Retry-After"))
			}
			// Another payload would not be taken later either.
			g.wantProblem(g.do(send(g, event{id: id("x"), body: "another"})), 422, receiver.CodeKeyReused)
		}
		close(release)
		if a := <-original; a.Status != 200 || a.Body != "mine" {
			t.Errorf("the original got %d %q", a.Status, a.Body)
		}
		if a := second.want(second.do(send(second, event{id: id("x")})), 200); a.Body != "mine" {
			t.Errorf("a repeat got %q", a.Body)
		}
		first.wantCalls(1)
		second.wantCalls(0)
	}
}

// TestScopes: a key means something for one producer at one address.
func TestScopes(t *testing.T) {
	trace.Covers(t, "EDS-KEY-9", "EDS-KEY-5", "EDS-KEY-6", "IKH-SEC-3", "IKH-SEC-6", "IKH-SEC-7", "EDS-IDM-3")
	g := newRig(t)
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		return receiver.Accepted{Body: []byte(d.Principal + " " + d.URL)}, nil
	}
	body := `{"source":"shop"}` // what a payload claims counts for nothing
	answers := map[string]bool{}
	for _, key := range []string{"shop-1", "bank-1"} {
		for _, path := range []string{"/a", "/b", "/a?x=1"} {
			a := g.want(g.do(g.eds(event{id: id("x"), body: body, key: key, path: path})), 200)
			if a.Header.Get("Idempotency-Replayed") != "" || answers[a.Body] {
				t.Errorf("%s at %s got %q of somebody else", key, path, a.Body)
			}
			answers[a.Body] = true
		}
	}
	g.wantCalls(6)
	a := g.want(g.do(g.eds(event{id: id("x"), body: body, path: "/a"})), 200)
	if a.Header.Get("Idempotency-Replayed") != "true" || a.Body != "shop "+g.server.URL+"/a" {
		t.Errorf("a repeat got %q", a.Body)
	}
	// The producer changed its key, and is the same producer.
	if a := g.do(g.eds(event{id: id("x"), body: body, path: "/a", key: "shop-2"})); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("a rotation made another producer")
	}
	g.wantCalls(6)
}

// TestPathsAreApart: to spell a path in one way does not make two paths one.
func TestPathsAreApart(t *testing.T) {
	for _, m := range mechanisms() {
		if m.name != "standard-webhooks" {
			continue
		}
		g := newRig(t, withScheme(m.scheme))
		paths := []string{"/hooks", "/hooks/", "/Hooks", "/hooks%3Fa", "/hooks%253Fa", "/hooks%2525", "/hooks%25", "/h%C3%BCte", "/h%BCte"}
		for range 2 {
			for _, path := range paths {
				g.want(g.do(g.make(m, event{id: id("x"), path: path}, true)), 204)
			}
		}
		g.wantCalls(len(paths))
	}
}

// TestCapturedElsewhere: where the address is not signed, another query or host does not make a captured request a new one.
func TestCapturedElsewhere(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-2")
	for _, m := range mechanisms() {
		switch m.name {
		case "ojs", "cybercube", "standard-webhooks", "github", "stripe", "shopify", "slack":
		default:
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			e := event{id: id("x")}.withDefaults()
			for _, elsewhere := range []func(*http.Request){
				func(*http.Request) {},
				func(r *http.Request) { r.URL.RawQuery = "x=1" },
				func(r *http.Request) { r.Host = "other.example" },
				func(r *http.Request) { r.URL.RawPath = "/%68oo%6bs" }, // which servers route as /hooks
				func(r *http.Request) { r.URL.RawPath = "/%68oo%6Bs" },
			} {
				req := g.make(m, e, true)
				elsewhere(req)
				if a := g.do(req); a.Status < 200 || a.Status > 299 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
			g.wantCalls(1)
		})
	}
}

func TestScopeVectors(t *testing.T) {
	trace.Covers(t, "EDS-KEY-5", "IKH-SEC-6", "EDS-KEY-8")
	var file struct {
		Scopes       []struct{ Name, Principal, URL, Key, Scope string }
		Fingerprints []struct {
			Name        string
			ContentType string `json:"content_type"`
			Body        string
			BodyBase64  []byte `json:"body_base64"`
			Fingerprint string
		}
	}
	readVectors(t, "receiver-digests.json", &file)
	for _, c := range file.Scopes {
		if got := receiver.ScopeOf(c.Principal, c.URL, c.Key).String(); got != c.Scope {
			t.Errorf("%s: %s", c.Name, got)
		}
	}
	for _, c := range file.Fingerprints {
		body := []byte(c.Body)
		if c.BodyBase64 != nil {
			body = c.BodyBase64
		}
		if got := receiver.FingerprintOf(c.ContentType, body).String(); got != c.Fingerprint {
			t.Errorf("%s: %s", c.Name, got)
		}
	}
	if len(file.Scopes) < 8 || len(file.Fingerprints) < 5 {
		t.Errorf("only %d and %d cases", len(file.Scopes), len(file.Fingerprints))
	}
}

// TestPublicOrigin: behind a proxy the receiver knows itself as its senders do.
func TestPublicOrigin(t *testing.T) {
	trace.Covers(t, "EDS-KEY-8")
	g := newRig(t, func(o *receiver.Options) { o.PublicOrigin = "HTTPS://hooks.example.com" })
	proxied := plainServer(t, g.Receiver)
	var urls []string
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		urls = append(urls, d.URL)
		return nil, nil
	}
	for _, path := range []string{"/new", "/new?a=%20b", "/a%2Fb"} {
		e := event{id: id("x"), path: path}.withDefaults()
		req := g.request(e)
		req.URL.Host, req.Host = "hooks.example.com", "hooks.example.com"
		req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
		g.signEDS(req, e)
		req.URL.Scheme, req.URL.Host, req.Host = "http", proxied, "internal:8080" // what the proxy makes of it
		g.want(g.do(req), 204)
	}
	if strings.Join(urls, " ") != "https://hooks.example.com/new https://hooks.example.com/new?a=%20b https://hooks.example.com/a%2Fb" {
		t.Errorf("addresses %q", urls)
	}
	for _, origin := range []string{"hooks.example.com", "ftp://x", "https://x/path", "https://", "https://a@b"} {
		if _, err := receiver.New(receiver.Options{Scheme: edsScheme, Handler: accept, PublicOrigin: origin}); err == nil {
			t.Errorf("origin %q was taken", origin)
		}
	}
}

func TestFingerprint(t *testing.T) {
	trace.Covers(t, "IKH-FPR-1", "IKH-FPR-2", "IKH-FPR-4", "IKH-SCN-2", "IKH-ERR-3", "IKH-ERR-4", "IKH-ERR-7", "IKH-RSP-5", "IKH-RSP-6")
	g := newRig(t)
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		return receiver.Accepted{Body: d.Body}, nil
	}
	g.want(g.do(g.eds(event{id: id("x"), body: "one"})), 200)
	for range 5 {
		req := g.eds(event{id: id("x"), body: "two"})
		req.Header.Set("Digest", "sha-256=ofOne") // a client does not say what its payload is
		g.wantProblem(g.do(req), 422, receiver.CodeKeyReused)
	}
	g.wantProblem(g.do(g.eds(event{id: id("x"), body: "one", typ: "text/plain"})), 422, receiver.CodeKeyReused)
	g.clock.Advance(time.Hour)
	req := g.eds(event{id: id("x"), body: "one"})
	req.Header.Set("Traceparent", "another")
	if a := g.want(g.do(req), 200); a.Body != "one" || a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repeat got %q", a.Body)
	}
	g.want(g.do(g.eds(event{id: id("y"), body: "one"})), 200)
	g.wantCalls(2)

	off := newRig(t, func(o *receiver.Options) { o.Dedup.NoFingerprint = true })
	off.handle = g.handle
	off.want(off.do(off.eds(event{id: id("x"), body: "one"})), 200)
	if a := off.want(off.do(off.eds(event{id: id("x"), body: "two"})), 200); a.Body != "one" {
		t.Errorf("the repeat got %q", a.Body)
	}
	off.wantCalls(1)
}

// TestChosenFingerprint: only what the function looks at counts.
func TestChosenFingerprint(t *testing.T) {
	trace.Covers(t, "IKH-FPR-3")
	g := newRig(t, func(o *receiver.Options) {
		o.Dedup.Fingerprint = func(d *receiver.Delivery) receiver.Digest {
			var payload struct{ Amount string }
			if err := d.JSON(&payload); err != nil {
				return receiver.Digest{}
			}
			return receiver.FingerprintOf("", []byte(payload.Amount))
		}
	})
	g.want(g.do(g.eds(event{id: id("x"), body: `{"amount":"5","sent":1}`})), 204)
	g.want(g.do(g.eds(event{id: id("x"), body: `{"amount":"5","sent":2}`})), 204)
	g.want(g.do(g.eds(event{id: id("x"), body: `{"amount":"6","sent":1}`})), 422)
	g.wantCalls(1)
	if _, err := receiver.New(receiver.Options{Scheme: edsScheme, Handler: accept, Dedup: receiver.Dedup{
		NoFingerprint: true, Fingerprint: func(*receiver.Delivery) receiver.Digest { return receiver.Digest{} }}}); err == nil {
		t.Error("a fingerprint was given and turned off")
	}
}

// TestWindow: just inside it a repeat is one, just outside it is not, and nothing is left.
func TestWindow(t *testing.T) {
	trace.Covers(t, "EDS-DUP-4", "EDS-DUP-5", "IKH-EXP-1", "IKH-EXP-2", "EDS-SRV-4", "CCW-IDM-9")
	day := 24 * time.Hour
	for _, c := range []struct {
		scheme string
		window time.Duration
		lasts  time.Duration
	}{{"eds", 0, 30 * day}, {"eds", day, day}, {"eds", 7 * day, 7 * day}, {"cybercube", 0, 30 * day}, {"cybercube", 7 * day, 7 * day}} {
		for _, m := range mechanisms() {
			if m.name != c.scheme {
				continue
			}
			g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.Dedup.Window = c.window })
			send := func() {
				t.Helper()
				if a := g.do(g.make(m, event{id: id("x")}, true)); a.Status/100 != 2 {
					t.Fatal(a)
				}
			}
			send()
			for _, wait := range []time.Duration{23*time.Hour + 59*time.Minute, c.lasts - 23*time.Hour - 59*time.Minute - time.Millisecond} {
				g.clock.Advance(wait)
				send()
			}
			g.wantCalls(1)
			g.clock.Advance(time.Millisecond)
			send()
			g.wantCalls(2)
			g.clock.Advance(c.lasts + time.Hour)
			if _, err := g.Purge(t.Context()); err != nil || g.memoryLen() != 0 {
				t.Errorf("%v, %d things are left", err, g.memoryLen())
			}
		}
	}
}

func TestShortWindowNeedsAnAgreement(t *testing.T) {
	trace.Covers(t, "EDS-DUP-5", "CCW-IDM-9")
	day := 24 * time.Hour
	for _, c := range []struct {
		scheme    receiver.Scheme
		window    time.Duration
		agreement string
		ok        bool
	}{
		{edsScheme, day, "", true}, {edsScheme, day - 1, "", false}, {edsScheme, time.Hour, "https://example.com/agreement", true},
		{receiver.Cybercube{Secrets: []string{"x"}}, 7 * day, "", true}, {receiver.Cybercube{Secrets: []string{"x"}}, 7*day - 1, "", false},
		{receiver.OJS{Secrets: []string{"x"}}, day - 1, "", false}, {receiver.StandardWebhooks{Keys: []string{secretA}}, day - 1, "", false},
		{receiver.GitHub{Secrets: []string{"x"}}, day - 1, "", false}, {edsScheme, -day, "a", false},
	} {
		_, err := receiver.New(receiver.Options{Scheme: c.scheme, Handler: accept, Dedup: receiver.Dedup{Window: c.window, Agreement: c.agreement}})
		if (err == nil) != c.ok {
			t.Errorf("%T with %s: %v", c.scheme, c.window, err)
		}
	}
}

// TestCrashedHolder: its key is free when the lease ends, and not before.
func TestCrashedHolder(t *testing.T) {
	trace.Covers(t, "IKH-EXP-3", "CCW-IDM-6")
	for _, c := range []struct {
		scheme string
		lease  time.Duration
	}{{"eds", time.Minute}, {"cybercube", 5 * time.Minute}} {
		for _, m := range mechanisms() {
			if m.name != c.scheme {
				continue
			}
			g := newRig(t, withScheme(m.scheme))
			e := event{id: id("x")}.withDefaults()
			principal := map[string]string{"eds": "shop", "cybercube": "cybercube"}[m.name]
			crashed := receiver.Hold{
				Scope: receiver.ScopeOf(principal, map[string]string{"eds": g.server.URL}[m.name]+"/hooks", e.id), Fingerprint: receiver.FingerprintOf(e.typ, []byte(e.body)), Token: "dead",
			}
			found, err := g.store.Reserve(t.Context(), receiver.Reserve{Hold: crashed, Now: g.clock.Now(), LeaseUntil: g.clock.Now().Add(c.lease)})
			if err != nil || found.State != receiver.Reserved {
				t.Fatal(found, err)
			}
			g.clock.Advance(c.lease - time.Second)
			g.want(g.do(g.make(m, e, true)), 503)
			g.wantCalls(0)
			g.clock.Advance(2 * time.Second)
			if a := g.do(g.make(m, e, true)); a.Status/100 != 2 {
				t.Fatal(a)
			}
			g.wantCalls(1)
		}
	}
}

// TestPurgesByItself: without a call of Purge.
func TestPurgesByItself(t *testing.T) {
	trace.Covers(t, "IKH-EXP-3", "IKH-EXP-1")
	store, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "webhooks.db"), sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	g := newRig(t, func(o *receiver.Options) { o.Store = store })
	for _, name := range []string{"a", "b", "c"} {
		g.want(g.do(g.eds(event{id: id(name)})), 204)
	}
	g.clock.Advance(31 * 24 * time.Hour)
	g.want(g.do(g.request(event{}.withDefaults())), 401) // any request will do
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := store.DB().QueryRow(`SELECT (SELECT count(*) FROM webhook_receipts) + (SELECT count(*) FROM webhook_nonces)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}

// TestPurgesAll: what has expired goes, however much it is, or a busy receiver's store would grow for ever.
func TestPurgesAll(t *testing.T) {
	trace.Covers(t, "IKH-EXP-3")
	g := newRig(t)
	for i := range 5000 {
		h := receiver.Hold{Scope: receiver.ScopeOf("p", "u", fmt.Sprint(i)), Token: "t"}
		r := receiver.Reserve{Hold: h, Now: g.clock.Now(), LeaseUntil: g.clock.Now().Add(time.Minute)}
		if _, err := g.store.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	g.clock.Advance(time.Hour)
	g.want(g.do(g.request(event{}.withDefaults())), 401) // any request will do
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := g.memoryLen(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// panicking is a store that panics, as an application's own store may.
type panicking struct{ receiver.Store }

func (panicking) Complete(context.Context, receiver.Hold, receiver.Completion) (bool, error) {
	panic("store")
}
func (panicking) Release(context.Context, receiver.Hold) error { panic("store") }

// TestStorePanics: the request gets its answer, and the process lives.
func TestStorePanics(t *testing.T) {
	trace.Covers(t, "EDS-DEF-3")
	g := newRig(t, func(o *receiver.Options) { o.Store = panicking{o.Store} })
	g.want(g.do(g.eds(event{id: id("x")})), 500)
	g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) { return receiver.RetryAfter{}, nil }
	g.want(g.do(g.eds(event{id: id("y")})), 500)
}

// TestBrokenOutcome: a store with something in it that was never kept is a store that cannot be asked.
func TestBrokenOutcome(t *testing.T) {
	store := openSQLite(t)
	g := newRig(t, func(o *receiver.Options) { o.Store = store })
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	for _, broken := range []string{"status = 7", "status = 200, headers = '{'", "headers = '{}', body = '?'", "fingerprint = 'x'"} {
		if _, err := store.DB().Exec("UPDATE webhook_receipts SET " + broken); err != nil {
			t.Fatal(err)
		}
		g.want(g.do(g.eds(event{id: id("x")})), 503)
	}
	g.wantCalls(1)
}

// TestCloudEvents: the key counts, the event's own id does not.
func TestCloudEvents(t *testing.T) {
	trace.Covers(t, "EDS-CE-4")
	g := newRig(t)
	send := func(key, ceID, body, typ string) int {
		e := event{id: id(key), body: body, typ: typ}.withDefaults()
		req := g.request(e)
		req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
		if ceID != "" {
			req.Header.Set("Ce-Id", ceID)
		}
		g.signEDS(req, e)
		return g.do(req).Status
	}
	if send("a", "1", "x", "text/plain") != 204 || send("b", "1", "x", "text/plain") != 204 {
		t.Error("equal ids under two keys were not both taken")
	}
	g.wantCalls(2)
	if send("a", "2", "x", "text/plain") != 204 {
		t.Error("another id under one key was not a repeat")
	}
	g.wantCalls(2)
	const structured = "application/cloudevents+json"
	if send("c", "", `{"id":"1"}`, structured) != 204 || send("c", "", `{"id":"2"}`, structured) != 422 {
		t.Error("another body under one key was not refused")
	}
	g.wantCalls(3)
}

// brokenComplete fails to keep results.
type brokenComplete struct{ receiver.Store }

func (brokenComplete) Complete(context.Context, receiver.Hold, receiver.Completion) (bool, error) {
	return false, errors.New("store is down")
}

// TestResultIsNotKept: the effect has happened, so the sender is told so.
func TestResultIsNotKept(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) { o.Store = brokenComplete{o.Store} })
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	if !strings.Contains(g.log.String(), "keep result failed") {
		t.Error("nobody was told")
	}
	g.want(g.do(g.eds(event{id: id("x")})), 503) // the lease stays
	g.clock.Advance(time.Minute)
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	g.wantCalls(2)
}
