package app_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
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

func TestSessions(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		o.Clock = clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
		o.Configure = func(c *config.Config) { c.Sessions.FailuresPerMinute = 0 }
		srv := apptest.Start(t, o)
		for name, test := range map[string]func(*testing.T, *apptest.Server){
			"act like their key": sessionActs, "cross-site requests": sessionSites, "tokens": sessionTokens, "codes": sessionCodes,
			"end": sessionEnds, "lifetimes": sessionLifetimes, "evidence": sessionEvidence,
		} {
			t.Run(name, func(t *testing.T) { test(t, srv) })
		}
	})
}

func sessionActs(t *testing.T, srv *apptest.Server) {
	b := newTab(t, srv.URL)
	b.header["User-Agent"] = "Browser/1"
	a := b.withKey(srv.Key)
	name, _, _ := strings.Cut(b.cookie, "=")
	_, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	for _, part := range []string{"; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="} {
		if !strings.Contains(a.setCookie, part) {
			t.Errorf("%s is missing in %s", part, a.setCookie)
		}
	}
	if name != "godwit_session_"+port || strings.Contains(a.setCookie, "Secure") || strings.Contains(a.body, strings.TrimPrefix(b.cookie, name+"=")) {
		t.Errorf("cookie %s, body %s", a.setCookie, a.body)
	}
	s := b.current()
	if s.Kind != "dashboard" || s.Name != "test" || s.KeyID == "" || !s.Current || s.Tenant.Name != "test" || s.Environment.UID != "default" || len(s.Scopes) != len(godwit.AllScopes) ||
		s.Address != "127.0.0.1" || s.UserAgent != "Browser/1" {
		t.Errorf("session is %+v", s)
	}
	made := b.want(201, "", b.do("POST", "/v1/endpoints", `{"url":"https://example.com/"}`, nil))
	var endpoint struct{ ID string }
	_ = json.Unmarshal([]byte(made.body), &endpoint)
	srv.Must(apptest.Call{Path: "/v1/endpoints/" + endpoint.ID}, nil) // it is the key's tenant's
	b.want(200, "", b.do("GET", "/ids/v1/registry", "", nil))
	// As with a key: an administrator acts for others.
	other, _ := srv.NewTenant("other", godwit.ScopeRead)
	b.want(404, "not-found", b.do("GET", "/v1/endpoints/"+endpoint.ID, "", map[string]string{"Godwit-Tenant": other.String()}))
	if got := b.current(); got.ID != s.ID {
		t.Errorf("the session of another tenant's request is %+v", got)
	}
	read := newTab(t, srv.URL)
	read.withKey(srv.NewKey(srv.Tenant, godwit.ScopeRead))
	read.want(403, "forbidden", read.do("POST", "/v1/endpoints", `{"url":"https://example.com/"}`, nil))
}

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

