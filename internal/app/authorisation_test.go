package app_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// A caller is a key, and the tenant or environment that its requests name.
type caller struct {
	name                string
	key                 string
	tenant, environment string // header values
	cookie              string // of a session, in place of the key
	portal              string // header value of a portal's page
}

// An answer is what authorisation made of a request.
type answer int

const (
	admitted answer = iota // the handler decided
	noKey                  // 401
	refused                // 403
	nameless               // 400: a tenant must be named
	hidden                 // 404: there is no such tenant, as far as the caller may know
)

func (a answer) String() string {
	return [...]string{"admitted", "401", "403", "400 for want of a tenant", "404 for the tenant"}[a]
}

// The scopes that a key of an environment may have.
var environmentScopes = []godwit.Scope{ingest, read, manage, audit}

// cast is a server with two environments. The tenant acme belongs to the first, as do ops and other; theirs belongs to the second.
type cast struct {
	*apptest.Server
	t            *testing.T
	acme, theirs *godwit.Tenant
	other        *godwit.Tenant
	second       *godwit.Environment
	byScope      map[godwit.Scope]string // keys of acme
	environment  map[godwit.Scope]string // keys of the first environment
	ops          string                  // the server's administrator: admin alone
	full         string                  // all scopes, in the tenant of ops
	otherKey     string                  // all scopes but admin
	theirKey     string                  // the same, of a tenant of the second environment
	foreign      string                  // all scopes of the second environment
	platform     string                  // read and manage, of the first environment
	cookies      map[string]string       // of dashboard sessions, by the key that they were made from
}

