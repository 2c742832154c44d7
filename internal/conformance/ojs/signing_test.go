package ojs

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestSignatures checks every kind of request on the wire.
func TestSignatures(t *testing.T) {
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"})
	r.sink.Script("/hook", reply(500, 404, 200)...)
	ev := r.publish("job.done")
	r.settle()
	r.pass(schedule[0])
	r.retry(t, 202, r.delivery(ev, s).ID)
	r.settle()
	r.send(t, 200, apptest.Call{Method: "POST", Path: s.at("/test")})
	requests := r.requests(s)
	if len(requests) != 4 { // first, retry, by hand, test
		t.Fatalf("%d requests", len(requests))
	}
	t.Run("all are signed", func(t *testing.T) {
		trace.Covers(t, "OJS-SIG-1")
		for _, req := range requests {
			if got, want := req.Header.Get("X-OJS-Signature"), sign(s.secret, req.Header.Get("X-OJS-Timestamp"), req.Body); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		for _, body := range []string{`{"secret":null}`, `{"secret":""}`, `{"sign":false,"secret":"none"}`} {
			r.send(t, 400, apptest.Call{Path: subscriptionsPath, Body: `{"url":"https://example.com/","events":["*"],` + body[1:]})
		}
		for _, setting := range config.Settings() {
			if strings.Contains(setting.Flag, "sign") {
				t.Errorf("there is a setting %s", setting.Flag)
			}
		}
	})
	t.Run("form", func(t *testing.T) {
		trace.Covers(t, "OJS-SIG-4")
		for _, req := range requests {
			if got := req.Header["X-Ojs-Signature"]; len(got) != 1 || !signatureField.MatchString(got[0]) || strings.Contains(got[0], ",") {
				t.Errorf("%q", got)
			}
		}
	})
	t.Run("not over the body alone", func(t *testing.T) {
		trace.Covers(t, "OJS-SIG-5")
		for _, req := range requests {
			mac := hmac.New(sha256.New, []byte(s.secret))
			mac.Write(req.Body)
			if strings.Contains(req.Header.Get("X-OJS-Signature"), hex.EncodeToString(mac.Sum(nil))) {
				t.Errorf("%q is over the body alone", req.Header.Get("X-OJS-Signature"))
			}
		}
		a, b := requests[0], requests[1] // one body at two times
		if string(a.Body) != string(b.Body) || a.Header.Get("X-OJS-Signature") == b.Header.Get("X-OJS-Signature") {
			t.Error("the time does not count")
		}
	})
}

// TestKnownSignature signs with the fixed secret; sign is compared with the published value first.
func TestKnownSignature(t *testing.T) {
	trace.Covers(t, "OJS-SIG-2", "OJS-SIG-3")
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	if got := sign(secret, "1708030665", []byte(`{"specversion":"1.0","type":"webhook.test"}`)); got != "sha256=326f02d1b2ff0009058edb26e34a93aae45c483c3f925cfe3a03b28025fda62e" {
		t.Fatalf("the test itself signs wrongly: %s", got)
	}
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"}, object{"secret": secret})
	if s.secret != secret {
		t.Errorf("secret %q", s.secret)
	}
	r.publish("job.done")
	req := r.requests(s)[0]
	verify(t, req, secret, r.Clock.Now())
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{string(key), strings.TrimPrefix(secret, "whsec_")} {
		if req.Header.Get("X-OJS-Signature") == sign(other, req.Header.Get("X-OJS-Timestamp"), req.Body) {
			t.Error("the key is not the whole text of the secret")
		}
	}
}

func TestTransport(t *testing.T) {
	t.Run("https is required", func(t *testing.T) {
		trace.Covers(t, "OJS-SIG-12", "OJS-SIG-13")
		if config.Default().AllowHTTP {
			t.Error("http is allowed by default")
		}
		r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowHTTP = false }})
		got := r.send(t, 400, apptest.Call{Path: subscriptionsPath, Body: `{"url":"http://example.com/x","events":["*"]}`})
		if !occurs(got, `"field":"url"`) {
			t.Errorf("%v", got)
		}
		made := r.send(t, 201, apptest.Call{Path: subscriptionsPath, Body: `{"url":"https://example.com/x","events":["*"]}`})
		at := subscriptionsPath + "/" + made["id"].(string)
		r.send(t, 400, apptest.Call{Method: "PATCH", Path: at, Body: `{"url":"http://example.com/x"}`})
		if got := r.send(t, 200, apptest.Call{Path: at}); got["url"] != "https://example.com/x" {
			t.Errorf("url %v", got["url"])
		}
	})
	t.Run("http where it was asked for", func(t *testing.T) {
		trace.Covers(t, "OJS-SIG-13")
		r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowHTTP = true }})
		s := r.subscribe("/hook", []string{"job.*"})
		r.publish("job.done")
		if n := len(r.requests(s)); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("certificates are verified", func(t *testing.T) {
		trace.Covers(t, "OJS-SIG-14")
		ca := apptest.CAFile(t)
		r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.CAFile = ca }})
		for name, c := range map[string]struct {
			tls    apptest.SinkTLS
			status string
		}{
			"sound":     {apptest.SinkTLS{}, "delivered"},
			"tls12":     {apptest.SinkTLS{MaxVersion: tls.VersionTLS12}, "delivered"},
			"untrusted": {apptest.SinkTLS{Untrusted: true}, "failed"},
			"expired":   {apptest.SinkTLS{Expired: true}, "failed"},
			"name":      {apptest.SinkTLS{Names: []string{"elsewhere.example"}}, "failed"},
			"tls11":     {apptest.SinkTLS{MaxVersion: tls.VersionTLS11}, "failed"},
		} {
			sink := apptest.NewSink(t, apptest.WithTLS(c.tls))
			s := r.subscribeURL(sink.URL("/hook"), []string{"job." + name})
			ev := r.publish("job." + name)
			r.settle()
			d := r.delivery(ev, s)
			if d.Status != c.status || (len(sink.Requests("")) > 0) != (c.status == "delivered") {
				t.Errorf("%s: %+v, %d requests", name, d, len(sink.Requests("")))
			}
			if c.status == "failed" && d.NextAttemptAt == nil {
				t.Errorf("%s is not retried: %+v", name, d)
			}
		}
	})
}
