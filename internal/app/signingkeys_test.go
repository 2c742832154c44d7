package app_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
)

type signingKey struct {
	ID        string
	Live      bool
	Shared    bool
	PublicKey string `json:"public_key"`
}

// The keys of an environment sign for the endpoints that choose them, can be rotated and revoked, and are found in the key directory.
func TestEnvironmentSigns(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		p := newPlatform(t, o)
		sink := apptest.NewSink(t)
		for _, uid := range []string{"customer-1", "customer-2"} {
			p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"uid": uid, "name": uid}}))
		}
		keys := func() (list []signingKey) {
			t.Helper()
			var page struct{ Items []signingKey }
			p.want(200, p.as("", apptest.Call{Path: "/v1/environments/staging/signing-keys"})).JSON(t, &page)
			return page.Items
		}
		if list := keys(); len(list) != 0 {
			t.Errorf("keys at first: %+v", list)
		}
		// The first endpoint that chooses the environment's key makes it; the second has it too.
		var made [2]struct {
			ID, Signing string
			Secret      signingKey
		}
		for i, uid := range []string{"customer-1", "customer-2"} {
			p.want(201, p.as(uid, apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": sink.URL("/" + uid), "signing": "environment"}})).JSON(t, &made[i])
		}
		list := keys()
		if len(list) != 1 || made[0].Secret.ID != list[0].ID || made[1].Secret.ID != list[0].ID || made[0].Signing != "environment" || !made[0].Secret.Shared {
			t.Fatalf("the endpoints are %+v, the keys %+v", made, list)
		}
		sent := map[string]int{}
		deliver := func(uid string) *apptest.Request {
			t.Helper()
			p.want(202, p.as(uid, apptest.Call{Path: "/v1/events?type=order.paid", Body: `{}`}))
			sent[uid]++
			return &sink.WaitOn("/"+uid, sent[uid])[sent[uid]-1]
		}
		first := list[0]
		for _, uid := range []string{"customer-1", "customer-2"} {
			verifyWith(t, deliver(uid), sink.URL("/"+uid), first)
		}

		// Both sign during the overlap; a revoked key does not.
		var second signingKey
		p.want(201, p.as("", apptest.Call{Method: http.MethodPost, Path: "/v1/environments/staging/signing-keys"})).JSON(t, &second)
		r := deliver("customer-1")
		verifyWith(t, r, sink.URL("/customer-1"), first)
		verifyWith(t, r, sink.URL("/customer-1"), second)
		revoke := apptest.Call{Method: http.MethodPost, Path: "/v1/environments/staging/signing-keys/" + first.ID + "/revoke"}
		var asked struct {
			CommandID string `json:"command_id"`
			Token     string `json:"confirmation_token"`
		}
		p.want(202, p.as("", revoke)).JSON(t, &asked)
		verifyWith(t, deliver("customer-2"), sink.URL("/customer-2"), first) // nothing was done yet
		revoke.Key, revoke.Header = p.key, map[string]string{"Godwit-Command": asked.CommandID, "Godwit-Confirmation": asked.Token}
		p.want(200, p.Call(revoke))
		for _, uid := range []string{"customer-1", "customer-2"} {
			if r := deliver(uid); strings.Contains(r.Header.Get("Signature-Input"), first.ID) {
				t.Errorf("a revoked key signs: %s", r.Header.Get("Signature-Input"))
			} else {
				verifyWith(t, r, sink.URL("/"+uid), second)
			}
		}
		if list := keys(); len(list) != 2 || list[0].ID != second.ID || !list[0].Live || list[1].Live {
			t.Errorf("keys after the revocation: %+v", list)
		}
		// The only live key stays.
		last := apptest.Call{Method: http.MethodPost, Path: "/v1/environments/staging/signing-keys/" + second.ID + "/revoke"}
		p.want(202, p.as("", last)).JSON(t, &asked)
		last.Key, last.Header = p.key, map[string]string{"Godwit-Command": asked.CommandID, "Godwit-Confirmation": asked.Token}
		p.want(409, p.Call(last))

		// The directory has the keys; no answer has the private part.
		var environment struct{ ID string }
		p.want(200, p.as("", apptest.Call{Path: "/v1/environments/staging"})).JSON(t, &environment)
		var directory struct {
			Keys []struct{ KeyID, X, D string }
		}
		p.want(200, p.Call(apptest.Call{Path: "/.well-known/http-message-signatures-directory?environment=" + environment.ID})).JSON(t, &directory)
		if len(directory.Keys) != 1 || directory.Keys[0].KeyID != second.ID || directory.Keys[0].D != "" {
			t.Errorf("the directory has %+v", directory)
		}
		r2 := p.want(200, p.Call(apptest.Call{Path: "/.well-known/http-message-signatures-directory?keyid=" + second.ID}))
		if r2.Header.Get("Signature") == "" && r2.Header.Get("Content-Digest") == "" {
			t.Errorf("the directory's answer has %v", r2.Header)
		}
		p.want(404, p.Call(apptest.Call{Path: "/.well-known/http-message-signatures-directory?environment=staging"}))

		// The rotation and the revocation are evidence of the environment.
		var issued struct{ Token string }
		p.Must(apptest.Call{Path: "/v1/keys", Header: map[string]string{"Godwit-Environment": "staging"}, Body: apptest.Fields{"name": "auditor", "scopes": []string{"audit"}}}, &issued)
		evidence := string(p.want(200, p.Call(apptest.Call{Key: issued.Token, Path: "/ids/v1/evidence"})).Body)
		for _, part := range []string{"rotate_keys", "revoke_key"} {
			if !strings.Contains(evidence, part) {
				t.Errorf("the environment's evidence has no %s: %s", part, evidence)
			}
		}
	})
}

