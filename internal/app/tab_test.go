package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
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
	b := newTab(t, srv.URL)
	b.header["Godwit-Portal"] = "1"
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
