package receiver_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

func plainServer(t *testing.T, h http.Handler) (host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestMethods: what is no delivery runs nothing and leaves nothing.
func TestMethods(t *testing.T) {
	trace.Covers(t, "CCW-RCV-3", "IKH-DEF-2")
	for _, c := range []struct {
		agreement string
		method    string
		status    int
		allow     string
	}{
		{"", "GET", 405, "POST"}, {"", "HEAD", 405, "POST"}, {"", "OPTIONS", 405, "POST"}, {"", "DELETE", 405, "POST"},
		{"", "PATCH", 405, "POST"}, {"", "PUT", 405, "POST"}, {"a", "GET", 405, "POST, PUT"}, {"a", "PUT", 204, ""}, {"a", "POST", 204, ""},
	} {
		t.Run(c.method+c.agreement, func(t *testing.T) {
			scheme := edsScheme
			scheme.PutAgreement = c.agreement
			g := newRig(t, withScheme(scheme))
			e := event{id: id("m")}.withDefaults()
			req := g.request(e)
			req.Method = c.method
			req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
			g.signEDS(req, e)
			a := g.want(g.do(req), c.status)
			if a.Header.Get("Allow") != c.allow {
				t.Errorf("Allow: %q, want %q", a.Header.Get("Allow"), c.allow)
			}
			want := 0
			if c.status == 204 {
				want = 1
				g.want(g.do(func() *http.Request { g.signEDS(req, e); return again(req) }()), 204) // enforced alike
			} else if g.memoryLen() != 0 {
				t.Error("something was remembered")
			}
			g.wantCalls(want)
		})
	}
}

// endless is a body without end, which counts what is read of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestSize(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) { o.MaxBody = 1000 })
	fits := event{id: id("fits"), body: strings.Repeat("x", 1000)}
	g.want(g.do(g.eds(fits)), 204)
	g.wantProblem(g.do(g.eds(event{id: id("long"), body: strings.Repeat("x", 1001)})), 413, receiver.CodeTooLarge)
	g.wantCalls(1)

	body := &endless{}
	req := httptest.NewRequest("POST", "https://hooks.example.com/hooks", body)
	req.ContentLength = -1
	w := httptest.NewRecorder()
	g.ServeHTTP(w, req)
	if w.Code != 413 || body.read.Load() > 4096 {
		t.Errorf("%d after %d bytes were read", w.Code, body.read.Load())
	}
	announced := &endless{}
	req = httptest.NewRequest("POST", "https://hooks.example.com/hooks", announced)
	req.ContentLength = 1001
	w = httptest.NewRecorder()
	g.ServeHTTP(w, req)
	if w.Code != 413 || announced.read.Load() != 0 {
		t.Errorf("%d after %d bytes were read", w.Code, announced.read.Load())
	}
	if _, err := receiver.New(receiver.Options{Scheme: edsScheme, Handler: accept, MaxBody: -1}); err == nil {
		t.Error("a limit below zero was taken")
	}
}

func accept(context.Context, *receiver.Delivery) (receiver.Result, error) { return nil, nil }

// TestCutOffBody: a sender that hangs up before its body is complete has sent nothing.
func TestCutOffBody(t *testing.T) {
	g := newRig(t)
	req := httptest.NewRequest("POST", g.server.URL+"/hooks", io.MultiReader(strings.NewReader("half"), brokenReader{}))
	w := httptest.NewRecorder()
	g.ServeHTTP(w, req)
	if w.Code != 400 {
		t.Errorf("status %d", w.Code)
	}
	g.wantCalls(0)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, net.ErrClosed }

// TestAuthenticationComesFirst: who is not authenticated learns nothing about keys and payloads, and leaves nothing.
func TestAuthenticationComesFirst(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AUT-3", "EDS-SEC-THR-1", "EDS-SEC-AUT-2", "CCW-RCV-1")
	for _, m := range mechanisms() {
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			e := event{id: id("x")}.withDefaults()
			challenge := event{id: id("c"), body: `{"type":"url_verification","challenge":"42","token":"x"}`}.withDefaults()
			for name, req := range map[string]*http.Request{
				"unsigned":           g.request(e),
				"wrong key":          g.make(m, e, false),
				"unsigned challenge": g.request(challenge),
				"not JSON":           g.make(m, event{id: id("y"), body: "{"}, false),
			} {
				a := g.want(g.do(req), 401)
				if a.Header.Get("WWW-Authenticate") == "" || strings.Contains(a.Body, "42") {
					t.Errorf("%s: %v %s", name, a.Header, a.Body)
				}
			}
			g.wantCalls(0)
			if n := g.memoryLen(); n != 0 {
				t.Errorf("%d things were remembered", n)
			}
		})
	}
}

// TestEveryRequestIsAuthenticated: on one connection, after a good one.
func TestEveryRequestIsAuthenticated(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AUT-1", "CCW-RCV-1")
	for _, m := range mechanisms() {
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			g.server.Config.SetKeepAlivesEnabled(true)
			status := map[bool]int{true: 2, false: 4}
			for i, good := range []bool{true, false, true, false} {
				e := event{id: id(string(rune('a' + i)))}
				req := g.make(m, e, good)
				if !good {
					req = g.request(e.withDefaults())
				}
				if a := g.do(req); a.Status/100 != status[good] {
					t.Fatalf("request %d: %d %s", i, a.Status, a.Body)
				}
			}
			g.wantCalls(2)
		})
	}
}

// TestChangedInTransit: whatever the receiver acts on is signed by eds.
func TestChangedInTransit(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-3", "EDS-SEC-RPL-4")
	for name, change := range map[string]func(*http.Request){
		"a bit of the body": func(req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			body[3] ^= 1
			req.Body = io.NopCloser(bytes.NewReader(body))
		},
		"the key":          func(req *http.Request) { req.Header.Set("Idempotency-Key", `"`+id("another")+`"`) },
		"the media type":   func(req *http.Request) { req.Header.Set("Content-Type", "text/xml") },
		"the digest":       func(req *http.Request) { req.Header.Set("Content-Digest", "sha-256=:AAAA:") },
		"the address":      func(req *http.Request) { req.URL.Path = "/other" },
		"the query":        func(req *http.Request) { req.URL.RawQuery = "a=b" },
		"the method":       func(req *http.Request) { req.Method = "PUT" },
		"the time":         changeInput(`created=\d+`, `created=1782907201`),
		"the nonce":        changeInput(`nonce="[^"]*"`, `nonce="another"`),
		"what is covered":  changeInput(` "idempotency-key"`, ``),
		"the name of key":  changeInput(`keyid="shop-1"`, `keyid="shop-2"`),
		"no nonce":         changeInput(`;nonce="[^"]*"`, ``),
		"no time":          changeInput(`;created=\d+`, ``),
		"no signature":     func(req *http.Request) { req.Header.Del("Signature") },
		"no digest at all": func(req *http.Request) { req.Header.Del("Content-Digest") },
	} {
		t.Run(name, func(t *testing.T) {
			scheme := edsScheme
			scheme.PutAgreement = "a"
			g := newRig(t, withScheme(scheme))
			req := g.eds(event{id: id("x")})
			change(req)
			g.want(g.do(req), 401)
			g.wantCalls(0)
			g.want(g.do(g.eds(event{id: id("x")})), 204)
		})
	}
}
