package conformance

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/sender"
)

// A tcpReceiver handles each connection with a function of the test, for behaviour that a sink cannot play. Connections
// beyond the script read their requests and answer 200.
type tcpReceiver struct {
	addr     string
	listener net.Listener
	tls      *tls.Config
	running  sync.WaitGroup

	mu       sync.Mutex
	script   []func(net.Conn)
	requests []apptest.Request // of connections beyond the script
	open     map[net.Conn]struct{}
}

func newTCPReceiver(t testing.TB, secure *tls.Config, script ...func(net.Conn)) *tcpReceiver {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &tcpReceiver{addr: l.Addr().String(), listener: l, tls: secure, script: script, open: map[net.Conn]struct{}{}}
	v.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.running.Go(func() { v.serve(c) })
		}
	})
	t.Cleanup(v.close)
	return v
}

func (v *tcpReceiver) close() {
	v.listener.Close()
	v.mu.Lock()
	for c := range v.open {
		c.Close()
	}
	v.mu.Unlock()
	v.running.Wait()
}

func (v *tcpReceiver) serve(c net.Conn) {
	defer c.Close()
	v.mu.Lock()
	v.open[c] = struct{}{}
	var play func(net.Conn)
	if len(v.script) > 0 {
		play, v.script = v.script[0], v.script[1:]
	}
	v.mu.Unlock()
	if v.tls != nil {
		c = tls.Server(c, v.tls)
	}
	if play != nil {
		play(c)
		return
	}
	for br := bufio.NewReader(c); ; {
		r, err := readWhole(br)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.requests = append(v.requests, *r)
		v.mu.Unlock()
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

func (v *tcpReceiver) received() []apptest.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]apptest.Request(nil), v.requests...)
}

// readWhole reads a request to the end of its body.
func readWhole(br *bufio.Reader) (*apptest.Request, error) {
	r, err := http.ReadRequest(br)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	return &apptest.Request{Method: r.Method, Path: r.RequestURI, Host: r.Host, Header: r.Header, Body: body}, err
}

// readHead reads a request up to the empty line and leaves its body where it is.
func readHead(c net.Conn) {
	br := bufio.NewReaderSize(c, 16) // takes in no more than a little of the body
	for {
		line, err := br.ReadString('\n')
		if err != nil || strings.TrimRight(line, "\r\n") == "" {
			return
		}
	}
}

// serverTLS makes the TLS side of a receiver that the rig's servers trust.
func serverTLS(t testing.TB, names ...string) *tls.Config {
	t.Helper()
	cert, key := apptest.ServerCertificate(t, names...)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
}

// names answers DNS questions on a real socket, with what the test says at the time.
type names struct {
	conn    net.PacketConn
	lookups atomic.Int32 // questions for known names

	mu    sync.Mutex
	known map[string]netip.Addr
}

func newNames(t testing.TB) *names {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, known: map[string]netip.Addr{}}
	done := make(chan struct{})
	go func() { defer close(done); n.serve() }()
	t.Cleanup(func() { conn.Close(); <-done })
	return n
}

func (n *names) set(name, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[name] = netip.MustParseAddr(addr)
}

func (n *names) serve() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		n.answer(&m)
		if out, err := m.Pack(); err == nil {
			_, _ = n.conn.WriteTo(out, from)
		}
	}
}

func (n *names) answer(m *dnsmessage.Message) {
	q := m.Questions[0]
	n.mu.Lock()
	addr, known := n.known[strings.TrimSuffix(q.Name.String(), ".")]
	n.mu.Unlock()
	m.Response, m.Additionals = true, nil
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	n.lookups.Add(1)
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body: &dnsmessage.AResource{A: addr.As4()}}}
	}
}

// namedRig is a rig whose server asks these names, and trusts the test authority.
func namedRig(t testing.TB, n *names) *rig {
	t.Helper()
	m := clock.NewManual(start)
	s, err := sender.New(sender.Config{
		Clock: m.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, ExtraCAs: caPEM(t),
		Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "udp", n.conn.LocalAddr().String())
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return newRig(t, apptest.Options{Clock: m, Tune: func(c *engine.Config) { c.Sender = s }})
}