func sessionTokens(t *testing.T, srv *apptest.Server) {
	b := newTab(t, srv.URL)
	b.withKey(srv.Key)
	name, token, _ := strings.Cut(b.cookie, "=")
	b.want(401, "unauthorized", b.do("GET", "/v1/endpoints", "", map[string]string{"Authorization": "Bearer gdw_unknown"})) // it wins over the cookie
	program := newTab(t, srv.URL)
	program.header = map[string]string{"Authorization": "Bearer " + token}
	program.want(401, "unauthorized", program.do("GET", "/v1/endpoints", "", nil))
	for _, cookie := range []string{name + "=" + srv.Key, name + "=", name + "=gds_" + strings.Repeat("A", 43), "godwit_session=" + token, b.cookie + "; " + b.cookie} {
		stranger := newTab(t, srv.URL)
		stranger.cookie = cookie
		stranger.want(401, "unauthorized", stranger.do("GET", "/v1/endpoints", "", nil))
	}
	// A sign-in takes over no token that the browser had, and ends the session that it replaces.
	fixed := newTab(t, srv.URL)
	fixed.cookie = name + "=gds_" + strings.Repeat("B", 43)
	before := fixed.cookie
	fixed.withKey(srv.Key)
	if fixed.cookie == before {
		t.Error("the sign-in kept the browser's token")
	}
	old := *b
	b.withKey(srv.Key)
	if b.cookie == old.cookie {
		t.Error("the sign-in kept the token")
	}
	old.ended("after another sign-in")
	b.current()
	for _, body := range []string{`{}`, `{"key":"a","code":"b"}`, `{"key":1}`, `{"other":"a"}`, ``} {
		if a := newTab(t, srv.URL).do("POST", "/v1/sessions", body, nil); a.status != 400 && a.status != 415 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	newTab(t, srv.URL).want(401, "unauthorized", newTab(t, srv.URL).do("POST", "/v1/sessions", `{"key":"gdw_`+strings.Repeat("A", 43)+`"}`, nil))
	newTab(t, srv.URL).want(413, "body-too-large", newTab(t, srv.URL).do("POST", "/v1/sessions", `{"key":"`+strings.Repeat("A", 5000)+`"}`, nil))
	if strings.Contains(srv.Log.String(), token) {
		t.Error("the log has a token")
	}
}

func sessionCodes(t *testing.T, srv *apptest.Server) {
	key := srv.NewKey(srv.Tenant, godwit.ScopeRead)
	code := newSignInLink(srv, t, key)
	b, second := newTab(t, srv.URL), newTab(t, srv.URL)
	b.signIn(`{"code":"` + code + `"}`)
	if s := b.current(); len(s.Scopes) != 1 || s.Scopes[0] != "read" || s.KeyID == "" {
		t.Errorf("session is %+v", s)
	}
	second.want(410, "sign-in-code-used", second.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, nil))
	b.current()
	b.want(403, "forbidden", b.do("POST", "/v1/sign-in-links", "{}", nil)) // a session would have no end
	late := newSignInLink(srv, t, key)
	srv.Clock.Advance(management.SignInLinkLife)
	second.want(410, "sign-in-code-expired", second.do("POST", "/v1/sessions", `{"code":"`+late+`"}`, nil))
	second.want(401, "unauthorized", second.do("POST", "/v1/sessions", `{"code":"gdc_`+strings.Repeat("A", 43)+`"}`, nil))
	portal := newTab(t, srv.URL)
	portal.header["Godwit-Portal"] = "1"
	portal.want(401, "unauthorized", portal.do("POST", "/v1/sessions", `{"code":"`+newSignInLink(srv, t, key)+`"}`, nil))
	portal.want(400, "invalid-request", portal.do("POST", "/v1/sessions", `{"key":"`+key+`"}`, nil))
	// The link of a key that is revoked.
	code = newSignInLink(srv, t, key)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/keys/" + b.current().KeyID}, nil)
	second.want(401, "unauthorized", second.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, nil))
	b.ended("after its key was revoked")
}

