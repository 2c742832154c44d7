package app_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/oidctest"
)

const testGrants = `grants:
  - {group: operators, admin: true}
  - {group: support, environment: default, scopes: [read, manage]}
  - {group: readers, environment: default, scopes: [read]}
  - {group: acme, environment: default, tenants: [acme], scopes: [read]}
  - {group: elsewhere, environment: nowhere, scopes: [read]}
  - {group: auditors, environment: staging, scopes: [read, audit]}
`

// startProvider starts an identity provider whose people are called by their groups.
func startProvider(t *testing.T) *oidctest.Provider {
	t.Helper()
	return oidctest.Start(t,
		oidctest.Person{Subject: "1", Email: "ann@example.com", Groups: []string{"operators", "support"}},
		oidctest.Person{Subject: "2", Email: "bob@example.com", Groups: []string{"operators"}},
		oidctest.Person{Subject: "3", Email: "sue@example.com", Groups: []string{"support", "readers", "acme"}},
		oidctest.Person{Subject: "4", Email: "tim@example.com", Groups: []string{"acme"}},
		oidctest.Person{Subject: "5", Email: "out@example.com", Groups: []string{"guests"}},
		oidctest.Person{Subject: "6", Email: "two@example.com", Groups: []string{"readers", "auditors"}},
		oidctest.Person{Subject: "7", Email: "lost@example.com", Groups: []string{"elsewhere"}},
	)
}

// withProvider configures the sign-in by the provider.
func withProvider(t *testing.T, p *oidctest.Provider, o apptest.Options) apptest.Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grants.yaml")
	if err := os.WriteFile(path, []byte(testGrants), 0o600); err != nil {
		t.Fatal(err)
	}
	before := o.Configure
	o.Configure = func(c *config.Config) {
		if before != nil {
			before(c)
		}
		c.OIDC.Issuer, c.OIDC.ClientID, c.OIDC.ClientSecret, c.OIDC.Grants = p.URL, oidctest.ClientID, oidctest.Secret, path
		c.Sessions.FailuresPerMinute = 0
	}
	return o
}

func startWithProvider(t *testing.T, p *oidctest.Provider, o apptest.Options) *apptest.Server {
	t.Helper()
	s := apptest.Start(t, withProvider(t, p, o))
	p.Register(s.URL)
	return s
}

// A visitor is a browser, as far as cookies go.
type visitor struct {
	t      *testing.T
	client *http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	t.Cleanup(v.client.CloseIdleConnections)
	return v
}

// get opens an address and returns the status, where the answer leads to, and its text.
func (v *visitor) get(address string) (status int, location, text string) {
	v.t.Helper()
	resp, err := v.client.Get(address)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.read(resp)
}

func (v *visitor) read(resp *http.Response) (status int, location, text string) {
	v.t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(body)
}

// start begins a sign-in and returns the provider's address.
func (v *visitor) start(s *apptest.Server, query string) string {
	v.t.Helper()
	status, location, text := v.get(s.URL + "/ui/oidc/start" + query)
	if status != http.StatusSeeOther {
		v.t.Fatalf("start: %d %s", status, text)
	}
	return location
}

// arrive signs in and returns the callback's answer.
func (v *visitor) arrive(s *apptest.Server, p *oidctest.Provider, subject string) (status int, location, text string) {
	v.t.Helper()
	return v.get(p.Login(v.t, v.start(s, ""), subject))
}

// session returns the current session.
func (v *visitor) session(s *apptest.Server) (members map[string]any) {
	v.t.Helper()
	status, _, text := v.get(s.URL + "/v1/sessions/current")
	if status != http.StatusOK {
		v.t.Fatalf("current session: %d %s", status, text)
	}
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		v.t.Fatal(err)
	}
	return members
}

