package conformance

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestUnauthorized: 401 is final. A credential that can be renewed is renewed once, at once; a signature is renewed by
// signing again.
func TestUnauthorized(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		fixed := apptest.Fields{"policy": apptest.Fields{"refresh_on_401": false}}
		bearer := apptest.Fields{"auth": apptest.Fields{"kind": "bearer", "token": "static"}, "policy": apptest.Fields{"refresh_on_401": false}}
		resigned := func(t *testing.T, h *history) {
			if gap := h.gap(1); gap != 0 || h.Attempts[1].Trigger != "refresh" {
				t.Errorf("the second attempt came %v later, by %s", gap, h.Attempts[1].Trigger)
			}
			newlySigned(t, h.requests)
		}
		twice := []string{"terminal", "terminal"}
		play(t, r, []scenario{
			{name: "fixed signature", rows: []string{"EDS-STA-401a"}, script: afterwardOK(apptest.Status(401)), fields: fixed, want: terminal,
				status: "terminal", reason: "unauthorized"},
			{name: "fixed bearer token", rows: []string{"EDS-STA-401a"}, script: afterwardOK(apptest.Status(401)), fields: bearer, want: terminal,
				status: "terminal", reason: "unauthorized"},
			{name: "signed again", rows: []string{"EDS-STA-401b"}, script: afterwardOK(apptest.Status(401)), want: []string{"terminal", "accepted"},
				status: "accepted", check: resigned},
			{name: "signed again in vain", rows: []string{"EDS-STA-401b", "EDS-STA-401a"}, script: []apptest.Reply{apptest.Status(401), apptest.Status(401), ok},
				want: twice, status: "terminal", reason: "unauthorized", check: resigned},
			{name: "once in all", rows: []string{"EDS-STA-401b"}, script: []apptest.Reply{apptest.Status(401), apptest.Status(503), apptest.Status(401), ok},
				want: []string{"terminal", "transient", "terminal"}, status: "terminal", reason: "unauthorized"},
		})
	})
}

// newlySigned checks that no two requests share signature or nonce.
func newlySigned(t *testing.T, requests []apptest.Request) {
	t.Helper()
	seen := map[string]bool{}
	for _, req := range requests {
		for _, value := range []string{req.Header.Get("Signature"), req.Header.Get("Signature-Input")} {
			if value == "" || seen[value] {
				t.Errorf("signature %q is missing or was sent before", value)
			}
			seen[value] = true
		}
	}
}

// A tokenServer issues tokens in turn; a receiver beside it accepts some of them.
type tokenServer struct {
	sink   *apptest.Sink
	valid  string // Authorization that the receiver accepts
	refuse int    // what it answers to others
}

func newTokenServer(t *testing.T, path, valid string, refuse int) *tokenServer {
	s := &tokenServer{sink: newSink(t), valid: valid, refuse: refuse}
	s.sink.ReplyFunc(tokenPath, func(req *apptest.Request) apptest.Reply {
		if req.Header.Get("Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("client:client-secret")) {
			return apptest.Status(401).Body("application/json", `{"error":"invalid_client"}`)
		}
		return apptest.Status(200).Body("application/json", fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, req.N))
	})
	s.sink.ReplyFunc(path, func(req *apptest.Request) apptest.Reply {
		if req.Header.Get("Authorization") != s.valid {
			return apptest.Status(s.refuse, "WWW-Authenticate", `Bearer error="invalid_token"`)
		}
		return ok
	})
	return s
}

func (s *tokenServer) auth(secret string) apptest.Fields {
	return apptest.Fields{"auth": apptest.Fields{"kind": "oauth2", "token_url": s.sink.URL(tokenPath), "client_id": "client", "client_secret": secret}}
}

// TestTokenIsRenewedOnce: a 401 leads to one new token and one more request; a 403 to neither.
func TestTokenIsRenewedOnce(t *testing.T) {
	for _, c := range []struct {
		name, row, valid string
		refuse           int
		want, sent       []string
		status           string
		tokens           int
	}{
		{"renewed", "EDS-STA-401b", "Bearer token-2", 401, []string{"terminal", "accepted"}, []string{"Bearer token-1", "Bearer token-2"}, "accepted", 2},
		{"renewed in vain", "EDS-STA-401b", "nothing", 401, []string{"terminal", "terminal"}, []string{"Bearer token-1", "Bearer token-2"}, "terminal", 2},
		{"forbidden", "EDS-STA-403", "nothing", 403, terminal, []string{"Bearer token-1"}, "terminal", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace.Covers(t, c.row)
			r := newRig(t, apptest.Options{})
			s := newTokenServer(t, "/hook", c.valid, c.refuse)
			ep := r.Endpoint(s.sink.URL("/hook"), apptest.Fields{"patterns": []string{"x"}}, s.auth("client-secret"))
			got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
			r.settle()
			r.passWindow()
			if d := r.delivery(got.ID, ep); !slices.Equal(d.outcomes(), c.want) || d.Status != c.status {
				t.Errorf("%s by %v, want %s by %v", d.Status, d.outcomes(), c.status, c.want)
			}
			r.end()
			var sent []string
			requests := s.sink.Requests("/hook")
			for _, req := range requests {
				sent = append(sent, req.Header.Get("Authorization"))
			}
			if !slices.Equal(sent, c.sent) {
				t.Errorf("sent %v, want %v", sent, c.sent)
			}
			sameEvent(t, got, eventBody, requests)
			newlySigned(t, requests)
			if n := len(s.sink.Requests(tokenPath)); n != c.tokens {
				t.Errorf("%d tokens asked for, want %d", n, c.tokens)
			}
		})
	}
}

