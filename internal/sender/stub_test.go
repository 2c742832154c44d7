package sender

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// newSender returns a sender that may call the stubs, unless changed.
func newSender(t testing.TB, change ...func(*Config)) *Sender {
	t.Helper()
	cfg := Config{Clock: time.Now, AllowHTTP: true, AllowAddresses: loopback, ExtraCAs: testCA().pem}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// refusing is an address where nothing listens. A port that was free a moment ago may be taken by now.
const refusing = "127.0.0.1:1"

// waitLimit bounds a wait. It affects no result: a passing test never reaches it.
const waitLimit = 5 * time.Minute

// expire makes an attempt whose deadline passes. The deadline is short; if the machine was too slow to send the request
// before it, expire tries again with twice the time.
func expire(attempt func(deadline time.Duration) godwit.Exchange) (x godwit.Exchange, deadline time.Duration) {
	for deadline = 50 * time.Millisecond; ; deadline *= 2 {
		if x = attempt(deadline); x.Failure == nil || x.Failure.Sent || deadline > waitLimit {
			return x, deadline
		}
	}
}

// sendAndExpire sends a request whose deadline passes after it was sent.
func sendAndExpire(s *Sender, r *Request) godwit.Exchange {
	x, _ := expire(func(deadline time.Duration) godwit.Exchange {
		r.Timeout = deadline
		return send(s, r)
	})
	return x
}

// post is an ordinary delivery.
func post(url string) *Request {
	return &Request{
		URL:     url,
		Header:  http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {`"k-1"`}},
		Body:    []byte(`{"n":1}`),
		Timeout: time.Minute,
	}
}

func wantFailure(t *testing.T, x godwit.Exchange, kind godwit.FailureKind, sent bool) {
	t.Helper()
	if x.Failure == nil {
		t.Fatalf("no failure, status %d; want %s", x.Status, kind)
	}
	if x.Failure.Kind != kind || x.Failure.Sent != sent {
		t.Fatalf("failure %s sent=%v (%s); want %s sent=%v", x.Failure.Kind, x.Failure.Sent, x.Failure.Detail, kind, sent)
	}
}

func wantStatus(t *testing.T, x godwit.Exchange, status int) {
	t.Helper()
	if x.Failure != nil {
		t.Fatalf("failure %s (%s), status %d; want status %d", x.Failure.Kind, x.Failure.Detail, x.Status, status)
	}
	if x.Status != status {
		t.Fatalf("status %d; want %d", x.Status, status)
	}
}

// A stub plays a scripted receiver on a real socket and counts what reached it.
type stub struct {
	net.Listener
	conns atomic.Int32  // connections accepted
	reqs  atomic.Int32  // whole requests read by next
	stop  chan struct{} // closed when the test is over
	wg    sync.WaitGroup
	mu    sync.Mutex
	open  []net.Conn
}

// A peer is one connection to a stub.
type peer struct {
	net.Conn
	stub *stub
	n    int // 1 for the stub's first connection
	br   *bufio.Reader
}

// newStub serves every connection with play on a goroutine of its own, and closes it after that.
func newStub(t testing.TB, cfg *tls.Config, play func(*peer)) *stub {
	t.Helper()
	return serveStub(t, "127.0.0.1", cfg, play)
}

// newStubOn listens on another of the machine's own addresses.
func newStubOn(t testing.TB, addr string, play func(*peer)) *stub {
	t.Helper()
	return serveStub(t, addr, nil, play)
}

func serveStub(t testing.TB, addr string, cfg *tls.Config, play func(*peer)) *stub {
	t.Helper()
	ln, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{Listener: ln, stop: make(chan struct{})}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open = append(s.open, c)
			s.mu.Unlock()
			n := int(s.conns.Add(1))
			s.wg.Go(func() {
				defer c.Close()
				if cfg != nil {
					c = tls.Server(c, cfg)
				}
				play(&peer{Conn: c, stub: s, n: n, br: bufio.NewReader(c)})
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		close(s.stop)
		s.mu.Lock()
		for _, c := range s.open {
			c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

func (s *stub) url() string       { return "http://" + s.Addr().String() + "/hook" }
func (s *stub) secureURL() string { return "https://" + s.Addr().String() + "/hook" }

// next reads one request with its body; nil when there is none.
func (p *peer) next() *http.Request {
	req, err := http.ReadRequest(p.br)
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(b))
	p.stub.reqs.Add(1)
	return req
}

func (p *peer) say(text string) { io.WriteString(p.Conn, text) }

// reset closes so that the other side sees a reset.
func (p *peer) reset() {
	if tc, ok := p.Conn.(*net.TCPConn); ok {
		tc.SetLinger(0)
	}
	p.Conn.Close()
}

func (p *peer) closeQuietly() { p.Conn.Close() }

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// serve answers every request with the same text.
func serve(text string) func(*peer) {
	return func(p *peer) {
		for p.next() != nil {
			p.say(text)
		}
	}
}

// hold keeps a connection open until the other side closes it.
func (p *peer) hold() { io.Copy(io.Discard, p.Conn) }

// An authority issues certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

var testCA = sync.OnceValue(newAuthority)

func newAuthority() *authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key))
	return &authority{
		cert: must(x509.ParseCertificate(der)), key: key,
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
}

// issue makes a certificate for 127.0.0.1 and receiver.test, unless changed.
func (a *authority) issue(change ...func(*x509.Certificate)) tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	serial := must(rand.Int(rand.Reader, big.NewInt(1<<62)))
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "receiver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"receiver.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(tmpl)
	}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serverTLS is a trusted server's configuration for the protocols.
func serverTLS(protos ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{testCA().issue()}, NextProtos: protos}
}

func itoa(n int) string { return strconv.Itoa(n) }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// overHTTP1 runs a test over plain HTTP/1.1 and over HTTP/1.1 with TLS.
func overHTTP1(t *testing.T, play func(*peer), test func(t *testing.T, st *stub, url string)) {
	t.Run("plain", func(t *testing.T) {
		st := newStub(t, nil, play)
		test(t, st, st.url())
	})
	t.Run("tls", func(t *testing.T) {
		st := newStub(t, serverTLS("http/1.1"), play)
		test(t, st, st.secureURL())
	})
}

// send is Send in the background of the test's own context.
func send(s *Sender, r *Request) godwit.Exchange { return s.Send(context.Background(), r) }
