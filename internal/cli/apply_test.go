package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// files are YAML and other files below a directory, by their names.
type files map[string]string

func (f files) write(t testing.TB, dir string) string {
	t.Helper()
	for name, text := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// everything has each member of each kind with a value that is not the usual one.
var everything = files{
	"environments.yaml": `
environments:
  production:
    name: Our production
    live: true
    event_validation: known
    require_idempotency_key: true
    alert_emails: [ops@example.com]
    endpoint_profile: standard-webhooks
    endpoint_policy: {timeout_seconds: 4.5, alert: false, max_retries: 0}
    make_tenants: true
    limits: {events_per_second: 50, endpoints: 20}
    retention_events_seconds: 86400
    retention_dead_letters_seconds: 172800
    allowed_origins: [https://app.example.com]
    theme: {light: {accent: "#0a66c2"}, radius: 0, words: {title: Our webhooks}}
  staging:
`,
	"types/types.yaml": `
environment: production
event_types:
  order.paid:
    description: An order was paid
    deprecated: true
    compatibility: forward
    schema: {file: order.paid.json}
    example: {total: 12.50, tags: [], note: null}
  order.lost:
`,
	"types/order.paid.json": `{"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}, "note": {"default": null}}}`,
	"tenants/acme.yaml": `
environment: production
tenants:
  acme:
    name: Acme Inc.
    event_validation: ""
    require_idempotency_key: false
    alert_emails: []
    limits: {events_per_second: 5}
    event_types:
      acme.special: {description: Its own, schema: {type: object}}
    endpoints:
      plain: {url: 'https://acme.example/plain'}
      orders:
        url: https://acme.example/hooks
        method: PUT
        profile: eds
        description: Order system
        patterns: [order.*, acme.special]
        filter: {region: [eu, us]}
        headers: {X-Team: {text: billing}, X-Key: {file: key.txt}}
        auth: {kind: basic, username: acme, password: {env: ACME_PASSWORD}}
        policy: {timeout_seconds: 5, statuses: {"404": transient}, agreement: {document: 'https://acme.example/agreement', visible_to_both: true}}
        metadata: {team: billing, level: 3, deep: {a: [1, 2]}}
        secret: {env: ACME_SECRET}
        paused: true
    sources:
      github:
        scheme: github
        description: Repositories
        credentials: [{secret: {env: ACME_GITHUB}}]
        adopt: true
        mode: pass-through
        event_type: {header: X-GitHub-Event, fixed: order.paid}
        keep_headers: [X-GitHub-Event]
        settings: {lenient_key: true}
  globex:
`,
	"tenants/key.txt": "header-value-of-a-file\n",
}

// secrets are the values that must not be shown.
var secretValues = map[string]string{"ACME_PASSWORD": "password-of-acme", "ACME_SECRET": "c2VjcmV0LW9mLWFjbWUtMzItYnl0ZXMtbG9uZy14eHg=", "ACME_GITHUB": "secret-of-github"}

func platformUser(t *testing.T, srv *apptest.Server) *user {
	u := at(t, srv)
	for name, value := range secretValues {
		u.env[name] = value
	}
	return u
}

// apply runs apply, and fails if a secret is shown.
func (u *user) apply(dir string, flags ...string) (stdout, stderr string, err error) {
	u.t.Helper()
	stdout, stderr, err = u.run(append([]string{"apply", "-f", dir}, flags...)...)
	text := stdout + stderr
	if err != nil {
		text += err.Error()
	}
	for _, value := range append([]string{"header-value-of-a-file"}, secretValues["ACME_PASSWORD"], secretValues["ACME_SECRET"], secretValues["ACME_GITHUB"]) {
		if strings.Contains(text, value) {
			u.t.Errorf("a secret is shown:\n%s", text)
		}
	}
	return stdout, stderr, err
}

func (u *user) same(dir string, flags ...string) {
	u.t.Helper()
	stdout, stderr, err := u.apply(dir, flags...)
	if err != nil || stdout != "" || !strings.Contains(stderr, "no change") {
		u.t.Errorf("%s applied again: %v\n%s%s", dir, err, stdout, stderr)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v; UPDATE_GOLDEN=1 writes it anew. Got\n%s", name, err, got)
	}
}

// What was put shows no difference when it is read, for every member of every kind; each change of a member is shown and made.
func TestApply(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		u := platformUser(t, srv)
		dir := everything.write(t, t.TempDir())
		stdout, stderr, err := u.apply(dir, "--dry-run")
		if !errors.Is(err, ErrPending) || !strings.Contains(stderr, "10 to create, 0 to change, 0 to delete") {
			t.Errorf("dry run: %v\n%s", err, stderr)
		}
		golden(t, "apply-create.txt", stdout)
		if _, _, err := u.run("tenants", "list", "--json"); err != nil {
			t.Fatal(err)
		}
		again, stderr, err := u.apply(dir, "--secrets-to", filepath.Join(dir, "issued.jsonl"))
		if err != nil || again != stdout || !strings.Contains(stderr, "10 created, 0 changed, 0 deleted") {
			t.Fatalf("%v\n%s%s", err, again, stderr)
		}
		issued, err := os.ReadFile(filepath.Join(dir, "issued.jsonl"))
		if err != nil || strings.Count(string(issued), "\n") != 1 || !strings.Contains(string(issued), `"tenant":"acme","id":"plain"`) {
			t.Errorf("issued secrets: %v %s", err, issued)
		}
		u.same(dir)
		u.same(dir, "--dry-run")
		u.same(dir, "--prune")

		files{
			"environments.yaml":     strings.NewReplacer("Our production", "Production", "timeout_seconds: 4.5", "timeout_seconds: 6", "    make_tenants: true\n", "").Replace(everything["environments.yaml"]),
			"types/types.yaml":      strings.NewReplacer("An order was paid", "Paid", "    deprecated: true\n", "").Replace(everything["types/types.yaml"]),
			"types/order.paid.json": strings.Replace(everything["types/order.paid.json"], `{"default": null}`, `{"title": "A note"}`, 1),
			"tenants/acme.yaml": strings.NewReplacer("    event_validation: \"\"\n", "", "Acme Inc.", "Acme", "region: [eu, us]", "region: [eu]", "X-Team: {text: billing}, ", "",
				"kind: basic, username: acme, password", "kind: bearer, token", "timeout_seconds: 5, ", "", "level: 3", "level: 4", "adopt: true", "adopt: false", "lenient_key: true", "", "plain:", "plainer:").
				Replace(everything["tenants/acme.yaml"]),
		}.write(t, dir)
		stdout, stderr, err = u.apply(dir, "--dry-run", "--prune")
		if !errors.Is(err, ErrPending) {
			t.Errorf("%v\n%s", err, stderr)
		}
		golden(t, "apply-change.txt", stdout)
		if _, stderr, err := u.apply(dir); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		u.same(dir)
		if _, _, err := u.apply(dir, "--prune"); err == nil || !strings.Contains(err.Error(), "--yes") {
			t.Errorf("it deleted without asking: %v", err)
		}
		if _, stderr, err := u.apply(dir, "--prune", "--yes"); err != nil || !strings.Contains(stderr, "1 deleted") {
			t.Errorf("%v\n%s", err, stderr)
		}
		u.same(dir, "--prune")
	})
}