// TestMechanisms tests each authentication mechanism against a receiver that requires it. With the wrong credential the same
// receiver refuses.
func TestMechanisms(t *testing.T) {
	r := newRig(t, apptest.Options{Configure: trusting(t)})
	insist := func(path, authorization string) {
		r.sink.ReplyFunc(path, func(req *apptest.Request) apptest.Reply {
			if values := req.Header["Authorization"]; len(values) != 1 || values[0] != authorization {
				return apptest.Status(401)
			}
			return ok
		})
	}
	deliver := func(t *testing.T, url string, fields apptest.Fields) (deliveryView, apptest.Endpoint) {
		t.Helper()
		ep := r.Endpoint(url, apptest.Fields{"patterns": []string{"x"}}, fields)
		ev := r.Publish("x", eventBody)
		r.WaitAttempts(ev, ep, 1)
		r.settle()
		r.EndpointCall(ep, http.MethodPost, "/pause", nil)
		return r.delivery(ev, ep), ep
	}
	expect := func(t *testing.T, url string, right, wrong apptest.Fields, refusal string) {
		t.Helper()
		if d, _ := deliver(t, url, right); d.Status != "accepted" {
			t.Errorf("with the right credential: %s %v", d.Status, d.Attempts)
		}
		if d, _ := deliver(t, url, wrong); d.Status == "accepted" || d.Attempts[0].Reason != refusal {
			t.Errorf("with the wrong credential: %s %v", d.Status, d.Attempts)
		}
	}
	auth := func(members apptest.Fields) apptest.Fields { return apptest.Fields{"auth": members} }
	t.Run("bearer", func(t *testing.T) {
		trace.Covers(t, "EDS-SEC-AUT-2")
		insist("/bearer", "Bearer s3cret~token")
		expect(t, r.sink.URL("/bearer"), auth(apptest.Fields{"kind": "bearer", "token": "s3cret~token"}),
			auth(apptest.Fields{"kind": "bearer", "token": "other"}), "unauthorized")
	})
	t.Run("basic", func(t *testing.T) {
		trace.Covers(t, "EDS-SEC-AUT-2")
		insist("/basic", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:pass word")))
		expect(t, r.sink.URL("/basic"), auth(apptest.Fields{"kind": "basic", "username": "user", "password": "pass word"}),
			auth(apptest.Fields{"kind": "basic", "username": "user", "password": "other"}), "unauthorized")
	})
	t.Run("mutual TLS", func(t *testing.T) {
		trace.Covers(t, "EDS-SEC-AUT-2")
		sink := newSink(t, apptest.WithTLS(apptest.SinkTLS{RequireClientCertificate: true}))
		cert, key := apptest.ClientCertificate(t, "godwit.example")
		right := auth(apptest.Fields{"kind": "mtls", "certificate_pem": cert, "private_key_pem": key})
		if d, _ := deliver(t, sink.URL("/"), right); d.Status != "accepted" {
			t.Errorf("with a certificate: %s %+v", d.Status, d.Attempts)
		}
		if d, _ := deliver(t, sink.URL("/"), nil); d.Status == "accepted" || d.Attempts[0].FailureClass != "transport" {
			t.Errorf("without a certificate: %s %+v", d.Status, d.Attempts)
		}
		seen := sink.Requests("")
		if len(seen) != 1 || len(seen[0].TLS.PeerCertificates) == 0 || seen[0].TLS.PeerCertificates[0].Subject.CommonName != "godwit.example" {
			t.Errorf("%d requests got through", len(seen))
		}
	})
	t.Run("OAuth2", func(t *testing.T) {
		trace.Covers(t, "EDS-SEC-AUT-2")
		s := newTokenServer(t, "/oauth", "Bearer token-1", 401)
		expect(t, s.sink.URL("/oauth"), s.auth("client-secret"), s.auth("wrong"), "credential")
		if n := len(s.sink.Requests("/oauth")); n != 1 {
			t.Errorf("%d requests, of which one had a token", n)
		}
	})
	for _, algorithm := range []string{godwit.AlgorithmHMAC, godwit.AlgorithmEd25519} {
		t.Run("signature "+algorithm, func(t *testing.T) {
			trace.Covers(t, "EDS-SEC-AUT-2")
			path := "/" + algorithm
			d, ep := deliver(t, r.sink.URL(path), apptest.Fields{"algorithm": algorithm})
			if d.Status != "accepted" {
				t.Fatalf("delivery is %s", d.Status)
			}
			req := r.sink.Requests(path)[0]
			if err := verify(t, &req, r.sink.URL(path), r.Clock.Now, ep.Secret); err != nil {
				t.Errorf("signature: %v", err)
			}
			req.Body = append([]byte(nil), req.Body...)
			req.Body[0] ^= 1
			if err := verify(t, &req, r.sink.URL(path), r.Clock.Now, ep.Secret); err == nil {
				t.Error("a changed body passed")
			}
		})
	}
}

// TestNoEndpointWithoutAuthentication: neither deliveries nor API requests work without authentication.
func TestNoEndpointWithoutAuthentication(t *testing.T) {
	trace.Covers(t, "EDS-KEY-7")
	r := newRig(t, apptest.Options{})
	for _, fields := range []apptest.Fields{
		{"algorithm": "none"}, {"algorithm": "hmac-md5"}, {"secret": nil, "algorithm": "plain"}, {"signature": false}, {"auth": apptest.Fields{"kind": "none"}}, {"auth": nil},
	} {
		fields["url"] = r.sink.URL("/unsigned")
		if answer := r.Call(apptest.Call{Path: "/v1/endpoints", Body: fields}); answer.Status != 400 && answer.Status != 422 {
			t.Errorf("%v: %d", fields, answer.Status)
		}
	}
	ep := r.Endpoint(r.sink.URL("/bare"), apptest.Fields{"patterns": []string{"x"}})
	if ep.Secret.ID == "" || len(ep.Secret.Value) < 40 {
		t.Errorf("an endpoint without credential was issued the secret %+v", ep.Secret)
	}
	// A signature remains whatever else is removed.
	r.Must(apptest.Call{Method: "PATCH", Path: "/v1/endpoints/" + ep.ID.String(), Body: apptest.Fields{"auth": nil, "headers": nil}}, nil)
	var rotated apptest.Secret
	r.EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 0}).JSON(t, &rotated)
	r.WaitDelivery(r.Publish("x", eventBody), ep, godwit.DeliveryAccepted)
	for _, req := range r.sink.Requests("") {
		if err := verify(t, &req, r.sink.URL("/bare"), r.Clock.Now, rotated); err != nil {
			t.Errorf("%s: %v", req.Path, err)
		}
	}
	for _, key := range []string{"none", "gdw_wrong"} {
		if answer := r.Call(apptest.Call{Key: key, Path: eventPath + "x", Body: eventBody}); answer.Status != http.StatusUnauthorized {
			t.Errorf("posting with the key %q: %d", key, answer.Status)
		}
	}
}

