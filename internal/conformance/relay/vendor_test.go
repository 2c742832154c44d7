package relay

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" // Twilio's scheme has no other
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"hash"
	"hash/crc32"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

func mac(h func() hash.Hash, secret, format string, args ...any) []byte {
	m := hmac.New(h, []byte(secret))
	fmt.Fprintf(m, format, args...)
	return m.Sum(nil)
}

func signSlack(secret string, at time.Time) func(*http.Request, []byte) {
	return func(q *http.Request, body []byte) {
		q.Header.Set("X-Slack-Request-Timestamp", fmt.Sprint(at.Unix()))
		q.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac(sha256.New, secret, "v0:%d:%s", at.Unix(), body)))
	}
}

// paypalKey signs as PayPal does, with a certificate of the test's own.
var paypalKey = sync.OnceValues(func() (*rsa.PrivateKey, string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
})

// A vendor is a third party that signs in its own way and sends no Idempotency-Key.
type vendor struct {
	scheme    string
	media     string
	fields    apptest.Fields // of the source, beside the secret
	timed     bool           // a time is signed
	eventType string
	// body is that of an event of this id; sign completes its request.
	body func(id string) string
	sign func(q *http.Request, body []byte, secret, id string, at time.Time)
}

const vendorSecret = "a shared secret of some length"

func vendors() []vendor {
	object := func(format string) func(string) string {
		return func(id string) string { return fmt.Sprintf(format, id) }
	}
	return []vendor{
		{scheme: "github", media: "application/json", eventType: "pull_request", body: object(`{"action": "opened",  "n":%q}`),
			sign: func(q *http.Request, body []byte, secret, id string, _ time.Time) {
				q.Header.Set("X-GitHub-Event", "pull_request")
				q.Header.Set("X-GitHub-Delivery", id)
				q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac(sha256.New, secret, "%s", body)))
			}},
		{scheme: "stripe", media: "application/json; charset=utf-8", timed: true, eventType: "charge.succeeded", body: object("{\n  \"id\": %q,\n  \"type\": \"charge.succeeded\"\n}"),
			sign: func(q *http.Request, body []byte, secret, _ string, at time.Time) {
				q.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%x,v0=00", at.Unix(), mac(sha256.New, secret, "%d.%s", at.Unix(), body)))
			}},
		{scheme: "shopify", media: "application/json", eventType: "orders.create", body: object(`{"order":%q}`),
			sign: func(q *http.Request, body []byte, secret, id string, _ time.Time) {
				q.Header.Set("X-Shopify-Topic", "orders/create")
				q.Header.Set("X-Shopify-Event-Id", id)
				q.Header.Set("X-Shopify-Webhook-Id", "w-"+id+rand.Text())
				q.Header.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(mac(sha256.New, secret, "%s", body)))
			}},
		{scheme: "slack", media: "application/json", timed: true, eventType: "app_mention", body: object(`{"type":"event_callback","event_id":%q,"event":{"type":"app_mention"}}`),
			sign: func(q *http.Request, body []byte, secret, _ string, at time.Time) { signSlack(secret, at)(q, body) }},
		{scheme: "twilio", media: "application/x-www-form-urlencoded", eventType: "delivered", body: func(id string) string {
			return url.Values{"MessageSid": {"SM" + id}, "MessageStatus": {"delivered"}, "To": {"+15551234567"}, "Body": {"a b&c"}}.Encode()
		}, sign: func(q *http.Request, body []byte, secret, id string, _ time.Time) {
			form, _ := url.ParseQuery(string(body))
			names := make([]string, 0, len(form))
			for name := range form {
				names = append(names, name)
			}
			slices.Sort(names)
			text := q.URL.String()
			for _, name := range names {
				text += name + form.Get(name)
			}
			q.Header.Set("I-Twilio-Idempotency-Token", id)
			q.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac(sha1.New, secret, "%s", text)))
		}},
		{scheme: "paypal", media: "application/json", timed: true, eventType: "PAYMENT.CAPTURE.COMPLETED",
			fields: apptest.Fields{"settings": apptest.Fields{"webhook_id": "WH-1"}},
			body:   object(`{"id":%q,"event_type":"PAYMENT.CAPTURE.COMPLETED"}`),
			sign: func(q *http.Request, body []byte, secret, id string, at time.Time) {
				key, _ := paypalKey()
				transmission, time := "t-"+id, at.Format("2006-01-02T15:04:05Z")
				sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|WH-1|%d", transmission, time, crc32.ChecksumIEEE(body)))
				if secret != vendorSecret {
					sum[0]++ // as an attacker without the key
				}
				signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
				if err != nil {
					panic(err)
				}
				for name, value := range map[string]string{"Id": transmission, "Time": time, "Sig": base64.StdEncoding.EncodeToString(signature)} {
					q.Header.Set("Paypal-Transmission-"+name, value)
				}
				q.Header.Set("Paypal-Auth-Algo", "SHA256withRSA")
				q.Header.Set("Paypal-Cert-Url", "https://api.paypal.com/v1/notifications/certs/CERT-1")
			}},
	}
}

