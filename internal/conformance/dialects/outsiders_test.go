//go:build unix

package dialects

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/interop"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A speech is a dialect with a signature algorithm.
type speech struct{ profile, algorithm string }

var speeches = []speech{
	{"ojs", godwit.AlgorithmHMAC},
	{"cybercube", godwit.AlgorithmHMAC},
	{"standard-webhooks", godwit.AlgorithmHMAC},
	{"standard-webhooks", godwit.AlgorithmEd25519},
}

// TestOutsideReceivers delivers to receivers on Node and Python that verify as the documents say, over https and through a
// rotation of the secret.
func TestOutsideReceivers(t *testing.T) {
	ca := apptest.CAFile(t)
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.CAFile = ca }})
	cert, key := certificateFiles(t)
	for name, start := range map[string]func(testing.TB, ...interop.Option) *interop.Receiver{
		"node": interop.StartNodeDialects, "python": interop.StartPythonDialects,
	} {
		t.Run(name, func(t *testing.T) {
			receiver := start(t, interop.TLS(cert, key))
			for _, s := range speeches {
				t.Run(s.profile+" "+s.algorithm, func(t *testing.T) {
					switch s.profile {
					case "ojs":
						trace.Covers(t, "OJS-SIG-1", "OJS-ROT-2", "OJS-CON-3")
					case "cybercube":
						trace.Covers(t, "CCW-SIG-1", "CCW-SEC-9")
					}
					throughRotation(t, srv, receiver, s, name+"."+s.profile+"."+s.algorithm)
				})
			}
		})
	}
}

// throughRotation delivers with the first secret, with both during the overlap, and with the last alone.
func throughRotation(t *testing.T, srv *apptest.Server, receiver *interop.Receiver, s speech, kind string) {
	t.Helper()
	ep := srv.Endpoint(receiver.URL+"/hook?for="+kind, apptest.Fields{"patterns": []string{kind}, "profile": s.profile, "algorithm": s.algorithm})
	accept := func(when string, known apptest.Secret) {
		t.Helper()
		receiver.SetKeys(t, interop.Key{ID: known.ID, Dialect: s.profile, Text: receiverKey(t, known)})
		ev := srv.Publish(kind, `{"order":4711,"text":"é漢😀"}`)
		srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		v := receiver.Next(t)
		if !v.Accepted || v.KeyID != known.ID || v.Method != http.MethodPost || !json.Valid([]byte(v.Body)) {
			t.Errorf("%s: %+v", when, v)
		}
	}
	accept("the first secret", ep.Secret)
	var second, third apptest.Secret
	srv.EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 3600}).JSON(t, &second)
	accept("the overlap, old secret", ep.Secret)
	accept("the overlap, new secret", second)
	srv.EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 0}).JSON(t, &third)
	accept("the end of the rotation", third)

	receiver.SetKeys(t, interop.Key{ID: "revoked", Dialect: s.profile, Text: receiverKey(t, ep.Secret)})
	ev := srv.Publish(kind, `{}`)
	srv.WaitAttempts(ev, ep, 1)
	if v := receiver.Next(t); v.Accepted {
		t.Errorf("accepted with a revoked secret: %+v", v)
	}
	srv.EndpointCall(ep, http.MethodDelete, "", nil)
}

// receiverKey is what the owner of an endpoint configures at its receiver.
func receiverKey(t testing.TB, s apptest.Secret) string {
	t.Helper()
	if s.Algorithm != godwit.AlgorithmEd25519 {
		return s.Value
	}
	public, err := base64.StdEncoding.DecodeString(s.PublicKey)
	if err != nil {
		t.Fatalf("public key %q: %v", s.PublicKey, err)
	}
	return "whpk_" + base64.StdEncoding.EncodeToString(public)
}

// TestOfficialLibrary has live deliveries verified by the Standard Webhooks project's own library, also while two secrets
// sign and with a secret that the owner brought along.
func TestOfficialLibrary(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	sink := apptest.NewSink(t)
	own := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	ep := srv.Endpoint(sink.URL("/standard"), apptest.Fields{"profile": "standard-webhooks", "secret": own})
	if ep.Secret.Value != own {
		t.Errorf("issued %q", ep.Secret.Value)
	}
	var next apptest.Secret
	for i, known := range []func() string{
		func() string { return own },
		func() string {
			srv.EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 3600}).JSON(t, &next)
			return own
		},
		func() string { return next.Value },
	} {
		secret := known()
		ev := srv.Publish("order.paid", `{"n":`+string(rune('0'+i))+`}`)
		srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		request := sink.WaitOn("/standard", i+1)[i]
		wh, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := wh.Verify(request.Body, request.Header); err != nil {
			t.Errorf("delivery %d: %v", i+1, err)
		}
		if err := wh.Verify(append(request.Body, ' '), request.Header); err == nil {
			t.Errorf("delivery %d: a changed body passes", i+1)
		}
		if got := request.Header.Get("Webhook-Id"); got != ev.String() {
			t.Errorf("webhook-id %q, want %s", got, ev)
		}
	}
}