// TestContextIsTheEffectiveURI: the signed target is the URL of the request, also after a permanent redirect.
func TestContextIsTheEffectiveURI(t *testing.T) {
	trace.Covers(t, "EDS-KEY-8")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/old", apptest.Redirect(308, "/new/?b=2&a=%2f"))
	ep := r.Endpoint(r.sink.URL("/old?x=1;y"), apptest.Fields{"patterns": []string{"x"}})
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.WaitDelivery(got.ID, ep, godwit.DeliveryAccepted)
	next := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.WaitDelivery(next.ID, ep, godwit.DeliveryAccepted)
	target := r.sink.URL("/new/?b=2&a=%2f")
	if e := r.endpoint(ep); e.URL != target {
		t.Errorf("stored as %s", e.URL)
	}
	moved := r.sink.Requests("/new/")
	if len(moved) != 2 {
		t.Fatalf("%d requests to the new URL", len(moved))
	}
	for path, url := range map[string]string{"/old": r.sink.URL("/old?x=1;y"), "/new/": target} {
		for _, req := range r.sink.Requests(path) {
			if err := verify(t, &req, url, r.Clock.Now, ep.Secret); err != nil {
				t.Errorf("%s as seen at %s: %v", req.Path, url, err)
			}
			if verify(t, &req, r.sink.URL("/elsewhere"), r.Clock.Now, ep.Secret) == nil {
				t.Error("a signature for another URI passed")
			}
		}
	}
	sameEvent(t, got, eventBody, append(r.sink.Requests("/old"), moved[0])) // the key stays the same after the move
}
