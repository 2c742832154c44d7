package native

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestManagementPostsHonourKeys(t *testing.T) {
	trace.Covers(t, "IKH-SCN-1", "IKH-SCN-2", "IKH-SCN-3", "IKH-ERR-3")
	h := newHarness(t)
	receiver := newSink(t)
	e := h.endpoint(receiver.URL)
	for _, c := range []struct{ path, body, other string }{
		{"/v1/endpoints", `{"url":"https://a.example/"}`, `{"url":"https://b.example/"}`},
		{"/v1/keys", `{"name":"k","scopes":["read"]}`, `{"name":"l","scopes":["read"]}`},
		{"/v1/tenants", `{"name":"t"}`, `{"name":"u"}`},
		{"/v1/endpoints/" + e.ID + "/rotate-secret", `{"overlap_seconds":60}`, `{"overlap_seconds":61}`},
		{"/v1/endpoints/" + e.ID + "/test", ``, `{}`},
	} {
		first := h.post(c.path, c.body, "Idempotency-Key", key1)
		if first.status < 200 || first.status > 299 || first.replayed() {
			t.Fatalf("%s: %d %s", c.path, first.status, first.body)
		}
		stored := h.counts()
		again := h.post(c.path, c.body, "Idempotency-Key", key1).want(first.status)
		if !again.replayed() || !bytes.Equal(again.body, first.body) || again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%s: repeat %s, first %s", c.path, again.body, first.body)
		}
		wantDocumented(t, h.post(c.path, c.other, "Idempotency-Key", key1), 422, problem.KeyReused)
		if h.counts() != stored {
			t.Errorf("%s: a repeat stored something", c.path)
		}
		if another := h.post(c.path, c.body, "Idempotency-Key", key2).want(first.status); bytes.Equal(another.body, first.body) {
			t.Errorf("%s: another key got the same answer", c.path)
		}
	}
	// The handler's own refusal is stored like any other result.
	first := h.post("/v1/endpoints", `{"url":"ftp://x/"}`, "Idempotency-Key", `"a-key-for-a-refusal"`).want(422)
	again := h.post("/v1/endpoints", `{"url":"ftp://x/"}`, "Idempotency-Key", `"a-key-for-a-refusal"`).want(422)
	if !again.replayed() || !bytes.Equal(first.body, again.body) || again.header.Get("Content-Type") != problem.ContentType {
		t.Errorf("repeated refusal: %s, first %s", again.body, first.body)
	}
	// A body that the schema rejects never reaches the handler, so the key is not used up.
	h.post("/v1/endpoints", `{"url":1}`, "Idempotency-Key", `"a-key-for-a-mistake"`).want(400)
	h.post("/v1/endpoints", `{"url":"https://c.example/"}`, "Idempotency-Key", `"a-key-for-a-mistake"`).want(201)
}

func TestKeysNeverRequiredByManagement(t *testing.T) {
	h := newHarness(t)
	h.do(call{method: "PATCH", path: "/v1/tenants/" + h.tenant.ID.String(), body: `{"require_idempotency_key":true}`}).want(200)
	h.post("/v1/endpoints", `{"url":"https://a.example/"}`).want(201)
}

func TestSafeMethodsLeaveNoRecord(t *testing.T) {
	trace.Covers(t, "IKH-DEF-2")
	h := newHarness(t)
	e := h.endpoint("https://a.example/")
	for _, c := range []call{
		{method: "GET", path: "/v1/endpoints"}, {method: "GET", path: "/v1/events"}, {method: "DELETE", path: "/v1/endpoints/" + e.ID},
	} {
		c.header = []string{"Idempotency-Key", key1}
		if h.do(c).replayed() {
			t.Errorf("%s was replayed", c.method)
		}
		id := httpapi.ScopeOf(&management.Caller{Key: h.key, Tenant: h.tenant}, c.method+" "+c.path).ID(bare(key1))
		if _, err := h.store.Recorded(context.Background(), id, h.clock.Now()); err == nil {
			t.Errorf("%s %s left a record", c.method, c.path)
		}
	}
	// POST and PATCH need a key.
	other := h.endpoint("https://b.example/")
	path := "/v1/endpoints/" + other.ID
	for range 2 {
		h.do(call{method: "PATCH", path: path, body: `{"description":"x"}`, header: []string{"Idempotency-Key", key1}}).want(200)
		h.post(path+"/pause", ``, "Idempotency-Key", key1).want(200)
	}
	var got Endpoint
	h.get(path).want(200).into(&got)
	if got.Version != 3 {
		t.Errorf("version is %d: a repeat was done again", got.Version)
	}
	// This API has no PUT that needs a key, but deliveries may use PUT: the guard treats it like POST; see package
	// idempotency.
}

