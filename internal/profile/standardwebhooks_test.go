package profile

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestStandardWebhooksSchedule(t *testing.T) {
	waits, last := failing(t, standardWebhooks{}, answer(404))
	if want := seconds(5, 300, 1800, 7200, 18000, 36000, 36000); !slices.Equal(waits, want) || last.Status != godwit.DeliveryExhausted {
		t.Errorf("waits %v, then %+v", waits, last)
	}
}

func TestStandardWebhooksClassification(t *testing.T) {
	p := standardWebhooks{}
	for code := -1; code <= 700; code++ {
		want := godwit.Transient
		switch {
		case code >= 200 && code <= 299:
			want = godwit.Accepted
		case code == 410:
			want = godwit.Terminal
		}
		v := p.Classify(answer(code, "Location", "/x", "Retry-After", "40"), defaults(p), now)
		if v.Outcome != want || v.DisableEndpoint != (code == 410) || v.RefreshAndRetry || v.MoveTo != "" || v.Review {
			t.Errorf("%d: %+v, want %s", code, v, want)
		}
		if (v.RetryAfter == 40*time.Second) != (want == godwit.Transient) {
			t.Errorf("%d: waits %v", code, v.RetryAfter)
		}
	}
	retriesEveryFailure(t, p)
	if len(p.FollowStatuses()) != 0 {
		t.Error("redirects are followed")
	}
}

func TestStandardWebhooksKeys(t *testing.T) {
	p := standardWebhooks{}
	symmetric, err := p.NewKey(godwit.AlgorithmHMAC)
	if err != nil || symmetric.Display != "whsec_"+base64.StdEncoding.EncodeToString(symmetric.Secret) || len(symmetric.Secret) != 32 || symmetric.Public != nil {
		t.Errorf("%+v: %v", symmetric, err)
	}
	pair, err := p.NewKey(godwit.AlgorithmEd25519)
	if err != nil || pair.Display != "whpk_"+base64.StdEncoding.EncodeToString(pair.Public) || len(pair.Public) != ed25519.PublicKeySize {
		t.Errorf("%+v: %v", pair, err)
	}
	if strings.Contains(pair.Display, base64.StdEncoding.EncodeToString(pair.Secret)) {
		t.Error("the private key is shown")
	}
	private := ed25519.NewKeyFromSeed(pair.Secret)
	wrong := append(slices.Clone(private[:32]), make([]byte, 32)...)
	encode := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		algorithm, text string
		ok              bool
	}{
		{godwit.AlgorithmHMAC, symmetric.Display, true}, {godwit.AlgorithmHMAC, symmetric.Display[6:], false},
		{godwit.AlgorithmHMAC, "whsec_" + encode(make([]byte, 23)), false}, {godwit.AlgorithmHMAC, "whsec_" + encode(make([]byte, 24)), true},
		{godwit.AlgorithmHMAC, "whsec_" + encode(make([]byte, 64)), true}, {godwit.AlgorithmHMAC, "whsec_" + encode(make([]byte, 65)), false},
		{godwit.AlgorithmHMAC, "whsec_????", false}, {godwit.AlgorithmHMAC, "whsec_" + encode(make([]byte, 30)) + "\n", false},
		{godwit.AlgorithmHMAC, "whsk_" + encode(pair.Secret), false}, {godwit.AlgorithmEd25519, "whsk_" + encode(pair.Secret), true},
		{godwit.AlgorithmEd25519, "whsk_" + encode(private), true}, {godwit.AlgorithmEd25519, "whsk_" + encode(wrong), false},
		{godwit.AlgorithmEd25519, pair.Display, false}, {godwit.AlgorithmEd25519, "whsk_" + encode(make([]byte, 31)), false},
		{godwit.AlgorithmEd25519, symmetric.Display, false}, {godwit.AlgorithmEd25519, "", false},
	} {
		key, err := p.ImportKey(c.algorithm, c.text)
		if (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.algorithm, c.text, err)
		}
		if c.ok && c.algorithm == godwit.AlgorithmEd25519 && (key.Display != pair.Display || !slices.Equal(key.Secret, pair.Secret)) {
			t.Errorf("%q became %+v", c.text, key)
		}
	}
	if _, err := p.NewSigner([]SigningKey{{ID: "sec_1", Algorithm: godwit.AlgorithmEd25519, Secret: []byte("short")}}); err == nil {
		t.Error("half a key was taken")
	}
}

func TestStandardWebhooksHeader(t *testing.T) {
	p := standardWebhooks{}
	m := message(godwit.FormatRaw, []byte("<a/>"))
	m.Event.ContentType, m.Event.SourceID = "application/xml", "with.dots"
	h1, _ := p.Render(m)
	m.Delivery = &godwit.Delivery{ID: godwit.NewDeliveryID(now), EndpointID: godwit.NewEndpointID(now), Run: godwit.Run{Attempts: 3}}
	m.ID = godwit.NewAttemptID(now)
	h2, _ := p.Render(m)
	if id := h1.Get("webhook-id"); id != testEventID.String() || h2.Get("webhook-id") != id || strings.Contains(id, ".") {
		t.Errorf("ids %s and %s", id, h2.Get("webhook-id"))
	}
	if h1.Get("Content-Type") != "application/xml" || h1.Get("User-Agent") != "Godwit" || h1.Get("Idempotency-Key") != `"0123456789abcdef"` {
		t.Errorf("%v", h1)
	}
	_, signer := signerOf(t, p.Name())
	if err := signer.Sign(&http.Request{Header: http.Header{}}, nil, now); err == nil {
		t.Error("a request without id was signed")
	}
}
