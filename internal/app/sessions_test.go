package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

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
	portal := newPortalTab(t, srv.URL)
	portal.want(401, "unauthorized", portal.do("POST", "/v1/sessions", `{"code":"`+newSignInLink(srv, t, key)+`"}`, nil))
	portal.want(400, "invalid-request", portal.do("POST", "/v1/sessions", `{"key":"`+key+`"}`, nil))
	// The link of a key that is revoked.
	code = newSignInLink(srv, t, key)
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/keys/" + b.current().KeyID}, nil)
	second.want(401, "unauthorized", second.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, nil))
	b.ended("after its key was revoked")
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
