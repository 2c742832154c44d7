package httpsig_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
)

// everything that can be covered in a request, in one list.
var everything = []string{
	"@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query",
	`"@query-param";name="q"`, `"@query-param";name="caf%C3%A9"`, "host", "content-length", "content-type",
	`"content-digest";sf`, `"content-digest";key="sha-256"`, `"idempotency-key";sf`, "x-list", `"x-list";bs`, "x-empty",
}

// TestWireForms: client and server see a request through different structures of net/http, and must derive the same values
// for every spelling of the URL.
func TestWireForms(t *testing.T) {
	for transport, serve := range servers {
		t.Run(transport, func(t *testing.T) {
			server := serve(ownReceiver(t, httpsig.Options{KeyByID: keyring(t), RequiredComponents: everything}))
			t.Cleanup(server.Close)
			for _, target := range []string{
				"/?q=1&caf%C3%A9=2", "?q=1&caf%c3%a9=", "/a%2Fb/c%20d//e/?q=a%20b+c&&caf%C3%A9", "/%7Euser/..;x=1/./?q=%&caf%C3%A9=%2B%zz",
				"/sp ace/é?q='(!*)~&caf%C3%A9=%00", "//double?q&caf%C3%A9",
			} {
				t.Run(target, func(t *testing.T) { sendEverything(t, server, server.URL+target) })
			}
			t.Run("another host", func(t *testing.T) {
				sendEverything(t, server, server.URL+"/?q=1&caf%C3%A9", func(r *http.Request) { r.Host = "Hooks.Example.com:443" })
			})
		})
	}
}

func sendEverything(t *testing.T, server *httptest.Server, target string, changes ...func(*http.Request)) {
	t.Helper()
	const body = "some bytes"
	req := newRequest(t, "POST", target, "Content-Type: text/plain", `Idempotency-Key: "a";x=1`,
		"Content-Digest: md5=:AAAA:", "Content-Digest: "+httpsig.ContentDigest([]byte(body)), "X-List: a,  b", "X-List: \tc ", "X-Empty: ")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	for _, change := range changes {
		change(req)
	}
	if err := sign(t, req, httpsig.Params{Created: time.Now()}, everything...); err != nil {
		t.Fatal(err)
	}
	res := must(server.Client().Do(req))(t)
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("refused: %s", res.Header.Get("Reason"))
	}
}

// TestForcedQuery: a trailing question mark is part of the URI.
func TestForcedQuery(t *testing.T) {
	components := []string{"@target-uri", "@query", "@request-target"}
	server := httptest.NewServer(ownReceiver(t, httpsig.Options{KeyByID: keyring(t), RequiredComponents: components}))
	t.Cleanup(server.Close)
	for signedAs, want := range map[string]int{"/?": http.StatusNoContent, "/": http.StatusUnauthorized} {
		req := newRequest(t, "POST", server.URL+signedAs)
		if err := sign(t, req, httpsig.Params{Created: time.Now()}, components...); err != nil {
			t.Fatal(err)
		}
		req.URL.ForceQuery = true
		res := must(server.Client().Do(req))(t)
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("signed as %s, sent as /?: answer %d, want %d", signedAs, res.StatusCode, want)
		}
	}
}

// TestTrailers covers a field that comes after the body.
func TestTrailers(t *testing.T) {
	components := []string{"@method", `"x-sum";tr`}
	verifier := must(httpsig.NewVerifier(httpsig.Options{KeyByID: keyring(t), RequiredComponents: components}))(t)
	verdicts := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, err := verifier.Verify(r, body)
		verdicts <- err
	}))
	t.Cleanup(server.Close)
	for sent, want := range map[string]httpsig.Reason{"1": "", "2": httpsig.ReasonBadSignature} {
		req := must(http.NewRequest("POST", server.URL, io.NopCloser(strings.NewReader("body"))))(t)
		req.Trailer = http.Header{"X-Sum": {"1"}}
		if err := sign(t, req, httpsig.Params{Created: time.Now()}, components...); err != nil {
			t.Fatal(err)
		}
		req.Trailer.Set("X-Sum", sent)
		res := must(server.Client().Do(req))(t)
		_ = res.Body.Close()
		if err := <-verdicts; httpsig.ReasonOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("trailer %s: %v, want %q", sent, err, want)
		}
	}
}

// TestOtherTargets: forms of the request target that only proxies and OPTIONS see.
func TestOtherTargets(t *testing.T) {
	base := func(target, method string) *http.Request {
		req := newRequest(t, method, "http://proxy.example/")
		req.RequestURI, req.Host = target, "example.com"
		return req
	}
	for name, c := range map[string]struct {
		req       *http.Request
		component string
		fails     bool
	}{
		"absolute form":              {base("http://Example.com:80/a?b", "GET"), "@target-uri", false},
		"absolute form, other":       {base("ftp://example.com/", "GET"), "@target-uri", true},
		"absolute form, user":        {base("http://me@example.com/", "GET"), "@target-uri", true},
		"absolute form, no host":     {base("http:///a", "GET"), "@target-uri", true},
		"authority form":             {base("example.com:443", "CONNECT"), "@authority", false},
		"authority form has no path": {base("example.com:443", "CONNECT"), "@path", true},
		"asterisk form":              {base("*", "OPTIONS"), "@request-target", false},
		"asterisk form has no URI":   {base("*", "OPTIONS"), "@target-uri", true},
		"no host":                    {func() *http.Request { r := base("/", "GET"); r.Host = ""; return r }(), "@authority", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := sign(t, c.req, httpsig.Params{}, c.component)
			if (err != nil) != c.fails {
				t.Fatalf("sign: %v", err)
			}
			if c.fails {
				return
			}
			_, err = httpsig.Verify(c.req, nil, httpsig.Options{KeyByID: keyring(t), RequiredComponents: []string{c.component}, Now: at(created)})
			if err != nil {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// TestAuthorityIsNormalised: case and default port of the host do not matter to
// @authority (RFC 9421, section 2.2.3).
func TestAuthorityIsNormalised(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://Example.COM:443/", "https://example.com/", true},
		{"http://example.com:80/", "http://EXAMPLE.com/", true},
		{"https://example.com:/", "https://example.com/", true},
		{"https://[2001:DB8::1]:443/", "https://[2001:db8::1]/", true},
		{"https://example.com:80/", "https://example.com/", false},
		{"https://example.com:8443/", "https://example.com/", false},
	} {
		first := newRequest(t, "GET", c.a)
		if err := sign(t, first, httpsig.Params{}, "@authority"); err != nil {
			t.Fatal(err)
		}
		then := first.Clone(context.Background())
		then.URL = must(url.Parse(c.b))(t)
		then.Host = ""
		_, err := httpsig.Verify(then, nil, httpsig.Options{KeyByID: keyring(t), RequiredComponents: []string{"@authority"}, Now: at(created)})
		if c.same != (err == nil) {
			t.Errorf("%s and %s: %v", c.a, c.b, err)
		}
	}
}
