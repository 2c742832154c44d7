package profile

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestDefaults(t *testing.T) {
	trace.Covers(t, "EDS-BKO-5", "EDS-SRV-2")
	p := eds{}.Defaults()
	if p.Base != time.Second || p.Cap < time.Minute || p.Cap > 10*time.Minute {
		t.Errorf("base %v, cap %v", p.Base, p.Cap)
	}
	if p.Window(0) != time.Second || p.Window(1) != 2*time.Second {
		t.Errorf("first windows %v, %v", p.Window(0), p.Window(1))
	}
	var expected time.Duration
	for n := range p.MaxRetries {
		expected += p.Window(n) / 2
	}
	if expected < 4*time.Hour || expected > 72*time.Hour || p.MaxRetries > 200 {
		t.Errorf("expected total %v with %d retries", expected, p.MaxRetries)
	}
	if p.MaxElapsed >= p.DedupWindow || p.DedupWindow < 24*time.Hour {
		t.Errorf("total %v, dedup window %v", p.MaxElapsed, p.DedupWindow)
	}
	if p.Timeout != 30*time.Second {
		t.Errorf("timeout %v", p.Timeout)
	}
}

func TestRenderIsTheSameForEveryAttempt(t *testing.T) {
	event := &godwit.Event{ID: godwit.NewEventID(now), Type: "order.paid", Key: `odd "key\` + " here", ContentType: "application/vnd.acme.v2+json", Body: []byte{0, 1, 0xff}}
	d := &godwit.Delivery{ID: godwit.NewDeliveryID(now)}
	h1, b1 := eds{}.Render(Message{Event: event, Delivery: d, Attempt: 1})
	h2, b2 := eds{}.Render(Message{Event: event, Delivery: d, Attempt: 2})
	if !bytes.Equal(b1, event.Body) || !bytes.Equal(b1, b2) {
		t.Error("body differs from the event's, or between attempts")
	}
	if got := h1.Get("Idempotency-Key"); got != `"odd \"key\\ here"` || h2.Get("Idempotency-Key") != got {
		t.Errorf("key %s, then %s", got, h2.Get("Idempotency-Key"))
	}
	if h1.Get("Content-Type") != event.ContentType || h1.Get("Godwit-Attempt") != "1" || h2.Get("Godwit-Attempt") != "2" {
		t.Errorf("header %v", h1)
	}
}

func TestSignatureIsFreshForEveryAttempt(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-4")
	material, err := eds{}.NewKey(godwit.AlgorithmHMAC)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := eds{}.NewSigner([]SigningKey{{ID: "sec_1", Algorithm: godwit.AlgorithmHMAC, Secret: material.Secret}})
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`created=(\d+).*nonce="([^"]+)"`)
	sign := func(at time.Time) (created, nonce string) {
		event := &godwit.Event{ID: godwit.NewEventID(now), Type: "a", Key: "0123456789abcdef", ContentType: "text/plain"}
		r := httptest.NewRequest(http.MethodPost, "https://receiver.example/hook", nil)
		r.Header, _ = eds{}.Render(Message{Event: event, Delivery: &godwit.Delivery{}, Attempt: 1})
		if err := signer.Sign(r, nil, at); err != nil {
			t.Fatal(err)
		}
		m := parts.FindStringSubmatch(r.Header.Get("Signature-Input"))
		if m == nil {
			t.Fatalf("no created and nonce in %s", r.Header.Get("Signature-Input"))
		}
		return m[1], m[2]
	}
	c1, n1 := sign(now)
	c2, n2 := sign(now.Add(2 * time.Hour))
	if c1 == c2 || n1 == n2 {
		t.Errorf("a retry two hours later is stamped %s %s after %s %s", c2, n2, c1, n1)
	}
}

func TestNewKeys(t *testing.T) {
	for _, algorithm := range (eds{}).Algorithms() {
		m, err := eds{}.NewKey(algorithm)
		if err != nil || len(m.Secret) != 32 {
			t.Errorf("%s: %v", algorithm, err)
		}
		if (m.Display == "") == (m.Public == nil) {
			t.Errorf("%s: either a secret is shown or a public key published", algorithm)
		}
	}
	if _, err := (eds{}).NewKey("rot13"); err == nil {
		t.Error("unknown algorithm was taken")
	}
	if _, err := Lookup("smoke-signals"); err == nil {
		t.Error("unknown profile was found")
	}
}
