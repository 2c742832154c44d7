package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

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
