package sender

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func withoutAllowed(c *Config) { c.AllowAddresses = nil }

// A name may resolve to anything, whatever was checked at registration.
func TestGuardOnResolvedAddress(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AZN-3", "CCW-HTTP-13")
	dns := newNameServer(t)
	s := newSender(t, dns.use, withoutAllowed)
	st := newStub(t, nil, serve(ok200)) // on 127.0.0.1, where it would answer
	port := st.Addr().(*net.TCPAddr).Port
	for _, addr := range append([]string{"::ffff:127.0.0.1", "::ffff:10.0.0.1"}, insideAddresses...) {
		t.Run(addr, func(t *testing.T) {
			dns.set("receiver.test", addr)
			for _, scheme := range []string{"http", "https"} {
				x := send(s, post(scheme+"://receiver.test.:"+itoa(port)+"/hook"))
				wantFailure(t, x, godwit.FailureBlockedAddress, false)
				if strings.Contains(x.Failure.Detail, strings.TrimPrefix(addr, "::ffff:")) {
					t.Errorf("tells what the name means inside: %q", x.Failure.Detail)
				}
			}
		})
	}
	x := send(s, post("https://unknown.test./"))
	wantFailure(t, x, godwit.FailureDNS, false)
	if server := dns.conn.LocalAddr().String(); strings.Contains(x.Failure.Detail, server) || !strings.Contains(x.Failure.Detail, "no such host") {
		t.Errorf("tells of our name server, or not what happened: %q", x.Failure.Detail)
	}
	if n := st.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// DNS that turns private between two attempts. The first one is shown to work; the connection it left is not reused, since
// what matters is the next connection.
func TestGuardAgainstRebinding(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AZN-3")
	dns := newNameServer(t)
	outside, inside := newStub(t, nil, serve(ok200)), newStubOn(t, "127.0.0.2", serve(ok200))
	// 127.0.0.1 plays the public address here.
	s := newSender(t, dns.use, func(c *Config) { c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	dns.set("rebind.test", "127.0.0.1")
	wantStatus(t, send(s, post("http://rebind.test.:"+itoa(outside.Addr().(*net.TCPAddr).Port)+"/")), 200)

	dns.set("rebind.test", "127.0.0.2")
	r := post("http://rebind.test.:" + itoa(inside.Addr().(*net.TCPAddr).Port) + "/")
	wantFailure(t, send(s, r), godwit.FailureBlockedAddress, false)
	r.FreshConnection = true
	wantFailure(t, send(s, r), godwit.FailureBlockedAddress, false)
	if n := inside.conns.Load(); n != 0 {
		t.Errorf("%d connections to the inside", n)
	}
}

// With several addresses the guard picks out the forbidden ones; the rest are tried.
func TestGuardOnMixedAddresses(t *testing.T) {
	dns := newNameServer(t)
	st := newStub(t, nil, serve(ok200))
	port := itoa(st.Addr().(*net.TCPAddr).Port)
	s := newSender(t, dns.use, func(c *Config) { c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })

	dns.set("mixed.test", "127.0.0.2", "127.0.0.1")
	x := send(s, post("http://mixed.test.:"+port+"/"))
	wantStatus(t, x, 200)
	if !strings.HasPrefix(x.RemoteAddr, "127.0.0.1:") {
		t.Errorf("connected to %s", x.RemoteAddr)
	}

	st.Listener.Close()
	s.shared.CloseIdleConnections()
	dns.set("mixed.test", "127.0.0.2", "127.0.0.1") // one blocked, one refused: not a matter of blocking alone
	x = send(s, post("http://mixed.test.:"+port+"/"))
	if x.Failure == nil || x.Failure.Kind == godwit.FailureBlockedAddress {
		t.Errorf("failure %+v", x.Failure)
	}
	dns.set("mixed.test", "127.0.0.2", "10.0.0.1")
	wantFailure(t, send(s, post("http://mixed.test.:"+port+"/")), godwit.FailureBlockedAddress, false)
}

func TestGuardAllowList(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-13")
	st := newStub(t, nil, serve(ok200))
	wantFailure(t, send(newSender(t, withoutAllowed), post(st.url())), godwit.FailureBlockedAddress, false)
	wantStatus(t, send(newSender(t), post(st.url())), 200)
}

func TestGuardRefusesBadPrefixes(t *testing.T) {
	for _, p := range []netip.Prefix{{}, netip.MustParsePrefix("::ffff:10.0.0.0/104")} {
		if _, err := newGuard([]netip.Prefix{p}, nil); err == nil {
			t.Errorf("%v allowed", p)
		}
		if _, err := newGuard(nil, []netip.Prefix{p}); err == nil {
			t.Errorf("%v denied", p)
		}
	}
}

func TestGuardControl(t *testing.T) {
	g := must(newGuard(nil, nil))
	for network, address := range map[string]string{"udp4": "8.8.8.8:53", "unix": "/run/x.sock", "tcp4": "nonsense"} {
		if g.control(network, address) == nil {
			t.Errorf("%s %s let through", network, address)
		}
	}
	if err := g.control("tcp4", "8.8.8.8:443"); err != nil {
		t.Error(err)
	}
}
