package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A kept-alive connection that dies under a request makes net/http send it again when it has an Idempotency-Key. Here it
// must not: the receiver may have processed it.
func TestOneRequestOnTheWire(t *testing.T) {
	trace.Covers(t, "EDS-ATT-1")
	endings := map[string]func(*peer){
		"closes":        func(p *peer) { p.Close() },
		"resets":        func(p *peer) { p.reset() },
		"partial reply": func(p *peer) { p.say("HTTP/1.1 20"); p.Close() },
	}
	bodies := map[string]func(*Request){
		"with body":  func(*Request) {},
		"empty body": func(r *Request) { r.Body = nil },
		"long header": func(r *Request) { // longer than the write buffer: part of it leaves before the body is read
			r.Header.Set("X-Long", strings.Repeat("x", 20<<10))
		},
		"get without body": func(r *Request) { r.Method, r.Body = http.MethodGet, nil },
	}
	for ending, end := range endings {
		for kind, change := range bodies {
			t.Run(ending+"/"+kind, func(t *testing.T) {
				overHTTP1(t, func(p *peer) {
					if p.next() == nil {
						return
					}
					p.say(ok200)
					if p.next() != nil {
						end(p)
					}
				}, func(t *testing.T, st *stub, url string) {
					s := newSender(t)
					r := post(url)
					change(r)
					wantStatus(t, send(s, r), 200)
					x := send(s, r)
					wantFailure(t, x, godwit.FailureReset, true)
					if !x.Reused {
						t.Error("the second attempt did not reuse the connection")
					}
					if n := st.reqs.Load(); n != 2 {
						t.Errorf("%d requests on the wire for 2 attempts", n)
					}
				})
			})
		}
	}
}

// A peer that closes within the header, before it could have read a whole request, is not tried again either.
func TestOneRequestWhenCutWithinHeader(t *testing.T) {
	trace.Covers(t, "EDS-ATT-1")
	st := newStub(t, nil, func(p *peer) {
		if p.next() == nil {
			return
		}
		p.say(ok200)
		p.br.Discard(100)
		p.reset()
	})
	s := newSender(t)
	r := post(st.url())
	r.Header.Set("X-Long", strings.Repeat("x", 1<<20))
	wantStatus(t, send(s, post(st.url())), 200)
	wantFailure(t, send(s, r), godwit.FailureReset, true)
	if n := st.conns.Load(); n != 1 {
		t.Errorf("%d connections; want 1", n)
	}
}

// A connection that answered 421 is not used again, and the request that finds it in the pool goes elsewhere without having
// been sent twice.
func TestDeadPooledConnectionIsPassedOver(t *testing.T) {
	overHTTP1(t, func(p *peer) {
		for p.next() != nil {
			if p.n == 1 {
				p.say("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n")
			} else {
				p.say(ok200)
			}
		}
	}, func(t *testing.T, st *stub, url string) {
		s := newSender(t)
		wantStatus(t, send(s, post(url)), 421)
		x := send(s, post(url))
		wantStatus(t, x, 200)
		if x.Reused || st.conns.Load() != 2 || st.reqs.Load() != 2 {
			t.Errorf("reused %v, %d connections, %d requests", x.Reused, st.conns.Load(), st.reqs.Load())
		}
	})
}

// Many dead ones in a row cost no attempt.
func TestManyDeadPooledConnections(t *testing.T) {
	const n = maxStale + 3
	arrived, answer := make(chan struct{}), make(chan struct{})
	st := newStub(t, nil, func(p *peer) {
		for p.next() != nil {
			if p.n <= n {
				arrived <- struct{}{}
				<-answer
				p.say("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n")
			} else {
				p.say(ok200)
			}
		}
	})
	s := newSender(t)
	done := make(chan godwit.Exchange, n)
	for range n {
		go func() { done <- send(s, post(st.url())) }()
	}
	for range n {
		<-arrived
	}
	close(answer)
	for range n {
		wantStatus(t, <-done, 421)
	}
	wantStatus(t, send(s, post(st.url())), 200)
	if st.conns.Load() != n+1 || st.reqs.Load() != n+1 {
		t.Errorf("%d connections, %d requests; want %d", st.conns.Load(), st.reqs.Load(), n+1)
	}
}

// What a peer says before it was asked is not taken for the answer to the next request.
func TestAnswerAheadIsIgnored(t *testing.T) {
	ahead := make(chan struct{})
	overHTTP1(t, func(p *peer) {
		if p.next() == nil {
			return
		}
		if p.n == 1 {
			p.say(ok200)
			<-ahead
			p.say(ok200) // answers nothing
			p.hold()
			ahead <- struct{}{}
			return
		}
		p.say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
	}, func(t *testing.T, st *stub, url string) {
		s := newSender(t)
		wantStatus(t, send(s, post(url)), 200)
		ahead <- struct{}{}
		<-ahead // the sender has closed the connection
		wantStatus(t, send(s, post(url)), 503)
	})
}