// A secret that changed is sent although no difference can be seen; one that is not at hand stays.
func TestApplySecrets(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := platformUser(t, srv)
	dir := everything.write(t, t.TempDir())
	delete(u.env, "ACME_GITHUB")
	if _, _, err := u.apply(dir); err == nil || !strings.Contains(err.Error(), "acme.yaml:31:24: source production/acme/github: credentials.0.secret: the environment variable ACME_GITHUB is not set") {
		t.Errorf("got %v", err)
	}
	if list, _, _ := u.run("environments", "list", "--json"); strings.Contains(list, "production") {
		t.Error("something was written although a secret is missing")
	}
	u.env["ACME_GITHUB"] = secretValues["ACME_GITHUB"]
	if _, stderr, err := u.apply(dir); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	u.env["ACME_PASSWORD"] = "another"
	stdout, stderr, err := u.apply(dir)
	if err != nil || stdout != "~ endpoint production/acme/orders\n      headers, auth: (secret) → (secret)\n" || !strings.Contains(stderr, "0 created, 1 changed") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	u.same(dir)
	delete(u.env, "ACME_PASSWORD")
	delete(u.env, "ACME_SECRET") // counted only at creation
	delete(u.env, "ACME_GITHUB")
	stdout, stderr, err = u.apply(dir)
	if err != nil || stdout != "" || !strings.Contains(stderr, "its secrets were not compared: the environment variable ACME_PASSWORD is not set") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	files{"tenants/acme.yaml": strings.Replace(everything["tenants/acme.yaml"], "Order system", "Orders", 1)}.write(t, dir)
	if _, _, err = u.apply(dir); err == nil || !strings.Contains(err.Error(), "ACME_PASSWORD is not set; to change it, all its secrets are needed") {
		t.Errorf("got %v", err)
	}
}