func TestManagementConflictWhileInProgress(t *testing.T) {
	trace.Covers(t, "IKH-SCN-4", "IKH-ERR-5")
	h := newHarness(t)
	// Another request has reserved the key and is not answered yet.
	scope := httpapi.ScopeOf(&management.Caller{Key: h.key, Tenant: h.tenant}, "POST /v1/endpoints")
	body := `{"url":"https://a.example/"}`
	now := h.clock.Now()
	_, err := h.store.Reserve(context.Background(), &godwit.IdempotencyRecord{
		ID: scope.ID(bare(key1)), TenantID: h.tenant.ID, CreatedAt: now, ExpiresAt: now.Add(time.Minute),
		Fingerprint: idempotency.WholePayload.Sum(idempotency.Payload{ContentType: "application/json", Body: []byte(body)}),
	})
	must(t, err)
	before := h.counts()
	a := h.post("/v1/endpoints", body, "Idempotency-Key", key1)
	wantDocumented(t, a, 409, problem.KeyInProgress)
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
	}
	wantDocumented(t, h.post("/v1/endpoints", `{"url":"https://b.example/"}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	if h.counts() != before {
		t.Error("something was stored")
	}
	h.clock.Advance(time.Minute)
	h.post("/v1/endpoints", body, "Idempotency-Key", key1).want(201)
}

func TestConcurrentManagementPosts(t *testing.T) {
	trace.Covers(t, "IKH-RSP-7")
	h := newHarness(t)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if a := h.post("/v1/endpoints", `{"url":"https://a.example/"}`, "Idempotency-Key", key1); a.status != 201 && a.status != 409 {
				t.Errorf("got %d: %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	if n := h.counts().endpoints; n != 1 {
		t.Errorf("%d endpoints", n)
	}
}

func TestPrincipalScope(t *testing.T) {
	trace.Covers(t, "IKH-SEC-3", "IKH-SEC-6", "IKH-SEC-7")
	h := newHarness(t)
	_, other := h.mint(h.tenant.ID, godwit.AllScopes...)
	const body = `{"name":"k","scopes":["read"]}`
	for _, path := range []string{"/v1/keys", "/v1/events?type=a.b"} {
		mine := h.post(path, body, "Idempotency-Key", key1)
		theirs := h.do(call{method: "POST", path: path, body: body, token: other, header: []string{"Idempotency-Key", key1}})
		if theirs.replayed() || bytes.Equal(mine.body, theirs.body) || mine.status != theirs.status {
			t.Errorf("%s: one key got the other's answer: %s", path, theirs.body)
		}
		if h.post(path, body, "Idempotency-Key", key1); !h.post(path, body, "Idempotency-Key", key1).replayed() {
			t.Errorf("%s: own repeat is not replayed", path)
		}
	}
	// An administrator's requests for two tenants are two requests.
	tenant, err := h.management.Tenants.Create(context.Background(), godwit.DefaultEnvironment, management.TenantSpec{Name: "second"})
	must(t, err)
	first := h.post("/v1/endpoints", `{"url":"https://a.example/"}`, "Idempotency-Key", key1).want(201)
	second := h.post("/v1/endpoints", `{"url":"https://a.example/"}`, "Idempotency-Key", key1, "Godwit-Tenant", tenant.ID.String()).want(201)
	if second.replayed() || bytes.Equal(first.body, second.body) {
		t.Error("a tenant got another tenant's answer")
	}
}

func TestReplacedKeyKeepsItsPrincipal(t *testing.T) {
	h := newHarness(t)
	first := h.post("/v1/events?type=a.b", `1`, "Idempotency-Key", key1).want(202)
	var issued IssuedKey
	h.post("/v1/keys", `{"name":"next","scopes":["ingest","read","manage","admin"],"replaces":"`+h.key.ID.String()+`"}`).want(201).into(&issued)
	if issued.Principal != h.key.ID.String() {
		t.Errorf("principal is %s", issued.Principal)
	}
	h.do(call{method: "DELETE", path: "/v1/keys/" + h.key.ID.String()}).want(204)
	h.get("/v1/events").refused(401, problem.Unauthorized, "")
	again := h.do(call{method: "POST", path: "/v1/events?type=a.b", body: `1`, token: issued.Token, header: []string{"Idempotency-Key", key1}}).want(202)
	if !again.replayed() || !bytes.Equal(again.body, first.body) {
		t.Errorf("with the new key: %s", again.body)
	}
}

// TestIssuedSecretsAreShownOnce: a repeat shows the same secret, and the store holds no readable copy.
func TestIssuedSecretsAreShownOnce(t *testing.T) {
	h := newHarness(t)
	e := h.endpoint("https://a.example/", `"headers":{"X-A":"header-marker"}`, `"auth":{"kind":"bearer","token":"token-marker"}`)
	var secrets []string
	for _, c := range []struct{ path, body string }{
		{"/v1/keys", `{"name":"k","scopes":["read"]}`},
		{"/v1/endpoints", `{"url":"https://b.example/"}`},
		{"/v1/endpoints/" + e.ID + "/rotate-secret", `{}`},
	} {
		first := h.post(c.path, c.body, "Idempotency-Key", key1)
		again := h.post(c.path, c.body, "Idempotency-Key", key1)
		if !again.replayed() || !bytes.Equal(first.body, again.body) {
			t.Errorf("%s: repeat %s, first %s", c.path, again.body, first.body)
		}
		var doc struct {
			Token  string
			Value  string
			Secret IssuedSecret
		}
		first.into(&doc)
		secret := doc.Token + doc.Value + doc.Secret.Value
		if len(secret) < 40 {
			t.Fatalf("%s: no secret in %s", c.path, first.body)
		}
		secrets = append(secrets, secret)
	}
	secrets = append(secrets, e.Secret.Value, h.token, "header-marker", "token-marker")
	dump := h.dump()
	for _, s := range secrets {
		if strings.Contains(dump, s) {
			t.Errorf("%.8s… lies readable in the store", s)
		}
		if strings.Contains(h.log.String(), s) {
			t.Errorf("%.8s… is in the log", s)
		}
	}
}

// dump reads every column of every table of the store.
func (h *harness) dump() string {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "*.db"))
	must(h.t, err)
	db, err := sql.Open("sqlite", files[0])
	must(h.t, err)
	defer db.Close()
	tables, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	must(h.t, err)
	var names []string
	for tables.Next() {
		var name string
		must(h.t, tables.Scan(&name))
		names = append(names, name)
	}
	must(h.t, tables.Err())
	var b strings.Builder
	for _, name := range names {
		rows, err := db.Query(`SELECT * FROM "` + name + `"`)
		must(h.t, err)
		columns, err := rows.Columns()
		must(h.t, err)
		for rows.Next() {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			must(h.t, rows.Scan(into...))
			for _, v := range values {
				fmt.Fprintf(&b, "%s ", v)
			}
			b.WriteByte('\n')
		}
		must(h.t, rows.Err())
		rows.Close()
	}
	if !strings.Contains(b.String(), h.tenant.Name) {
		h.t.Fatal("the dump shows nothing")
	}
	return b.String()
}

func TestTenantsAndKeys(t *testing.T) {
	h := newHarness(t)
	created := h.post("/v1/tenants", `{"name":"Second","require_idempotency_key":true}`).want(201)
	var tenant Tenant
	created.into(&tenant)
	if created.header.Get("Location") != "/v1/tenants/"+tenant.ID || !tenant.RequireIdempotencyKey {
		t.Errorf("created %+v", tenant)
	}
	h.get("/v1/tenants/" + tenant.ID).want(200)
	h.do(call{method: "PATCH", path: "/v1/tenants/" + tenant.ID, body: `{"name":"Third"}`}).want(200).into(&tenant)
	if tenant.Name != "Third" || !tenant.RequireIdempotencyKey {
		t.Errorf("changed %+v", tenant)
	}
	var tenants list[Tenant]
	h.get("/v1/tenants").want(200).into(&tenants)
	if len(tenants.Items) != 2 {
		t.Errorf("%d tenants", len(tenants.Items))
	}
	var issued IssuedKey
	h.post("/v1/keys", `{"name":"theirs","scopes":["read","manage"]}`, "Godwit-Tenant", tenant.ID).want(201).into(&issued)
	var keys list[Key]
	list := h.do(call{method: "GET", path: "/v1/keys", token: issued.Token}).want(200)
	list.into(&keys)
	if len(keys.Items) != 1 || keys.Items[0].ID != issued.ID || keys.Items[0].Hint == "" || strings.Contains(string(list.body), issued.Token) {
		t.Errorf("keys: %s", list.body)
	}
	h.do(call{method: "GET", path: "/v1/keys/" + issued.ID, token: issued.Token}).want(200)
	h.get("/v1/keys/"+issued.ID).refused(404, problem.NotFound, "") // a key of another tenant

	// A key cannot grant scopes that it lacks, nor replace a principal that has more scopes.
	as := func(token, body string) *answer {
		return h.do(call{method: "POST", path: "/v1/keys", body: body, token: token})
	}
	as(issued.Token, `{"name":"x","scopes":["ingest"]}`).refused(403, problem.Forbidden, "")
	as(issued.Token, `{"name":"x","scopes":["admin"]}`).refused(403, problem.Forbidden, "")
	as(issued.Token, `{"name":"x","scopes":["read","manage"]}`).want(201)
	var strong IssuedKey
	h.post("/v1/keys", `{"name":"strong","scopes":["ingest"]}`, "Godwit-Tenant", tenant.ID).want(201).into(&strong)
	as(issued.Token, `{"name":"x","scopes":["read"],"replaces":"`+strong.ID+`"}`).refused(403, problem.Forbidden, "")
	// It cannot revoke an administrator of its tenant; it may revoke other keys.
	var admin IssuedKey
	h.post("/v1/keys", `{"name":"admin","scopes":["admin"]}`, "Godwit-Tenant", tenant.ID).want(201).into(&admin)
	h.do(call{method: "DELETE", path: "/v1/keys/" + admin.ID, token: issued.Token}).refused(403, problem.Forbidden, "")
	h.do(call{method: "GET", path: "/v1/tenants", token: admin.Token}).want(200)
	h.do(call{method: "DELETE", path: "/v1/keys/" + admin.ID, token: admin.Token}).want(204)
	// Only an administrator acts for another tenant.
	h.do(call{method: "GET", path: "/v1/events", token: issued.Token, header: []string{"Godwit-Tenant", h.tenant.ID.String()}}).refused(403, problem.Forbidden, "")
	h.do(call{method: "GET", path: "/v1/events", token: issued.Token, header: []string{"Godwit-Tenant", tenant.ID}}).want(200)
	h.do(call{method: "GET", path: "/v1/tenants", token: issued.Token}).refused(403, problem.Forbidden, "")

	// A setting takes effect at once.
	h.do(call{method: "POST", path: "/v1/events?type=a.b", body: `1`, token: strong.Token}).refused(400, problem.KeyMissing, "")
	h.do(call{method: "PATCH", path: "/v1/tenants/" + tenant.ID, body: `{"require_idempotency_key":false}`}).want(200)
	h.do(call{method: "POST", path: "/v1/events?type=a.b", body: `1`, token: strong.Token}).want(202)

	var short IssuedKey
	h.post("/v1/keys", `{"name":"short","scopes":["read"],"expires_at":"`+h.clock.Now().Add(time.Hour).Format(time.RFC3339)+`"}`).want(201).into(&short)
	h.do(call{method: "GET", path: "/v1/events", token: short.Token}).want(200)
	h.clock.Advance(time.Hour + time.Second)
	h.do(call{method: "GET", path: "/v1/events", token: short.Token}).refused(401, problem.Unauthorized, "")

	h.deleteTenant(tenant.ID)
	h.do(call{method: "GET", path: "/v1/keys", token: issued.Token}).refused(401, problem.Unauthorized, "")
	h.get("/v1/tenants/"+tenant.ID).refused(404, problem.NotFound, "")
}

func TestTenantAlertsAndValidation(t *testing.T) {
	h := newHarness(t)
	var tenant Tenant
	h.post("/v1/tenants", `{"name":"Second","alert_emails":["ops@example.com"],"event_validation":"known"}`).want(201).into(&tenant)
	if _, err := profile.ParseCode(profile.CodeTenant, tenant.AccountID); err != nil {
		t.Errorf("account id %q: %v", tenant.AccountID, err)
	}
	if !reflect.DeepEqual(tenant.AlertEmails, []string{"ops@example.com"}) || tenant.EventValidation != "known" {
		t.Errorf("created %+v", tenant)
	}
	patch := func(body string) *answer {
		return h.do(call{method: "PATCH", path: "/v1/tenants/" + tenant.ID, body: body})
	}
	patch(`{"alert_emails":["a@example.com","b@example.com"],"event_validation":"strict"}`).want(200)
	h.get("/v1/tenants/" + tenant.ID).want(200).into(&tenant)
	if len(tenant.AlertEmails) != 2 || tenant.EventValidation != "strict" {
		t.Errorf("changed %+v", tenant)
	}
	patch(`{"alert_emails":[],"event_validation":""}`).want(200).into(&tenant)
	if len(tenant.AlertEmails) != 0 || tenant.EventValidation != "" {
		t.Errorf("cleared %+v", tenant)
	}
	for _, bad := range []string{"nobody", "a@b@c", "Ops <ops@example.com>", "<ops@example.com>", "a@example.com\r\nRCPT TO:<b@example.com>", "a b@example.com", "\"a b\"@example.com", "ops@exämple.com"} {
		body, err := json.Marshal(map[string]any{"alert_emails": []string{"ok@example.com", bad}})
		must(t, err)
		patch(string(body)).refused(422, problem.Invalid, "alert_emails[1]")
	}
	patch(`{"alert_emails":["a@example.com","A@example.com"]}`).refused(422, problem.Invalid, "alert_emails[1]")
	patch(`{"alert_emails":["`+strings.Join(strings.Split("0123456789a", ""), `@example.com","`)+`@example.com"]}`).refused(400, problem.InvalidRequest, "alert_emails")
	patch(`{"event_validation":"some"}`).refused(400, problem.InvalidRequest, "event_validation")
}

func TestHostileKeysOnTheAPI(t *testing.T) {
	trace.Covers(t, "IKH-SEC-2")
	h := newHarness(t)
	for i, key := range []string{`' OR 1=1 -- ' OR 1=1 --`, `../../../../etc/passwd`, `a\"b-a\"b-a\"b-a\"b-a\"b`, `%00%00%00%00%00%00%00%00`, `{{7*7}}{{7*7}}{{7*7}}`, `'; DROP TABLE events; --`} {
		first := h.post("/v1/events?type=a.b", `1`, "Idempotency-Key", `"`+key+`"`).want(202)
		again := h.post("/v1/events?type=a.b", `1`, "Idempotency-Key", `"`+key+`"`).want(202)
		if first.replayed() || !again.replayed() || !bytes.Equal(first.body, again.body) {
			t.Errorf("%s: %s, %s", key, first.body, again.body)
		}
		var a Accepted
		first.into(&a)
		if want := strings.ReplaceAll(key, `\"`, `"`); a.IdempotencyKey != want {
			t.Errorf("key %q came back as %q", want, a.IdempotencyKey)
		}
		if n := h.counts().events; n != i+1 {
			t.Errorf("%s: %d events", key, n)
		}
		if strings.Contains(h.log.String(), key) {
			t.Errorf("%s is in the log", key)
		}
	}
}

