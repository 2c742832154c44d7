package httpsig_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"net/http"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
)

// The benchmarks sign and verify as a delivery does: 1 KiB of body, Content-Digest
// included, a nonce, five components.

var benchBody = bytes.Repeat([]byte("0123456789abcdef"), 64)

func benchRequest(b *testing.B) *http.Request {
	b.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://hooks.example.com/in/orders?tenant=7", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", `"0d6e3f0e-6f59-4f6c-9d0c-0d3f7a0f7a51"`)
	return req
}

func benchKeys(b *testing.B) (hmacKey, edKey httpsig.Key) {
	b.Helper()
	hmacKey, err := httpsig.NewHMACKey("whk_1", bytes.Repeat([]byte{1}, 32))
	if err != nil {
		b.Fatal(err)
	}
	edKey, err = httpsig.NewEd25519Signer("key_1", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)))
	if err != nil {
		b.Fatal(err)
	}
	return hmacKey, edKey
}

func benchSign(b *testing.B, keys ...httpsig.Key) {
	signer, err := httpsig.NewSigner(httpsig.DeliveryComponents()...)
	if err != nil {
		b.Fatal(err)
	}
	req := benchRequest(b)
	params := httpsig.Params{Keys: keys, Created: time.Unix(1800000000, 0), Nonce: "q0dY1p2XbH3sT4uV5wX6yA"}
	b.ReportAllocs()
	for b.Loop() {
		req.Header.Set("Content-Digest", httpsig.ContentDigest(benchBody))
		if err := signer.SignRequest(req, params); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignHMAC(b *testing.B) {
	key, _ := benchKeys(b)
	benchSign(b, key)
}

func BenchmarkSignEd25519(b *testing.B) {
	_, key := benchKeys(b)
	benchSign(b, key)
}

func BenchmarkSignTwoHMAC(b *testing.B) {
	key, _ := benchKeys(b)
	benchSign(b, key, key)
}

func BenchmarkVerifyHMAC(b *testing.B) {
	key, _ := benchKeys(b)
	benchVerify(b, key)
}

func BenchmarkVerifyEd25519(b *testing.B) {
	_, key := benchKeys(b)
	benchVerify(b, key)
}

func benchVerify(b *testing.B, key httpsig.Key) {
	signer, err := httpsig.NewSigner(httpsig.DeliveryComponents()...)
	if err != nil {
		b.Fatal(err)
	}
	created := time.Unix(1800000000, 0)
	req := benchRequest(b)
	req.Header.Set("Content-Digest", httpsig.ContentDigest(benchBody))
	if err := signer.SignRequest(req, httpsig.Params{Keys: []httpsig.Key{key}, Created: created}); err != nil {
		b.Fatal(err)
	}
	verifier, err := httpsig.NewVerifier(httpsig.Options{
		KeyByID: func(context.Context, string) (httpsig.Key, error) { return key, nil },
		Now:     func() time.Time { return created },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := verifier.Verify(req, benchBody); err != nil {
			b.Fatal(err)
		}
	}
}
