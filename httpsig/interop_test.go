//go:build unix

package httpsig_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/interop"
)

// TestOutsideVerifiers sends live requests to receivers that verify with other libraries. They accept the requests that this
// package signs, and reject tampered ones.
func TestOutsideVerifiers(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...interop.Option) *interop.Receiver{
		"node": interop.StartNode, "python": interop.StartPython,
	} {
		t.Run(name, func(t *testing.T) {
			receiver := start(t)
			for algorithm, newKey := range signerKeys {
				t.Run(algorithm, func(t *testing.T) {
					receiver.SetKeys(t, interop.Key{ID: "secret-1", Secret: secret}, interop.Key{ID: "key-1", Public: edPublic})
					params := httpsig.Params{Keys: []httpsig.Key{newKey(t)}, Created: time.Now()}
					checkDeliveries(t, params, outside(receiver, http.DefaultClient))
				})
			}
			t.Run("rotation", func(t *testing.T) { checkOutsideRotation(t, receiver) })
			t.Run("all parameters", func(t *testing.T) {
				receiver.SetKeys(t, interop.Key{ID: "secret-1", Secret: secret})
				now := time.Now()
				params := httpsig.Params{
					Keys: []httpsig.Key{signerKeys["hmac-sha256"](t)}, Created: now, Expires: now.Add(time.Minute),
					Tag: `an "app"`, Label: "delivery", IncludeAlg: true, Nonce: `back\slash and "quote"`,
				}
				if ok, _ := outside(receiver, http.DefaultClient)(t, params, nil); !ok {
					t.Error("refused")
				}
			})
		})
	}
}

// TestOutsideVerifiersTLS does the same over https, where the target URI differs.
func TestOutsideVerifiersTLS(t *testing.T) {
	certFile, keyFile, client := certificate(t)
	for name, start := range map[string]func(testing.TB, ...interop.Option) *interop.Receiver{
		"node": interop.StartNode, "python": interop.StartPython,
	} {
		t.Run(name, func(t *testing.T) {
			receiver := start(t, interop.TLS(certFile, keyFile))
			receiver.SetKeys(t, interop.Key{ID: "key-1", Public: edPublic})
			send := outside(receiver, client)
			params := httpsig.Params{Keys: []httpsig.Key{signerKeys["ed25519"](t)}, Created: time.Now()}
			if ok, _ := send(t, params, nil); !ok {
				t.Error("whole delivery refused")
			}
			if ok, _ := send(t, params, func(r *http.Request) { r.URL.Path = "/other" }); ok {
				t.Error("tampered delivery accepted")
			}
		})
	}
}

// outside delivers to a receiver. Its response and its recorded result must agree.
func outside(receiver *interop.Receiver, client *http.Client) func(testing.TB, httpsig.Params, func(*http.Request)) (bool, httpsig.Reason) {
	return func(t testing.TB, p httpsig.Params, change func(*http.Request)) (bool, httpsig.Reason) {
		t.Helper()
		res := deliver(t, client, receiver.URL, p, change)
		verdict := receiver.Next(t)
		want := http.StatusUnauthorized
		if verdict.Accepted {
			want = http.StatusNoContent
		}
		if res.StatusCode != want {
			t.Errorf("answer %d, verdict %+v", res.StatusCode, verdict)
		}
		t.Logf("%s: %d %s", receiver.Name, res.StatusCode, verdict.Reason)
		return verdict.Accepted, ""
	}
}

func checkOutsideRotation(t *testing.T, receiver *interop.Receiver) {
	t.Helper()
	newSecret := bytes.Repeat([]byte("n"), 32)
	newKey := must(httpsig.NewHMACKey("secret-2", newSecret))(t)
	params := httpsig.Params{Keys: []httpsig.Key{newKey, signerKeys["hmac-sha256"](t)}, Created: time.Now()}
	for _, known := range []interop.Key{{ID: "secret-1", Secret: secret}, {ID: "secret-2", Secret: newSecret}} {
		t.Run(known.ID, func(t *testing.T) {
			receiver.SetKeys(t, known)
			deliver(t, http.DefaultClient, receiver.URL, params, nil)
			if verdict := receiver.Next(t); !verdict.Accepted || verdict.KeyID != known.ID {
				t.Errorf("verdict %+v", verdict)
			}
		})
	}
}

// certificate writes httptest's certificate for 127.0.0.1 to files.
func certificate(t testing.TB) (certFile, keyFile string, client *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key := must(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(certFile, "CERTIFICATE", pair.Certificate[0])
	write(keyFile, "PRIVATE KEY", key)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return certFile, keyFile, &http.Client{Transport: transport}
}
