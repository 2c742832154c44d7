package sender

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestCertificateIsVerified(t *testing.T) {
	trace.Covers(t, "EDS-SEC-TLS-2", "EDS-SEC-TLS-3", "CCW-HTTP-12", "OJS-SIG-14")
	selfSigned := newAuthority()
	cases := map[string]struct {
		cfg  *tls.Config
		kind godwit.FailureKind
	}{
		"unknown authority": {certificate(selfSigned.issue()), godwit.FailureTLSVerify},
		"self-signed": {
			certificate(tls.Certificate{Certificate: [][]byte{selfSigned.cert.Raw}, PrivateKey: selfSigned.key}),
			godwit.FailureTLSVerify,
		},
		"wrong host": {certificate(testCA().issue(func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"other.test"}
		})), godwit.FailureTLSVerify},
		"expired": {certificate(testCA().issue(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		})), godwit.FailureTLSVerify},
		"not valid yet": {certificate(testCA().issue(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		})), godwit.FailureTLSVerify},
		"TLS 1.1 only": {&tls.Config{
			Certificates: []tls.Certificate{testCA().issue()}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
		}, godwit.FailureTLSHandshake},
		"no common version above": {&tls.Config{
			Certificates: []tls.Certificate{testCA().issue()}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10,
		}, godwit.FailureTLSHandshake},
	}
	for name, c := range cases {
		for _, proto := range []string{"http/1.1", "h2"} {
			t.Run(name+"/"+proto, func(t *testing.T) {
				cfg := c.cfg.Clone()
				cfg.NextProtos = []string{proto}
				var clear atomic.Int64
				over := make(chan struct{})
				st := newStub(t, cfg, func(p *peer) {
					defer close(over)
					n, _ := io.Copy(io.Discard, p.Conn) // what comes out of TLS: HTTP bytes
					clear.Add(n)
				})
				wantFailure(t, send(newSender(t), post(st.secureURL())), c.kind, false)
				<-over
				if clear.Load() != 0 || st.conns.Load() != 1 {
					t.Errorf("%d HTTP bytes over %d connections reached the receiver", clear.Load(), st.conns.Load())
				}
			})
		}
	}
	t.Run("good", func(t *testing.T) {
		st := newStub(t, serverTLS("http/1.1"), serve(ok200))
		wantStatus(t, send(newSender(t), post(st.secureURL())), 200)
	})
	t.Run("good authority not among the system's", func(t *testing.T) {
		st := newStub(t, serverTLS("http/1.1"), serve(ok200))
		s := newSender(t, func(c *Config) { c.ExtraCAs = nil })
		wantFailure(t, send(s, post(st.secureURL())), godwit.FailureTLSVerify, false)
	})
}

func certificate(c tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c}}
}

// A resumed TLS 1.3 session is where early data would be sent. The ClientHello must not even announce it.
func TestNoEarlyData(t *testing.T) {
	trace.Covers(t, "EDS-VER-4", "EDS-SEC-RPL-7")
	for _, proto := range []string{"http/1.1", "h2"} {
		t.Run(proto, func(t *testing.T) {
			tap := &tapListener{Listener: must(net.Listen("tcp", "127.0.0.1:0"))}
			var resumed atomic.Bool
			srv := newHTTPServer(t, tap, proto, func(cs tls.ConnectionState) { resumed.Store(cs.DidResume) })
			s := newSender(t)
			wantStatus(t, send(s, post(srv)), 200)
			for { // until the connection was idle when told to close, which HTTP/2 finds out a moment later
				s.shared.CloseIdleConnections()
				x := send(s, post(srv))
				wantStatus(t, x, 200)
				if !x.Reused {
					break
				}
			}
			if !resumed.Load() {
				t.Fatal("the second connection did not resume the session of the first")
			}
			hello := extensions(t, tap.first(1))
			const earlyData, preSharedKey = 42, 41
			if !hello[preSharedKey] {
				t.Error("ClientHello of the resumed connection has no pre_shared_key: the test shows nothing")
			}
			if hello[earlyData] {
				t.Error("ClientHello announces early data")
			}
		})
	}
}

// A tapListener keeps what clients send on each connection.
type tapListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*tapConn
}

type tapConn struct {
	net.Conn
	mu  sync.Mutex
	got bytes.Buffer
}

func (l *tapListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tc := &tapConn{Conn: c}
	l.mu.Lock()
	l.conns = append(l.conns, tc)
	l.mu.Unlock()
	return tc, nil
}

