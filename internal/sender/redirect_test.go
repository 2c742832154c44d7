package sender

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A record is what a receiver saw.
type record struct {
	method, path, body string
	header             http.Header
}

// A trail answers by path and keeps what it saw.
type trail struct {
	mu   sync.Mutex
	seen []record
}

func (tr *trail) play(answer func(path string) string) func(*peer) {
	return func(p *peer) {
		for req := p.next(); req != nil; req = p.next() {
			tr.mu.Lock()
			tr.seen = append(tr.seen, record{req.Method, req.URL.Path, string(must(io.ReadAll(req.Body))), req.Header})
			tr.mu.Unlock()
			p.say(answer(req.URL.Path))
		}
	}
}

func (tr *trail) all() []record {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]record(nil), tr.seen...)
}

func redirectTo(status int, location string) string {
	body := "move"
	if status == http.StatusNotModified {
		body = ""
	}
	return fmt.Sprintf("HTTP/1.1 %d Redirect\r\nLocation: %s\r\nContent-Length: %d\r\n\r\n%s", status, location, len(body), body)
}

func following(r *Request, statuses ...int) *Request {
	r.Follow.Statuses = statuses
	return r
}

func TestRedirectKeepsTheRequest(t *testing.T) {
	trace.Covers(t, "EDS-RED-4")
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(itoa(status), func(t *testing.T) {
			var tr trail
			target := newStub(t, nil, tr.play(func(string) string { return ok200 }))
			st := newStub(t, nil, tr.play(func(string) string { return redirectTo(status, target.url()+"?x=1#part") }))
			x := send(newSender(t), following(post(st.url()), status))
			wantStatus(t, x, 200)
			if want := target.url() + "?x=1"; x.URL != want || len(x.Hops) != 1 || x.Hops[0] != (godwit.Hop{Status: status, From: st.url(), To: want}) {
				t.Errorf("ended at %s by %+v", x.URL, x.Hops)
			}
			if x.Sent != nil {
				t.Errorf("kept the header of an earlier hop: %v", x.Sent)
			}
			seen := tr.all()
			if len(seen) != 2 {
				t.Fatalf("%d requests", len(seen))
			}
			for _, r := range seen {
				if r.method != "POST" || r.body != `{"n":1}` || r.header.Get("Idempotency-Key") != `"k-1"` || r.header.Get("Content-Type") != "application/json" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// Credentials and signatures are made for each hop; what went to one origin does not go to another.
func TestRedirectRemakesCredentials(t *testing.T) {
	trace.Covers(t, "EDS-RED-6")
	var tr trail
	other := newStub(t, nil, tr.play(func(string) string { return ok200 }))
	st := newStub(t, nil, tr.play(func(path string) string {
		if path == "/hook" {
			return redirectTo(307, "/second")
		}
		return redirectTo(307, other.url())
	}))
	r := following(post(st.url()), 307)
	r.Header.Set("Authorization", "Bearer fixed")
	r.Header.Set("Cookie", "a=b")
	var origins []bool
	r.Prepare = func(req *http.Request, otherOrigin bool) error {
		origins = append(origins, otherOrigin)
		if req.Header.Get("Signature") != "" {
			t.Error("the last hop's signature was carried along")
		}
		req.Header.Set("Signature", "for "+req.Host+req.URL.Path)
		return nil
	}
	wantStatus(t, send(newSender(t), r), 200)
	seen := tr.all()
	want := []string{"for " + st.Addr().String() + "/hook", "for " + st.Addr().String() + "/second", "for " + other.Addr().String() + "/hook"}
	for i, rec := range seen {
		if rec.header.Get("Signature") != want[i] {
			t.Errorf("hop %d: signature %q", i, rec.header.Get("Signature"))
		}
		if kept := rec.header.Get("Authorization") != "" && rec.header.Get("Cookie") != ""; kept != (i < 2) {
			t.Errorf("hop %d: credentials %q %q", i, rec.header.Get("Authorization"), rec.header.Get("Cookie"))
		}
	}
	if fmt.Sprint(origins) != "[false false true]" {
		t.Errorf("other origin: %v", origins)
	}
	if r.Header.Get("Signature") != "" {
		t.Error("the caller's header was changed")
	}
}

// A client certificate is a credential: another origin that asks for it does not see it, neither on a connection kept nor on a
// fresh one.
func TestRedirectShowsNoCertificateElsewhere(t *testing.T) {
	trace.Covers(t, "EDS-RED-6")
	for _, fresh := range []bool{false, true} {
		shown := make(chan int, 1)
		asking := serverTLS("http/1.1")
		asking.ClientAuth = tls.RequestClientCert
		other := newStub(t, asking, func(p *peer) {
			for p.next() != nil {
				shown <- len(p.Conn.(*tls.Conn).ConnectionState().PeerCertificates)
				p.say(ok200)
			}
		})
		at := make(chan int, 1)
		st := newStub(t, asking, func(p *peer) {
			for p.next() != nil {
				at <- len(p.Conn.(*tls.Conn).ConnectionState().PeerCertificates)
				p.say(redirectTo(307, other.secureURL()))
			}
		})
		r := following(post(st.secureURL()), 307)
		r.ClientCertificate, r.FreshConnection = clientNamed("alice"), fresh
		wantStatus(t, send(newSender(t), r), 200)
		if here, there := <-at, <-shown; here != 1 || there != 0 {
			t.Errorf("fresh %v: %d certificates shown to the endpoint, %d elsewhere", fresh, here, there)
		}
	}
}

func TestRedirectNotAskedFor(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		var tr trail
		st := newStub(t, nil, tr.play(func(path string) string { return redirectTo(status, "/target") }))
		x := send(newSender(t), following(post(st.url()), 306)) // some other one
		wantStatus(t, x, status)
		if x.Header.Get("Location") != "/target" || len(tr.all()) != 1 || x.Hops != nil {
			t.Errorf("%d: %d requests, hops %v", status, len(tr.all()), x.Hops)
		}
	}
}

func TestRedirectLoopIsCut(t *testing.T) {
	trace.Covers(t, "EDS-RED-6")
	var tr trail
	st := newStub(t, nil, tr.play(func(path string) string {
		if path == "/a" {
			return redirectTo(307, "/b")
		}
		return redirectTo(307, "/a")
	}))
	s := newSender(t)
	x := send(s, following(post(st.url()), 307))
	wantFailure(t, x, godwit.FailureRedirectLimit, false)
	if x.Status != 307 || len(x.Hops) != DefaultMaxHops || len(tr.all()) != DefaultMaxHops+1 {
		t.Errorf("status %d after %d hops, %d requests", x.Status, len(x.Hops), len(tr.all()))
	}
	r := following(post(st.url()), 307)
	r.Follow.MaxHops = 1
	wantFailure(t, send(s, r), godwit.FailureRedirectLimit, false)
	if n := len(tr.all()); n != DefaultMaxHops+3 {
		t.Errorf("%d requests", n)
	}
}

// As many redirects as allowed are followed.
func TestRedirectUpToTheLimit(t *testing.T) {
	var tr trail
	st := newStub(t, nil, tr.play(func(path string) string {
		if len(path) < len("/hookxxx") {
			return redirectTo(307, path+"x")
		}
		return ok200
	}))
	x := send(newSender(t), following(post(st.url()), 307))
	wantStatus(t, x, 200)
	if len(x.Hops) != 3 || len(tr.all()) != 4 {
		t.Errorf("%d hops", len(x.Hops))
	}
}

// Every target passes the checks of a registered URL, by redirect within an attempt and by CheckRedirect for a permanent one.
func TestRedirectTargetIsChecked(t *testing.T) {
	trace.Covers(t, "EDS-RED-6")
	var reached trail
	inside := newStubOn(t, "127.0.0.2", reached.play(func(string) string { return ok200 }))
	insidePort := itoa(inside.Addr().(*net.TCPAddr).Port)
	dns := newNameServer(t)
	dns.set("receiver.test", "127.0.0.1")
	dns.set("inside.test", "127.0.0.2")
	cases := map[string]struct {
		locations []string
		kind      godwit.FailureKind
		problem   URLProblem
	}{
		"loopback":        {[]string{"https://127.0.0.2:" + insidePort + "/"}, godwit.FailureBlockedAddress, ProblemAddress},
		"metadata":        {[]string{"https://169.254.169.254/latest"}, godwit.FailureBlockedAddress, ProblemAddress},
		"private":         {[]string{"https://10.0.0.1/"}, godwit.FailureBlockedAddress, ProblemAddress},
		"decimal":         {[]string{"https://2130706433/"}, godwit.FailureBlockedAddress, ProblemAddress},
		"name of inside":  {[]string{"https://inside.test.:" + insidePort + "/"}, godwit.FailureBlockedAddress, ""},
		"https to http":   {[]string{"http://receiver.test/"}, godwit.FailureRedirectForbidden, ProblemRedirect},
		"another host":    {[]string{"https://elsewhere.test/"}, godwit.FailureRedirectForbidden, ProblemRedirect},
		"host as a part":  {[]string{"https://receiver.test.evil.test/"}, godwit.FailureRedirectForbidden, ProblemRedirect},
		"scheme-relative": {[]string{"//elsewhere.test/"}, godwit.FailureRedirectForbidden, ProblemRedirect},
		"userinfo":        {[]string{"https://a:b@receiver.test/"}, godwit.FailureRedirectForbidden, ProblemUserinfo},
		"other scheme":    {[]string{"file:///etc/passwd"}, godwit.FailureRedirectForbidden, ProblemScheme},
		"bad port":        {[]string{"https://receiver.test:0/"}, godwit.FailureRedirectForbidden, ProblemPort},
		"unparsable":      {[]string{"https://[::1"}, godwit.FailureRedirectInvalid, ProblemSyntax},
		"empty":           {[]string{""}, godwit.FailureRedirectInvalid, ProblemSyntax},
		"missing":         {nil, godwit.FailureRedirectInvalid, ""},
		"two":             {[]string{"/a", "/b"}, godwit.FailureRedirectInvalid, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var tr trail
			st := newStub(t, serverTLS("http/1.1"), tr.play(func(string) string {
				var locations strings.Builder
				for _, l := range c.locations {
					locations.WriteString("Location: " + l + "\r\n")
				}
				return "HTTP/1.1 307 Redirect\r\n" + locations.String() + "Content-Length: 0\r\n\r\n"
			}))
			s := newSender(t, dns.use, func(c *Config) {
				c.AllowAddresses = loopback[:0:0]
				c.AllowAddresses = append(c.AllowAddresses, prefix("127.0.0.1/32"))
				c.AllowRedirectHosts = []string{"inside.test"}
			})
			from := "https://receiver.test:" + itoa(st.Addr().(*net.TCPAddr).Port) + "/hook"
			x := send(s, following(post(from), 307))
			wantFailure(t, x, c.kind, false)
			if n := len(tr.all()); n != 1 {
				t.Errorf("%d requests to the registered endpoint", n)
			}
			if c.problem != "" {
				var got *URLError
				if err := s.CheckRedirect(from, c.locations[0]); !errors.As(err, &got) || got.Problem != c.problem {
					t.Errorf("CheckRedirect: %v; want %s", err, c.problem)
				}
			}
		})
	}
	if n := inside.conns.Load(); n != 0 {
		t.Errorf("%d connections to the inside", n)
	}
}

func TestCheckRedirectAllowed(t *testing.T) {
	s := newSender(t, func(c *Config) { c.AllowRedirectHosts = []string{"New.Example", "*.partner.example"} })
	for _, to := range []string{
		"https://old.example/new", "/new", "new?x=1", "https://OLD.example.:8443/", "https://new.example/", "https://a.partner.example/",
	} {
		if err := s.CheckRedirect("https://old.example/hook", to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, to := range []string{"https://partner.example/", "https://evilpartner.example/", "https://x.new.example/", "http://new.example/"} {
		if s.CheckRedirect("https://old.example/hook", to) == nil {
			t.Errorf("%s allowed", to)
		}
	}
	if s.CheckRedirect("nonsense", "https://old.example/") == nil {
		t.Error("redirect from nowhere allowed")
	}
	if err := newSender(t, func(c *Config) { c.AllowRedirectHosts = []string{"*"} }).CheckRedirect("https://a.example/", "https://b.example/"); err != nil {
		t.Error(err)
	}
}

func TestRedirectToAnyHost(t *testing.T) {
	dns := newNameServer(t)
	dns.set("other.test", "127.0.0.1")
	var tr trail
	st := newStub(t, nil, tr.play(func(path string) string { return ok200 }))
	port := itoa(st.Addr().(*net.TCPAddr).Port)
	from := newStub(t, nil, tr.play(func(string) string { return redirectTo(302, "http://other.test.:"+port+"/x") }))
	s := newSender(t, dns.use)
	r := following(post(from.url()), 302)
	wantFailure(t, send(s, r), godwit.FailureRedirectForbidden, false)
	r.Follow.AnyHost = true
	wantStatus(t, send(s, r), 200)
}

// What fails at a redirect's target is the attempt's failure, and says whether the target may have got the request.
func TestRedirectTargetFails(t *testing.T) {
	st := newStub(t, nil, func(p *peer) {
		for req := p.next(); req != nil; req = p.next() {
			if req.URL.Path == "/hook" {
				p.say(redirectTo(307, "/gone"))
				continue
			}
			return
		}
	})
	x := send(newSender(t), following(post(st.url()), 307))
	wantFailure(t, x, godwit.FailureReset, true)
	if x.Status != 0 || x.Header != nil || x.Body != nil || len(x.Hops) != 1 || !strings.HasSuffix(x.URL, "/gone") {
		t.Errorf("%+v", x)
	}

	st = newStub(t, nil, serve(redirectTo(307, "http://"+refusing+"/")))
	wantFailure(t, send(newSender(t), following(post(st.url()), 307)), godwit.FailureRefused, false)

	st = newStub(t, nil, func(p *peer) { p.next(); p.say("HTTP/1.1 307 X\r\nLocation: /b\r\nContent-Length: 10\r\n\r\nabc") })
	x = send(newSender(t), following(post(st.url()), 307))
	wantFailure(t, x, godwit.FailureTruncated, true)
	if st.reqs.Load() != 1 {
		t.Error("a redirect that was not received whole was followed")
	}
}
