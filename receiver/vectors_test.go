package receiver_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

func at(seconds int64) func() time.Time {
	return func() time.Time { return time.Unix(seconds, 0) }
}

// verdict verifies, and demands that a refusal is of the one type for it.
func verdict(t *testing.T, name string, s receiver.Scheme, req *http.Request, body []byte, now int64) (receiver.Proof, *receiver.SignatureError) {
	t.Helper()
	proof, err := receiver.Verify(s, req, body, receiver.VerifyOptions{
		Clock: at(now), TargetURI: func(req *http.Request) string { return req.URL.String() },
	})
	if err == nil {
		return proof, nil
	}
	refused, ok := errors.AsType[*receiver.SignatureError](err)
	if !ok {
		t.Fatalf("%s: %v (%T)", name, err, err)
	}
	return proof, refused
}

// dialectCase is a case of the dialects' files.
type dialectCase struct {
	Name       string
	Secrets    []string
	Keys       []string
	Now        int64
	ID         string
	Timestamp  string
	Signature  string
	Body       string
	BodyBase64 []byte `json:"body_base64"`
	Valid      bool
}

func (c *dialectCase) body() []byte {
	if c.BodyBase64 != nil {
		return c.BodyBase64
	}
	return []byte(c.Body)
}

type dialectFile struct {
	Fields map[string]string
	Sign   []struct {
		Name       string
		Secret     string
		Public     string
		ID         string
		Timestamp  int64
		Body       string
		BodyBase64 []byte `json:"body_base64"`
		Signature  string
		Never      []string
	}
	Verify []dialectCase
}

var dialects = map[string]func(*dialectCase) receiver.Scheme{
	"ojs":               func(c *dialectCase) receiver.Scheme { return receiver.OJS{Secrets: c.Secrets} },
	"cybercube":         func(c *dialectCase) receiver.Scheme { return receiver.Cybercube{Secrets: c.Secrets} },
	"standard-webhooks": func(c *dialectCase) receiver.Scheme { return receiver.StandardWebhooks{Keys: c.Keys} },
}

func dialectRequest(fields map[string]string, c *dialectCase) *http.Request {
	req := httptest.NewRequest("POST", "https://hooks.example.com/in", nil)
	for field, value := range map[string]string{"timestamp": c.Timestamp, "signature": c.Signature, "id": c.ID} {
		if name, ok := fields[field]; ok {
			req.Header.Set(name, value)
		}
	}
	return req
}

func TestDialectVectors(t *testing.T) {
	trace.Covers(t, "OJS-SIG-6", "OJS-SIG-7", "OJS-SIG-8", "OJS-SIG-9", "OJS-SIG-10", "OJS-SIG-11", "OJS-ROT-5",
		"CCW-SIG-10", "CCW-SIG-11", "CCW-SIG-12", "CCW-SIG-15", "CCW-SEC-14")
	for name, scheme := range dialects {
		t.Run(name, func(t *testing.T) {
			var file dialectFile
			readVectors(t, name+"-signatures.json", &file)
			for _, c := range file.Verify {
				proof, refused := verdict(t, c.Name, scheme(&c), dialectRequest(file.Fields, &c), c.body(), c.Now)
				if (refused == nil) != c.Valid {
					t.Errorf("%s: %v", c.Name, refused)
				}
				if c.Valid && (proof.Principal != name || proof.SignedAt.IsZero()) {
					t.Errorf("%s: %+v", c.Name, proof)
				}
			}
			for _, c := range file.Sign {
				key := c.Secret
				if c.Public != "" {
					key = c.Public
				}
				v := dialectCase{
					Secrets: []string{key}, Keys: []string{key}, Now: c.Timestamp, ID: c.ID, Timestamp: fmt.Sprint(c.Timestamp),
					Body: c.Body, BodyBase64: c.BodyBase64, Signature: c.Signature,
				}
				if _, refused := verdict(t, c.Name, scheme(&v), dialectRequest(file.Fields, &v), v.body(), v.Now); refused != nil {
					t.Errorf("%s: %v", c.Name, refused)
				}
				for _, v.Signature = range c.Never {
					if _, refused := verdict(t, c.Name, scheme(&v), dialectRequest(file.Fields, &v), v.body(), v.Now); refused == nil {
						t.Errorf("%s: %s was taken", c.Name, v.Signature)
					}
				}
			}
			if len(file.Verify) < 40 || len(file.Sign) < 7 {
				t.Errorf("only %d and %d cases", len(file.Verify), len(file.Sign))
			}
		})
	}
}

