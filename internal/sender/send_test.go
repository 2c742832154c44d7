package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestSendReportsWhatItSaw(t *testing.T) {
	payload := []byte("{\"n\":1}\x00\xff\xfe")
	var got *http.Request
	var gotBody []byte
	overHTTP1(t, func(p *peer) {
		for {
			req := p.next()
			if req == nil {
				return
			}
			got, gotBody = req, must(io.ReadAll(req.Body))
			p.say("HTTP/1.1 201 Created\r\nX-Reply: yes\r\nContent-Length: 5\r\n\r\nhello")
		}
	}, func(t *testing.T, st *stub, url string) {
		s := newSender(t)
		r := post(url)
		r.Body = payload
		for i := range 2 {
			x := send(s, r)
			wantStatus(t, x, 201)
			if x.URL != url || x.Header.Get("X-Reply") != "yes" || string(x.Body) != "hello" || x.BodyCapped {
				t.Errorf("exchange %+v", x)
			}
			if x.Proto != "HTTP/1.1" || x.RemoteAddr != st.Addr().String() || x.Reused != (i == 1) || x.Hops != nil {
				t.Errorf("connection: proto %q remote %q reused %v hops %v", x.Proto, x.RemoteAddr, x.Reused, x.Hops)
			}
			if x.Started.IsZero() || x.Duration <= 0 {
				t.Errorf("started %v duration %v", x.Started, x.Duration)
			}
		}
		if got.Method != "POST" || got.URL.Path != "/hook" || !bytes.Equal(gotBody, payload) {
			t.Errorf("request %s %s body %q", got.Method, got.URL, gotBody)
		}
		if got.Header.Get("Idempotency-Key") != `"k-1"` || got.Header.Get("User-Agent") != "Godwit" {
			t.Errorf("header %v", got.Header)
		}
		if _, ok := got.Header["Accept-Encoding"]; ok {
			t.Error("Accept-Encoding was sent")
		}
		if n := st.conns.Load(); n != 1 {
			t.Errorf("%d connections; want 1", n)
		}
	})
}

func TestSendPassesEveryStatus(t *testing.T) {
	for _, line := range []string{"200", "204", "207", "299", "301", "304", "308", "400", "421", "451", "500", "511", "599", "600", "999", "099"} {
		t.Run(line, func(t *testing.T) {
			st := newStub(t, nil, serve("HTTP/1.1 "+line+" X\r\nContent-Length: 0\r\n\r\n"))
			x := send(newSender(t), post(st.url()))
			wantStatus(t, x, must(strconv.Atoi(line)))
			if n := st.reqs.Load(); n != 1 {
				t.Errorf("%d requests on the wire", n)
			}
		})
	}
}

func TestEmptyBody(t *testing.T) {
	overHTTP1(t, func(p *peer) {
		for req := p.next(); req != nil; req = p.next() {
			b := must(io.ReadAll(req.Body))
			p.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Length: %d\r\nContent-Length: 0\r\n\r\n", len(b)))
		}
	}, func(t *testing.T, st *stub, url string) {
		r := post(url)
		r.Body = nil
		x := send(newSender(t), r)
		wantStatus(t, x, 200)
		if x.Header.Get("X-Length") != "0" || x.Body != nil {
			t.Errorf("receiver saw %s bytes, body %q", x.Header.Get("X-Length"), x.Body)
		}
	})
}

func TestBodyCap(t *testing.T) {
	const limit = 100
	for name, c := range map[string]struct {
		size           int
		capped, closed bool
	}{
		"under":    {99, false, false},
		"exact":    {100, false, false},
		"by one":   {101, true, false}, // that one byte was read to see it is too long, and so was the end
		"far over": {1 << 20, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{}, 1)
			st := newStub(t, nil, func(p *peer) {
				p.next()
				p.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", c.size))
				p.say(strings.Repeat("x", c.size))
				p.hold()
				closed <- struct{}{}
			})
			s := newSender(t, func(c *Config) { c.MaxResponseBody = limit })
			x := send(s, post(st.url()))
			wantStatus(t, x, 200)
			if x.BodyCapped != c.capped || len(x.Body) != min(c.size, limit) {
				t.Errorf("capped %v, %d bytes kept", x.BodyCapped, len(x.Body))
			}
			if c.closed {
				<-closed // by the sender
			}
		})
	}
}

