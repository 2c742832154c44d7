package httpsig_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
)

var created = time.Unix(1800000000, 0)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func newRequest(t testing.TB, method, url string, fields ...string) *http.Request {
	t.Helper()
	req := must(http.NewRequest(method, url, nil))(t)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Add(name, value)
	}
	return req
}

func sign(t testing.TB, req *http.Request, p httpsig.Params, components ...string) error {
	t.Helper()
	if p.Keys == nil {
		p.Keys = []httpsig.Key{signerKeys["hmac-sha256"](t)}
	}
	if p.Created.IsZero() {
		p.Created = created
	}
	return must(httpsig.NewSigner(components...))(t).SignRequest(req, p)
}

func TestSignatureFields(t *testing.T) {
	hmacKey, edKey := signerKeys["hmac-sha256"](t), signerKeys["ed25519"](t)
	for name, c := range map[string]struct {
		params     httpsig.Params
		components []string
		want       string
	}{
		"least": {httpsig.Params{}, nil, `sig1=();created=1800000000;keyid="secret-1"`},
		"all parameters": {
			httpsig.Params{Expires: created.Add(time.Minute), Nonce: `n"1`, Tag: "app", Label: "hook", IncludeAlg: true},
			[]string{"@method", `"@query-param";name="id"`},
			`hook=("@method" "@query-param";name="id");created=1800000000;expires=1800000060;nonce="n\"1";alg="hmac-sha256";keyid="secret-1";tag="app"`,
		},
		"two keys": {
			httpsig.Params{Keys: []httpsig.Key{edKey, hmacKey}}, []string{"@path"},
			`sig1=("@path");created=1800000000;keyid="key-1", sig2=("@path");created=1800000000;keyid="secret-1"`,
		},
		"two keys, own label": {
			httpsig.Params{Keys: []httpsig.Key{edKey, hmacKey}, Label: "a"}, nil,
			`a=();created=1800000000;keyid="key-1", a-2=();created=1800000000;keyid="secret-1"`,
		},
		"fractions of a second": {httpsig.Params{Created: created.Add(999 * time.Millisecond)}, nil, `sig1=();created=1800000000;keyid="secret-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			req := newRequest(t, "POST", "https://example.com/?id=1")
			if err := sign(t, req, c.params, c.components...); err != nil {
				t.Fatal(err)
			}
			if got := req.Header.Get("Signature-Input"); got != c.want {
				t.Errorf("Signature-Input: %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestSigningReplacesOrKeeps: a request signed again carries the new signature
// alone; a relay keeps its upstream's beside its own.
func TestSigningReplacesOrKeeps(t *testing.T) {
	req := newRequest(t, "POST", "https://example.com/")
	upstream := httpsig.Params{Keys: []httpsig.Key{signerKeys["ed25519"](t)}, Label: "origin", Nonce: "1"}
	for range 2 {
		if err := sign(t, req, upstream, "@method"); err != nil {
			t.Fatal(err)
		}
	}
	if got := req.Header.Values("Signature-Input"); len(got) != 1 || strings.Count(got[0], "keyid") != 1 {
		t.Fatalf("signed twice: %q", got)
	}
	if err := sign(t, req, httpsig.Params{Keep: true}, "@method", "@path"); err != nil {
		t.Fatal(err)
	}
	for _, keyID := range []string{"key-1", "secret-1"} {
		ring := keyring(t)
		verified, err := httpsig.Verify(req, nil, httpsig.Options{
			KeyByID: func(ctx context.Context, id string) (httpsig.Key, error) {
				if id != keyID {
					return httpsig.Key{}, httpsig.ErrUnknownKey
				}
				return ring(ctx, id)
			},
			RequiredComponents: []string{"@method"}, Now: at(created),
		})
		if err != nil || verified.KeyID != keyID {
			t.Errorf("signature by %s: %+v, %v", keyID, verified, err)
		}
	}
	if err := sign(t, req, httpsig.Params{Keep: true, Label: "origin"}); err == nil {
		t.Error("a label in use was taken over")
	}
	req.Header.Set("Signature", "not a dictionary;;;")
	if err := sign(t, req, httpsig.Params{Keep: true, Label: "new"}); httpsig.ReasonOf(err) != httpsig.ReasonMalformed {
		t.Errorf("kept what cannot be read: %v", err)
	}
}

// TestRefusesToSign: what cannot be signed as asked is an error, and the request
// is left as it was.
func TestRefusesToSign(t *testing.T) {
	verifyOnly := must(httpsig.NewEd25519Verifier("key-1", edPublic))(t)
	good := signerKeys["hmac-sha256"](t)
	for name, c := range map[string]struct {
		params     httpsig.Params
		components []string
		change     func(*http.Request)
		reason     httpsig.Reason
	}{
		"no key":                {params: httpsig.Params{Keys: []httpsig.Key{}}},
		"empty key":             {params: httpsig.Params{Keys: []httpsig.Key{{}}}},
		"key that verifies":     {params: httpsig.Params{Keys: []httpsig.Key{good, verifyOnly}}},
		"label":                 {params: httpsig.Params{Label: "Sig 1"}},
		"label with digit":      {params: httpsig.Params{Label: "1sig"}},
		"nonce":                 {params: httpsig.Params{Nonce: "new\nline"}},
		"tag":                   {params: httpsig.Params{Tag: "é"}},
		"created out of range":  {params: httpsig.Params{Created: time.Unix(1e15, 0)}},
		"expires out of range":  {params: httpsig.Params{Expires: time.Unix(1e15, 0)}},
		"absent field":          {components: []string{"content-digest"}, reason: httpsig.ReasonMissingComponent},
		"field without a value": {components: []string{"x"}, change: func(r *http.Request) { r.Header["X"] = nil }, reason: httpsig.ReasonMissingComponent},
		"line break in a field": {components: []string{"x"}, change: func(r *http.Request) { r.Header.Set("X", "a\n\"@method\": GET") }, reason: httpsig.ReasonMalformed},
		"field not in ASCII":    {components: []string{"x"}, change: func(r *http.Request) { r.Header.Set("X", "é") }, reason: httpsig.ReasonMalformed},
		"status":                {components: []string{"@status"}, reason: httpsig.ReasonMalformed},
		"request of a request":  {components: []string{`"@method";req`}, reason: httpsig.ReasonMalformed},
		"sf of unknown type":    {components: []string{`"x";sf`}, change: func(r *http.Request) { r.Header.Set("X", "a") }, reason: httpsig.ReasonMalformed},
		"key of no dictionary":  {components: []string{`"x";key="a"`}, change: func(r *http.Request) { r.Header.Set("X", "(((") }, reason: httpsig.ReasonMalformed},
		"key not there":         {components: []string{`"x";key="b"`}, change: func(r *http.Request) { r.Header.Set("X", "a=1") }, reason: httpsig.ReasonMissingComponent},
		"parameter not there":   {components: []string{`"@query-param";name="b"`}, reason: httpsig.ReasonMissingComponent},
		"parameter twice":       {components: []string{`"@query-param";name="a"`}, change: func(r *http.Request) { r.URL.RawQuery = "a=1&a=2" }, reason: httpsig.ReasonMalformed},
		"parameter not UTF-8":   {components: []string{`"@query-param";name="a"`}, change: func(r *http.Request) { r.URL.RawQuery = "a=%FF" }, reason: httpsig.ReasonMalformed},
		"opaque URL":            {change: func(r *http.Request) { r.URL.Opaque = "x" }, reason: httpsig.ReasonMalformed},
		"no URL":                {change: func(r *http.Request) { r.URL = nil }, reason: httpsig.ReasonMalformed},
		"address zone":          {change: func(r *http.Request) { r.Host = "[fe80::1%25eth0]" }, reason: httpsig.ReasonMalformed},
		"host not in ASCII":     {components: []string{"@target-uri"}, change: func(r *http.Request) { r.Host = "bücher.example" }, reason: httpsig.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			req := newRequest(t, "POST", "https://example.com/")
			if c.change != nil {
				c.change(req)
			}
			err := sign(t, req, c.params, c.components...)
			if err == nil || httpsig.ReasonOf(err) != c.reason {
				t.Errorf("error %v, want reason %q", err, c.reason)
			}
			if req.Header.Get("Signature") != "" || req.Header.Get("Signature-Input") != "" {
				t.Error("request was changed")
			}
		})
	}
	if err := must(httpsig.NewSigner())(t).SignRequest(newRequest(t, "GET", "http://x/"), httpsig.Params{Keys: []httpsig.Key{good}}); err == nil {
		t.Error("signed without a time")
	}
}

func TestRefusesComponents(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("x-%d", i)
	}
	for name, components := range map[string][]string{
		"unknown derived": {"@body"}, "signature parameters": {"@signature-params"}, "upper case": {"Content-Type"},
		"not a name": {"content type"}, "empty": {""}, "twice": {"date", "date"}, "broken item": {`"date`},
		"twice by order of parameters": {`"a";sf;key="x"`, `"a";key="x";sf`},
		"unknown parameter":            {`"date";foo`}, "flag with a value": {`"date";bs=1`}, "false flag": {`"date";bs=?0`},
		"bs and sf": {`"date";bs;sf`}, "bs and key": {`"date";bs;key="a"`}, "key not a string": {`"date";key=a`},
		"query without name": {"@query-param"}, "name on a field": {`"date";name="a"`}, "name on another": {`"@path";name="a"`},
		"sf on derived": {`"@path";sf`}, "too many": many,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := httpsig.NewSigner(components...); err == nil {
				t.Error("signer accepted it")
			}
			if _, err := httpsig.NewVerifier(httpsig.Options{KeyByID: keyring(t), RequiredComponents: components}); err == nil && name != "too many" {
				t.Error("verifier accepted it")
			}
		})
	}
}