// TestStepsOfVerification: the step that fails is told, and in the order of the documents.
func TestStepsOfVerification(t *testing.T) {
	trace.Covers(t, "OJS-SIG-6", "CCW-SIG-8", "CCW-SIG-9", "CCW-SIG-14")
	for name, fields := range map[string][2]string{"ojs": {"X-OJS-Signature", "X-OJS-Timestamp"}, "cybercube": {"X-Webhook-Signature", "X-Webhook-Timestamp"}} {
		scheme := dialects[name](&dialectCase{Secrets: []string{"whsec_x"}})
		for _, c := range []struct {
			signature, timestamp string
			reason               receiver.Reason
			message              string
		}{
			{"", "1000", receiver.ReasonMissing, "Invalid signature format"},
			{"md5=00", "1000", receiver.ReasonMalformed, "Invalid signature format"},
			{"md5=00", "old", receiver.ReasonMalformed, "Invalid signature format"},
			{"sha256=00", "", receiver.ReasonMalformedTimestamp, "Invalid timestamp"},
			{"sha256=00", "12x", receiver.ReasonMalformedTimestamp, "Invalid timestamp"},
			{"sha256=00", "699", receiver.ReasonTooOld, "Timestamp outside tolerance"},
			{"sha256=00", "1301", receiver.ReasonFromFuture, "Timestamp outside tolerance"},
			{"sha256=00", "1000", receiver.ReasonMismatch, "Signature mismatch"},
			{"sha256=" + strings.Repeat("0", 64), "700", receiver.ReasonMismatch, "Signature mismatch"},
		} {
			req := httptest.NewRequest("POST", "https://hooks.example.com/in", nil)
			req.Header.Set(fields[0], c.signature)
			req.Header.Set(fields[1], c.timestamp)
			_, refused := verdict(t, name, scheme, req, []byte("{}"), 1000)
			if refused == nil || refused.Reason != c.reason || refused.Message != c.message {
				t.Errorf("%s %q %q: %+v", name, c.signature, c.timestamp, refused)
			}
		}
	}
}

func TestVendorVectors(t *testing.T) {
	type vendorCase struct {
		Name        string
		Secrets     []string
		Certificate string
		WebhookID   string `json:"webhook_id"`
		Now         int64
		URL         string
		Headers     map[string]string
		Body        string
		Valid       bool
		Key         string
		EventType   string `json:"event_type"`
	}
	schemes := map[string]func(*vendorCase) receiver.Scheme{
		"github":  func(c *vendorCase) receiver.Scheme { return receiver.GitHub{Secrets: c.Secrets} },
		"stripe":  func(c *vendorCase) receiver.Scheme { return receiver.Stripe{Secrets: c.Secrets} },
		"shopify": func(c *vendorCase) receiver.Scheme { return receiver.Shopify{Secrets: c.Secrets} },
		"slack":   func(c *vendorCase) receiver.Scheme { return receiver.Slack{Secrets: c.Secrets} },
		"twilio":  func(c *vendorCase) receiver.Scheme { return receiver.Twilio{Secrets: c.Secrets} },
		"paypal": func(c *vendorCase) receiver.Scheme {
			return receiver.PayPal{WebhookID: c.WebhookID, Certificates: []string{c.Certificate}}
		},
	}
	var file struct{ Vendors map[string][]vendorCase }
	readVectors(t, "vendor-signatures.json", &file)
	if len(file.Vendors) != len(schemes) {
		t.Errorf("%d vendors", len(file.Vendors))
	}
	for vendor, cases := range file.Vendors {
		t.Run(vendor, func(t *testing.T) {
			for _, c := range cases {
				req := httptest.NewRequest("POST", c.URL, nil)
				for name, value := range c.Headers {
					req.Header.Set(name, value)
				}
				scheme := schemes[vendor](&c)
				if _, refused := verdict(t, c.Name, scheme, req, []byte(c.Body), c.Now); (refused == nil) != c.Valid {
					t.Errorf("%s: %v", c.Name, refused)
				}
				if !c.Valid {
					continue
				}
				v, err := receiver.NewVerifier(scheme, receiver.VerifyOptions{
					Clock: at(c.Now), TargetURI: func(req *http.Request) string { return req.URL.String() },
				})
				if err != nil {
					t.Fatal(err)
				}
				d, err := v.Delivery(t.Context(), req, []byte(c.Body))
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				if c.Key != "" && d.Key != c.Key || c.EventType != "" && d.EventType != c.EventType {
					t.Errorf("%s: key %q, type %q; want %q, %q", c.Name, d.Key, d.EventType, c.Key, c.EventType)
				}
			}
		})
	}
}