// verifyWith fails the test unless the request has a signature by the key.
func verifyWith(t *testing.T, r *apptest.Request, url string, key signingKey) {
	t.Helper()
	public, err := base64.StdEncoding.DecodeString(key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := httpsig.NewEd25519Verifier(key.ID, ed25519.PublicKey(public))
	if err != nil {
		t.Fatal(err)
	}
	v, err := httpsig.NewVerifier(httpsig.Options{
		TargetURI: func(*http.Request) string { return url },
		KeyByID: func(_ context.Context, id string) (httpsig.Key, error) {
			if id != key.ID {
				return httpsig.Key{}, httpsig.ErrUnknownKey
			}
			return trusted, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(r.Head)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(req, r.Body); err != nil {
		t.Errorf("no signature by %s: %v; %s", key.ID, err, r.Header.Get("Signature-Input"))
	}
}

// Endpoints choose their signer: by themselves, or by their environment's setting.
func TestEndpointsChooseTheirSigner(t *testing.T) {
	p := newPlatform(t, apptest.Options{})
	p.want(201, p.as("", apptest.Call{Path: "/v1/tenants", Body: `{"uid":"customer","name":"Customer"}`}))
	var e struct {
		ID, Signing string
		Version     int
		Secret      signingKey
	}
	put := func(status int, uid, body string) *apptest.Response {
		t.Helper()
		r := p.want(status, p.put("customer", "/v1/endpoints/"+uid, body))
		e.Secret = signingKey{}
		r.JSON(t, &e)
		return r
	}
	url := `"url":"https://example.com/"`
	if put(201, "a", `{`+url+`}`); e.Signing != "own" {
		t.Errorf("without a word: %+v", e)
	}
	for body, field := range map[string]string{
		`{` + url + `,"signing":"environment","secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`: "secret",
		`{` + url + `,"signing":"environment","algorithm":"ed25519"}`:                                   "algorithm",
		`{` + url + `,"signing":"environment","profile":"standard-webhooks"}`:                           "signing",
	} {
		if r := p.put("customer", "/v1/endpoints/b", body); r.Status != 422 || !strings.Contains(string(r.Body), field) {
			t.Errorf("%s: %d %s", body, r.Status, r.Body)
		}
	}
	p.want(200, p.Call(apptest.Call{Method: http.MethodPatch, Path: "/v1/environments/staging", Body: `{"endpoint_signing":"environment"}`}))
	within(t, "environment", `{"endpoint_signing":"environment"}`, p.as("", apptest.Call{Path: "/v1/environments/staging"}).Body)
	if put(201, "b", `{`+url+`}`); e.Signing != "environment" || !e.Secret.Shared {
		t.Errorf("by the environment's setting: %+v", e)
	}
	if put(200, "b", `{`+url+`}`); e.Version != 1 {
		t.Errorf("put again: %+v", e)
	}
	if put(201, "c", `{`+url+`,"algorithm":"ed25519"}`); e.Signing != "own" || e.Secret.Shared {
		t.Errorf("with an algorithm: %+v", e)
	}
	if put(201, "d", `{`+url+`,"profile":"standard-webhooks"}`); e.Signing != "own" {
		t.Errorf("of a profile that cannot: %+v", e)
	}
	within(t, "before", `{"signing":"own"}`, p.as("customer", apptest.Call{Path: "/v1/endpoints/a"}).Body) // stays as it was

	// An endpoint changes its signer where the new one has a key.
	patch := func(status int, uid, body string) {
		t.Helper()
		p.want(status, p.as("customer", apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/" + uid, Body: body}))
	}
	patch(409, "b", `{"signing":"own"}`)
	p.want(200, p.as("customer", apptest.Call{Method: http.MethodPost, Path: "/v1/endpoints/b/rotate-secret"}))
	var secrets struct{ Items []signingKey }
	p.want(200, p.as("customer", apptest.Call{Path: "/v1/endpoints/b/secrets"})).JSON(t, &secrets)
	if len(secrets.Items) != 2 || !secrets.Items[0].Shared || !secrets.Items[0].Live || secrets.Items[1].Live {
		t.Errorf("secrets are %+v", secrets)
	}
	patch(200, "b", `{"signing":"own"}`)
	patch(200, "b", `{"signing":"environment"}`)
	patch(422, "d", `{"signing":"environment"}`)

	// A key of another environment knows nothing of these keys.
	p.Must(apptest.Call{Path: "/v1/environments", Body: `{"uid":"other","name":"Other"}`}, nil)
	var issued struct{ Token string }
	p.Must(apptest.Call{Path: "/v1/keys", Header: map[string]string{"Godwit-Environment": "other"}, Body: `{"name":"a","scopes":["read","manage"]}`}, &issued)
	for _, c := range []apptest.Call{
		{Path: "/v1/environments/staging/signing-keys"},
		{Method: http.MethodPost, Path: "/v1/environments/staging/signing-keys"},
		{Method: http.MethodPost, Path: "/v1/environments/staging/signing-keys/sec_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f/revoke"},
	} {
		c.Key = issued.Token
		p.want(404, p.Call(c))
	}
}
