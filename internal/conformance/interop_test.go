//go:build unix

package conformance

import (
	"crypto/ed25519"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/interop"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestOutsideVerifiers delivers to receivers with independent implementations of verification, in real time: HMAC and
// Ed25519, through a rotation of the secret, over https.
func TestOutsideVerifiers(t *testing.T) {
	trust := trusting(t)
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { trust(c) }})
	certFile, keyFile := certificateFiles(t)
	for name, startReceiver := range map[string]func(testing.TB, ...interop.Option) *interop.Receiver{
		"node": interop.StartNode, "python": interop.StartPython,
	} {
		t.Run(name, func(t *testing.T) {
			receiver := startReceiver(t, interop.TLS(certFile, keyFile))
			for _, algorithm := range []string{godwit.AlgorithmHMAC, godwit.AlgorithmEd25519} {
				t.Run(algorithm, func(t *testing.T) {
					trace.Covers(t, "EDS-SEC-AUT-2", "EDS-KEY-2")
					throughRotation(t, srv, receiver, name+"."+algorithm, algorithm)
				})
			}
		})
	}
}

// throughRotation delivers with the first secret, with both during the overlap, and with the second alone.
func throughRotation(t *testing.T, srv *apptest.Server, receiver *interop.Receiver, kind, algorithm string) {
	t.Helper()
	ep := srv.Endpoint(receiver.URL+"/hook?for="+kind, apptest.Fields{"patterns": []string{kind}, "algorithm": algorithm})
	accept := func(when string, known apptest.Secret) {
		t.Helper()
		receiver.SetKeys(t, outsideKey(t, known))
		key := quoted("key of " + when + ` \ "` + kind + `"`)
		ev := srv.Post(apptest.Call{Path: eventPath + kind, Body: eventBody, Header: map[string]string{"Idempotency-Key": key}})
		srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		if v := receiver.Next(t); !v.Accepted || v.KeyID != known.ID || v.IdempotencyKey != key {
			t.Errorf("%s: %+v", when, v)
		}
	}
	accept("the first secret", ep.Secret)
	var second apptest.Secret
	srv.EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 3600}).JSON(t, &second)
	accept("the overlap, old secret", ep.Secret)
	accept("the overlap, new secret", second)
	var third apptest.Secret
	srv.EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 0}).JSON(t, &third)
	accept("the end of the rotation", third)

	receiver.SetKeys(t, outsideKey(t, ep.Secret)) // revoked: the receiver refuses twice, and the delivery ends
	ev := srv.Publish(kind, eventBody)
	srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
	for range 2 {
		if v := receiver.Next(t); v.Accepted {
			t.Errorf("accepted with a revoked secret: %+v", v)
		}
	}
}

func outsideKey(t testing.TB, s apptest.Secret) interop.Key {
	t.Helper()
	if s.Algorithm == godwit.AlgorithmEd25519 {
		return interop.Key{ID: s.ID, Public: ed25519.PublicKey(decoded(t, s.PublicKey))}
	}
	return interop.Key{ID: s.ID, Secret: decoded(t, s.Value)}
}

// certificateFiles makes a certificate of the test authority for 127.0.0.1.
func certificateFiles(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	cert, key := apptest.ServerCertificate(t, "127.0.0.1", "localhost")
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for name, text := range map[string]string{certFile: cert, keyFile: key} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// TestRetrySignedAnewStaysFresh: a retry hours later is signed at its own time, so that it passes the receiver's freshness
// check.
func TestRetrySignedAnewStaysFresh(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-4")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/late", apptest.RetryAfter(503, "7200"), ok)
	ep := r.Endpoint(r.sink.URL("/late"), apptest.Fields{"patterns": []string{"x"}})
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.WaitAttempts(got.ID, ep, 1)
	if err := verify(t, &r.sink.Requests("/late")[0], r.sink.URL("/late"), r.Clock.Now, ep.Secret); err != nil {
		t.Errorf("first attempt: %v", err)
	}
	r.pass(2*time.Hour + time.Minute)
	requests := r.sink.WaitOn("/late", 2)
	if err := verify(t, &requests[1], r.sink.URL("/late"), r.Clock.Now, ep.Secret); err != nil {
		t.Errorf("retry: %v", err)
	}
	if err := verify(t, &requests[0], r.sink.URL("/late"), r.Clock.Now, ep.Secret); err == nil {
		t.Error("the first attempt would still pass two hours later")
	}
	newlySigned(t, requests)
}