func sessionEnds(t *testing.T, srv *apptest.Server) {
	key := srv.NewKey(srv.Tenant, godwit.ScopeRead, godwit.ScopeManage)
	out := newTab(t, srv.URL)
	out.withKey(key)
	a := out.want(204, "", out.do("DELETE", "/v1/sessions/current", "", nil))
	if !strings.Contains(a.setCookie, "Max-Age=0") || !strings.HasPrefix(a.setCookie, strings.SplitN(out.cookie, "=", 2)[0]+"=;") {
		t.Errorf("cookie is %s", a.setCookie)
	}
	out.ended("after signing out")
	program := newTab(t, srv.URL)
	program.header["Authorization"] = "Bearer " + key
	program.want(404, "not-found", program.do("GET", "/v1/sessions/current", "", nil))
	program.want(404, "not-found", program.do("DELETE", "/v1/sessions/current", "", nil))

	first, admin := newTab(t, srv.URL), newTab(t, srv.URL)
	first.withKey(key)
	admin.withKey(srv.Key)
	id, adminID := first.current().ID, admin.current().ID
	listed := func(b *tab) map[string]bool {
		var list struct{ Items []sessionView }
		a := b.want(200, "", b.do("GET", "/v1/sessions?limit=200", "", nil))
		if err := json.Unmarshal([]byte(a.body), &list); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, s := range list.Items {
			ids[s.ID] = s.Current
		}
		return ids
	}
	if l := listed(first); !l[id] || l[adminID] || len(l) < 2 {
		t.Errorf("listed %v", l)
	}
	first.want(403, "forbidden", first.do("DELETE", "/v1/sessions/"+adminID, "", nil))
	admin.want(400, "invalid-request", admin.do("DELETE", "/v1/sessions/ses_x", "", nil))
	admin.want(400, "invalid-request", admin.do("DELETE", "/v1/sessions", "", nil))
	admin.want(204, "", admin.do("DELETE", "/v1/sessions/"+id, "", nil))
	admin.want(404, "not-found", admin.do("DELETE", "/v1/sessions/"+id, "", nil))
	first.ended("after it was ended")

	first.withKey(key)
	second := newTab(t, srv.URL)
	second.withKey(key)
	stranger := newTab(t, srv.URL)
	_, strangerKey := srv.NewTenant("stranger", godwit.ScopeRead, godwit.ScopeManage)
	stranger.withKey(strangerKey)
	stranger.want(404, "not-found", stranger.do("DELETE", "/v1/sessions/"+first.current().ID, "", nil))
	stranger.want(403, "forbidden", stranger.do("DELETE", "/v1/sessions?tenant="+srv.Tenant.String(), "", nil))
	first.want(200, "", first.do("DELETE", "/v1/sessions?tenant="+srv.Tenant.String(), "", nil))
	first.ended("after all were ended")
	second.ended("after all were ended")
	admin.current() // a caller without the scope admin leaves it
	admin.want(200, "", admin.do("DELETE", "/v1/sessions?kind=dashboard&tenant="+srv.Tenant.String(), "", nil))
	admin.ended("after all were ended by an administrator")
	stranger.current()

	// A deleted tenant.
	id2 := stranger.current().Tenant.ID
	var asked struct {
		CommandID string `json:"command_id"`
		Token     string `json:"confirmation_token"`
		StepUpURL string `json:"step_up_url"`
	}
	var approved struct {
		Token string `json:"step_up_token"`
	}
	approver := srv.NewKey(srv.Tenant, godwit.AllScopes...)
	srv.Clock.Advance(time.Second)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/tenants/" + id2}, &asked)
	srv.Must(apptest.Call{Method: "POST", Path: asked.StepUpURL, Key: approver, Body: "{}"}, &approved)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/tenants/" + id2, Header: map[string]string{
		"Godwit-Command": asked.CommandID, "Godwit-Confirmation": asked.Token, "Godwit-Step-Up": approved.Token,
	}}, nil)
	stranger.ended("after its tenant was deleted")
}

func sessionLifetimes(t *testing.T, srv *apptest.Server) {
	idle, busy := newTab(t, srv.URL), newTab(t, srv.URL)
	idle.withKey(srv.Key)
	busy.withKey(srv.Key)
	made := busy.current()
	srv.Clock.Advance(30 * time.Second)
	if s := busy.current(); !s.LastUsedAt.Equal(made.LastUsedAt) {
		t.Errorf("a use was stored after 30 seconds: %v", s.LastUsedAt)
	}
	srv.Clock.Advance(time.Minute)
	busy.current()
	if s := busy.current(); !s.LastUsedAt.Equal(srv.Clock.Now()) {
		t.Errorf("last use is %v, want %v", s.LastUsedAt, srv.Clock.Now())
	}
	for range 13 {
		srv.Clock.Advance(time.Hour)
		busy.current()
	}
	idle.ended("after 13 hours without a request")
	for srv.Clock.Now().Before(made.ExpiresAt.Add(-11 * time.Hour)) {
		srv.Clock.Advance(11 * time.Hour)
		busy.current()
	}
	srv.Clock.Advance(made.ExpiresAt.Sub(srv.Clock.Now()))
	busy.ended("after 7 days")
}

