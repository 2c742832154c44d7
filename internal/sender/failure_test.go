package sender

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// Failures of HTTP/1 by what the receiver does once it has read the request.
func TestFailuresHTTP1(t *testing.T) {
	cases := map[string]struct {
		reply  string
		kind   godwit.FailureKind
		status int
	}{
		"closes":                    {"", godwit.FailureReset, 0},
		"partial status line":       {"HTTP/1.1 20", godwit.FailureReset, 0},
		"status line without end":   {"HTTP/1.1 200 OK", godwit.FailureReset, 0},
		"one byte":                  {"H", godwit.FailureReset, 0},
		"header cut":                {"HTTP/1.1 200 OK\r\nContent-Len", godwit.FailureTruncated, 200},
		"header not ended":          {"HTTP/1.1 503 Busy\r\nRetry-After: 3\r\n", godwit.FailureTruncated, 503},
		"content length short":      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", godwit.FailureTruncated, 200},
		"chunk cut":                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nabc", godwit.FailureTruncated, 200},
		"last chunk missing":        {"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", godwit.FailureTruncated, 500},
		"bad chunk":                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", godwit.FailureProtocol, 200},
		"not HTTP":                  {"SSH-2.0-OpenSSH_9.2\r\n", godwit.FailureProtocol, 0},
		"not HTTP, one line cut":    {"220 mail", godwit.FailureProtocol, 0},
		"bad status":                {"HTTP/1.1 abc OK\r\n\r\n", godwit.FailureProtocol, 0},
		"short status":              {"HTTP/1.1 20\r\n\r\n", godwit.FailureProtocol, 0},
		"bad header":                {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", godwit.FailureProtocol, 200},
		"header too large":          {"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", godwit.FailureProtocol, 200},
		"endless interim responses": {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 4000), godwit.FailureProtocol, 103},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			overHTTP1(t, func(p *peer) {
				if p.next() != nil {
					p.say(c.reply)
				}
				p.Close() // with TLS: close_notify
			}, func(t *testing.T, st *stub, url string) {
				x := send(newSender(t), post(url))
				wantFailure(t, x, c.kind, true)
				if x.Status != c.status {
					t.Errorf("status %d; want %d", x.Status, c.status)
				}
				if n := st.reqs.Load(); n != 1 {
					t.Errorf("%d requests on the wire", n)
				}
				if strings.Contains(x.Failure.Detail, "SSH") {
					t.Errorf("detail quotes the peer: %q", x.Failure.Detail)
				}
			})
		})
	}
}

// A body that ends with the connection is complete when the connection was closed, not when it was reset.
func TestCloseDelimitedBody(t *testing.T) {
	received := make(chan struct{})
	for name, end := range map[string]func(*peer){"closed": (*peer).closeQuietly, "reset": (*peer).reset} {
		t.Run(name, func(t *testing.T) {
			st := newStub(t, nil, func(p *peer) {
				p.next()
				p.say("HTTP/1.1 200 OK\r\n\r\nall")
				<-received
				end(p)
			})
			s := newSender(t)
			r := post(st.url())
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				GotFirstResponseByte: func() { received <- struct{}{} },
			})
			x := s.Send(ctx, r)
			if name == "closed" {
				wantStatus(t, x, 200)
				if string(x.Body) != "all" {
					t.Errorf("body %q", x.Body)
				}
			} else {
				wantFailure(t, x, godwit.FailureTruncated, true)
			}
		})
	}
}

func TestFailuresToConnect(t *testing.T) {
	dns := newNameServer(t)
	s := newSender(t, dns.use)

	t.Run("refused", func(t *testing.T) {
		wantFailure(t, send(s, post("http://"+refusing+"/")), godwit.FailureRefused, false)
	})
	t.Run("name does not exist", func(t *testing.T) {
		wantFailure(t, send(s, post("http://nowhere.test./")), godwit.FailureDNS, false)
	})
	t.Run("name without address", func(t *testing.T) {
		dns.set("empty.test")
		wantFailure(t, send(s, post("http://empty.test./")), godwit.FailureDNS, false)
	})
	t.Run("closed before it could be written to", func(t *testing.T) {
		st := newStub(t, serverTLS("http/1.1"), func(p *peer) { p.Conn.(*tls.Conn).NetConn().Close() })
		wantFailure(t, send(s, post(st.secureURL())), godwit.FailureTLSHandshake, false)
	})
	t.Run("speaks no TLS", func(t *testing.T) {
		st := newStub(t, nil, func(p *peer) { p.say("HTTP/1.1 400 Bad Request\r\n\r\n") })
		wantFailure(t, send(s, post(st.secureURL())), godwit.FailureTLSHandshake, false)
	})
	t.Run("deadline within TLS handshake", func(t *testing.T) {
		st := newStub(t, nil, func(p *peer) { p.hold() })
		r := post(st.secureURL())
		r.Timeout = 50e6
		wantFailure(t, send(s, r), godwit.FailureTimeout, false)
	})
	t.Run("connect timeout within TLS handshake", func(t *testing.T) {
		st := newStub(t, nil, func(p *peer) { p.hold() })
		s := newSender(t, func(c *Config) { c.ConnectTimeout = 300e6 })
		wantFailure(t, send(s, post(st.secureURL())), godwit.FailureTLSHandshake, false)
	})
}

func TestInterimResponses(t *testing.T) {
	trace.Covers(t, "EDS-STA-1xx")
	const hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
	const proceed = "HTTP/1.1 100 Continue\r\n\r\n"
	cases := map[string]struct {
		reply  string
		kind   godwit.FailureKind
		status int
	}{
		"103 then 200":        {hints + ok200, "", 200},
		"100, 103, then 503":  {proceed + hints + "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", "", 503},
		"100 then close":      {proceed, godwit.FailureReset, 0},
		"103 then close":      {hints, godwit.FailureReset, 0},
		"bare 101":            {"HTTP/1.1 101 Switching Protocols\r\n\r\n", godwit.FailureProtocol, 101},
		"101 to a protocol":   {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", godwit.FailureProtocol, 101},
		"101, then a 200 yet": {"HTTP/1.1 101 Switching Protocols\r\n\r\n" + ok200, godwit.FailureProtocol, 101},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			overHTTP1(t, func(p *peer) {
				p.next()
				p.say(c.reply)
				p.Close()
			}, func(t *testing.T, st *stub, url string) {
				x := send(newSender(t), post(url))
				if c.kind == "" {
					wantStatus(t, x, c.status)
				} else {
					wantFailure(t, x, c.kind, true)
					if x.Status != c.status {
						t.Errorf("status %d", x.Status)
					}
				}
				if n := st.reqs.Load(); n != 1 {
					t.Errorf("%d requests on the wire", n)
				}
			})
		})
	}
}