func newCast(t *testing.T) *cast {
	c := &cast{Server: apptest.Start(t, apptest.Options{}), t: t, byScope: map[godwit.Scope]string{}, environment: map[godwit.Scope]string{}, cookies: map[string]string{}}
	m, ctx := c.App.Management(), context.Background()
	var err error
	if c.second, err = m.Environments.Create(ctx, management.EnvironmentSpec{UID: "staging", Name: "Staging"}); err != nil {
		t.Fatal(err)
	}
	tenant := func(environment godwit.EnvironmentID, uid string) *godwit.Tenant {
		n, err := m.Tenants.Create(ctx, environment, management.TenantSpec{Name: uid, UID: uid})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	most := slices.DeleteFunc(slices.Clone(godwit.AllScopes), func(s godwit.Scope) bool { return s == admin })
	ops := tenant(godwit.DefaultEnvironment, "ops")
	c.acme, c.other, c.theirs = tenant(godwit.DefaultEnvironment, "acme"), tenant(godwit.DefaultEnvironment, "other"), tenant(c.second.ID, "theirs")
	for _, s := range godwit.AllScopes {
		c.byScope[s] = c.NewKey(c.acme.ID, s)
	}
	for _, s := range environmentScopes {
		c.environment[s] = c.NewKey(godwit.HomeOf(godwit.DefaultEnvironment), s)
	}
	c.ops, c.full = c.NewKey(ops.ID, admin), c.NewKey(ops.ID, godwit.AllScopes...)
	c.otherKey, c.theirKey = c.NewKey(c.other.ID, most...), c.NewKey(c.theirs.ID, most...)
	c.platform = c.NewKey(godwit.HomeOf(godwit.DefaultEnvironment), read, manage)
	c.foreign = c.NewKey(godwit.HomeOf(c.second.ID), environmentScopes...)
	return c
}

// send sends a request and returns its status and the beginning of its body: some bodies have no end.
func (c *cast) send(who caller, method, path, body string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if method != http.MethodGet && method != http.MethodDelete {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range map[string]string{
		"Authorization": who.key, "Godwit-Tenant": who.tenant, "Godwit-Environment": who.environment, "Cookie": who.cookie, "Godwit-Portal": who.portal, "Sec-Fetch-Site": "same-origin",
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		return resp.StatusCode, ""
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(text)
}

// judge says what authorisation made of a request.
func judge(status int, body string) answer {
	switch {
	case status == 401:
		return noKey
	case status == 403 && !strings.Contains(body, "confirmation_invalid"): // a token that fits no command
		return refused
	case status == 400 && strings.Contains(body, "must name a tenant"):
		return nameless
	case status == 404 && strings.Contains(body, "there is no tenant with this id"):
		return hidden
	}
	return admitted
}

func hasAny(have []godwit.Scope, scopes ...godwit.Scope) bool {
	return slices.ContainsFunc(scopes, func(s godwit.Scope) bool { return slices.Contains(have, s) })
}

// expectations lists each caller with what it is to get from a route.
func (c *cast) expectations(r rule) map[caller]answer {
	want := map[caller]answer{}
	when := func(allowed bool) answer {
		if allowed {
			return admitted
		}
		return refused
	}
	of := func(allowed bool, a answer) answer { // a, unless the scopes are refused first
		if !allowed {
			return refused
		}
		return a
	}
	add := func(name, key, tenant, environment string, a answer) {
		want[caller{name: name, key: "Bearer " + key, tenant: tenant, environment: environment}] = a
	}
	// For an environment, without the name of a tenant.
	atHome := func(scopes ...godwit.Scope) answer {
		if len(r.environment) == 0 {
			return nameless
		}
		return when(hasAny(r.environment, scopes...))
	}
	want[caller{name: "none"}] = noKey
	add("unknown", "gdw_"+strings.Repeat("A", 43), "", "", noKey)
	acme := c.acme.ID.String()
	for s, key := range c.byScope {
		may := when(hasAny(r.tenant, s))
		add("tenant "+string(s), key, "", "", may)
		add("tenant "+string(s)+", itself named", key, acme, "", may)
		if s == admin {
			continue
		}
		add("tenant "+string(s)+" for another", key, c.other.ID.String(), "", refused)
		add("tenant "+string(s)+" for another by uid", key, "other", "", refused)
		add("tenant "+string(s)+" for another environment", key, "", "staging", refused)
		add("tenant "+string(s)+" for its environment", key, "", "default", may)
	}
	for s, key := range c.environment {
		may := when(hasAny(r.tenant, s))
		add("environment "+string(s), key, "", "", atHome(s))
		add("environment "+string(s)+" for a tenant", key, acme, "", may)
		add("environment "+string(s)+" for a tenant by uid", key, "acme", "", may)
		add("environment "+string(s)+" for a foreign tenant", key, c.theirs.ID.String(), "", of(hasAny(r.tenant, s), hidden))
		add("environment "+string(s)+" for itself as a tenant", key, godwit.HomeOf(godwit.DefaultEnvironment).String(), "", of(hasAny(r.tenant, s), hidden))
		add("environment "+string(s)+" for another", key, "", "staging", refused)
	}
	mayForeign := hasAny(r.tenant, environmentScopes...)
	add("foreign environment", c.foreign, acme, "", of(mayForeign, hidden))
	add("foreign environment by uid", c.foreign, "acme", "", of(mayForeign, hidden))
	add("foreign environment that names this one", c.foreign, acme, "default", refused)
	add("administrator", c.ops, "", "", when(hasAny(r.tenant, admin)))
	add("administrator for a tenant", c.ops, acme, "", when(hasAny(r.tenant, admin)))
	add("administrator for an environment", c.ops, "", "staging", atHome(admin))
	add("administrator for a tenant of an environment", c.ops, "theirs", "staging", when(hasAny(r.tenant, admin)))
	add("all scopes for a tenant", c.full, "acme", "", admitted)
	add("all scopes for a tenant of an environment", c.full, "theirs", "staging", admitted)
	return want
}

// TestAuthorisation crosses every route of every API with every kind of caller. Requests name objects that do not exist, so that those that are
// admitted change nothing.
func TestAuthorisation(t *testing.T) {
	c := newCast(t)
	routes := c.App.Routes()
	for _, pattern := range routes {
		if _, listed := rules[pattern]; !listed {
			t.Errorf("%s is not in the table of rules: add who may use it", pattern)
		}
	}
	for pattern, r := range rules {
		if !slices.Contains(routes, pattern) {
			t.Errorf("%s is in the table of rules, and the server has no such route", pattern)
			continue
		}
		_, path, _ := strings.Cut(pattern, " ")
		path = fill(path, nil)
		body := r.filledBody(nil)
		for who, want := range c.expectations(r) {
			if r.open {
				want = admitted
			}
			c.expect(who, pattern, path, body, want)
			if who.name == "none" || who.name == "unknown" {
				continue
			}
			if !sessionsUse(pattern) && !r.open {
				want = noKey
			} else if want == admitted && r.keys {
				want = refused
			}
			if pattern != "DELETE /v1/sessions/current" { // TestSessionEnds has it
				c.expect(c.inSession(who), pattern, path, body, want)
			}
		}
	}
}

// sessionsUse reports whether a route belongs to an API that dashboard sessions can use.
func sessionsUse(pattern string) bool {
	return strings.Contains(pattern, " /v1/") || strings.Contains(pattern, " /ids/v1/")
}

// inSession returns the caller with a dashboard session of its key.
func (c *cast) inSession(who caller) caller {
	c.t.Helper()
	if c.cookies[who.key] == "" {
		c.cookies[who.key] = c.signIn(strings.TrimPrefix(who.key, "Bearer "))
	}
	who.name, who.cookie, who.key = "session of "+who.name, c.cookies[who.key], ""
	return who
}

// signIn exchanges a key for a session and returns its cookie.
func (c *cast) signIn(key string) string {
	c.t.Helper()
	resp := c.Call(apptest.Call{Path: "/v1/sessions", Body: apptest.Fields{"key": key}})
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	if resp.Status != http.StatusCreated || cookie == "" {
		c.t.Fatalf("sign in: %d %s", resp.Status, resp.Body)
	}
	return cookie
}

// expect sends a request and checks what authorisation makes of it.
func (c *cast) expect(who caller, pattern, path, body string, want answer) {
	c.t.Helper()
	method, _, _ := strings.Cut(pattern, " ")
	status, text := c.send(who, method, path, body)
	got := judge(status, text)
	if (strings.HasPrefix(path, "/in/") || pattern == "POST /v1/sessions") && status >= 400 { // no credential is sent in the form that these routes ask for
		got = admitted
	}
	if got != want {
		c.t.Errorf("%s by %s: %v (%d %s), want %v", pattern, who.name, got, status, text, want)
	}
}

// fill replaces the wildcards of a path: by the id of the kind that the path begins with, or one that nothing has.
func fill(path string, ids map[string]string) string {
	const unknown = "018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"
	kinds := []struct{ under, prefix string }{
		{"/v1/events/", "evt_"}, {"/v1/broadcasts/", "bct_"}, {"/v1/endpoints/", "sub_"}, {"/v1/deliveries/", "del_"}, {"/v1/dead-letters/", "del_"}, {"/v1/notices/", "ntc_"},
		{"/v1/sources/", "src_"}, {"/v1/keys/", "key_"}, {"/v1/sessions/", "ses_"}, {"/v1/portal-links/", "lnk_"}, {"/v1/tenants/", "ten_"}, {"/v1/environments/", "env_"}, {"/subscriptions/", "sub_"},
		{"/webhooks/deliveries/", "del_"}, {"/webhooks/endpoints/", "sub_"}, {"/webhooks/events/", "evt_"}, {"/ids/v1/commands/", "cmd_"},
	}
	pick := func(prefix string) string {
		if id := ids[prefix]; id != "" {
			return id
		}
		return prefix + unknown
	}
	for _, k := range kinds {
		if strings.Contains(path, k.under) {
			path = strings.Replace(path, "{id}", pick(k.prefix), 1)
			break
		}
	}
	path = strings.Replace(path, "{endpoint}", pick("sub_"), 1)
	path = strings.Replace(path, "{secret}", pick("sec_"), 1)
	path = strings.Replace(path, "{key}", pick("sec_"), 1)
	path = strings.Replace(path, "{source}", pick("src_"), 1)
	if name := ids["name"]; name != "" {
		return strings.Replace(path, "{name}", name, 1)
	}
	return strings.Replace(path, "{name}", "order.none", 1)
}

// belongings makes one object of each kind for acme and returns their ids by prefix.
func (c *cast) belongings() map[string]string {
	c.t.Helper()
	key := c.NewKey(c.acme.ID, godwit.AllScopes...)
	sink := apptest.NewSink(c.t)
	sink.ReplyFunc("/", func(*apptest.Request) apptest.Reply { return apptest.Status(http.StatusGone) })
	ids := map[string]string{"ten_": c.acme.ID.String(), "env_": godwit.DefaultEnvironment.String(), "name": "order.own"}
	var made struct {
		ID     string
		Secret struct{ ID string }
	}
	c.Must(apptest.Call{Path: "/v1/endpoints", Key: key, Body: apptest.Fields{"url": sink.URL("/")}}, &made)
	ids["sub_"], ids["sec_"] = made.ID, made.Secret.ID
	c.Must(apptest.Call{Path: "/v1/sources", Key: key, Body: apptest.Fields{"name": "shop", "scheme": "eds", "event_type": apptest.Fields{"fixed": "order.paid"}}}, &made)
	ids["src_"] = made.ID
	c.Must(apptest.Call{Path: "/v1/keys", Key: key, Body: apptest.Fields{"name": "a", "scopes": []string{"read"}}}, &made)
	ids["key_"] = made.ID
	c.Must(apptest.Call{Path: "/v1/portal-links", Key: key, Body: apptest.Fields{"capabilities": []string{"view_endpoints"}}}, &made)
	ids["lnk_"] = made.ID
	c.signIn(key)
	var list struct{ Items []struct{ ID string } }
	c.Must(apptest.Call{Path: "/v1/sessions", Key: key}, &list)
	ids["ses_"] = list.Items[0].ID
	c.Must(apptest.Call{Method: "PUT", Path: "/v1/event-types/order.own", Key: key, Body: "{}"}, nil)
	c.Must(apptest.Call{Path: "/v1/events?type=order.own", Key: key, Body: "{}"}, &made)
	ids["evt_"] = made.ID
	c.Must(apptest.Call{Path: "/v1/events?type=order.own", Key: key, Body: "{}", Header: map[string]string{"Godwit-Tenant": "ops,other"}}, &made)
	ids["bct_"] = made.ID
	first := func(path string) string {
		var list struct{ Items []struct{ ID string } }
		c.WaitRecorded(path, func() bool {
			c.Must(apptest.Call{Path: path, Key: key}, &list)
			return len(list.Items) > 0
		}, func() string { return "no " + path })
		return list.Items[0].ID
	}
	first("/v1/dead-letters")
	ids["del_"], ids["ntc_"] = first("/v1/deliveries"), first("/v1/notices")
	var command struct {
		ID string `json:"command_id"`
	}
	c.Must(apptest.Call{Method: "POST", Path: "/v1/dead-letters/purge", Key: key, Body: `{"all":true}`}, &command)
	ids["cmd_"] = command.ID
	return ids
}

// TestForeignObjects: no route shows or changes an object of a tenant to a key that does not act for the tenant, though its scopes permit the
// route.
func TestForeignObjects(t *testing.T) {
	c := newCast(t)
	ids := c.belongings()
	own := caller{name: "the tenant", key: "Bearer " + c.NewKey(c.acme.ID, godwit.AllScopes...)}
	strangers := []caller{
		{name: "another tenant", key: "Bearer " + c.otherKey},
		{name: "a tenant of another environment", key: "Bearer " + c.theirKey},
		{name: "another environment", key: "Bearer " + c.foreign},
		{name: "another environment for its tenant", key: "Bearer " + c.foreign, tenant: "theirs"},
		{name: "its environment for another tenant", key: "Bearer " + c.NewKey(godwit.HomeOf(godwit.DefaultEnvironment), environmentScopes...), tenant: "other"},
	}
	for pattern, r := range rules {
		method, path, _ := strings.Cut(pattern, " ")
		if r.open || !strings.Contains(path, "{") || method == http.MethodPut && strings.Contains(path, "/event-types/") {
			continue // a type belongs to the tenant whose key puts it
		}
		filled, body := fill(path, ids), r.filledBody(ids)
		for _, who := range strangers {
			if status, text := c.send(who, method, filled, body); status != 403 && status != 404 && judge(status, text) != nameless {
				t.Errorf("%s for %s: %d %s", pattern, who.name, status, text)
			}
		}
		if method == http.MethodGet {
			if status, text := c.send(own, method, filled, ""); status != 200 {
				t.Errorf("%s for the tenant itself: %d %s", pattern, status, text)
			}
		}
	}
}

// TestRoutesAreListed: an API that keeps its routes in a mux of its own would escape the matrix.
func TestRoutesAreListed(t *testing.T) {
	for _, pattern := range []string{"../api/*/*.go", "../dashboard/*.go", "*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			allowed := map[string]int{"wait.go": 1, "listen.go": 2}[file] // before the start, and on addresses of their own
			if n := strings.Count(string(text), "http.NewServeMux()"); n > allowed && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s uses http.NewServeMux: use httpapi.NewMux, whose routes are checked", file)
			}
		}
	}
}