// What a session does is evidence that names the session, and its key.
func sessionEvidence(t *testing.T, srv *apptest.Server) {
	b := newTab(t, srv.URL)
	b.withKey(srv.Key)
	s := b.current()
	var endpoint struct{ ID string }
	a := b.want(201, "", b.do("POST", "/v1/endpoints", `{"url":"https://example.com/"}`, nil))
	if err := json.Unmarshal([]byte(a.body), &endpoint); err != nil {
		t.Fatal(err)
	}
	path := "/v1/endpoints/" + endpoint.ID
	b.want(200, "", b.do("PATCH", path, `{"description":"a"}`, map[string]string{"Idempotency-Key": `"patch-in-a-session"`}))
	b.want(422, "validation-failed", b.do("PATCH", path, `{"url":"https://"}`, nil)) // changes nothing
	b.want(204, "", b.do("DELETE", path, "", nil))
	var list struct {
		Evidence []struct {
			Command string
			Actor   string `json:"actor_id"`
			Session string `json:"session_id"`
		}
	}
	srv.Must(apptest.Call{Path: "/ids/v1/evidence?limit=200"}, &list)
	got := map[string]int{}
	for _, e := range list.Evidence {
		if e.Session == s.ID {
			if got[e.Command]++; e.Actor != s.KeyID {
				t.Errorf("%+v is not by %s", e, s.KeyID)
			}
		}
	}
	for _, command := range []string{"POST /v1/endpoints", "PATCH /v1/endpoints/{id}", "endpoint.delete", "DELETE " + path} {
		if got[command] == 0 {
			t.Errorf("no evidence of %s by the session: %v", command, got)
		}
	}
}

// Failed sign-ins are limited by address, and lock no other address out.
func TestSignInFailures(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	srv := apptest.Start(t, apptest.Options{Clock: hands, Configure: func(c *config.Config) {
		var n config.Network
		if err := n.UnmarshalText([]byte("127.0.0.1")); err != nil {
			t.Fatal(err)
		}
		c.TrustedProxies, c.Sessions.FailuresPerMinute = []config.Network{n}, 3
	}})
	try := func(address, body string) tabAnswer {
		return newTab(t, srv.URL).do("POST", "/v1/sessions", body, map[string]string{"X-Forwarded-For": address})
	}
	wrong, right := `{"code":"gdc_`+strings.Repeat("A", 43)+`"}`, `{"key":"`+srv.Key+`"}`
	for _, address := range []string{"192.0.2.1", "198.51.100.9, 192.0.2.1", "192.0.2.1"} {
		if a := try(address, wrong); a.status != 401 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for _, body := range []string{wrong, right} {
		if a := try("192.0.2.1", body); a.status != 429 || a.header.Get("Retry-After") != "60" {
			t.Errorf("%d %v", a.status, a.header)
		}
	}
	for _, address := range []string{"192.0.2.2", "198.51.100.9", "2001:db8::1", ""} {
		if a := try(address, right); a.status != 201 {
			t.Errorf("%s is locked out: %d %s", address, a.status, a.body)
		}
	}
	for _, address := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3:4"} { // one owner
		try(address, wrong)
	}
	if a := try("2001:db8::5", right); a.status != 429 {
		t.Errorf("%d %s", a.status, a.body)
	}
	hands.Advance(time.Minute)
	if a := try("192.0.2.1", right); a.status != 201 {
		t.Errorf("after a minute: %d %s", a.status, a.body)
	}
}

