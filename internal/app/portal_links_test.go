package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func portalLinks(t *testing.T, srv *apptest.Server) {
	view := apptest.Fields{"capabilities": []string{"view_endpoints"}}
	srv.Clock.Advance(time.Second) // the newest is the first of a list
	code := portalCode(t, srv, view)
	b, second := newPortalTab(t, srv.URL), newPortalTab(t, srv.URL)
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

// A link permits only what its maker may do.
func portalGrants(t *testing.T, srv *apptest.Server) {
	home := godwit.HomeOf(godwit.DefaultEnvironment)
	for _, c := range []struct {
		scopes  []godwit.Scope
		refused []godwit.Capability
	}{
		{[]godwit.Scope{godwit.ScopeManage}, []godwit.Capability{godwit.ViewEndpoints, godwit.ViewPayloads, godwit.ViewEventTypes, godwit.ManageSecrets}},
		{[]godwit.Scope{godwit.ScopeManage, godwit.ScopeAdmin}, []godwit.Capability{godwit.ViewEndpoints, godwit.ViewPayloads, godwit.ViewEventTypes, godwit.ManageSecrets}},
		{[]godwit.Scope{godwit.ScopeManage, godwit.ScopeRead}, nil},
	} {
		for _, key := range []string{srv.NewKey(srv.Tenant, c.scopes...), srv.NewKey(home, slices.DeleteFunc(slices.Clone(c.scopes), func(s godwit.Scope) bool { return s == godwit.ScopeAdmin })...)} {
			session := newTab(t, srv.URL)
			session.withKey(key)
			for _, capability := range godwit.AllCapabilities {
				body := fmt.Sprintf(`{"tenant":%q,"capabilities":["replay",%q]}`, srv.Tenant, capability)
				if capability == godwit.Replay {
					body = fmt.Sprintf(`{"tenant":%q,"capabilities":["replay"]}`, srv.Tenant)
				}
				want := 201
				if slices.Contains(c.refused, capability) {
					want = 403
				}
				byKey := srv.Call(apptest.Call{Path: "/v1/portal-links", Key: key, Body: body})
				bySession := session.do("POST", "/v1/portal-links", body, nil)
				if byKey.Status != want || bySession.status != want {
					t.Errorf("%v grants %s: %d %s, in a session %d %s", c.scopes, capability, byKey.Status, byKey.Body, bySession.status, bySession.body)
				}
				if want == 403 && (!strings.Contains(string(byKey.Body), `"capabilities[1]"`) || !strings.Contains(string(byKey.Body), string(capability)+" cannot be granted")) {
					t.Errorf("the refusal of %s does not name it: %s", capability, byKey.Body)
				}
			}
		}
	}
}
