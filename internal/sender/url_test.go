package sender

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

func TestCheckURL(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AZN-2")
	strict := must(New(Config{Clock: time.Now}))
	t.Cleanup(strict.Close)

	for _, good := range []string{
		"https://example.com",
		"https://example.com/hook?tenant=1&x=%0a",
		"https://example.com:8443/hook",
		"https://EXAMPLE.com./hook",
		"https://a_b.example.com/",
		"https://bücher.example/hook",
		"https://8.8.8.8/",
		"https://[2606:4700:4700::1111]:443/",
		"https://123.example/",
		"https://0x7f.example/",
	} {
		if err := strict.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}

	for bad, problem := range map[string]URLProblem{
		"":                                   ProblemScheme,
		"example.com/hook":                   ProblemScheme,
		"//example.com/hook":                 ProblemScheme,
		"http://example.com/":                ProblemScheme,
		"file:///etc/passwd":                 ProblemScheme,
		"gopher://example.com/":              ProblemScheme,
		"javascript:alert(1)":                ProblemScheme,
		"ftp://example.com/":                 ProblemScheme,
		"https://":                           ProblemHost,
		"https:///hook":                      ProblemHost,
		"https:example.com":                  ProblemHost,
		"https://:443/":                      ProblemHost,
		"https://-a.example/":                ProblemHost,
		"https://a..example/":                ProblemHost,
		"https://exa<mple.com/":              ProblemHost,
		"https://a,b.example/":               ProblemHost,
		"https://xn--.ü/":                    ProblemHost,
		"https://example.com:/":              ProblemPort,
		"https://example.com:0/":             ProblemPort,
		"https://example.com:65536/":         ProblemPort,
		"https://example.com:https/":         ProblemSyntax,
		"https://[::1":                       ProblemSyntax,
		"https://exam%31ple.com/":            ProblemSyntax,
		"https://example.com/%zz":            ProblemSyntax,
		"https://user:pw@example.com/":       ProblemUserinfo,
		"https://user@example.com/":          ProblemUserinfo,
		"https://@example.com/":              ProblemUserinfo,
		"https://example.com/#part":          ProblemFragment,
		"https://example.com/#":              ProblemFragment,
		"https://example.com/a b":            ProblemCharacter,
		"https://example.com/\r\nEvil: 1":    ProblemCharacter,
		"https://example.com/\x00":           ProblemCharacter,
		"https://example.com\\@evil.test/":   ProblemCharacter,
		"https://example.com/ü":              ProblemCharacter,
		"https://example.com/?q=ü":           ProblemCharacter,
		" https://example.com/":              ProblemCharacter,
		"https://localhost/":                 ProblemAddress,
		"https://LOCALHOST./":                ProblemAddress,
		"https://api.localhost:8443/":        ProblemAddress,
		"https://example.com/" + longPath(t): ProblemLength,
	} {
		wantProblem(t, strict, bad, problem)
	}
}

func longPath(*testing.T) string { return strings.Repeat("x", MaxURLLength) }

func wantProblem(t *testing.T, s *Sender, raw string, problem URLProblem) {
	t.Helper()
	var got *URLError
	if err := s.CheckURL(raw); !errors.As(err, &got) {
		t.Errorf("%.60q: accepted, want %s", raw, problem)
	} else if got.Problem != problem {
		t.Errorf("%.60q: %v; want %s", raw, got, problem)
	} else if strings.Contains(got.Error(), "pw") {
		t.Errorf("error repeats the URL: %v", got)
	}
}

// insideAddresses are those a delivery must not reach, as they are written plainly.
var insideAddresses = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
	"169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1",
	"239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
	"::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1",
	"2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "::7f00:1", "2001:db8::1",
}

// otherForms are ways to write 127.0.0.1 and its like which some programs read as addresses.
var otherForms = []string{
	"2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "0x7F.0.0.0x1", "127.0.0.1.",
	"127.0.0.01", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[::ffff:8.8.8.8]", "[fe80::1%25eth0]",
	"１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1", "0", "0x", "1.2.3.4.5", "256.1.1.1", "4294967296",
}

func TestCheckURLLiteralAddresses(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AZN-3", "EDS-SEC-AZN-2")
	strict := must(New(Config{Clock: time.Now}))
	t.Cleanup(strict.Close)
	for _, a := range insideAddresses {
		wantProblem(t, strict, "https://"+bracket(a)+":8443/hook", ProblemAddress)
	}
	for _, form := range otherForms {
		wantProblem(t, strict, "https://"+form+"/hook", ProblemAddress)
	}
}

func bracket(addr string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]"
	}
	return addr
}

func TestCheckURLAllowed(t *testing.T) {
	s := must(New(Config{Clock: time.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd12::/16"),
	}, DenyAddresses: []netip.Prefix{netip.MustParsePrefix("8.8.0.0/16"), netip.MustParsePrefix("2606:4700::/32")}}))
	t.Cleanup(s.Close)
	for _, good := range []string{"http://localhost:8080/", "http://127.0.0.1/", "https://10.1.2.3/", "http://[fd12::1]/"} {
		if err := s.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"http://10.2.0.1/", "http://[::1]/", "http://192.168.0.1/", "http://8.8.8.8/", "http://[2606:4700::1]/", "http://127.1/",
	} {
		wantProblem(t, s, bad, ProblemAddress)
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range append(otherForms, insideAddresses...) {
		f.Add("https://" + seed + "/")
	}
	for _, seed := range []string{
		"https://example.com/hook?x=1", "https://user:pw@example.com/", "https://bücher.example/", "http://h:1/#f", "https://[::1%25x]/",
	} {
		f.Add(seed)
	}
	s := must(New(Config{Clock: time.Now}))
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := s.parseURL(raw)
		if (s.CheckURL(raw) == nil) != (err == nil) {
			t.Fatal("two minds about one URL")
		}
		if err != nil {
			if err.Problem == "" || err.Detail == "" {
				t.Fatalf("no reason: %+v", err)
			}
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || !ascii(u.String()) {
			t.Fatalf("accepted %q as %q", raw, u)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (addr.IsPrivate() || addr.IsLoopback() || !addr.IsGlobalUnicast()) {
			t.Fatalf("accepted %q with address %s", raw, addr)
		}
		if strings.ContainsFunc(u.String(), func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
			t.Fatalf("accepted %q as %q", raw, u)
		}
		again, problem := s.parseURL(u.String())
		if problem != nil || again.String() != u.String() {
			t.Fatalf("%q is accepted as %q, which is then %v, %v", raw, u, again, problem)
		}
		if _, err := url.Parse(u.String()); err != nil {
			t.Fatal(err)
		}
	})
}