func TestWireNotTakenForAnswer(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	w := newWire(near, true)
	w.begin() // a request took the connection, but has not written yet
	go io.WriteString(far, ok200)
	if n, err := w.Read(make([]byte, 64)); n != 0 || err != errUnasked {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestFreshConnection(t *testing.T) {
	dns := newNameServer(t)
	dns.set("receiver.test", "127.0.0.1")
	overHTTP1(t, serve(ok200), func(t *testing.T, st *stub, url string) {
		s := newSender(t, dns.use)
		r := post(strings.Replace(url, "127.0.0.1", "receiver.test", 1))
		wantStatus(t, send(s, r), 200)
		lookups := dns.lookups.Load()
		wantStatus(t, send(s, r), 200)
		if dns.lookups.Load() != lookups || st.conns.Load() != 1 {
			t.Fatal("an ordinary second attempt did not reuse the connection")
		}
		r.FreshConnection = true
		x := send(s, r)
		wantStatus(t, x, 200)
		if x.Reused || st.conns.Load() != 2 || dns.lookups.Load() == lookups {
			t.Errorf("reused %v, %d connections, looked up %v", x.Reused, st.conns.Load(), dns.lookups.Load() != lookups)
		}
	})
}

// A reply that comes before the request is fully written counts by its status (EDS T-39), also when the peer hangs up with
// the rest unread.
func TestReplyBeforeRequestIsSent(t *testing.T) {
	const reply = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"
	big := bytes.Repeat([]byte("x"), 8<<20)
	for name, end := range map[string]func(*peer){
		"then resets":    func(p *peer) { p.reset() },
		"then closes":    func(p *peer) { p.Close() },
		"then goes deaf": func(p *peer) { <-p.stub.stop },
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP1(t, func(p *peer) {
				if _, err := p.br.Peek(1); err != nil {
					return
				}
				p.say(reply)
				if tc, ok := p.Conn.(*tls.Conn); ok {
					tc.CloseWrite()
				}
				end(p)
			}, func(t *testing.T, st *stub, url string) {
				s := newSender(t)
				for i := range 10 {
					r := post(url)
					r.Body = big
					x := send(s, r)
					wantStatus(t, x, 413)
					if string(x.Body) != "big" || int(st.conns.Load()) != i+1 {
						t.Fatalf("body %q, %d connections after %d attempts", x.Body, st.conns.Load(), i+1)
					}
				}
			})
		})
	}
}

func TestDeadlineAndInterruption(t *testing.T) {
	moments := map[string]func(*peer){
		"no reply":      func(p *peer) { p.next(); p.hold() },
		"after header":  func(p *peer) { p.next(); p.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"); p.hold() },
		"within header": func(p *peer) { p.next(); p.say("HTTP/1.1 200 OK\r\nContent-"); p.hold() },
		"slow drip": func(p *peer) {
			p.next()
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if _, err := p.Write([]byte("x")); err != nil {
					return
				}
			}
		},
	}
	for name, play := range moments {
		t.Run(name+"/deadline", func(t *testing.T) {
			t.Parallel()
			overHTTP1(t, play, func(t *testing.T, _ *stub, url string) {
				r := post(url)
				x := sendAndExpire(newSender(t), r)
				wantFailure(t, x, godwit.FailureTimeout, true)
				if x.Duration < r.Timeout {
					t.Errorf("took %v with a deadline of %v", x.Duration, r.Timeout)
				}
			})
		})
		t.Run(name+"/interruption", func(t *testing.T) {
			t.Parallel()
			started := make(chan struct{}, 2)
			overHTTP1(t, func(p *peer) { started <- struct{}{}; play(p) }, func(t *testing.T, _ *stub, url string) {
				ctx, cancel := context.WithCancelCause(context.Background())
				go func() { <-started; cancel(ErrInterrupted) }()
				r := post(url)
				r.Timeout = waitLimit
				x := newSender(t).Send(ctx, r)
				if x.Failure == nil || x.Failure.Kind != godwit.FailureInterrupted {
					t.Errorf("failure %+v; want interrupted", x.Failure)
				}
			})
		})
	}
}

// The caller's own deadline is a timeout as well; a bare cancellation is an interruption.
func TestCallersContext(t *testing.T) {
	t.Parallel()
	st := newStub(t, nil, func(p *peer) { p.next(); p.hold() })
	s := newSender(t)
	x, _ := expire(func(deadline time.Duration) godwit.Exchange {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		return s.Send(ctx, post(st.url()))
	})
	wantFailure(t, x, godwit.FailureTimeout, true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantFailure(t, s.Send(ctx, post(st.url())), godwit.FailureInterrupted, false)
}
