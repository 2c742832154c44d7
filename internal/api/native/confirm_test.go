package native

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// confirm returns the headers that confirm a command.
func confirm(a *Asked, more ...string) []string {
	return append([]string{"Godwit-Command", a.CommandID, "Godwit-Confirmation", a.Token}, more...)
}

// approver makes a second key. Call it before the command is submitted: an approver's key must be older than the command.
func (h *harness) approver(scopes ...godwit.Scope) *godwit.APIKey {
	h.t.Helper()
	key, _ := h.mint(h.tenant.ID, scopes...)
	return key
}

// approve approves a command with a second key and returns the step-up token.
func (h *harness) approve(commandID string, key *godwit.APIKey) string {
	h.t.Helper()
	a, err := h.executor.Approve(context.Background(), builtincommand.Caller(&management.Caller{Key: key, Tenant: h.tenant}), commandID)
	must(h.t, err)
	return a.Token
}

func (h *harness) deleteTenant(id string) {
	h.t.Helper()
	var first Asked
	approver := h.approver(godwit.ScopeAdmin)
	path := "/v1/tenants/" + id
	h.do(call{method: "DELETE", path: path}).want(202).into(&first)
	h.do(call{method: "DELETE", path: path, header: confirm(&first, "Godwit-Step-Up", h.approve(first.CommandID, approver))}).want(204)
}

func TestTenantDeletionAsksAndNeedsASecondKey(t *testing.T) {
	h := newHarness(t)
	var tenant Tenant
	h.post("/v1/tenants", `{"name":"Second"}`).want(201).into(&tenant)
	path := "/v1/tenants/" + tenant.ID
	del := func(header ...string) *answer { return h.do(call{method: "DELETE", path: path, header: header}) }

	approver := h.approver(godwit.ScopeAdmin)
	var first Asked
	del().want(202).into(&first)
	if first.StepUpURL != "/ids/v1/commands/"+first.CommandID+"/step-up" || first.ExpiresAt.Before(h.clock.Now()) {
		t.Errorf("asked %+v", first)
	}
	h.get(path).want(200)
	del(confirm(&first)...).refused(403, problem.StepUpRequired, "")
	stepUp := h.approve(first.CommandID, approver)
	del("Godwit-Command", first.CommandID, "Godwit-Confirmation", "cft_x", "Godwit-Step-Up", stepUp).refused(403, problem.ConfirmationInvalid, "")
	// The confirmation is valid only for the tenant of the first request.
	var other Tenant
	h.post("/v1/tenants", `{"name":"Other"}`).want(201).into(&other)
	h.do(call{method: "DELETE", path: "/v1/tenants/" + other.ID, header: confirm(&first, "Godwit-Step-Up", stepUp)}).refused(403, problem.ConfirmationInvalid, "")
	h.get("/v1/tenants/" + other.ID).want(200)
	h.get(path).want(200)

	del(confirm(&first, "Godwit-Step-Up", stepUp)...).want(204)
	h.get(path).refused(404, problem.NotFound, "")
	del(confirm(&first, "Godwit-Step-Up", stepUp)...).want(204) // a repeat
	del().refused(404, problem.NotFound, "")
	// The key decides who may delete a tenant, not the tenant that the key acts for.
	h.do(call{method: "DELETE", path: "/v1/tenants/" + h.tenant.ID.String()}).refused(409, problem.Conflict, "")

	h.do(call{method: "DELETE", path: "/v1/tenants/" + other.ID, header: []string{"Godwit-Tenant", other.ID}}).want(202).into(&first)
	stepUp = h.approve(first.CommandID, approver)
	h.do(call{method: "DELETE", path: "/v1/tenants/" + other.ID, header: confirm(&first, "Godwit-Step-Up", stepUp, "Godwit-Tenant", other.ID)}).want(204)
}

