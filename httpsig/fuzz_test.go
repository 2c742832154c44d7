package httpsig_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/httpsig"
)

// FuzzVerify feeds hostile fields to the verifier. It always returns, its error is an Error, and it accepts only requests
// that the key's holder signed.
func FuzzVerify(f *testing.F) {
	key := signerKeys["hmac-sha256"](f)
	good := signed(f, httpsig.Params{Nonce: "n", Tag: "t"})
	input, signature := good.Header.Get("Signature-Input"), good.Header.Get("Signature")
	f.Add(input, signature, good.Header.Get("Content-Digest"), "/in?id=1", "example.com", "{}")
	f.Add(`a=("@query-param";name="id" "x";key="a" "x";bs "@path");created=1;keyid="secret-1"`, "a=:AA==:", "a=1, b", "/?id=%zz&id", "x:1", "")
	f.Add(`a=("content-digest";key="sha-256" "content-digest";sf);expires=-1;alg="ed25519"`, "a=::, b=()", "sha-256=:A:", "*", "", "x")
	f.Add(`a, b=1, c=("@authority"  "@target-uri" "@request-target" "@query");keyid="\\\""`, "c=:AA==:;x", "sha-512=:AA==:", "http://u@h:/?#", "[::1]:80", "x")
	verifier := must(httpsig.NewVerifier(httpsig.Options{
		KeyByID:            func(context.Context, string) (httpsig.Key, error) { return key, nil },
		RequiredComponents: []string{},
		Now:                at(created),
	}))(f)
	f.Fuzz(func(t *testing.T, signatureInput, sig, digest, target, host, body string) {
		req := good.Clone(context.Background())
		req.RequestURI, req.Host = target, host
		req.Header["Signature-Input"] = []string{signatureInput}
		req.Header["Signature"] = strings.Split(sig, "\n")
		req.Header["Content-Digest"] = []string{digest}
		req.Header["X"] = []string{digest, body}
		verified, err := verifier.Verify(req, []byte(body))
		if err != nil {
			if httpsig.ReasonOf(err) == "" || err.Error() == "" {
				t.Fatalf("not a verdict: %v", err)
			}
			return
		}
		if sig != signature && !strings.Contains(sig, "=:") || verified.KeyID != key.ID || !strings.Contains(signatureInput, verified.Label) {
			t.Fatalf("accepted %+v from %q, %q", verified, signatureInput, sig)
		}
	})
}

// FuzzSign signs over hostile component names and values. What it signs it can
// also verify, and then nothing in the base can have been ambiguous.
func FuzzSign(f *testing.F) {
	f.Add("x-field", "value", "/path?a=b", "nonce")
	f.Add(`"@query-param";name="a"`, "v", "/?a=%20+%&b", `\"`)
	f.Add(`"x-field";key="a";sf`, "a=(1 2);b, c", "/", "")
	f.Add(`"x-field";bs`, "a, b\t", "?", "é")
	f.Fuzz(func(t *testing.T, component, value, target, nonce string) {
		signer, err := httpsig.NewSigner(component)
		if err != nil {
			return
		}
		req := newRequest(t, "POST", "https://example.com/")
		req.RequestURI = target
		req.Header["X-Field"] = []string{value, value}
		params := httpsig.Params{Keys: []httpsig.Key{signerKeys["hmac-sha256"](t)}, Created: created, Nonce: nonce}
		if err := signer.SignRequest(req, params); err != nil {
			return
		}
		verified, err := httpsig.Verify(req, nil, httpsig.Options{KeyByID: keyring(t), RequiredComponents: []string{component}, Now: at(created)})
		if err != nil && !strings.Contains(component, "content-digest") {
			t.Fatalf("cannot verify what was signed: %v\n%v", err, req.Header)
		}
		if err == nil && verified.Nonce != nonce {
			t.Fatalf("nonce %q, want %q", verified.Nonce, nonce)
		}
	})
}

// FuzzContentDigest: a field is accepted only if it holds the body's digest.
func FuzzContentDigest(f *testing.F) {
	f.Add(httpsig.ContentDigest([]byte("body")), "body")
	f.Add("sha-256=:AA==:, sha-512=:A:", "")
	f.Add("sha-256=(1 2);a, sha-512", "x")
	f.Fuzz(func(t *testing.T, field, body string) {
		err := httpsig.VerifyContentDigest(http.Header{"Content-Digest": {field}}, []byte(body))
		if err != nil && httpsig.ReasonOf(err) == "" {
			t.Fatalf("not a verdict: %v", err)
		}
		if err == nil && !strings.Contains(field, "sha-512=:") && !strings.Contains(field, httpsig.ContentDigest([]byte(body))) {
			t.Fatalf("accepted %q for %q", field, body)
		}
	})
}
