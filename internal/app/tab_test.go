package app_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A tab is a browser with one cookie at most, on one server.
type tab struct {
	t      *testing.T
	url    string
	host   string            // Host of its requests; empty: that of the URL
	cookie string            // name=value
	header map[string]string // of every request
}

func newTab(t *testing.T, url string) *tab {
	return &tab{t: t, url: url, header: map[string]string{"Sec-Fetch-Site": "same-origin"}}
}

// newPortalTab is a tab with the portal of the default environment.
func newPortalTab(t *testing.T, url string) *tab {
	b := newTab(t, url)
	b.header["Godwit-Portal"], b.header["Godwit-Environment"] = "1", godwit.DefaultEnvironment.String()
	return b
}

type tabAnswer struct {
	status    int
	code      string // of the problem
	body      string
	setCookie string
	header    http.Header
}

// do sends a request as the browser would; more are header fields of this request alone, and an empty value removes one.
func (b *tab) do(method, path, body string, more map[string]string) tabAnswer {
	b.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, content)
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, fields := range []map[string]string{b.header, more} {
		for name, value := range fields {
			req.Header.Set(name, value)
			if value == "" {
				req.Header.Del(name)
			}
		}
	}
	if b.host != "" {
		req.Host = b.host
	}
	if b.cookie != "" {
		req.Header.Set("Cookie", b.cookie)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	a := tabAnswer{status: resp.StatusCode, body: string(text), setCookie: resp.Header.Get("Set-Cookie"), header: resp.Header}
	var p struct{ Code string }
	if resp.StatusCode >= 400 {
		if err := json.Unmarshal(text, &p); err != nil {
			b.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
	}
	a.code = p.Code
	return a
}

func (b *tab) want(status int, code string, a tabAnswer) tabAnswer {
	b.t.Helper()
	if a.status != status || a.code != code {
		b.t.Fatalf("got %d %s, want %d %s\n%s", a.status, a.code, status, code, a.body)
	}
	return a
}

// An openAnswer is an answer that has begun.
type openAnswer struct {
	t     *testing.T
	body  io.Closer
	lines *bufio.Scanner
}

// stream opens an answer that takes long, and reads its first line.
func (b *tab) stream(path string) *openAnswer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), "GET", b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range b.header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Cookie", b.cookie)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { resp.Body.Close() })
	o := &openAnswer{t: b.t, body: resp.Body, lines: bufio.NewScanner(resp.Body)}
	o.lines.Buffer(nil, 4<<20)
	if o.lines.Scan(); resp.StatusCode != 200 {
		b.t.Fatalf("%s: %d %s", path, resp.StatusCode, o.lines.Text())
	}
	return o
}

func (o *openAnswer) close() { o.body.Close() }

// untilEnd moves the server's clock by seconds, after which it checks the right to read, and returns the lines until the server ends the answer. Usually one is
// enough; the server may set its timer after it.
func (o *openAnswer) untilEnd(srv *apptest.Server) (lines []string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for o.lines.Scan() {
			lines = append(lines, o.lines.Text())
		}
	}()
	step := time.NewTicker(20 * time.Millisecond)
	defer step.Stop()
	for {
		srv.Clock.Advance(time.Second)
		select {
		case <-ended:
			return lines
		case <-step.C:
		}
	}
}

// signIn signs in and keeps the cookie.
func (b *tab) signIn(body string) tabAnswer {
	b.t.Helper()
	a := b.want(201, "", b.do("POST", "/v1/sessions", body, nil))
	b.cookie, _, _ = strings.Cut(a.setCookie, ";")
	return a
}

func (b *tab) withKey(key string) tabAnswer { b.t.Helper(); return b.signIn(`{"key":"` + key + `"}`) }

type sessionView struct {
	ID, Kind, Name, User, Address string
	KeyID                         string `json:"key_id"`
	UserAgent                     string `json:"user_agent"`
	Scopes, Capabilities          []string
	Current                       bool
	Tenant                        *struct{ ID, UID, Name string }
	Environment                   *struct{ ID, UID, Name string }
	LastUsedAt                    time.Time `json:"last_used_at"`
	ExpiresAt                     time.Time `json:"expires_at"`
}

func (b *tab) current() sessionView {
	b.t.Helper()
	var v sessionView
	a := b.want(200, "", b.do("GET", "/v1/sessions/current", "", nil))
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *tab) ended(what string) {
	b.t.Helper()
	if a := b.do("GET", "/v1/endpoints", "", nil); a.status != 401 {
		b.t.Errorf("%s: the session still works: %d %s", what, a.status, a.body)
	}
}

func linkCode(t *testing.T, link string) string {
	t.Helper()
	_, code, found := strings.Cut(link, "#code=")
	if !found {
		t.Fatalf("%s has no code", link)
	}
	return code
}

func newSignInLink(srv *apptest.Server, t *testing.T, key string) string {
	var link struct{ URL string }
	srv.Must(apptest.Call{Method: "POST", Path: "/v1/sign-in-links", Key: key, Body: "{}"}, &link)
	if !strings.HasPrefix(link.URL, srv.URL+"/ui/#code=") {
		t.Fatalf("link is %s", link.URL)
	}
	return linkCode(t, link.URL)
}

func newCode(t *testing.T, srv *apptest.Server) string {
	t.Helper()
	var link struct{ URL string }
	srv.Must(apptest.Call{Method: "POST", Path: "/v1/sign-in-links", Body: "{}"}, &link)
	return linkCode(t, link.URL)
}

// openPortal makes a portal link and opens it.
func openPortal(t *testing.T, srv *apptest.Server, fields apptest.Fields) *tab {
	t.Helper()
	b := newPortalTab(t, srv.URL)
	b.signIn(`{"code":"` + portalCode(t, srv, fields) + `"}`)
	return b
}

func portalCode(t *testing.T, srv *apptest.Server, fields apptest.Fields) string {
	t.Helper()
	var link struct{ URL string }
	srv.Must(apptest.Call{Path: "/v1/portal-links", Body: fields}, &link)
	if !strings.HasPrefix(link.URL, srv.URL+"/portal/env_") || !strings.Contains(link.URL, "/#code=gdc_") {
		t.Fatalf("link is %s", link.URL)
	}
	return linkCode(t, link.URL)
}
