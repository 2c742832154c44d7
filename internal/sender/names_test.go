package sender

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A nameServer answers DNS questions on a real socket, with what the test says at the time.
type nameServer struct {
	conn    net.PacketConn
	lookups atomic.Int32 // questions for known names

	mu    sync.Mutex
	addrs map[string][]netip.Addr
}

func newNameServer(t testing.TB) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{conn: conn, addrs: map[string][]netip.Addr{}}
	done := make(chan struct{})
	go func() { defer close(done); n.serve() }()
	t.Cleanup(func() { conn.Close(); <-done })
	return n
}

func (n *nameServer) set(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs[name] = nil
	for _, a := range addrs {
		n.addrs[name] = append(n.addrs[name], netip.MustParseAddr(a))
	}
}

// use makes a sender ask this server.
func (n *nameServer) use(c *Config) {
	c.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *nameServer) serve() {
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
			n.conn.WriteTo(out, from)
		}
	}
}

func (n *nameServer) answer(m *dnsmessage.Message) {
	q := m.Questions[0]
	n.mu.Lock()
	addrs, known := n.addrs[strings.TrimSuffix(q.Name.String(), ".")]
	n.mu.Unlock()
	m.Response, m.Additionals = true, nil
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	n.lookups.Add(1)
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	for _, a := range addrs {
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
}
