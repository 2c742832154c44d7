package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestPortal(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		o.Clock = clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
		srv := apptest.Start(t, o)
		for name, test := range map[string]func(*testing.T, *apptest.Server){
			"capabilities": portalActs, "links": portalLinks, "streams": portalStreams, "lifetimes": portalLives, "cookies": portalCookies, "bad links": portalBadLinks,
			"grants": portalGrants, "environments": portalEnvironments, "watching": portalWatches,
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

// A live stream tells nothing of what happens after its session was ended, and ends although nothing happens.
func portalStreams(t *testing.T, srv *apptest.Server) {
	view := apptest.Fields{"capabilities": []string{"view_endpoints"}}
	busy, silent := openPortal(t, srv, view).stream("/v1/attempts/stream"), openPortal(t, srv, view).stream("/v1/attempts/stream")
	sink := apptest.NewSink(t)
	srv.Endpoint(sink.URL("/"), apptest.Fields{"patterns": []string{"streamed"}})
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/sessions?kind=portal&tenant=" + srv.Tenant.String()}, nil)
	srv.Publish("streamed", `{}`)
	for _, line := range append(busy.untilEnd(srv), silent.untilEnd(srv)...) {
		if strings.HasPrefix(line, "data: ") {
			t.Errorf("after its end the session is told %s", line)
		}
	}
}

func portalLives(t *testing.T, srv *apptest.Server) {
	late := portalCode(t, srv, apptest.Fields{"capabilities": []string{"replay"}, "expires_in": 20})
	b := openPortal(t, srv, apptest.Fields{"capabilities": []string{"view_endpoints"}, "session_expires_in": 60})
	srv.Clock.Advance(20 * time.Second)
	b.want(410, "sign-in-code-expired", b.do("POST", "/v1/sessions", `{"code":"`+late+`"}`, nil))
	b.current()
	srv.Clock.Advance(40 * time.Second)
	b.ended("after a minute")
}

// Each environment says which pages may frame its portal. A page of one environment cannot act with a session of another.
func portalEnvironments(t *testing.T, srv *apptest.Server) {
	var staging struct{ ID string }
	srv.Must(apptest.Call{Path: "/v1/environments", Body: apptest.Fields{"uid": "staging", "name": "Staging"}}, &staging)
	view := apptest.Fields{"capabilities": []string{"view_endpoints"}}
	b := openPortal(t, srv, view)
	b.current()
	foreign := map[string]string{"Godwit-Environment": staging.ID}
	b.want(401, "unauthorized", b.do("GET", "/v1/endpoints", "", foreign))
	forged := *b
	forged.cookie = strings.Replace(b.cookie, godwit.DefaultEnvironment.String(), staging.ID, 1)
	if forged.cookie == b.cookie {
		t.Fatalf("the cookie %s does not name its environment", b.cookie)
	}
	for _, path := range []string{"/v1/endpoints", "/v1/portal", "/v1/sessions/current"} {
		forged.want(403, "forbidden", forged.do("GET", path, "", foreign))
	}
	for _, value := range []string{"", "default", "env_x"} {
		if a := b.want(400, "invalid-request", b.do("GET", "/v1/endpoints", "", map[string]string{"Godwit-Environment": value})); !strings.Contains(a.body, "Godwit-Environment") {
			t.Errorf("%q: %s", value, a.body)
		}
	}
	// A link opens in its own environment alone, and stays good if it is tried in another.
	code, other := portalCode(t, srv, view), newPortalTab(t, srv.URL)
	other.want(403, "forbidden", other.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, foreign))
	other.want(400, "invalid-request", other.do("POST", "/v1/sessions", `{"code":"`+code+`"}`, map[string]string{"Godwit-Environment": ""}))
	other.signIn(`{"code":"` + code + `"}`)
	other.current()
}

// The stream of a page is no use of its session: a page that only watches ends with the idle time, however often it connects again.
func portalWatches(t *testing.T, srv *apptest.Server) {
	b := openPortal(t, srv, apptest.Fields{"capabilities": []string{"view_endpoints"}})
	made := b.current()
	lines := b.stream("/v1/attempts/stream")
	for range 11 {
		srv.Clock.Advance(time.Hour)
		b.stream("/v1/attempts/stream").close()
	}
	var seen sessionView
	srv.Must(apptest.Call{Path: "/v1/sessions/" + made.ID}, &seen)
	if !seen.LastUsedAt.Equal(made.LastUsedAt) {
		t.Errorf("the stream is a use of the session: last use %v, want %v", seen.LastUsedAt, made.LastUsedAt)
	}
	srv.Clock.Advance(made.LastUsedAt.Add(12 * time.Hour).Sub(srv.Clock.Now()))
	lines.untilEnd(srv)
	b.ended("after 12 hours of watching")
}