func TestEventAnswersOutliveARestart(t *testing.T) {
	h := newHarness(t)
	first := h.post("/v1/events?type=a.b", `1`, "Idempotency-Key", key1).want(202)
	made := h.post("/v1/endpoints", `{"url":"https://a.example/"}`, "Idempotency-Key", key1).want(201)
	h.close()
	next := startHarness(t, harnessOptions{dir: h.dir, limits: management.NoLimits})
	next.token, next.tenant = h.token, h.tenant
	if again := next.post("/v1/events?type=a.b", `1`, "Idempotency-Key", key1).want(202); !again.replayed() || !bytes.Equal(again.body, first.body) {
		t.Errorf("event after a restart: %s", again.body)
	}
	if again := next.post("/v1/endpoints", `{"url":"https://a.example/"}`, "Idempotency-Key", key1).want(201); !again.replayed() || !bytes.Equal(again.body, made.body) {
		t.Errorf("endpoint after a restart: %s", again.body)
	}
}

// TestPatchHasEveryPolicyMember fails if the patch or the list of overrides lacks a new member.
func TestPatchHasEveryPolicyMember(t *testing.T) {
	members := func(v any) map[string]bool {
		names := map[string]bool{}
		for f := range reflect.TypeOf(v).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names[name] = true
			}
		}
		return names
	}
	want := members(godwit.PolicyOverrides{})
	if got := members(PolicyPatch{}); !reflect.DeepEqual(got, want) {
		t.Errorf("patch has %v, policy %v", got, want)
	}
	full := godwit.PolicyOverrides{Statuses: map[string]string{"404": "terminal"}}
	for name := range want {
		switch name {
		case "statuses", "agreement":
		case "hold_scope":
			must(t, json.Unmarshal([]byte(`{"hold_scope":"event"}`), &full))
		case "rotation":
			must(t, json.Unmarshal([]byte(`{"rotation":"both"}`), &full))
		case "key_alphabet":
			must(t, json.Unmarshal([]byte(`{"key_alphabet":"hex"}`), &full))
		case "multi_status", "refresh_on_401", "skip_while_paused", "announce", "alert":
			must(t, json.Unmarshal([]byte(`{"`+name+`":true}`), &full))
		default:
			must(t, json.Unmarshal([]byte(`{"`+name+`":1}`), &full))
		}
	}
	if got := overridden(&full); len(got) != len(want)-1 { // all but the agreement
		t.Errorf("overrides listed: %v of %v", got, want)
	}
}