func TestEDSVectors(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-1", "EDS-SEC-THR-3", "EDS-SEC-RPL-4", "EDS-KEY-6", "EDS-SEC-AUT-2")
	var file struct {
		Keys []struct {
			ID, Principal, Secret string
			PublicKey             string `json:"public_key"`
		}
		Cases []struct {
			Name      string
			Now       int64
			Method    string
			URL       string
			Headers   map[string]string
			Body      string
			Valid     bool
			Reason    receiver.Reason
			Principal string
			Key       string
			EventID   *string `json:"event_id"`
			EventType *string `json:"event_type"`
		}
	}
	readVectors(t, "eds-requests.json", &file)
	var scheme receiver.EDS
	for _, k := range file.Keys {
		scheme.Keys = append(scheme.Keys, receiver.EDSKey{ID: k.ID, Principal: k.Principal, Secret: k.Secret, PublicKey: k.PublicKey})
	}
	for _, c := range file.Cases {
		req := httptest.NewRequest(c.Method, c.URL, nil)
		for name, value := range c.Headers {
			req.Header.Set(name, value)
		}
		proof, refused := verdict(t, c.Name, scheme, req, []byte(c.Body), c.Now)
		switch {
		case c.Valid && (refused != nil || proof.Principal != c.Principal):
			t.Errorf("%s: %v, %+v", c.Name, refused, proof)
		case !c.Valid && (refused == nil || c.Reason != "" && refused.Reason != c.Reason):
			t.Errorf("%s: %+v, want %s", c.Name, refused, c.Reason)
		}
		if !c.Valid {
			continue
		}
		v, err := receiver.NewVerifier(scheme, receiver.VerifyOptions{Clock: at(c.Now)})
		if err != nil {
			t.Fatal(err)
		}
		d, err := v.Delivery(t.Context(), req, []byte(c.Body))
		if err != nil || d.Key != c.Key {
			t.Errorf("%s: %+v, %v", c.Name, d, err)
			continue
		}
		if c.EventType != nil && d.EventType != *c.EventType || c.EventID != nil && d.EventID != *c.EventID {
			t.Errorf("%s: event %q of type %q", c.Name, d.EventID, d.EventType)
		}
	}
	if len(file.Cases) < 40 {
		t.Errorf("only %d cases", len(file.Cases))
	}
}

// TestFewerComponents: where the address is not among what has to be signed, another one does not make another event.
func TestFewerComponents(t *testing.T) {
	scheme := edsScheme
	scheme.Components = []string{"content-digest", "idempotency-key"}
	g := newRig(t, withScheme(scheme), func(o *receiver.Options) { o.Freshness.Off = true })
	for _, query := range []string{"", "a=1", "a=2"} {
		e := event{id: id("x")}.withDefaults()
		req := g.request(e)
		req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
		req.Header.Set("Content-Digest", httpsig.ContentDigest([]byte(e.body)))
		key, err := httpsig.NewHMACKey("shop-1", decode(t, edsSecret("shop-1")))
		if err != nil {
			t.Fatal(err)
		}
		signer, err := httpsig.NewSigner(scheme.Components...)
		if err != nil {
			t.Fatal(err)
		}
		if err := signer.SignRequest(req, httpsig.Params{Keys: []httpsig.Key{key}, Created: g.clock.Now()}); err != nil {
			t.Fatal(err)
		}
		req.URL.RawQuery = query
		g.want(g.do(req), 204)
	}
	g.wantCalls(1)
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestLookupContext: keys are looked up with the context that the caller gives.
func TestLookupContext(t *testing.T) {
	type mark struct{}
	var got any
	v, err := receiver.NewVerifier(receiver.EDS{KeyByID: func(ctx context.Context, id string) (receiver.EDSKey, error) {
		got = ctx.Value(mark{})
		return receiver.EDSKey{ID: id, Principal: "shop", Secret: edsSecret(id)}, nil
	}}, receiver.VerifyOptions{Clock: at(start.Unix())})
	if err != nil {
		t.Fatal(err)
	}
	e := event{id: id("x")}.withDefaults()
	req := httptest.NewRequest("POST", "https://hooks.example.com/hooks", nil)
	req.RequestURI = ""
	req.Header.Set("Content-Type", e.typ)
	req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
	if err := signEDS(req, e.body, "shop-1", start); err != nil {
		t.Fatal(err)
	}
	proof, err := v.Verify(context.WithValue(t.Context(), mark{}, "mine"), req, []byte(e.body))
	if err != nil || proof.Principal != "shop" || got != "mine" {
		t.Errorf("%+v, %v; the context holds %v", proof, err, got)
	}
	if _, err := receiver.NewVerifier(receiver.Profile{Name: "x"}, receiver.VerifyOptions{}); err == nil {
		t.Error("a profile that is not complete was taken")
	}
}

// TestKeysByLookup: a key that is found elsewhere is as good, one that cannot be looked up is not the sender's fault.
func TestKeysByLookup(t *testing.T) {
	calls := 0
	g := newRig(t, withScheme(receiver.EDS{KeyByID: lookup(&calls)}))
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	g.want(g.do(g.eds(event{id: id("x"), key: "bank-1"})), 503)
	g.want(g.do(g.eds(event{id: id("x"), key: "stranger"})), 401)
	if calls != 3 {
		t.Errorf("%d lookups", calls)
	}
	g.wantCalls(1)
}
