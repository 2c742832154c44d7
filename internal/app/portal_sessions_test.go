package app_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
)

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
