package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// What comes after the end of a response answers nothing: its connection is not used again, and the next response is read
// where it begins.
func TestConnectionNotKept(t *testing.T) {
	for name, reply := range map[string]string{
		"another response":         ok200 + ok200,
		"garbage":                  ok200 + "\r\n\r\n",
		"more than a read takes":   "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("x", 9000),
		"body of 204":              "HTTP/1.1 204 No Content\r\n\r\nbody",
		"asked to close":           "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.0":                 "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"misdirected":              "HTTP/1.1 421 X\r\nContent-Length: 0\r\n\r\n",
		"below 100":                "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n",
		"over the cap":             "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + strings.Repeat("x", 70000),
		"chunks, then garbage":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nX",
		"two lengths that agree":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nokX",
		"switched protocols":       "HTTP/1.1 101 X\r\n\r\n",
		"body that is not framed":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"header that is malformed": "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{}, 2)
			overHTTP1(t, func(p *peer) {
				for p.next() != nil {
					if p.n == 1 {
						p.say(reply)
						p.hold()
						closed <- struct{}{}
						return
					}
					p.say("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
				}
			}, func(t *testing.T, st *stub, url string) {
				s := newSender(t)
				send(s, post(url))
				x := send(s, post(url))
				wantStatus(t, x, 202)
				if x.Reused || st.reqs.Load() != 2 {
					t.Errorf("reused %v, %d requests", x.Reused, st.reqs.Load())
				}
				<-closed
			})
		})
	}
}

// Every way to frame a response leaves its connection usable.
func TestConnectionKept(t *testing.T) {
	for name, reply := range map[string]string{
		"length":          ok200,
		"no body":         "HTTP/1.1 204 No Content\r\n\r\n",
		"not modified":    "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
		"chunks":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"chunks, trailer": "HTTP/1.1 500 X\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n",
		"interim":         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + ok200,
		"1.0 kept":        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
		"bare newlines":   "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP1(t, serve(reply), func(t *testing.T, st *stub, url string) {
				s := newSender(t)
				for i := range 3 {
					r := post(url)
					if i == 1 {
						r.Body = bytes.Repeat([]byte("x"), 1<<20) // written aside
					}
					x := send(s, r)
					if x.Failure != nil || x.Reused != (i > 0) {
						t.Fatalf("attempt %d: %+v, reused %v", i, x.Failure, x.Reused)
					}
				}
				if st.conns.Load() != 1 || st.reqs.Load() != 3 {
					t.Errorf("%d requests over %d connections", st.reqs.Load(), st.conns.Load())
				}
			})
		})
	}
}

// An idle connection that the peer has closed costs no attempt, and is soon closed even if no request needs it.
func TestPeerClosesIdleConnection(t *testing.T) {
	trace.Covers(t, "EDS-ATT-1")
	for name, end := range map[string]func(*peer){"closes": (*peer).closeQuietly, "resets": (*peer).reset} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{}, 1)
			overHTTP1(t, func(p *peer) {
				for p.next() != nil {
					p.say(ok200)
					if p.n == 1 {
						end(p)
						ended <- struct{}{}
						return
					}
				}
			}, func(t *testing.T, st *stub, url string) {
				s := newSender(t)
				wantStatus(t, send(s, post(url)), 200)
				<-ended
				x := send(s, post(url))
				wantStatus(t, x, 200)
				if x.Reused || st.conns.Load() != 2 || st.reqs.Load() != 2 {
					t.Errorf("reused %v, %d requests over %d connections", x.Reused, st.reqs.Load(), st.conns.Load())
				}
			})
		})
	}
	t.Run("half", func(t *testing.T) {
		swept := make(chan struct{})
		st := newStub(t, nil, func(p *peer) {
			p.next()
			p.say(ok200)
			p.Conn.(*net.TCPConn).CloseWrite()
			p.hold()
			close(swept)
		})
		wantStatus(t, send(newSender(t), post(st.url())), 200)
		<-swept
	})
}

