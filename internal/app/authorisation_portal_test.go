package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var (
	viewEndpoints   = []godwit.Capability{godwit.ViewEndpoints}
	manageEndpoints = []godwit.Capability{godwit.ManageEndpoints}
	secrets         = []godwit.Capability{godwit.ManageSecrets}
	sendTests       = []godwit.Capability{godwit.SendTests}
	viewPayloads    = []godwit.Capability{godwit.ViewPayloads}
	replay          = []godwit.Capability{godwit.Replay}
	eventTypes      = []godwit.Capability{godwit.ViewEventTypes}
	anyCapability   = godwit.AllCapabilities
)

// portalRoutes says for every route of /v1 that needs a credential which capabilities open it to portal sessions, written down apart from the code that decides it.
// nil: none. Portal sessions can use no other API.
var portalRoutes = map[string][]godwit.Capability{
	"POST /v1/events":             nil,
	"POST /v1/events/batch":       nil,
	"GET /v1/events":              viewPayloads,
	"GET /v1/events/search":       viewPayloads,
	"GET /v1/events/{id}":         viewPayloads,
	"GET /v1/events/{id}/explain": viewPayloads,
	"GET /v1/events/{id}/body":    viewPayloads,
	"POST /v1/events/{id}/replay": replay,

	"GET /v1/broadcasts":              nil,
	"GET /v1/broadcasts/{id}":         nil,
	"GET /v1/broadcasts/{id}/tenants": nil,

	"GET /v1/event-types":           eventTypes,
	"GET /v1/event-types/{name}":    eventTypes,
	"PUT /v1/event-types/{name}":    nil,
	"DELETE /v1/event-types/{name}": nil,

	"GET /v1/catalogue": eventTypes,

	"POST /v1/endpoints":                              manageEndpoints,
	"GET /v1/endpoints":                               viewEndpoints,
	"GET /v1/endpoints/{id}":                          viewEndpoints,
	"PUT /v1/endpoints/{id}":                          manageEndpoints,
	"PATCH /v1/endpoints/{id}":                        manageEndpoints,
	"DELETE /v1/endpoints/{id}":                       manageEndpoints,
	"POST /v1/endpoints/{id}/pause":                   manageEndpoints,
	"POST /v1/endpoints/{id}/resume":                  manageEndpoints,
	"GET /v1/endpoints/{id}/stats":                    viewEndpoints,
	"POST /v1/endpoints/{id}/rotate-secret":           secrets,
	"GET /v1/endpoints/{id}/secrets":                  secrets,
	"POST /v1/endpoints/{id}/secrets/{secret}/revoke": secrets,
	"POST /v1/endpoints/{id}/test":                    sendTests,
	"POST /v1/endpoints/{id}/probe":                   sendTests,
	"POST /v1/endpoints/{id}/explain":                 viewPayloads,

	"GET /v1/deliveries":              viewEndpoints,
	"GET /v1/deliveries/{id}":         viewEndpoints,
	"POST /v1/deliveries/{id}/retry":  replay,
	"POST /v1/deliveries/{id}/cancel": nil,
	"POST /v1/deliveries/retry":       replay,
	"POST /v1/deliveries/cancel":      nil,

	"GET /v1/attempts/stream": viewEndpoints,

	"GET /v1/dead-letters":              viewPayloads,
	"GET /v1/dead-letters/export":       viewPayloads,
	"GET /v1/dead-letters/groups":       viewPayloads,
	"GET /v1/dead-letters/{id}":         viewPayloads,
	"POST /v1/dead-letters/{id}/replay": replay,
	"POST /v1/dead-letters/replay":      replay,
	"POST /v1/dead-letters/purge":       nil,

	"GET /v1/notices":                   viewEndpoints,
	"POST /v1/notices/{id}/acknowledge": nil,

	"POST /v1/sources":                      nil,
	"GET /v1/sources":                       nil,
	"GET /v1/sources/{id}":                  nil,
	"PUT /v1/sources/{id}":                  nil,
	"PATCH /v1/sources/{id}":                nil,
	"DELETE /v1/sources/{id}":               nil,
	"POST /v1/sources/{id}/pause":           nil,
	"POST /v1/sources/{id}/resume":          nil,
	"POST /v1/sources/{id}/rotate":          nil,
	"POST /v1/sources/{id}/acknowledgments": nil,
	"GET /v1/sources/{id}/acknowledgments":  nil,
	"GET /v1/sources/{id}/rejections":       nil,

	"POST /v1/keys":        nil,
	"GET /v1/keys":         nil,
	"GET /v1/keys/{id}":    nil,
	"DELETE /v1/keys/{id}": nil,

	"GET /v1/sessions":            nil,
	"GET /v1/sessions/current":    anyCapability,
	"DELETE /v1/sessions/current": anyCapability,
	"GET /v1/sessions/{id}":       nil,
	"DELETE /v1/sessions/{id}":    nil,
	"DELETE /v1/sessions":         nil,

	"POST /v1/sign-in-links": nil,

	"POST /v1/tenants":        nil,
	"GET /v1/tenants":         nil,
	"GET /v1/tenants/{id}":    nil,
	"PUT /v1/tenants/{id}":    nil,
	"PATCH /v1/tenants/{id}":  nil,
	"DELETE /v1/tenants/{id}": nil,

	"POST /v1/environments":                                nil,
	"GET /v1/environments":                                 nil,
	"GET /v1/environments/{id}":                            nil,
	"PUT /v1/environments/{id}":                            nil,
	"PATCH /v1/environments/{id}":                          nil,
	"DELETE /v1/environments/{id}":                         nil,
	"GET /v1/environments/{id}/signing-keys":               nil,
	"POST /v1/environments/{id}/signing-keys":              nil,
	"POST /v1/environments/{id}/signing-keys/{key}/revoke": nil,

	"POST /v1/portal-links":        nil,
	"GET /v1/portal-links":         nil,
	"GET /v1/portal-links/{id}":    nil,
	"DELETE /v1/portal-links/{id}": nil,

	"GET /v1/portal": anyCapability,

	"GET /v1/usage":       nil,
	"GET /v1/usage/total": nil,

	"GET /v1/stats":          viewEndpoints,
	"GET /v1/stats/failures": viewEndpoints,
	"GET /v1/stats/waiting":  viewEndpoints,

	"GET /v1/nodes": nil,

	"GET /v1/settings": nil,
}