// expectRefusal checks that an answer is a page with this reason, and that the browser is not signed in.
func (v *visitor) expectRefusal(s *apptest.Server, reason string, status int, text string) {
	v.t.Helper()
	if !strings.Contains(text, `data-reason="`+reason+`"`) || status < 400 {
		v.t.Errorf("answer is %d, want a refusal for %s: %s", status, reason, text)
	}
	if status, _, _ := v.get(s.URL + "/v1/sessions/current"); status != http.StatusUnauthorized {
		v.t.Errorf("the browser has a session: %d", status)
	}
}

// TestOIDC signs people in with an identity provider that others wrote.
func TestOIDC(t *testing.T) {
	p := startProvider(t)
	s := startWithProvider(t, p, apptest.Options{})
	m := s.App.Management()
	if _, err := m.Tenants.Create(t.Context(), godwit.DefaultEnvironment, management.TenantSpec{Name: "Acme", UID: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Environments.Create(t.Context(), management.EnvironmentSpec{UID: "staging", Name: "Staging"}); err != nil {
		t.Fatal(err)
	}

	t.Run("sign-in", func(t *testing.T) {
		v := newVisitor(t)
		authorize, err := url.Parse(v.start(s, "?return="+url.QueryEscape("/ui/events?type=a")))
		if err != nil {
			t.Fatal(err)
		}
		q := authorize.Query()
		if q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("nonce") == "" || q.Get("redirect_uri") != s.URL+"/ui/oidc/callback" {
			t.Errorf("authorization request is %s", authorize)
		}
		callback := p.Login(t, authorize.String(), "1")
		status, location, text := v.get(callback)
		if status != http.StatusSeeOther || location != "/ui/events?type=a" {
			t.Fatalf("callback: %d %s %s", status, location, text)
		}
		got := v.session(s)
		if got["user"] != "ann@example.com" || got["subject"] != "1" || got["kind"] != "dashboard" || got["tenant"] != nil || got["key_id"] != nil {
			t.Errorf("session is %v", got)
		}
		if life := s.Config.OIDC.SessionLifetime.Real(); timeOf(t, got["expires_at"]).Sub(timeOf(t, got["created_at"])) != life {
			t.Errorf("session lives from %v to %v, want %v", got["created_at"], got["expires_at"], life)
		}
		if status, _, text := v.get(s.URL + "/v1/environments"); status != http.StatusOK || !strings.Contains(text, "staging") {
			t.Errorf("an administrator lists environments: %d %s", status, text)
		}
		// The code and the state are good once.
		status, _, text = newVisitor(t).get(callback)
		if status != http.StatusBadRequest || !strings.Contains(text, "no-sign-in") {
			t.Errorf("callback in another browser: %d %s", status, text)
		}
		if status, _, _ := v.get(callback); status != http.StatusBadRequest {
			t.Errorf("callback again: %d", status)
		}
		// A new sign-in ends the session before it.
		first := got["id"]
		if status, _, text := v.arrive(s, p, "1"); status != http.StatusSeeOther {
			t.Fatalf("second sign-in: %d %s", status, text)
		}
		second := v.session(s)
		if second["id"] == first || second["user_id"] != got["user_id"] {
			t.Errorf("sessions of one user: %v and %v", got, second)
		}
		if _, _, text := v.get(s.URL + "/v1/sessions"); strings.Contains(text, first.(string)) || !strings.Contains(text, "ann@example.com") {
			t.Errorf("sessions: %s", text)
		}
	})

	t.Run("scopes", func(t *testing.T) {
		v := newVisitor(t)
		if status, _, text := v.arrive(s, p, "3"); status != http.StatusSeeOther {
			t.Fatalf("sign-in: %d %s", status, text)
		}
		got := v.session(s)
		if scopes, _ := json.Marshal(got["scopes"]); string(scopes) != `["read","manage"]` || got["tenant"] != nil {
			t.Errorf("session of two groups: %v", got)
		}
		for path, want := range map[string]int{"/v1/tenants": 200, "/v1/nodes": 403, "/v1/settings": 403} {
			if status, _, text := v.get(s.URL + path); status != want {
				t.Errorf("GET %s: %d %s, want %d", path, status, text, want)
			}
		}
		tenant := newVisitor(t)
		if status, _, text := tenant.arrive(s, p, "4"); status != http.StatusSeeOther {
			t.Fatalf("sign-in: %d %s", status, text)
		}
		if got := tenant.session(s); got["tenant"].(map[string]any)["uid"] != "acme" {
			t.Errorf("session is %v", got)
		}
		if status, _, _ := tenant.get(s.URL + "/v1/tenants"); status != http.StatusForbidden {
			t.Errorf("a tenant's user lists tenants: %d", status)
		}
	})

	t.Run("choice", func(t *testing.T) {
		v := newVisitor(t)
		status, location, text := v.arrive(s, p, "6")
		if status != http.StatusSeeOther || location != "/ui/oidc/choose" {
			t.Fatalf("callback: %d %s %s", status, location, text)
		}
		status, _, text = v.get(s.URL + location)
		if status != http.StatusOK || !strings.Contains(text, "Environment Staging") {
			t.Fatalf("choice: %d %s", status, text)
		}
		staging, err := m.Environments.Get(t.Context(), "staging")
		if err != nil {
			t.Fatal(err)
		}
		choose := func(place, origin string) (int, string, string) {
			req, err := http.NewRequest(http.MethodPost, s.URL+location, strings.NewReader(url.Values{"place": {place}}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", origin)
			resp, err := v.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			return v.read(resp)
		}
		home := godwit.HomeOf(staging.ID).String()
		if status, _, _ := choose(home, "https://evil.example"); status != http.StatusForbidden {
			t.Errorf("choice by a page of another site: %d", status)
		}
		if status, _, _ := choose(s.Tenant.String(), s.URL); status != http.StatusBadRequest {
			t.Errorf("choice of a place that was not offered: %d", status)
		}
		if status, location, text := choose(home, s.URL); status != http.StatusSeeOther || location != "/ui/" {
			t.Fatalf("choice: %d %s %s", status, location, text)
		}
		got := v.session(s)
		if scopes, _ := json.Marshal(got["scopes"]); string(scopes) != `["read","audit"]` || got["environment"].(map[string]any)["uid"] != "staging" {
			t.Errorf("session is %v", got)
		}
		if status, _, _ := choose(home, s.URL); status != http.StatusBadRequest {
			t.Errorf("choice again: %d", status)
		}
	})

	t.Run("methods", func(t *testing.T) {
		_, _, text := newVisitor(t).get(s.URL + "/v1/sign-in-methods")
		if !strings.Contains(text, s.URL+"/ui/oidc/start") || !strings.Contains(text, s.URL+"/ui/oidc/sign-out") || strings.Contains(text, oidctest.Secret) {
			t.Errorf("sign-in methods: %s", text)
		}
		v := newVisitor(t)
		status, location, _ := v.get(s.URL + "/ui/oidc/sign-out")
		if status != http.StatusSeeOther || !strings.HasPrefix(location, p.URL+"/end_session?") {
			t.Fatalf("sign-out leads to %d %s", status, location)
		}
		if status, location, text := v.get(location); status != http.StatusFound || location != s.URL+"/ui/" {
			t.Errorf("the provider's sign-out: %d %s %s", status, location, text)
		}
		var settings strings.Builder
		resp := s.Call(apptest.Call{Path: "/v1/settings", Key: s.Key})
		settings.Write(resp.Body)
		if strings.Contains(settings.String(), oidctest.Secret) || strings.Contains(s.Log.String(), oidctest.Secret) {
			t.Error("the client's secret is shown")
		}
	})

	t.Run("refusals", func(t *testing.T) { testOIDCRefusals(t, s, p) })
	t.Run("approval", func(t *testing.T) { testOIDCApproval(t, s, p) })
}

func timeOf(t *testing.T, text any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func testOIDCRefusals(t *testing.T, s *apptest.Server, p *oidctest.Provider) {
	claim := func(name string, value any) func(map[string]any) {
		return func(c map[string]any) { c[name] = value }
	}
	now := time.Now().Unix()
	for name, change := range map[string]func(map[string]any){
		"nonce of another sign-in": claim("nonce", "another"),
		"no nonce":                 func(c map[string]any) { delete(c, "nonce") },
		"foreign issuer":           claim("iss", "https://evil.example"),
		"wrong audience":           claim("aud", []string{"another"}),
		"several audiences":        func(c map[string]any) { c["aud"] = []string{oidctest.ClientID, "another"}; delete(c, "azp") },
		"foreign azp":              claim("azp", "another"),
		"expired":                  claim("exp", now-120),
		"issued in the future":     claim("iat", now+600),
		"not valid yet":            claim("nbf", now+600),
		"no subject":               claim("sub", ""),
		"at_hash of another token": claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"),
		"groups that are no texts": claim("groups", []any{1}),
	} {
		t.Run(name, func(t *testing.T) {
			p.Tamper(change)
			defer p.Tamper(nil)
			v := newVisitor(t)
			status, _, text := v.arrive(s, p, "1")
			v.expectRefusal(s, "token-refused", status, text)
		})
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(string) string{
		"alg none": func(token string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(token, ".")[1] + "."
		},
		"unsigned":        func(token string) string { return token[:strings.LastIndexByte(token, '.')+1] },
		"signed by other": func(token string) string { return oidctest.Sign(key, "unknown", oidctest.Claims(token)) },
		"no token":        func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			p.Forge(forge)
			defer p.Forge(nil)
			v := newVisitor(t)
			status, _, text := v.arrive(s, p, "1")
			v.expectRefusal(s, "token-refused", status, text)
		})
	}
	t.Run("clock within a minute", func(t *testing.T) {
		p.Tamper(func(c map[string]any) { c["exp"], c["iat"] = time.Now().Unix()-5, time.Now().Unix()+5 })
		defer p.Tamper(nil)
		if status, _, text := newVisitor(t).arrive(s, p, "2"); status != http.StatusSeeOther {
			t.Errorf("sign-in: %d %s", status, text)
		}
	})
	t.Run("state", func(t *testing.T) {
		v, other := newVisitor(t), newVisitor(t)
		v.start(s, "")
		// Login CSRF: the answer to another browser's sign-in is not taken.
		status, _, text := v.get(p.Login(t, other.start(s, ""), "1"))
		v.expectRefusal(s, "no-sign-in", status, text)
	})
	t.Run("code of another sign-in", func(t *testing.T) {
		v, other := newVisitor(t), newVisitor(t)
		mine, err := url.Parse(v.start(s, ""))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := url.Parse(p.Login(t, other.start(s, ""), "1"))
		if err != nil {
			t.Fatal(err)
		}
		q := theirs.Query()
		q.Set("state", mine.Query().Get("state"))
		theirs.RawQuery = q.Encode()
		status, _, text := v.get(theirs.String()) // PKCE: the provider refuses the code
		v.expectRefusal(s, "token-refused", status, text)
	})
	t.Run("code used before", func(t *testing.T) {
		v := newVisitor(t)
		authorize := v.start(s, "")
		u, err := url.Parse(s.URL + "/ui/oidc/callback")
		if err != nil {
			t.Fatal(err)
		}
		kept := v.client.Jar.Cookies(u)
		callback := p.Login(t, authorize, "2")
		if status, _, text := v.get(callback); status != http.StatusSeeOther {
			t.Fatalf("callback: %d %s", status, text)
		}
		thief := newVisitor(t)
		for _, c := range kept {
			c.Path = "/ui/oidc/"
		}
		thief.client.Jar.SetCookies(u, kept)
		status, _, text := thief.get(callback)
		thief.expectRefusal(s, "token-refused", status, text)
	})
	t.Run("declined", func(t *testing.T) {
		v := newVisitor(t)
		authorize, err := url.Parse(v.start(s, ""))
		if err != nil {
			t.Fatal(err)
		}
		status, _, text := v.get(s.URL + "/ui/oidc/callback?error=access_denied&state=" + authorize.Query().Get("state"))
		v.expectRefusal(s, "declined", status, text)
	})
	t.Run("issuer of the response", func(t *testing.T) {
		v := newVisitor(t)
		authorize, err := url.Parse(v.start(s, ""))
		if err != nil {
			t.Fatal(err)
		}
		status, _, text := v.get(s.URL + "/ui/oidc/callback?code=a&iss=https://evil.example&state=" + authorize.Query().Get("state"))
		v.expectRefusal(s, "token-refused", status, text)
	})
	for subject, place := range map[string]string{"5": "group without a grant", "7": "place that does not exist"} {
		t.Run(place, func(t *testing.T) {
			v := newVisitor(t)
			status, _, text := v.arrive(s, p, subject)
			v.expectRefusal(s, "no-grant", status, text)
		})
	}
	for _, to := range []string{"https://evil.example/ui/", "//evil.example/ui/", "/v1/keys", "/ui/../v1", "/ui/%2e%2e/v1", "/ui/\\evil", "/ui/oidc/start", "javascript:alert(1)", "/ui/" + strings.Repeat("a", 600)} {
		t.Run("return to "+to[:min(len(to), 30)], func(t *testing.T) {
			v := newVisitor(t)
			status, _, text := v.get(s.URL + "/ui/oidc/start?return=" + url.QueryEscape(to))
			v.expectRefusal(s, "return-not-allowed", status, text)
		})
	}
	t.Run("rotated key", func(t *testing.T) {
		p.Rotate(t, true)
		v := newVisitor(t)
		status, _, text := v.arrive(s, p, "1")
		v.expectRefusal(s, "token-refused", status, text)
		p.Reveal()
		if status, _, text := v.arrive(s, p, "1"); status != http.StatusSeeOther {
			t.Errorf("sign-in after the key was shown: %d %s", status, text)
		}
	})
	t.Run("groups in the userinfo", func(t *testing.T) {
		p.OnlyUserinfo(true)
		defer p.OnlyUserinfo(false)
		if status, location, text := newVisitor(t).arrive(s, p, "4"); status != http.StatusSeeOther || location != "/ui/" {
			t.Errorf("sign-in: %d %s %s", status, location, text)
		}
	})
}

// testOIDCApproval: two people count as two, one person in two browsers as one, and a key that a person made as that person.
func testOIDCApproval(t *testing.T, s *apptest.Server, p *oidctest.Provider) {
	ann, again, bob := newVisitor(t), newVisitor(t), newVisitor(t)
	for v, subject := range map[*visitor]string{ann: "1", again: "1", bob: "2"} {
		if status, _, text := v.arrive(s, p, subject); status != http.StatusSeeOther {
			t.Fatalf("sign-in: %d %s", status, text)
		}
	}
	tenant := s.Tenant.String()
	send := func(v *visitor, method, path, body string, header map[string]string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Godwit-Tenant", tenant)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		for name, value := range header {
			if req.Header.Set(name, value); value == "" {
				req.Header.Del(name)
			}
		}
		resp, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		status, _, text := v.read(resp)
		var members map[string]any
		_ = json.Unmarshal([]byte(text), &members) // some answers have no body
		return status, members
	}
	status, made := send(ann, "POST", "/v1/keys", `{"name":"hers","scopes":["manage","read","admin"]}`, nil)
	if status != http.StatusCreated {
		t.Fatalf("create key: %d %v", status, made)
	}
	user := ann.session(s)["user_id"].(string)
	if by, _ := json.Marshal(made["made_by"]); !strings.Contains(string(by), user) {
		t.Errorf("the key was made by %s, want %s", by, user)
	}
	var other struct{ ID string }
	s.Must(apptest.Call{Path: "/v1/tenants", Key: s.Key, Body: apptest.Fields{"name": "leaving", "uid": "leaving"}}, &other)
	status, asked := send(ann, "DELETE", "/v1/tenants/"+other.ID, "", map[string]string{"Godwit-Tenant": other.ID})
	if status != http.StatusAccepted {
		t.Fatalf("ask to delete a tenant: %d %v", status, asked)
	}
	step, _ := asked["step_up_url"].(string)
	if step == "" {
		t.Fatalf("no second person is asked for: %v", asked)
	}
	for who, v := range map[string]*visitor{"herself": ann, "herself in another browser": again} {
		if status, got := send(v, "POST", step, "{}", map[string]string{"Godwit-Tenant": ""}); status != http.StatusForbidden {
			t.Errorf("approval by %s: %d %v", who, status, got)
		}
	}
	if status, got := send(newVisitor(t), "POST", step, "{}", map[string]string{"Godwit-Tenant": "", "Godwit-Environment": "default", "Authorization": "Bearer " + made["token"].(string)}); status != http.StatusForbidden {
		t.Errorf("approval by a key of hers: %d %v", status, got)
	}
	status, approved := send(bob, "POST", step, "{}", map[string]string{"Godwit-Tenant": ""})
	if status >= 300 {
		t.Fatalf("approval by another person: %d %v", status, approved)
	}
}

// TestOIDCWithoutProvider: the server starts while its provider is down, says so, and tries again at each sign-in.
func TestOIDCWithoutProvider(t *testing.T) {
	p := startProvider(t)
	p.Down(true)
	s := startWithProvider(t, p, apptest.Options{})
	v := newVisitor(t)
	status, _, text := v.get(s.URL + "/ui/oidc/start")
	v.expectRefusal(s, "provider-down", status, text)
	s.Log.Wait(t, "identity provider does not answer") // or the check at the start would share its failure with the sign-in below
	p.Down(false)
	authorize := v.start(s, "")
	callback := p.Login(t, authorize, "1")
	p.Down(true)
	status, _, text = v.get(callback)
	v.expectRefusal(s, "provider-down", status, text)
	p.Down(false)
	if status, _, text := v.arrive(s, p, "1"); status != http.StatusSeeOther {
		t.Errorf("sign-in: %d %s", status, text)
	}
}

// TestOIDCOnTwoNodes: the node that takes the callback is not the one that began the sign-in.
func TestOIDCOnTwoNodes(t *testing.T) {
	p := startProvider(t)
	first := startWithProvider(t, p, apptest.Options{Postgres: true})
	second := startWithProvider(t, p, apptest.Options{Store: first.Config.Store, Configure: func(c *config.Config) { c.Node, c.PublicURL = "second", first.URL }})
	v := newVisitor(t)
	callback := p.Login(t, v.start(first, ""), "1")
	resp, err := v.sendTo(second, first.URL, callback)
	if err != nil {
		t.Fatal(err)
	}
	if status, location, text := v.read(resp); status != http.StatusSeeOther || location != "/ui/" {
		t.Fatalf("callback on the other node: %d %s %s", status, location, text)
	}
	if got := v.session(first); got["user"] != "ann@example.com" {
		t.Errorf("session on the first node is %v", got)
	}
}

// sendTo sends a request for one server to another, as a balancer does.
func (v *visitor) sendTo(s *apptest.Server, base, address string) (*http.Response, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, s.URL+strings.TrimPrefix(address, base), nil)
	if err != nil {
		return nil, err
	}
	req.Host = u.Host
	for _, c := range v.client.Jar.Cookies(u) {
		req.AddCookie(c)
	}
	c := *v.client
	c.Jar = nil
	resp, err := c.Do(req)
	if err == nil {
		v.client.Jar.SetCookies(u, resp.Cookies())
	}
	return resp, err
}