// TestVendors: deliveries of each vendor reach the endpoint, including redeliveries; forged ones are refused.
func TestVendors(t *testing.T) {
	for _, v := range vendors() {
		t.Run(v.scheme, func(t *testing.T) {
			trace.Covers(t, "EDS-INT-12", "EDS-SEC-THR-1", "EDS-SEC-AUT-2")
			r := newRig(t, apptest.Options{})
			ep := r.Endpoint(r.sink.URL("/to"), apptest.Fields{"patterns": []string{v.eventType}})
			fields := apptest.Fields{"scheme": v.scheme, "adopt": true, "event_type": apptest.Fields{}, "credentials": []apptest.Fields{{"secret": vendorSecret}}}
			if v.scheme == "paypal" {
				_, certificate := paypalKey()
				fields["credentials"] = []apptest.Fields{{"public_key": certificate}}
			}
			for name, value := range v.fields {
				fields[name] = value
			}
			s := r.Source(v.scheme, fields)
			send := func(id, secret string, at time.Time, change func(*http.Request)) answer {
				r.Advance(time.Millisecond) // so that the last rejection is the newest
				body := v.body(id)
				return r.send(delivery{Path: s.Path, Body: body, Header: http.Header{"Content-Type": {v.media}}, Sign: func(q *http.Request, _ []byte) {
					v.sign(q, []byte(body), secret, id, at)
					if change != nil {
						change(q)
					}
				}})
			}
			now := r.Clock.Now()
			first := r.want(send("id-000001", vendorSecret, now, nil), 200)
			again := r.want(send("id-000001", vendorSecret, now.Add(time.Second), nil), 200) // a redelivery, signed anew
			other := r.want(send("id-000002", vendorSecret, now, nil), 200)
			if again.ID != first.ID || other.ID == first.ID || other.Key == first.Key {
				t.Errorf("events %s, %s and %s", first.ID, again.ID, other.ID)
			}
			arrived := r.sink.Requests("/to")
			if len(arrived) != 2 {
				t.Fatalf("%d arrived", len(arrived))
			}
			for i, id := range []string{"id-000001", "id-000002"} {
				sameBody(t, &arrived[i], v.media, v.body(id))
				if key, err := uuid.Parse(strings.Trim(arrived[i].Key(), `"`)); err != nil || key.Version() != 8 {
					t.Errorf("the key is %s", arrived[i].Key())
				}
				if got := arrived[i].Header.Get("Godwit-Event-Type"); got != v.eventType {
					t.Errorf("the type is %q", got)
				}
				r.verify(&arrived[i], ep.Secret, nil)
				for name := range arrived[i].Header {
					if lower := strings.ToLower(name); strings.Contains(lower, v.scheme) || lower == "x-hub-signature-256" {
						t.Errorf("%s of the vendor's hop went on", name)
					}
				}
			}
			refuse := func(reason string, a answer) {
				t.Helper()
				r.want(a, 401)
				if got := r.rejections(s)[0].Reason; got != reason {
					t.Errorf("refused as %q, want %q", got, reason)
				}
			}
			refuse("mismatch", send("id-000003", "somebody else's secret", now, nil))
			refuse("missing", send("id-000003", vendorSecret, now, func(q *http.Request) {
				for name := range q.Header {
					if strings.Contains(name, "Signature") || strings.Contains(name, "Hmac") || strings.HasSuffix(name, "-Sig") {
						q.Header.Del(name)
					}
				}
			}))
			if v.timed {
				refuse("too-old", send("id-000003", vendorSecret, now.Add(-301*time.Second), nil))
				refuse("from-future", send("id-000003", vendorSecret, now.Add(301*time.Second), nil))
			}
			if n := len(r.sink.Requests("/to")); n != 2 {
				t.Errorf("%d arrived in the end", n)
			}
		})
	}
}
