package httpsig_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/trace"
)

// The tests send deliveries to this package's verifier and to those of other libraries: signed POST requests over a real
// connection, unchanged or tampered with.

var (
	secret     = []byte("a shared secret of enough bytes!")
	edPrivate  = ed25519.NewKeyFromSeed([]byte("an ed25519 seed has 32 bytes....")[:32])
	edPublic   = edPrivate.Public().(ed25519.PublicKey)
	signerKeys = map[string]func(testing.TB) httpsig.Key{
		"hmac-sha256": func(t testing.TB) httpsig.Key { return must(httpsig.NewHMACKey("secret-1", secret))(t) },
		"ed25519":     func(t testing.TB) httpsig.Key { return must(httpsig.NewEd25519Signer("key-1", edPrivate))(t) },
	}
)

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

const deliveryBody = `{"type":"order.created","id":17,"note":"déjà vu"}`

// deliver makes a signed request to url, calls change on it, and sends it.
func deliver(t testing.TB, client *http.Client, url string, p httpsig.Params, change func(*http.Request)) *http.Response {
	t.Helper()
	req := must(http.NewRequest(http.MethodPost, url+"/in/orders?tenant=7&x=a%20b", strings.NewReader(deliveryBody)))(t)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Idempotency-Key", `"`+rand.Text()+`"`)
	req.Header.Set("Content-Digest", httpsig.ContentDigest([]byte(deliveryBody)))
	if p.Nonce == "" {
		p.Nonce = rand.Text()
	}
	signer := must(httpsig.NewSigner(httpsig.DeliveryComponents()...))(t)
	if err := signer.SignRequest(req, p); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	res := must(client.Do(req))(t)
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res
}

func setBody(req *http.Request, body string) {
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	if body == "" {
		req.Body = http.NoBody
	}
}

// editInput changes the text of Signature-Input.
func editInput(from, to string) func(*http.Request) {
	return func(req *http.Request) {
		req.Header.Set("Signature-Input", strings.Replace(req.Header.Get("Signature-Input"), from, to, 1))
	}
}

// makeNewer moves the creation time by a second, which keeps the signature fresh.
func makeNewer(req *http.Request) {
	_, rest, _ := strings.Cut(req.Header.Get("Signature-Input"), "created=")
	created, _, _ := strings.Cut(rest, ";")
	seconds, _ := strconv.ParseInt(created, 10, 64)
	editInput(created, strconv.FormatInt(seconds+1, 10))(req)
}