func (c *tapConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.got.Write(p[:n])
	c.mu.Unlock()
	return n, err
}

// first is what came on the connection with this index.
func (l *tapListener) first(i int) []byte {
	l.mu.Lock()
	c := l.conns[i]
	l.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.got.Bytes())
}

// extensions reads the extension types of a ClientHello record (RFC 8446, 4.1.2).
func extensions(t *testing.T, record []byte) map[uint16]bool {
	t.Helper()
	if len(record) < 5 || record[0] != 22 {
		t.Fatal("not a TLS handshake record")
	}
	b := record[5+4:]                                // record header, handshake header
	b = b[2+32:]                                     // legacy version, random
	b = b[1+int(b[0]):]                              // session id
	b = b[2+int(binary.BigEndian.Uint16(b)):]        // cipher suites
	b = b[1+int(b[0]):]                              // compression methods
	b = b[2 : 2+int(binary.BigEndian.Uint16(b[:2]))] // extensions
	found := map[uint16]bool{}
	for len(b) >= 4 {
		found[binary.BigEndian.Uint16(b)] = true
		b = b[4+int(binary.BigEndian.Uint16(b[2:])):]
	}
	return found
}

// mutualTLS is a server that wants a client certificate and answers with its common name and the connection's number.
func mutualTLS(t *testing.T) *stub {
	cfg := serverTLS("http/1.1")
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	cfg.ClientCAs = x509.NewCertPool()
	cfg.ClientCAs.AddCert(testCA().cert)
	return newStub(t, cfg, func(p *peer) {
		for p.next() != nil {
			name := p.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
			p.say("HTTP/1.1 200 OK\r\nX-Client: " + name + "\r\nContent-Length: 0\r\n\r\n")
		}
	})
}

func clientNamed(name string) *tls.Certificate {
	c := testCA().issue(func(c *x509.Certificate) { c.Subject.CommonName = name })
	return &c
}

func TestClientCertificate(t *testing.T) {
	st := mutualTLS(t)
	s := newSender(t, func(c *Config) { c.MaxClientIDs = 2 })
	alice, bob, carol := clientNamed("alice"), clientNamed("bob"), clientNamed("carol")
	as := func(who *tls.Certificate) godwit.Exchange {
		r := post(st.secureURL())
		r.ClientCertificate = who
		return send(s, r)
	}
	for _, c := range []struct {
		who    *tls.Certificate
		name   string
		reused bool
	}{
		{alice, "alice", false},
		{alice, "alice", true},
		{bob, "bob", false}, // not on alice's connection
		{alice, "alice", true},
		{carol, "carol", false}, // bob's connections go
		{alice, "alice", true},
		{bob, "bob", false},
	} {
		x := as(c.who)
		wantStatus(t, x, 200)
		if x.Header.Get("X-Client") != c.name || x.Reused != c.reused {
			t.Errorf("as %s: receiver saw %q, reused %v", c.name, x.Header.Get("X-Client"), x.Reused)
		}
	}
	copied := *alice
	if x := as(&copied); x.Header.Get("X-Client") != "alice" {
		t.Errorf("a copy of a certificate is another identity: %+v", x)
	}

	t.Run("none", func(t *testing.T) {
		x := as(nil)
		if x.Failure == nil || x.Failure.Kind != godwit.FailureTLSHandshake {
			t.Errorf("failure %+v", x.Failure)
		}
	})
	t.Run("empty", func(t *testing.T) {
		wantFailure(t, as(&tls.Certificate{}), godwit.FailureCredential, false)
	})
	t.Run("of another authority", func(t *testing.T) {
		c := newAuthority().issue()
		x := as(&c)
		if x.Failure == nil || x.Failure.Kind != godwit.FailureTLSHandshake {
			t.Errorf("failure %+v", x.Failure)
		}
	})
}

func TestDetailIsShortAndPlain(t *testing.T) {
	st := newStub(t, certificate(testCA().issue(func(c *x509.Certificate) {
		c.IPAddresses = nil
		for range 50 {
			c.DNSNames = append(c.DNSNames, strings.Repeat("long", 10)+".test")
		}
	})), func(p *peer) { p.hold() })
	x := send(newSender(t), post(st.secureURL()))
	wantFailure(t, x, godwit.FailureTLSVerify, false)
	if len(x.Failure.Detail) > 210 {
		t.Errorf("detail of %d bytes", len(x.Failure.Detail))
	}
}