// portal opens the portal of a tenant and returns the session's caller.
func (c *cast) portal(name, tenant string, capabilities ...godwit.Capability) caller {
	c.t.Helper()
	var link struct{ URL string }
	c.Must(apptest.Call{Path: "/v1/portal-links", Key: c.platform, Body: apptest.Fields{"tenant": tenant, "capabilities": capabilities}}, &link)
	_, code, _ := strings.Cut(link.URL, "#code=")
	home := godwit.DefaultEnvironment.String()
	resp := c.Call(apptest.Call{Path: "/v1/sessions", Body: apptest.Fields{"code": code}, Header: map[string]string{"Godwit-Portal": "1", "Godwit-Environment": home}})
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	if resp.Status != http.StatusCreated || cookie == "" {
		c.t.Fatalf("open portal: %d %s", resp.Status, resp.Body)
	}
	return caller{name: name, cookie: cookie, portal: "1", environment: home}
}

// TestPortalAuthorisation crosses every route of every API with a portal session of each capability alone, and with one of all.
func TestPortalAuthorisation(t *testing.T) {
	c := newCast(t)
	sessions := map[godwit.Capability]caller{}
	for _, capability := range godwit.AllCapabilities {
		sessions[capability] = c.portal("portal with "+string(capability), "acme", capability)
	}
	all := c.portal("portal with all capabilities", "acme", godwit.AllCapabilities...)
	for pattern := range portalRoutes {
		if _, listed := rules[pattern]; !listed {
			t.Errorf("%s is in the table of portal routes, and the server has no such route", pattern)
		}
	}
	for pattern, r := range rules {
		_, path, _ := strings.Cut(pattern, " ")
		path = fill(path, nil)
		opened, listed := portalRoutes[pattern]
		if !listed && !r.open && strings.HasPrefix(path, "/v1/") {
			t.Errorf("%s is not in the table of portal routes: add which capability opens it, or nil, and say so in native/routes.go", pattern)
			continue
		}
		if r.open || pattern == "DELETE /v1/sessions/current" { // TestPortal has it
			continue
		}
		want := func(capabilities ...godwit.Capability) answer {
			switch {
			case !strings.HasPrefix(path, "/v1/"):
				return noKey
			case slices.ContainsFunc(opened, func(o godwit.Capability) bool { return slices.Contains(capabilities, o) }):
				return admitted
			}
			return refused
		}
		body := r.filledBody(nil)
		for capability, who := range sessions {
			c.expect(who, pattern, path, body, want(capability))
		}
		c.expect(all, pattern, path, body, want(godwit.AllCapabilities...))
		if want(godwit.AllCapabilities...) != admitted {
			continue
		}
		for name, change := range map[string]func(*caller){
			"for another tenant":        func(w *caller) { w.tenant = c.other.ID.String() },
			"for another tenant by uid": func(w *caller) { w.tenant = "other" },
			// The cookie of the other environment holds the token of this session, which no browser would do.
			"for another environment": func(w *caller) {
				w.environment = c.second.ID.String()
				w.cookie = strings.Replace(w.cookie, godwit.DefaultEnvironment.String(), w.environment, 1)
			},
			"for a tenant of another environment": func(w *caller) {
				w.tenant, w.environment = "theirs", c.second.ID.String()
				w.cookie = strings.Replace(w.cookie, godwit.DefaultEnvironment.String(), w.environment, 1)
			},
		} {
			who := all
			change(&who)
			who.name += " " + name
			c.expect(who, pattern, path, body, refused)
		}
		own := all
		own.tenant, own.name = c.acme.ID.String(), own.name+" for its own tenant"
		c.expect(own, pattern, path, body, admitted)
		elsewhere := all
		elsewhere.environment, elsewhere.name = c.second.ID.String(), all.name+" in the page of another environment"
		c.expect(elsewhere, pattern, path, body, noKey)
		dashboard := all // its cookie does not count without the header of the portal
		dashboard.portal, dashboard.environment = "", ""
		c.expect(dashboard, pattern, path, body, noKey)
	}
}

// TestPortalSeesItsTenantAlone: no route shows or changes an object of another tenant to a portal session.
func TestPortalSeesItsTenantAlone(t *testing.T) {
	c := newCast(t)
	ids := c.belongings()
	own := c.portal("the tenant's portal", "acme", godwit.AllCapabilities...)
	stranger := c.portal("another tenant's portal", "other", godwit.AllCapabilities...)
	for pattern, opened := range portalRoutes {
		method, path, _ := strings.Cut(pattern, " ")
		if opened == nil || !strings.Contains(path, "{") || method == http.MethodPut {
			continue
		}
		filled, body := fill(path, ids), rules[pattern].filledBody(ids)
		if status, text := c.send(stranger, method, filled, body); status != 404 {
			t.Errorf("%s for %s: %d %s", pattern, stranger.name, status, text)
		}
		if method == http.MethodGet {
			if status, text := c.send(own, method, filled, ""); status != 200 {
				t.Errorf("%s for %s: %d %s", pattern, own.name, status, text)
			}
		}
	}
}
