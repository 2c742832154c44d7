package sender

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// newProxy is an egress proxy that leads every name to the stub at target. It keeps the names it was asked for.
func newProxy(t *testing.T, target func() string) (*stub, chan string) {
	asked := make(chan string, 16)
	return newStub(t, nil, func(p *peer) {
		req, err := http.ReadRequest(p.br)
		if err != nil {
			return
		}
		asked <- req.Host
		if strings.HasPrefix(req.Host, "refused.") {
			p.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
			return
		}
		out, err := net.Dial("tcp", target())
		if err != nil {
			return
		}
		defer out.Close()
		if req.Method == http.MethodConnect {
			p.say("HTTP/1.1 200 Connected\r\n\r\n")
		} else {
			req.Write(out)
		}
		done := make(chan struct{})
		go func() { defer close(done); io.Copy(p.Conn, out); p.Conn.Close() }()
		io.Copy(out, p.br)
		out.Close()
		<-done
	}), asked
}

func through(st *stub) func(*Config) {
	return func(c *Config) {
		c.Proxy = &url.URL{Scheme: "http", Host: st.Addr().String()}
		c.AllowAddresses = nil // the proxy is on loopback all the same
	}
}

func TestProxy(t *testing.T) {
	overHTTP1(t, serve(ok200), func(t *testing.T, st *stub, target string) {
		proxy, asked := newProxy(t, func() string { return st.Addr().String() })
		s := newSender(t, through(proxy))
		scheme, _, _ := strings.Cut(target, ":")

		x := send(s, post(scheme+"://receiver.test/hook"))
		wantStatus(t, x, 200)
		if host := <-asked; !strings.HasPrefix(host, "receiver.test") || x.RemoteAddr != proxy.Addr().String() {
			t.Errorf("proxy was asked for %q, remote %s", host, x.RemoteAddr)
		}
		// What the guard can still see without resolving.
		wantFailure(t, send(s, post(scheme+"://127.0.0.1/hook")), godwit.FailureBlockedAddress, false)
		wantFailure(t, send(s, post(scheme+"://localhost/hook")), godwit.FailureBlockedAddress, false)
		if len(asked) != 0 {
			t.Errorf("proxy was asked for %q", <-asked)
		}
	})
}

func TestProxyFailures(t *testing.T) {
	st := newStub(t, serverTLS("http/1.1"), func(p *peer) { p.next() }) // closes without a reply
	proxy, _ := newProxy(t, func() string { return st.Addr().String() })
	s := newSender(t, through(proxy))

	x := send(s, post("https://receiver.test/"))
	wantFailure(t, x, godwit.FailureReset, true)
	if st.reqs.Load() != 1 {
		t.Errorf("%d requests", st.reqs.Load())
	}
	wantFailure(t, send(s, post("https://wrong-name.test/")), godwit.FailureTLSVerify, false)
	wantFailure(t, send(s, post("https://refused.test/")), godwit.FailureConnect, false)

	proxy.Listener.Close()
	s.shared.CloseIdleConnections()
	wantFailure(t, send(s, post("https://receiver.test/")), godwit.FailureConnect, false)
}

func TestProxyOneRequestOnTheWire(t *testing.T) {
	st := newStub(t, serverTLS("http/1.1"), func(p *peer) {
		p.next()
		p.say(ok200)
		p.next() // and closes
	})
	proxy, _ := newProxy(t, func() string { return st.Addr().String() })
	s := newSender(t, through(proxy))
	wantStatus(t, send(s, post("https://receiver.test/")), 200)
	x := send(s, post("https://receiver.test/"))
	wantFailure(t, x, godwit.FailureReset, true)
	if !x.Reused || st.reqs.Load() != 2 {
		t.Errorf("reused %v, %d requests on the wire", x.Reused, st.reqs.Load())
	}
}

func TestProxyRefused(t *testing.T) {
	for _, u := range []*url.URL{{Scheme: "ftp", Host: "p:1"}, {Scheme: "http"}, {}} {
		if _, err := New(Config{Clock: newSender(t).clock, Proxy: u}); err == nil {
			t.Errorf("%v accepted", u)
		}
	}
}