func TestPrepareFailure(t *testing.T) {
	st := newStub(t, nil, serve(ok200))
	s := newSender(t)
	r := post(st.url())
	r.Prepare = func(*http.Request, bool) error { return errors.New("token endpoint down\r\nsecond line") }
	x := send(s, r)
	wantFailure(t, x, godwit.FailureCredential, false)
	if x.Failure.Detail != "token endpoint down  second line" {
		t.Errorf("detail %q", x.Failure.Detail)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r.Prepare = func(req *http.Request, _ bool) error { cancel(ErrInterrupted); return req.Context().Err() }
	wantFailure(t, s.Send(ctx, r), godwit.FailureInterrupted, false)
	if n := st.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// A header that would end the line, or the request, never leaves.
func TestHeaderInjection(t *testing.T) {
	st := newStub(t, nil, serve(ok200))
	s := newSender(t)
	for name, value := range map[string]string{
		"X-A":               "a\r\nEvil: yes",
		"X-B":               "a\nEvil: yes",
		"X-C":               "a\x00b",
		"X D":               "space in name",
		"X-E\r\nEvil":       "yes",
		"":                  "no name",
		"Transfer-Encoding": "chunked",
		"content-length":    "0",
		"Connection":        "upgrade",
		"Upgrade":           "h2c",
		"Expect":            "100-continue",
		"host":              "elsewhere.test",
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckHeader(name, value); !errors.Is(err, ErrHeader) {
				t.Errorf("CheckHeader: %v", err)
			} else if strings.Contains(err.Error(), "Evil: yes") {
				t.Errorf("error repeats the value: %v", err)
			}
			r := post(st.url())
			r.Header[name] = []string{value}
			wantFailure(t, send(s, r), godwit.FailureInvalidRequest, false)

			r = post(st.url())
			r.Prepare = func(req *http.Request, _ bool) error { req.Header[name] = []string{value}; return nil }
			wantFailure(t, send(s, r), godwit.FailureInvalidRequest, false)
		})
	}
	for _, method := range []string{"PO ST", "POST\r\n", "CONNECT"} {
		r := post(st.url())
		r.Method = method
		wantFailure(t, send(s, r), godwit.FailureInvalidRequest, false)
	}
	if err := CheckHeader("X-Api-Key", "fine ✓"); err != nil {
		t.Error(err)
	}
	if n := st.conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// Configuration may have become stricter since a URL was registered: no attempt goes out without TLS, or inside, then.
func TestURLCheckedAgainWhenSending(t *testing.T) {
	trace.Covers(t, "EDS-SEC-TLS-1")
	st := newStub(t, nil, serve(ok200))
	s := newSender(t, func(c *Config) { c.AllowHTTP = false })
	wantFailure(t, send(s, post(st.url())), godwit.FailureInvalidRequest, false)
	wantProblem(t, s, st.url(), ProblemScheme)
	if n := st.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
	s = newSender(t, func(c *Config) { c.AllowHTTP = false; c.AllowAddresses = nil })
	wantFailure(t, send(s, post("https://127.0.0.1/")), godwit.FailureBlockedAddress, false)
	wantFailure(t, send(s, post("")), godwit.FailureInvalidRequest, false)
}

func TestClose(t *testing.T) {
	closed := make(chan struct{})
	st := newStub(t, nil, func(p *peer) {
		p.next()
		p.say(ok200)
		p.hold()
		close(closed)
	})
	s := newSender(t)
	wantStatus(t, send(s, post(st.url())), 200)
	s.Close()
	<-closed
	wantFailure(t, send(s, post(st.url())), godwit.FailureInterrupted, false)
}

// An attempt under way when the sender closes is let finish, and leaves no connection behind.
func TestCloseDuringAttempt(t *testing.T) {
	arrived, answer, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	st := newStub(t, nil, func(p *peer) {
		p.next()
		close(arrived)
		<-answer
		p.say(ok200)
		p.hold()
		close(closed)
	})
	s := newSender(t)
	done := make(chan godwit.Exchange)
	go func() { done <- send(s, post(st.url())) }()
	<-arrived
	s.Close()
	close(answer)
	wantStatus(t, <-done, 200)
	<-closed
}

func TestConfigRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no clock":      {},
		"negative":      {Clock: time.Now, MaxResponseBody: -1},
		"no PEM":        {Clock: time.Now, ExtraCAs: []byte("nonsense")},
		"redirect host": {Clock: time.Now, AllowRedirectHosts: []string{"*example.com"}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