// A session works on every node, and its end is honoured by every node.
func TestSessionsOnNodes(t *testing.T) {
	url := apptest.PostgresURL(t)
	node := func(name string) *apptest.Server {
		return apptest.Start(t, apptest.Options{Store: url, Configure: func(c *config.Config) { c.Node = name }})
	}
	one, two := node("one"), node("two")
	code := newCode(t, one)
	here, there := newTab(t, one.URL), newTab(t, two.URL)
	here.host, there.host = "hooks.example", "hooks.example" // of a balancer
	there.signIn(`{"code":"` + code + `"}`)
	if here.cookie = there.cookie; !strings.HasPrefix(here.cookie, "godwit_session=") {
		t.Errorf("cookie is %s", here.cookie)
	}
	if here.current().ID != there.current().ID {
		t.Error("the nodes see two sessions")
	}
	here.want(410, "sign-in-code-used", here.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, nil))
	here.want(204, "", here.do("DELETE", "/v1/sessions/current", "", nil))
	here.ended("on the node where it was ended")
	for there.do("GET", "/v1/endpoints", "", nil).status != 401 { // within half a second, if the machine is not busy
	}
	// The same of a revoked key.
	there.withKey(one.Key)
	here.cookie = there.cookie
	s := here.current()
	one.Must(apptest.Call{Method: "DELETE", Path: "/v1/keys/" + s.KeyID}, nil)
	here.ended("after its key was revoked")
	for there.do("GET", "/v1/endpoints", "", nil).status != 401 {
	}
}

func newCode(t *testing.T, srv *apptest.Server) string {
	t.Helper()
	var link struct{ URL string }
	srv.Must(apptest.Call{Method: "POST", Path: "/v1/sign-in-links", Body: "{}"}, &link)
	return linkCode(t, link.URL)
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

func TestPortal(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		o.Clock = clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
		srv := apptest.Start(t, o)
		for name, test := range map[string]func(*testing.T, *apptest.Server){
			"capabilities": portalActs, "links": portalLinks, "streams": portalStreams, "lifetimes": portalLives, "cookies": portalCookies, "bad links": portalBadLinks,
		} {
			t.Run(name, func(t *testing.T) { test(t, srv) })
		}
	})
}

