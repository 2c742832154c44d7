package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// An environment says how its portal looks, and which pages may frame it; a change counts at once.
func TestEnvironmentOfThePortal(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		var staging struct{ ID string }
		p.want(200, p.as("", apptest.Call{Path: "/v1/environments/staging"})).JSON(t, &staging)
		frames := func(id string) []string {
			t.Helper()
			list, err := p.App.Management().Environments.FrameAncestors(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if list := frames(staging.ID); len(list) != 0 {
			t.Errorf("at first %v may frame the portal", list)
		}
		document := `{"name":"Staging","allowed_origins":["https://app.example.com","http://localhost:3000"],"theme":{"light":{"accent":"#0a66c2"},"dark":{"accent":"#70b5f9"},
			"font":"Inter, sans-serif","radius":0,"logo":"data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=","words":{"title":"Acme webhooks","help_url":"https://help.example.com/"}}}`
		put := func(status int) *apptest.Response {
			return p.want(status, p.Call(apptest.Call{Method: http.MethodPut, Path: "/v1/environments/staging", Body: document}))
		}
		within(t, "environment", document, put(200).Body)
		if again := put(200); again.Header.Get("ETag") != `"2"` {
			t.Errorf("the same document changes the environment: %s", again.Header.Get("ETag"))
		}
		if list := frames(staging.ID); !slices.Equal(list, []string{"https://app.example.com", "http://localhost:3000"}) {
			t.Errorf("%v may frame the portal", list)
		}
		for _, id := range []string{"staging", "", "env_x", godwit.DefaultEnvironment.String(), "env_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"} {
			if list := frames(id); len(list) != 0 {
				t.Errorf("%s: %v may frame the portal", id, list)
			}
		}

		// Everyone who may read sees the look; tenants see their own name, and no list of origins.
		p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"customer-1","name":"Customer 1"}`}))
		r := p.want(200, p.as("customer-1", apptest.Call{Path: "/v1/portal"}))
		within(t, "portal", `{"theme":`+document[strings.Index(document, `"theme":`)+len(`"theme":`):], r.Body)
		var shown struct {
			Environment struct{ ID, UID, Name string }
			Tenant      *struct{ UID, Name string }
		}
		r.JSON(t, &shown)
		if shown.Environment.ID != staging.ID || shown.Environment.Name != "Staging" || shown.Tenant == nil || shown.Tenant.Name != "Customer 1" || strings.Contains(string(r.Body), "app.example.com") {
			t.Errorf("a tenant sees %s", r.Body)
		}
		r = p.want(200, p.Call(apptest.Call{Path: "/v1/portal", Header: map[string]string{"Godwit-Environment": "staging"}}))
		if !strings.Contains(string(r.Body), "#70b5f9") || strings.Contains(string(r.Body), `"tenant"`) {
			t.Errorf("for the environment: %s", r.Body)
		}

		// A refusal names the member and changes nothing; lists and themes are replaced as a whole.
		patch := func(status int, body string) *apptest.Response {
			return p.want(status, p.Call(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: body}))
		}
		for body, field := range map[string]string{
			`{"allowed_origins":["https://a.example","https://a.example/b"]}`: "allowed_origins[1]",
			`{"theme":{"dark":{"text":"white"}}}`:                             "theme.dark.text",
			`{"theme":{"radius":20}}`:                                         "theme.radius",
		} {
			if r := patch(422, body); !strings.Contains(string(r.Body), `"`+field+`"`) {
				t.Errorf("%s: %s", body, r.Body)
			}
		}
		if v := p.as("", apptest.Call{Path: "/v1/environments/staging"}).Header.Get("ETag"); v != `"2"` {
			t.Errorf("a refused change raised the version: %s", v)
		}
		within(t, "environment", `{"allowed_origins":[],"theme":{"radius":4}}`, patch(200, `{"allowed_origins":[],"theme":{"radius":4}}`).Body)
		if list := frames(staging.ID); len(list) != 0 {
			t.Errorf("%v may still frame the portal", list)
		}
		if r := patch(200, `{"theme":{}}`); strings.Contains(string(r.Body), "theme") {
			t.Errorf("the theme is not removed: %s", r.Body)
		}
	})
}