func TestConfirmationComesInTime(t *testing.T) {
	h := newHarness(t)
	var first, second Asked
	h.post("/v1/dead-letters/purge", `{"all":true}`).want(202).into(&first)
	h.clock.Advance(6 * time.Minute)
	h.post("/v1/dead-letters/purge", `{"all":true}`, confirm(&first)...).refused(410, problem.ConfirmationExpired, "")
	h.post("/v1/dead-letters/purge", `{"all":true}`).want(202).into(&second)
	if second.CommandID == first.CommandID || second.Token == first.Token {
		t.Errorf("asked %+v after %+v", second, first)
	}
	h.post("/v1/dead-letters/purge", `{"all":true}`, "Godwit-Command", first.CommandID, "Godwit-Confirmation", second.Token).refused(403, problem.ConfirmationInvalid, "")
	h.post("/v1/dead-letters/purge", `{"all":true}`, "Godwit-Command", "x", "Godwit-Confirmation", second.Token).refused(403, problem.ConfirmationInvalid, "")
	h.post("/v1/dead-letters/purge", `{"all":true}`, "Godwit-Confirmation", second.Token).refused(403, problem.ConfirmationInvalid, "")
	h.post("/v1/dead-letters/purge", `{"all":true,"limit":1}`, confirm(&second)...).refused(403, problem.ConfirmationInvalid, "")
	var done Purged
	h.post("/v1/dead-letters/purge", `{"all":true}`, confirm(&second)...).want(200).into(&done)
	if done.Purged != 0 || done.More {
		t.Errorf("purged %+v", done)
	}
}

// A key makes the first step repeatable, including its token. The command recognises repeats of the second step.
func TestConfirmationUnderAKey(t *testing.T) {
	h := newHarness(t)
	const key = `"one purge of many 001"`
	var first Asked
	a := h.post("/v1/dead-letters/purge", `{"status":"terminal"}`, "Idempotency-Key", key).want(202)
	a.into(&first)
	if b := h.post("/v1/dead-letters/purge", `{"status":"terminal"}`, "Idempotency-Key", key).want(202); string(a.body) != string(b.body) {
		t.Errorf("then %s\nnow  %s", a.body, b.body)
	}
	h.post("/v1/dead-letters/purge", `{"all":true}`, "Idempotency-Key", key).refused(422, problem.KeyReused, "")
	for range 2 {
		b := h.post("/v1/dead-letters/purge", `{"status":"terminal"}`, confirm(&first, "Idempotency-Key", key)...).want(200)
		if !strings.Contains(string(b.body), `"purged":0`) {
			t.Errorf("purged %s", b.body)
		}
	}
}

// A filter that is empty, null or missing must not select everything.
func TestDeadLettersAreSelectedExplicitly(t *testing.T) {
	h := newHarness(t)
	for _, path := range []string{"/v1/dead-letters/purge", "/v1/dead-letters/replay"} {
		for body, field := range map[string]string{
			`{}`: "all", `{"all":false}`: "all", `{"limit":5}`: "all", `{"all":true,"type":"a.b"}`: "all", `{"all":null}`: "all",
			`{"endpoint":""}`: "endpoint", `{"type":""}`: "type", `{"status":""}`: "status", `{"reason":""}`: "reason", `{"since":""}`: "since", `{"until":""}`: "until",
			`{"endpoint":null}`: "endpoint", `{"type":null}`: "type", `{"status":null}`: "status", `{"reason":null}`: "reason", `{"since":null}`: "since", `{"until":null}`: "until",
			`{"endpoint":null,"type":"a.b"}`: "endpoint", `{"endpoint":"","all":true}`: "endpoint",
		} {
			h.post(path, body).refused(400, problem.InvalidRequest, field)
		}
	}
	h.post("/v1/dead-letters/purge", `{"replayed":true}`).refused(400, problem.InvalidRequest, "all")
	h.post("/v1/dead-letters/replay", `{"all":true}`).want(202)
	h.post("/v1/dead-letters/replay", `{"all":false,"type":"a.b"}`).want(202)
}