func portalActs(t *testing.T, srv *apptest.Server) {
	b := openPortal(t, srv, apptest.Fields{"capabilities": []string{"view_endpoints", "manage_endpoints"}, "theme": "dark", "return_url": "https://app.example/back", "name": "for Ann"})
	s := b.current()
	if s.Kind != "portal" || s.Tenant.ID != srv.Tenant.String() || s.Environment.UID != "default" || len(s.Capabilities) != 2 || len(s.Scopes) != 0 || s.KeyID != "" || s.Name != "for Ann" {
		t.Errorf("session is %+v", s)
	}
	a := b.want(201, "", b.do("POST", "/v1/endpoints", `{"url":"https://example.com/"}`, nil))
	var made struct {
		ID     string
		Secret struct{ ID, Value string }
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || made.Secret.ID == "" || made.Secret.Value != "" {
		t.Errorf("without the capability secrets it sees %s (%v)", a.body, err)
	}
	b.want(403, "forbidden", b.do("POST", "/v1/endpoints", `{"url":"https://example.com/","secret":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`, nil))
	b.want(403, "forbidden", b.do("POST", "/v1/endpoints/"+made.ID+"/rotate-secret", `{}`, nil))
	b.want(403, "forbidden", b.do("GET", "/v1/keys", "", nil))
	b.want(401, "unauthorized", b.do("GET", "/ids/v1/registry", "", nil))
	b.want(403, "cross-site-request", b.do("POST", "/v1/endpoints/"+made.ID+"/pause", `{}`, map[string]string{"Sec-Fetch-Site": "cross-site"}))
	b.want(204, "", b.do("DELETE", "/v1/endpoints/"+made.ID, "", nil)) // a command
	var evidence struct {
		Evidence []struct {
			Command string
			Actor   string `json:"actor_id"`
			Session string `json:"session_id"`
		}
	}
	srv.Must(apptest.Call{Path: "/ids/v1/evidence?limit=200"}, &evidence)
	found := false
	for _, e := range evidence.Evidence {
		found = found || e.Command == "endpoint.delete" && e.Actor == s.ID && e.Session == s.ID
	}
	if !found {
		t.Errorf("no evidence of the deletion by %s: %+v", s.ID, evidence.Evidence)
	}
	secret := openPortal(t, srv, apptest.Fields{"capabilities": []string{"manage_endpoints", "secrets"}})
	if a := secret.want(201, "", secret.do("POST", "/v1/endpoints", `{"url":"https://example.com/"}`, nil)); !strings.Contains(a.body, `"value"`) {
		t.Errorf("with the capability secrets it sees %s", a.body)
	}
	b.want(204, "", b.do("DELETE", "/v1/sessions/current", "", nil))
	b.ended("after signing out")
}

func portalLinks(t *testing.T, srv *apptest.Server) {
	view := apptest.Fields{"capabilities": []string{"view_endpoints"}}
	srv.Clock.Advance(time.Second) // the newest is the first of a list
	code := portalCode(t, srv, view)
	b, second := newTab(t, srv.URL), newTab(t, srv.URL)
	b.header["Godwit-Portal"], second.header["Godwit-Portal"] = "1", "1"
	newTab(t, srv.URL).want(401, "unauthorized", newTab(t, srv.URL).do("POST", "/v1/sessions", `{"code":"`+code+`"}`, nil)) // not in the dashboard
	b.signIn(`{"code":"` + code + `"}`)
	second.want(410, "sign-in-code-used", second.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, nil))
	var list struct {
		Items []struct {
			ID, URL   string
			SessionID string `json:"session_id"`
			UsedAt    string `json:"used_at"`
		}
	}
	r := srv.Must(apptest.Call{Path: "/v1/portal-links"}, &list)
	if strings.Contains(string(r.Body), "gdc_") || list.Items[0].SessionID != b.current().ID || list.Items[0].UsedAt == "" {
		t.Errorf("links are %s", r.Body)
	}
	srv.Must(apptest.Call{Path: "/v1/portal-links/" + list.Items[0].ID}, nil)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/portal-links/" + list.Items[0].ID}, nil)
	b.ended("after its link was revoked")
	srv.Clock.Advance(time.Second)
	unused := portalCode(t, srv, view)
	srv.Must(apptest.Call{Path: "/v1/portal-links"}, &list)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/portal-links/" + list.Items[0].ID}, nil)
	second.want(401, "unauthorized", second.do("POST", "/v1/sessions", `{"code":"`+unused+`"}`, nil))
	// All of a tenant.
	one, open, admin := openPortal(t, srv, view), portalCode(t, srv, view), newTab(t, srv.URL)
	admin.withKey(srv.Key)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/sessions?kind=portal&tenant=" + srv.Tenant.String()}, nil)
	one.ended("after all portals were ended")
	second.want(401, "unauthorized", second.do("POST", "/v1/sessions", `{"code":"`+open+`"}`, nil))
	admin.current()
}

// A live stream tells nothing of what happens after its session was ended.
func portalStreams(t *testing.T, srv *apptest.Server) {
	b := openPortal(t, srv, apptest.Fields{"capabilities": []string{"view_endpoints"}})
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/v1/attempts/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range b.header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Cookie", b.cookie)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if lines.Scan(); resp.StatusCode != 200 { // the stream is open from here on
		t.Fatalf("stream: %d %s", resp.StatusCode, lines.Text())
	}
	sink := apptest.NewSink(t)
	srv.Endpoint(sink.URL("/"), apptest.Fields{"patterns": []string{"streamed"}})
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/sessions?kind=portal&tenant=" + srv.Tenant.String()}, nil)
	srv.Publish("streamed", `{}`)
	for lines.Scan() { // until the server closes it
		if strings.HasPrefix(lines.Text(), "data: ") {
			t.Errorf("after its end the session is told %s", lines.Text())
		}
	}
}