// Session tickets and other things of TLS itself do not make an idle connection unusable; data does.
func TestQuietUnderTLS(t *testing.T) {
	speak := make(chan struct{})
	spoken := make(chan struct{})
	st := newStub(t, serverTLS("http/1.1"), func(p *peer) {
		p.Conn.(*tls.Conn).Handshake() // the peer also sends tickets, which are not read yet
		spoken <- struct{}{}
		<-speak
		p.say("x")
		spoken <- struct{}{}
		p.hold()
	})
	s := newSender(t)
	at, _ := s.destination(st.secureURL())
	b := newAttemptContext(context.Background(), 0)
	defer b.end()
	l, _, err := s.shared.dialLink(b, at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	<-spoken
	for range 3 {
		if !l.quiet() {
			t.Fatal("not quiet after the handshake")
		}
	}
	speak <- struct{}{}
	<-spoken
	for deadline := time.Now().Add(waitLimit); l.quiet(); { // on its way through the machine
		if time.Now().After(deadline) {
			t.Fatal("quiet, although data has come")
		}
	}
}

// A deadConn looks open, and takes so many bytes of a request before it shows that it is not.
type deadConn struct {
	net.Conn
	takes int
}

func (c *deadConn) Write(p []byte) (int, error) {
	n := min(len(p), c.takes)
	c.takes -= n
	return n, syscall.EPIPE
}
func (c *deadConn) Read(p []byte) (int, error) {
	if c.takes < 0 {
		return 0, errQuiet
	}
	return copy(p, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), io.EOF
}

// A link that dies before it has taken a byte of the request is passed over; what it says then answers nothing. One that has
// taken some is not: the request may have been processed, and what it says counts.
func TestLinkThatDiesUnderTheRequest(t *testing.T) {
	trace.Covers(t, "EDS-ATT-1")
	st := newStub(t, nil, serve("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"))
	for takes, status := range map[int]int{0: 202, 1: 200, 200: 200} {
		s := newSender(t)
		at, _ := s.destination(st.url())
		b := newAttemptContext(context.Background(), 0)
		defer b.end()
		l, _, err := s.shared.dialLink(b, at)
		if err != nil {
			t.Fatal(err)
		}
		l.conn = &deadConn{Conn: l.conn, takes: -1}
		if !l.quiet() {
			t.Fatal("not quiet")
		}
		d := takeScratch()
		defer d.free()
		var x godwit.Exchange
		h := hop{sender: s, request: post(st.url()), id: s.shared, destination: at, reused: true}
		req := h.build(b, d.header, &x)
		whole, err := d.encode(req, at, h.request.Body, false)
		if err != nil {
			t.Fatal(err)
		}
		l.conn.(*deadConn).takes = takes
		again := h.exchange(b, d, l, req, whole, &x)
		if again {
			x = send(s, post(st.url()))
		}
		if again != (takes == 0) || x.Status != status || x.Failure != nil {
			t.Errorf("%d bytes taken: again %v, status %d, %+v", takes, again, x.Status, x.Failure)
		}
	}
}

// A cancelled attempt takes its connection with it.
func TestCancelClosesConnection(t *testing.T) {
	arrived, closed := make(chan struct{}), make(chan struct{})
	overHTTP1(t, func(p *peer) {
		p.next()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
		arrived <- struct{}{}
		p.hold()
		closed <- struct{}{}
	}, func(t *testing.T, st *stub, url string) {
		s := newSender(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan godwit.Exchange)
		go func() { done <- s.Send(ctx, post(url)) }()
		<-arrived
		cancel(ErrInterrupted)
		wantFailure(t, <-done, godwit.FailureInterrupted, true)
		<-closed
		if s.shared.links.n != 0 {
			t.Error("the connection was kept")
		}
		wantFailure(t, s.Send(ctx, post(url)), godwit.FailureInterrupted, false)
		if st.reqs.Load() != 1 {
			t.Errorf("%d requests", st.reqs.Load())
		}
	})
}

// Many attempts at once, to receivers that answer in many ways: each gets its own answer.
func TestAnswersDoNotMix(t *testing.T) {
	trace.Covers(t, "EDS-ATT-1")
	const workers, each = 16, 25
	var requests atomic.Int32
	overHTTP1(t, func(p *peer) {
		for req := p.next(); req != nil; req = p.next() {
			requests.Add(1)
			n := must(strconv.Atoi(req.Header.Get("X-Number")))
			body := must(io.ReadAll(req.Body))
			answer := fmt.Sprintf("%d:%d", n, len(body))
			switch n % 5 {
			case 0:
				p.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(answer)), 16) + "\r\n" + answer + "\r\n0\r\n\r\n")
			case 1:
				p.say("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + answer)
				p.Close()
				return
			case 2:
				p.say("HTTP/1.1 103 Early Hints\r\n\r\n")
				fallthrough
			default:
				p.say("HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(answer)) + "\r\n\r\n" + answer)
			}
		}
	}, func(t *testing.T, st *stub, url string) {
		requests.Store(0)
		s := newSender(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					n := w*each + i
					r := post(url)
					r.Header.Set("X-Number", strconv.Itoa(n))
					r.Body = make([]byte, n*197)
					r.Prepare = func(req *http.Request, _ bool) error { req.Header.Set("X-Signed", "yes"); return nil }
					x := s.Send(ctx, r)
					if want := fmt.Sprintf("%d:%d", n, n*197); x.Failure != nil || string(x.Body) != want {
						t.Errorf("%d: %+v, %q", n, x.Failure, x.Body)
					}
				}
			})
		}
		wg.Wait()
		if n := requests.Load(); n != workers*each {
			t.Errorf("%d requests for %d attempts", n, workers*each)
		}
	})
}