// What fails does not stop what does not depend on it, and is listed with its place; mending it and running again completes the work.
func TestApplyGoesOnAfterFailures(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	text := `
tenants:
  acme:
    endpoints:
      good: {url: 'https://acme.example/'}
      bad: {url: 'ftp://acme.example/'}
  "no good":
    endpoints:
      lost: {url: 'https://lost.example/'}
  globex: {endpoints: {good: {url: 'https://globex.example/'}}}
`
	dir := files{"a.yaml": text}.write(t, t.TempDir())
	_, stderr, err := u.apply(dir)
	if !errors.Is(err, ErrReported) {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{
		"a.yaml:6:7: create endpoint default/acme/bad: 422", "a.yaml:7:3: create tenant default/no good: ",
		"4 created, 0 changed, 0 deleted; 0 were as the files describe them; 2 failed; 1 not tried", "run the command again when it is mended",
	} {
		if !strings.Contains(stderr, part) {
			t.Errorf("got\n%s\nwant %q", stderr, part)
		}
	}
	files{"a.yaml": strings.NewReplacer("ftp:", "https:", `"no good"`, "better").Replace(text)}.write(t, dir)
	if _, stderr, err := u.apply(dir); err != nil || !strings.Contains(stderr, "3 created, 0 changed, 0 deleted; 4 were") {
		t.Errorf("%v\n%s", err, stderr)
	}
	u.same(dir)
}

// A key of an environment applies files that name none, and cannot change its environment. A tenant's key is told what it lacks.
func TestApplyWithAnEnvironmentsKey(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	admin := at(t, srv)
	dir := files{"a.yaml": "environments: {staging: {name: Staging}}\n"}.write(t, t.TempDir())
	if _, stderr, err := admin.apply(dir); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var issued struct{ Token string }
	srv.Must(apptest.Call{
		Path: "/v1/keys", Header: map[string]string{"Godwit-Environment": "staging"}, Body: apptest.Fields{"name": "p", "scopes": []string{"read", "manage"}},
	}, &issued)
	u := at(t, srv)
	u.env["GODWIT_KEY"] = issued.Token
	files{"b.yaml": "event_types: {order.paid: {schema: {type: object}}}\ntenants: {acme: {endpoints: {a: {url: 'https://acme.example/'}}}}\n"}.write(t, dir)
	stdout, stderr, err := u.apply(dir)
	if err != nil || !strings.Contains(stdout, "+ endpoint staging/acme/a\n") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	u.same(dir)
	admin.same(dir, "--environment", "staging")
	files{"a.yaml": "environments: {staging: {name: Other}}\n"}.write(t, dir)
	if _, stderr, err := u.apply(dir); !errors.Is(err, ErrReported) || !strings.Contains(stderr, "only the administrator's key (scope admin) can change environments") {
		t.Errorf("%v\n%s", err, stderr)
	}
	files{"a.yaml": "environment: none\ntenants: {a: {}}\n"}.write(t, dir)
	if _, _, err := admin.apply(dir); err == nil || !strings.Contains(err.Error(), `a.yaml:1:14: there is no environment "none": describe it under environments`) {
		t.Errorf("got %v", err)
	}
	_, tenantKey := srv.NewTenant("small", godwit.ScopeRead, godwit.ScopeManage)
	u.env["GODWIT_KEY"] = tenantKey
	if _, _, err := u.apply(dir); err == nil || !strings.Contains(err.Error(), "needs a key of an environment, or the administrator's key") {
		t.Errorf("got %v", err)
	}
}

// Only lists that the files have are pruned; tenants only if their environment is in the files, and with the approval of a second key.
func TestApplyPrune(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	second := srv.NewKey(srv.Tenant, godwit.AllScopes...)
	u := newUser(t)
	u.stdin = second
	u.must("login", srv.URL, "--name", "second")
	u.stdin = srv.Key
	u.must("login", srv.URL, "--name", "first")
	dir := files{
		"a.yaml": "environments: {staging: }\n",
		"b.yaml": `
environment: staging
event_types: {order.paid: , order.lost: }
tenants:
  acme:
    endpoints: {a: {url: 'https://acme.example/'}, b: {url: 'https://acme.example/'}}
    sources: {up: {scheme: bearer, event_type: {fixed: order.paid}}}
    event_types: {acme.own: }
  globex: {endpoints: {a: {url: 'https://globex.example/'}}}
`,
	}.write(t, t.TempDir())
	if _, stderr, err := u.apply(dir); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	srv.Must(apptest.Call{Path: "/v1/endpoints", Header: map[string]string{"Godwit-Environment": "staging", "Godwit-Tenant": "acme"}, Body: apptest.Fields{"url": "https://by-hand.example/"}}, nil)
	one := files{"b.yaml": "environment: staging\nevent_types: {order.paid: }\ntenants: {acme: {endpoints: {a: {url: 'https://acme.example/'}}}}\n"}.write(t, t.TempDir())
	deleted := func(want string, flags ...string) {
		t.Helper()
		stdout, stderr, err := u.apply(one, append(flags, "--prune", "--json", "--dry-run")...)
		if err != nil && !errors.Is(err, ErrPending) {
			t.Fatalf("%v\n%s", err, stderr)
		}
		var got []string
		for line := range strings.Lines(stdout) {
			var c struct{ Action, Kind, Tenant, ID string }
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			got = append(got, c.Action+" "+c.Kind+" "+c.Tenant+"/"+c.ID)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	deleted("delete endpoint acme/b")
	files{"a.yaml": "environments: {staging: }\n"}.write(t, one)
	deleted("delete endpoint acme/b, delete tenant /globex, delete event_type /order.lost")
	files{"c.yaml": "environment: staging\ntenants: {globex: {sources: {}}}\n"}.write(t, one)
	files{"b.yaml": "environment: staging\nevent_types: {order.paid: }\ntenants: {acme: {endpoints: {}, event_types: , sources: {}}}\n"}.write(t, one)
	deleted("delete endpoint acme/a, delete endpoint acme/b, delete event_type acme/acme.own, delete source acme/up, delete event_type /order.lost")

	if err := os.Remove(filepath.Join(one, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.apply(one, "--prune", "--yes"); err == nil || !strings.Contains(err.Error(), "1 tenants would be deleted, which a second admin key has to approve") {
		t.Errorf("got %v", err)
	}
	_, stderr, err := u.apply(one, "--prune", "--yes", "--approver-context", "second")
	if err != nil || !strings.Contains(stderr, "0 created, 0 changed, 6 deleted") {
		t.Errorf("%v\n%s", err, stderr)
	}
	u.same(one, "--prune")
	var left struct{ Items []struct{ URL string } }
	srv.Must(apptest.Call{Path: "/v1/endpoints", Header: map[string]string{"Godwit-Environment": "staging"}}, &left)
	if len(left.Items) != 1 || left.Items[0].URL != "https://by-hand.example/" {
		t.Errorf("left are %v", left)
	}
}