// tamperings are changes to a delivery on its way, each with the reason that this package's verifier gives. Every verifier
// must reject all of them.
var tamperings = []struct {
	name   string
	reason httpsig.Reason
	change func(*http.Request)
}{
	{"body", httpsig.ReasonDigestMismatch, func(r *http.Request) { setBody(r, strings.Replace(deliveryBody, "17", "18", 1)) }},
	{"body and digest", httpsig.ReasonBadSignature, func(r *http.Request) {
		setBody(r, "{}")
		r.Header.Set("Content-Digest", httpsig.ContentDigest([]byte("{}")))
	}},
	{"body cut to nothing", httpsig.ReasonDigestMismatch, func(r *http.Request) { setBody(r, "") }},
	{"digest removed", httpsig.ReasonMissingComponent, func(r *http.Request) { r.Header.Del("Content-Digest") }},
	{"idempotency key", httpsig.ReasonBadSignature, func(r *http.Request) { r.Header.Set("Idempotency-Key", `"other"`) }},
	{"second idempotency key", httpsig.ReasonBadSignature, func(r *http.Request) { r.Header.Add("Idempotency-Key", `"other"`) }},
	{"idempotency key removed", httpsig.ReasonMissingComponent, func(r *http.Request) { r.Header.Del("Idempotency-Key") }},
	{"content type", httpsig.ReasonBadSignature, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
	{"method", httpsig.ReasonBadSignature, func(r *http.Request) { r.Method = http.MethodPut }},
	{"path", httpsig.ReasonBadSignature, func(r *http.Request) { r.URL.Path = "/in/refunds" }},
	{"query", httpsig.ReasonBadSignature, func(r *http.Request) { r.URL.RawQuery += "&admin=1" }},
	{"query spelling", httpsig.ReasonBadSignature, func(r *http.Request) { r.URL.RawQuery = "tenant=7&x=a+b" }},
	{"host", httpsig.ReasonBadSignature, func(r *http.Request) { r.Host = "other.example" }},
	{"timestamp", httpsig.ReasonBadSignature, makeNewer},
	{"nonce", httpsig.ReasonBadSignature, editInput(`nonce="`, `nonce="x`)},
	{"coverage", httpsig.ReasonMissingComponent, editInput(` "idempotency-key"`, "")},
	{"key id", httpsig.ReasonUnknownKey, editInput("-1\"", "-2\"")},
	{"signature", httpsig.ReasonBadSignature, func(r *http.Request) {
		r.Header.Set("Signature", "sig1="+flip(strings.TrimPrefix(r.Header.Get("Signature"), "sig1=")))
	}},
	{"signature removed", httpsig.ReasonMalformed, func(r *http.Request) { r.Header.Del("Signature") }},
	{"all removed", httpsig.ReasonMissing, func(r *http.Request) {
		r.Header.Del("Signature")
		r.Header.Del("Signature-Input")
	}},
}

// flip changes a byte of a serialised byte sequence.
func flip(sequence string) string {
	b := []byte(sequence)
	if b[5]++; b[5] == 'Z'+1 || b[5] == 'z'+1 || b[5] == '9'+1 || b[5] == '/'+1 || b[5] == '+'+1 {
		b[5] = 'A'
	}
	return string(b)
}

// ownReceiver is a server that verifies with this package: 204, or 401 and the reason.
func ownReceiver(t testing.TB, o httpsig.Options) http.Handler {
	t.Helper()
	verifier := must(httpsig.NewVerifier(o))(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = verifier.Verify(r, body)
		}
		if err != nil {
			w.Header().Set("Reason", string(httpsig.ReasonOf(err)))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// keyring finds the two keys of the tests; the ed25519 key can only verify.
func keyring(t testing.TB) func(context.Context, string) (httpsig.Key, error) {
	t.Helper()
	public := must(httpsig.NewEd25519Verifier("key-1", edPublic))(t)
	shared := signerKeys["hmac-sha256"](t)
	return func(_ context.Context, id string) (httpsig.Key, error) {
		switch id {
		case public.ID:
			return public, nil
		case shared.ID:
			return shared, nil
		}
		return httpsig.Key{}, fmt.Errorf("no key %q: %w", id, httpsig.ErrUnknownKey)
	}
}

// nonces remembers nonces, as a receiver's store does.
type nonces struct{ seen sync.Map }

func (n *nonces) Seen(_ context.Context, keyID, nonce string, _ time.Time) (bool, error) {
	_, loaded := n.seen.LoadOrStore(keyID+" "+nonce, true)
	return loaded, nil
}

// servers are the ways in which a request reaches a Go receiver.
var servers = map[string]func(http.Handler) *httptest.Server{
	"http/1.1": httptest.NewServer,
	"https":    httptest.NewTLSServer,
	"h2": func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = true
		s.StartTLS()
		return s
	},
}

func TestDelivery(t *testing.T) {
	for transport, serve := range servers {
		for algorithm, newKey := range signerKeys {
			t.Run(transport+"/"+algorithm, func(t *testing.T) {
				var memory nonces
				server := serve(ownReceiver(t, httpsig.Options{KeyByID: keyring(t), NonceSeen: memory.Seen}))
				t.Cleanup(server.Close)
				params := httpsig.Params{Keys: []httpsig.Key{newKey(t)}, Created: time.Now()}
				checkDeliveries(t, params, func(t testing.TB, p httpsig.Params, change func(*http.Request)) (bool, httpsig.Reason) {
					res := deliver(t, server.Client(), server.URL, p, change)
					return res.StatusCode == http.StatusNoContent, httpsig.Reason(res.Header.Get("Reason"))
				})
			})
		}
	}
}

// checkDeliveries sends unchanged and tampered requests and compares the results. For a verifier that gives no reason, only
// acceptance is compared.
func checkDeliveries(t *testing.T, p httpsig.Params, send func(testing.TB, httpsig.Params, func(*http.Request)) (bool, httpsig.Reason)) {
	t.Helper()
	t.Run("whole", func(t *testing.T) {
		if ok, reason := send(t, p, nil); !ok {
			t.Errorf("refused: %s", reason)
		}
	})
	t.Run("tampered", func(t *testing.T) {
		trace.Covers(t, "EDS-SEC-ITG-1")
		for _, c := range tamperings {
			t.Run(c.name, func(t *testing.T) {
				if ok, reason := send(t, p, c.change); ok || reason != "" && reason != c.reason {
					t.Errorf("accepted: %v, reason %q; want refused, %q", ok, reason, c.reason)
				}
			})
		}
	})
	t.Run("replayed", func(t *testing.T) {
		p := p
		p.Nonce = rand.Text()
		if ok, reason := send(t, p, nil); !ok {
			t.Errorf("first use of the nonce refused: %s", reason)
		}
		if ok, reason := send(t, p, nil); ok || reason != "" && reason != httpsig.ReasonReplayed {
			t.Errorf("second use of the nonce accepted: %v, reason %q", ok, reason)
		}
	})
	for name, shift := range map[string]time.Duration{"too-old": -310 * time.Second, "from-future": 310 * time.Second} {
		t.Run(name, func(t *testing.T) {
			p := p
			p.Created = p.Created.Add(shift)
			if ok, reason := send(t, p, nil); ok || reason != "" && string(reason) != name {
				t.Errorf("accepted: %v, reason %q", ok, reason)
			}
		})
	}
}

// TestRotation sends two signatures, by the new key and the old one: a receiver that knows either key accepts.
func TestRotation(t *testing.T) {
	newKey := must(httpsig.NewHMACKey("secret-2", bytes.Repeat([]byte("n"), 32)))(t)
	oldKey := signerKeys["hmac-sha256"](t)
	for _, known := range []httpsig.Key{newKey, oldKey} {
		t.Run(known.ID, func(t *testing.T) {
			server := httptest.NewServer(ownReceiver(t, httpsig.Options{
				KeyByID: func(_ context.Context, id string) (httpsig.Key, error) {
					if id != known.ID {
						return httpsig.Key{}, httpsig.ErrUnknownKey
					}
					return known, nil
				},
			}))
			t.Cleanup(server.Close)
			res := deliver(t, server.Client(), server.URL, httpsig.Params{Keys: []httpsig.Key{newKey, oldKey}, Created: time.Now()}, nil)
			if res.StatusCode != http.StatusNoContent {
				t.Errorf("refused: %s", res.Header.Get("Reason"))
			}
		})
	}
}