func TestKeys(t *testing.T) {
	for name, err := range map[string]error{
		"short secret":      second(httpsig.NewHMACKey("a", make([]byte, httpsig.MinSecretBytes-1))),
		"short private key": second(httpsig.NewEd25519Signer("a", edPrivate[:31])),
		"short public key":  second(httpsig.NewEd25519Verifier("a", edPublic[:31])),
		"key id":            second(httpsig.NewHMACKey("a\x00", secret)),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	key := signerKeys["hmac-sha256"](t)
	text := must(json.Marshal(key))(t)
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s", key, key, key, key), string(text), fmt.Sprint([]httpsig.Key{key})} {
		if strings.Contains(shown, string(secret)) || strings.Contains(shown, fmt.Sprint(secret)[1:20]) || strings.Contains(shown, fmt.Sprintf("%x", secret)) {
			t.Errorf("secret shows: %s", shown)
		}
	}
	// A key's algorithm cannot be changed into another one.
	confused := must(httpsig.NewEd25519Verifier("key-1", edPublic))(t)
	confused.Algorithm = httpsig.HMACSHA256
	req := newRequest(t, "GET", "http://x/")
	if err := sign(t, req, httpsig.Params{Keys: []httpsig.Key{confused}}); err == nil {
		t.Error("signed with a public key as a secret")
	}
	if err := sign(t, req, httpsig.Params{}); err != nil {
		t.Fatal(err)
	}
	_, err := httpsig.Verify(req, nil, httpsig.Options{
		KeyByID:            func(context.Context, string) (httpsig.Key, error) { return confused, nil },
		RequiredComponents: []string{}, Now: at(created),
	})
	if err == nil || httpsig.ReasonOf(err) != "" {
		t.Errorf("verified with an unusable key: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestSigningIsConcurrent shares one signer and one key.
func TestSigningIsConcurrent(t *testing.T) {
	signer := must(httpsig.NewSigner("@method", "@target-uri"))(t)
	key := signerKeys["hmac-sha256"](t)
	verifier := must(httpsig.NewVerifier(httpsig.Options{KeyByID: keyring(t), RequiredComponents: []string{"@target-uri"}, Now: at(created)}))(t)
	results := make(chan error, 32)
	for i := range cap(results) {
		go func() {
			req, err := http.NewRequest("POST", fmt.Sprintf("https://example.com/%s", bytes.Repeat([]byte("x"), i)), nil)
			for range 50 {
				if err == nil {
					err = signer.SignRequest(req, httpsig.Params{Keys: []httpsig.Key{key}, Created: created})
				}
				if err == nil {
					_, err = verifier.Verify(req, nil)
				}
			}
			results <- err
		}()
	}
	var all error
	for range cap(results) {
		all = errors.Join(all, <-results)
	}
	if all != nil {
		t.Error(all)
	}
}