func TestPurgeTellsWhatWouldGo(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	receiver.answer(400)
	first := h.endpoint(receiver.URL, fast, `"patterns":["a.b"]`)
	second := h.endpoint(receiver.URL, fast, `"patterns":["a.b","c.d"]`)
	w := h.watch()
	h.publish("a.b", `1`)
	h.publish("c.d", `1`)
	for range 3 {
		w.until(godwit.DeliveryTerminal)
	}
	var asked Asked
	purge := func(body string) builtincommand.Affected {
		t.Helper()
		asked = Asked{}
		h.post("/v1/dead-letters/purge", body).want(202).into(&asked)
		if asked.Affects == nil {
			t.Fatalf("%s: nothing about what would go", body)
		}
		return *asked.Affects
	}
	for body, want := range map[string]builtincommand.Affected{
		`{"all":true}`:                     {DeadLetters: 3, Endpoints: []builtincommand.AffectedEndpoint{{ID: second.ID, DeadLetters: 2}, {ID: first.ID, DeadLetters: 1}}},
		`{"type":"c.d"}`:                   {DeadLetters: 1, Endpoints: []builtincommand.AffectedEndpoint{{ID: second.ID, DeadLetters: 1}}},
		`{"endpoint":"` + first.ID + `"}`:  {DeadLetters: 1, Endpoints: []builtincommand.AffectedEndpoint{{ID: first.ID, DeadLetters: 1}}},
		`{"type":"c.d","limit":1}`:         {DeadLetters: 1, More: true, Endpoints: []builtincommand.AffectedEndpoint{{ID: second.ID, DeadLetters: 1}}},
		`{"until":"2000-01-01T00:00:00Z"}`: {Endpoints: []builtincommand.AffectedEndpoint{}},
	} {
		if got := purge(body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s affects %+v, want %+v", body, got, want)
		}
	}
	purge(`{"endpoint":"` + second.ID + `"}`)
	var done Purged
	h.post("/v1/dead-letters/purge", `{"endpoint":"`+second.ID+`"}`, confirm(&asked)...).want(200).into(&done)
	if left := purge(`{"all":true}`); done.Purged != 2 || left.DeadLetters != 1 {
		t.Errorf("purged %+v, then %+v is left", done, left)
	}
}

func TestRevokeSecret(t *testing.T) {
	h := newHarness(t)
	var e IssuedEndpoint
	h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/"}`).want(201).into(&e)
	var next IssuedSecret
	h.post("/v1/endpoints/"+e.ID+"/rotate-secret", ``).want(200).into(&next)
	path := "/v1/endpoints/" + e.ID + "/secrets/"
	live := func() (n int) {
		var secrets struct{ Items []Secret }
		h.get("/v1/endpoints/" + e.ID + "/secrets").want(200).into(&secrets)
		for _, s := range secrets.Items {
			if s.Live {
				n++
			}
		}
		return n
	}
	var first Asked
	h.post(path+e.Secret.ID+"/revoke", ``).want(202).into(&first)
	if live() != 2 {
		t.Errorf("%d secrets are live before it is confirmed", live())
	}
	h.post(path+next.ID+"/revoke", ``, confirm(&first)...).refused(403, problem.ConfirmationInvalid, "")
	var done RevokedSecret
	h.post(path+e.Secret.ID+"/revoke", ``, confirm(&first)...).want(200).into(&done)
	if live() != 1 || done.SecretID != e.Secret.ID || done.EndpointID != e.ID {
		t.Errorf("%d secrets are live after %+v", live(), done)
	}
	// The last secret cannot be revoked.
	h.post(path+next.ID+"/revoke", ``).want(202).into(&first)
	h.post(path+next.ID+"/revoke", ``, confirm(&first)...).refused(409, problem.Conflict, "")
	h.post(path+"nonsense/revoke", ``).refused(400, problem.InvalidRequest, "secret")
	h.post("/v1/endpoints/sub_01a1dd84-2ee0-7351-9aac-b7145fd8a35a/secrets/"+next.ID+"/revoke", ``).refused(404, problem.NotFound, "")
}