func portalLives(t *testing.T, srv *apptest.Server) {
	late := portalCode(t, srv, apptest.Fields{"capabilities": []string{"replay"}, "expires_in": 20})
	b := openPortal(t, srv, apptest.Fields{"capabilities": []string{"view_endpoints"}, "session_expires_in": 60})
	srv.Clock.Advance(20 * time.Second)
	b.header["Godwit-Portal"] = "1"
	b.want(410, "sign-in-code-expired", b.do("POST", "/v1/sessions", `{"code":"`+late+`"}`, nil))
	b.current()
	srv.Clock.Advance(40 * time.Second)
	b.ended("after a minute")
}

func portalCookies(t *testing.T, srv *apptest.Server) {
	view := apptest.Fields{"capabilities": []string{"view_endpoints"}}
	framed := newTab(t, srv.URL)
	framed.header["Godwit-Portal"] = "frame"
	a := framed.signIn(`{"code":"` + portalCode(t, srv, view) + `"}`)
	for _, part := range []string{"godwit_portal_frame", "; HttpOnly", "; Secure", "; SameSite=None", "; Partitioned"} {
		if !strings.Contains(a.setCookie, part) {
			t.Errorf("%s is missing in %s", part, a.setCookie)
		}
	}
	framed.current()
	for _, portal := range []string{"1", ""} { // it counts in the frame alone
		framed.want(401, "unauthorized", framed.do("GET", "/v1/endpoints", "", map[string]string{"Godwit-Portal": portal}))
	}
	if a := openPortal(t, srv, view); !strings.HasPrefix(a.cookie, "godwit_portal_") {
		t.Errorf("cookie is %s", a.cookie)
	}
}

func portalBadLinks(t *testing.T, srv *apptest.Server) {
	for body, field := range map[string]string{
		`{}`: "capabilities", `{"capabilities":[]}`: "capabilities", `{"capabilities":["everything"]}`: "capabilities[0]",
		`{"capabilities":["replay","replay"]}`: "capabilities[1]", `{"capabilities":["replay"],"expires_in":9}`: "expires_in",
		`{"capabilities":["replay"],"expires_in":604801}`: "expires_in", `{"capabilities":["replay"],"session_expires_in":0}`: "session_expires_in",
		`{"capabilities":["replay"],"session_expires_in":9223372036854775807}`: "session_expires_in", `{"capabilities":["replay"],"theme":"red"}`: "theme",
		`{"capabilities":["replay"],"return_url":"javascript:alert(1)"}`: "return_url", `{"capabilities":["replay"],"return_url":"/x"}`: "return_url",
		`{"capabilities":["replay"],"start_page":"//evil.example"}`: "start_page", `{"capabilities":["replay"],"other":1}`: "other",
	} {
		if r := srv.Call(apptest.Call{Path: "/v1/portal-links", Body: body}); r.Status != 400 && r.Status != 422 || !strings.Contains(string(r.Body), field) {
			t.Errorf("%s: %d %s", body, r.Status, r.Body)
		}
	}
	home := srv.NewKey(godwit.HomeOf(godwit.DefaultEnvironment), godwit.ScopeManage)
	if r := srv.Call(apptest.Call{Path: "/v1/portal-links", Key: home, Body: `{"capabilities":["replay"],"tenant":"unknown"}`}); r.Status != 404 {
		t.Errorf("for an unknown tenant: %d %s", r.Status, r.Body)
	}
	if r := srv.Call(apptest.Call{Path: "/v1/portal-links", Key: home, Body: `{"capabilities":["replay"]}`}); r.Status != 422 {
		t.Errorf("without a tenant: %d %s", r.Status, r.Body)
	}
	if r := srv.Call(apptest.Call{Path: "/v1/portal-links", Key: home, Body: apptest.Fields{"capabilities": []string{"replay"}, "tenant": srv.Tenant.String()}}); r.Status != 201 {
		t.Errorf("for a tenant of the environment: %d %s", r.Status, r.Body)
	}
}
