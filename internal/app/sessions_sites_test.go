package app_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func sessionSites(t *testing.T, srv *apptest.Server) {
	b := newTab(t, srv.URL)
	b.withKey(srv.Key)
	b.header = nil
	host := strings.TrimPrefix(srv.URL, "http://")
	for _, c := range []struct {
		method string
		header map[string]string
		admit  bool
	}{
		{"POST", map[string]string{"Sec-Fetch-Site": "same-origin"}, true},
		{"POST", map[string]string{"Origin": srv.URL}, true},
		{"POST", nil, false},
		{"POST", map[string]string{"Sec-Fetch-Site": "none"}, false},
		{"POST", map[string]string{"Sec-Fetch-Site": "same-site"}, false},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": srv.URL}, false},
		{"POST", map[string]string{"Origin": "null"}, false},
		{"POST", map[string]string{"Origin": "https://evil.example"}, false},
		{"POST", map[string]string{"Origin": "http://evil.example." + host}, false},
		{"PATCH", nil, false},
		{"PUT", nil, false},
		{"DELETE", nil, false},
		{"GET", nil, true},
		{"GET", map[string]string{"Sec-Fetch-Site": "none"}, true},
		{"GET", map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		{"GET", map[string]string{"Sec-Fetch-Site": "same-site"}, false},
	} {
		path, body := "/v1/endpoints/sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f", "{}"
		switch c.method {
		case "POST":
			path += "/pause"
		case "GET", "DELETE":
			body = ""
		}
		a := b.do(c.method, path, body, c.header)
		if refused := a.status == 403 && a.code == "cross-site-request"; refused == c.admit {
			t.Errorf("%s with %v: %d %s", c.method, c.header, a.status, a.code)
		}
	}
	// Another site cannot put the browser into a session of its own.
	b.cookie = ""
	signIn := `{"key":"` + srv.Key + `"}`
	b.want(403, "cross-site-request", b.do("POST", "/v1/sessions", signIn, map[string]string{"Sec-Fetch-Site": "cross-site"}))
	b.want(403, "cross-site-request", b.do("POST", "/v1/sessions", signIn, map[string]string{"Origin": "https://evil.example"}))
	b.want(201, "", b.do("POST", "/v1/sessions", signIn, nil)) // a program
}

// Behind https the cookie is one that other hosts of the domain cannot set.
func TestSessionCookieWithTLS(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.PublicURL = "https://hooks.example:8443" }})
	behind := httptest.NewServer(srv.App.Handler()) // a proxy
	defer behind.Close()
	b := newTab(t, behind.URL)
	a := b.withKey(srv.Key)
	if !strings.HasPrefix(a.setCookie, "__Host-godwit_session_8443=gds_") || !strings.Contains(a.setCookie, "; Secure") {
		t.Errorf("cookie is %s", a.setCookie)
	}
	b.header = map[string]string{"Origin": "https://hooks.example:8443"}
	b.want(204, "", b.do("DELETE", "/v1/sessions/current", "", nil))
}

func portalCookies(t *testing.T, srv *apptest.Server) {
	view := apptest.Fields{"capabilities": []string{"view_endpoints"}}
	framed := newPortalTab(t, srv.URL)
	framed.header["Godwit-Portal"] = "frame"
	a := framed.signIn(`{"code":"` + portalCode(t, srv, view) + `"}`)
	for _, part := range []string{"godwit_portal_" + godwit.DefaultEnvironment.String() + "_frame", "; HttpOnly", "; Secure", "; SameSite=None", "; Partitioned"} {
		if !strings.Contains(a.setCookie, part) {
			t.Errorf("%s is missing in %s", part, a.setCookie)
		}
	}
	framed.current()
	for _, portal := range []string{"1", ""} { // it counts in the frame alone
		framed.want(401, "unauthorized", framed.do("GET", "/v1/endpoints", "", map[string]string{"Godwit-Portal": portal}))
	}
	if a := openPortal(t, srv, view); !strings.HasPrefix(a.cookie, "godwit_portal_"+godwit.DefaultEnvironment.String()+"_") {
		t.Errorf("cookie is %s", a.cookie)
	}
}
