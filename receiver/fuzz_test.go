package receiver_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/receiver"
)

// FuzzVerify: whatever the headers hold, verification is a verdict of one type, and never a panic (OJS-SIG-10).
func FuzzVerify(f *testing.F) {
	f.Add("sha256=00", "1000", "id", []byte(`{}`), "application/json", "/in?a=b")
	f.Add("t=1,v1=00", "1", "", []byte(""), "application/x-www-form-urlencoded", "/")
	f.Add("v1,AAAA v1a,BBBB", "9999999999999999999", "\x00", []byte("a=b&c=%zz"), "", "*")
	f.Add(`sig1=("@method");created=1;keyid="shop-1";nonce="n"`, "", "", []byte("x"), "text/plain", "/%2F?")
	var verifiers []*receiver.Verifier
	for _, m := range mechanisms() {
		v, err := receiver.NewVerifier(m.scheme, receiver.VerifyOptions{Clock: at(1000)})
		if err != nil {
			f.Fatal(err)
		}
		verifiers = append(verifiers, v)
	}
	names := []string{"X-OJS-Signature", "X-Webhook-Signature", "Webhook-Signature", "X-Hub-Signature-256", "Stripe-Signature", "X-Shopify-Hmac-Sha256",
		"X-Slack-Signature", "X-Twilio-Signature", "PAYPAL-TRANSMISSION-SIG", "PAYPAL-CERT-URL", "Authorization", "Signature", "Signature-Input", "Content-Digest"}
	times := []string{"X-OJS-Timestamp", "X-Webhook-Timestamp", "Webhook-Timestamp", "X-Slack-Request-Timestamp", "PAYPAL-TRANSMISSION-TIME"}
	ids := []string{"X-OJS-Delivery-ID", "Webhook-Id", "X-GitHub-Delivery", "X-Shopify-Event-Id", "I-Twilio-Idempotency-Token", "PAYPAL-TRANSMISSION-ID", "Idempotency-Key"}
	f.Fuzz(func(t *testing.T, signature, timestamp, id string, body []byte, typ, target string) {
		req := httptest.NewRequest("POST", "https://hooks.example.com/", nil)
		req.RequestURI = target
		req.Header.Set("PAYPAL-AUTH-ALGO", "SHA256withRSA")
		req.Header.Set("Content-Type", typ)
		for value, fields := range map[string][]string{signature: names, timestamp: times, id: ids} {
			for _, field := range fields {
				req.Header.Set(field, value)
			}
		}
		for i, v := range verifiers {
			_, err := v.Delivery(t.Context(), req, body)
			_, refused := errors.AsType[*receiver.SignatureError](err)
			if err != nil && !refused {
				t.Fatalf("scheme %d: %v (%T)", i, err, err)
			}
			if err == nil {
				t.Fatalf("scheme %d took it", i)
			}
		}
	})
}

// FuzzParseKey: a key is printable ASCII of the right length, and reads the same when it is written again.
func FuzzParseKey(f *testing.F) {
	f.Add(`"8e03978e-40d5-43e8-bc93-6894a57f9324"`, false)
	f.Add(`"a\"b\\c-0123456789";x=1`, true)
	f.Add(`bare-0123456789abcdef`, true)
	f.Fuzz(func(t *testing.T, line string, lenient bool) {
		key, err := receiver.ParseKey([]string{line}, receiver.KeyPolicy{Lenient: lenient})
		if err != nil {
			if _, ok := errors.AsType[*receiver.DeliveryError](err); !ok {
				t.Fatalf("%v (%T)", err, err)
			}
			return
		}
		if len(key) < 16 || len(key) > 255 || !utf8.ValidString(key) {
			t.Fatalf("key %q", key)
		}
		quoted := `"`
		for _, c := range []byte(key) {
			if c < ' ' || c > '~' {
				t.Fatalf("key %q", key)
			}
			if c == '"' || c == '\\' {
				quoted += `\`
			}
			quoted += string(rune(c))
		}
		if again, err := receiver.ParseKey([]string{quoted + `"`}, receiver.KeyPolicy{}); err != nil || again != key {
			t.Fatalf("%q became %q, %v", key, again, err)
		}
	})
}

// FuzzJob: what is read as a job can be written and read again.
func FuzzJob(f *testing.F) {
	job := receiver.Job{ID: "x", Delivery: &receiver.Delivery{Header: http.Header{"A": {"b"}}, Body: []byte("{}"), ReceivedAt: start}}
	text, err := json.Marshal(job)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var j receiver.Job
		if json.Unmarshal(text, &j) != nil {
			return
		}
		again, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &j); err != nil {
			t.Fatal(err)
		}
	})
}