// An origin that spoke HTTP/2 may come back with HTTP/1.1, and the other way round. The connection over which that turned
// out serves the very attempt that opened it.
func TestOriginChangesVersion(t *testing.T) {
	var proto atomic.Value
	cfg := serverTLS()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return serverTLS(proto.Load().(string)), nil }
	var conns atomic.Int32
	srv := &http.Server{
		TLSConfig: cfg,
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }),
		ConnState: func(_ net.Conn, st http.ConnState) {
			if st == http.StateNew {
				conns.Add(1)
			}
		},
	}
	cfg.NextProtos = []string{"h2", "http/1.1"}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	done := make(chan struct{})
	go func() { defer close(done); srv.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { srv.Close(); <-done })
	s := newSender(t)
	r := post("https://" + ln.Addr().String() + "/")
	r.FreshConnection = false
	for i, c := range []struct{ proto, want string }{
		{"h2", "HTTP/2.0"}, {"http/1.1", "HTTP/1.1"}, {"http/1.1", "HTTP/1.1"}, {"h2", "HTTP/2.0"}, {"h2", "HTTP/2.0"},
	} {
		proto.Store(c.proto)
		var x godwit.Exchange
		for { // HTTP/2 finds out a moment later that its connection is idle
			s.shared.CloseIdleConnections()
			conns.Store(0)
			if x = send(s, r); !x.Reused {
				break
			}
		}
		wantStatus(t, x, 200)
		if x.Proto != c.want || conns.Load() != 1 {
			t.Errorf("attempt %d over %s by %d connections; want %s", i, x.Proto, conns.Load(), c.want)
		}
	}
	proto.Store("h2")
	r.FreshConnection = true
	if x := send(s, r); x.Proto != "HTTP/2.0" || x.Reused || x.Failure != nil {
		t.Errorf("fresh connection: %+v", x)
	}
}

func TestFreshConnectionIsToldToClose(t *testing.T) {
	asked := make(chan string, 1)
	st := newStub(t, nil, func(p *peer) {
		if req := p.next(); req != nil {
			asked <- req.Header.Get("Connection")
			p.say(ok200)
			p.hold()
		}
	})
	r := post(st.url())
	r.FreshConnection = true
	wantStatus(t, send(newSender(t), r), 200)
	if got := <-asked; got != "close" {
		t.Errorf("Connection: %q", got)
	}
}

// The context that Prepare sees ends with the attempt's deadline and with the caller's.
func TestPrepareContext(t *testing.T) {
	st := newStub(t, nil, serve(ok200))
	s := newSender(t)
	r := post(st.url())
	var atFirst error
	r.Prepare = func(req *http.Request, _ bool) error {
		ctx := req.Context()
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > r.Timeout {
			t.Errorf("deadline %v %v", at, ok)
		}
		atFirst = ctx.Err()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return ctx.Err()
	}
	for r.Timeout = 50 * time.Millisecond; ; r.Timeout *= 2 {
		wantFailure(t, send(s, r), godwit.FailureCredential, false)
		if atFirst == nil {
			break
		}
		if r.Timeout > waitLimit { // otherwise the machine was too slow
			t.Fatalf("the context had ended at the call: %v", atFirst)
		}
	}

	type key struct{}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "kept"))
	r.Timeout = time.Minute
	r.Prepare = func(req *http.Request, _ bool) error {
		cancel(ErrInterrupted)
		child, stop := context.WithTimeout(req.Context(), time.Hour)
		defer stop()
		<-child.Done()
		if req.Context().Value(key{}) != "kept" || context.Cause(child) != ErrInterrupted {
			t.Errorf("value %v, cause %v", req.Context().Value(key{}), context.Cause(child))
		}
		return child.Err()
	}
	wantFailure(t, s.Send(ctx, r), godwit.FailureInterrupted, false)
}

func TestSocketNeedsDescriptor(t *testing.T) {
	if newSocket(&deadConn{}) != nil {
		t.Error("a connection without a file descriptor was taken")
	}
}
