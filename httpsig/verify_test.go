package httpsig_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
)

// signed returns a delivery as a server receives it, without a network.
func signed(t testing.TB, p httpsig.Params, components ...string) *http.Request {
	t.Helper()
	req := newRequest(t, "POST", "https://example.com/in?id=1",
		"Content-Type: application/json", `Idempotency-Key: "k"`, "Content-Digest: "+httpsig.ContentDigest([]byte("{}")))
	if components == nil {
		components = httpsig.DeliveryComponents()
	}
	if err := sign(t, req, p, components...); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestTimeLimits(t *testing.T) {
	expiring := httpsig.Params{Expires: created.Add(10 * time.Second)}
	for name, c := range map[string]struct {
		params httpsig.Params
		now    time.Duration // after the creation
		maxAge time.Duration
		skew   time.Duration
		want   httpsig.Reason
	}{
		"at once":                {now: 0},
		"at the age limit":       {now: 300*time.Second + 999*time.Millisecond},
		"past the age limit":     {now: 301 * time.Second, want: httpsig.ReasonTooOld},
		"at the skew limit":      {now: -300 * time.Second},
		"past the skew limit":    {now: -301 * time.Second, want: httpsig.ReasonFromFuture},
		"own age limit":          {now: 11 * time.Second, maxAge: 10 * time.Second, want: httpsig.ReasonTooOld},
		"own skew limit":         {now: -2 * time.Second, skew: time.Second, want: httpsig.ReasonFromFuture},
		"not aged":               {now: 1000 * time.Hour, maxAge: -1},
		"not aged, from future":  {now: -time.Hour, maxAge: -1, want: httpsig.ReasonFromFuture},
		"before expiry":          {params: expiring, now: 10 * time.Second},
		"after expiry":           {params: expiring, now: 11 * time.Second, want: httpsig.ReasonExpired},
		"after expiry, not aged": {params: expiring, now: 11 * time.Second, maxAge: -1, want: httpsig.ReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := httpsig.Verify(signed(t, c.params), []byte("{}"), httpsig.Options{
				KeyByID: keyring(t), Now: at(created.Add(c.now)), MaxAge: c.maxAge, MaxSkew: c.skew,
			})
			if httpsig.ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("error %v, want reason %q", err, c.want)
			}
		})
	}
}

// TestRetryIsFresh: a nonce is accepted once, and a retry with a new signature is accepted.
func TestRetryIsFresh(t *testing.T) {
	var memory nonces
	now := created
	verifier := must(httpsig.NewVerifier(httpsig.Options{KeyByID: keyring(t), NonceSeen: memory.Seen, Now: func() time.Time { return now }}))(t)
	check := func(name string, req *http.Request, want httpsig.Reason) {
		t.Helper()
		if _, err := verifier.Verify(req, []byte("{}")); httpsig.ReasonOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	first := signed(t, httpsig.Params{Nonce: "1"})
	tampered := first.Clone(context.Background())
	tampered.Header.Set("Content-Type", "text/plain")
	check("tampered", tampered, httpsig.ReasonBadSignature) // must not use up the nonce
	check("first", first, "")
	check("replay", first, httpsig.ReasonReplayed)
	check("same nonce by another key", signed(t, httpsig.Params{Nonce: "1", Keys: []httpsig.Key{signerKeys["ed25519"](t)}}), "")
	check("no nonce", signed(t, httpsig.Params{}), httpsig.ReasonMissingComponent)
	now = created.Add(2 * time.Hour)
	check("late replay", first, httpsig.ReasonTooOld)
	check("late retry, signed again", signed(t, httpsig.Params{Nonce: "2", Created: now}), "")
}

// TestNonceIsKeptLongEnough: a nonce is kept for as long as its message would otherwise be accepted.
func TestNonceIsKeptLongEnough(t *testing.T) {
	for name, c := range map[string]struct {
		params httpsig.Params
		maxAge time.Duration
		want   time.Time
	}{
		"by age":           {httpsig.Params{Nonce: "1"}, 0, created.Add(301 * time.Second)},
		"by expiry":        {httpsig.Params{Nonce: "1", Expires: created.Add(time.Minute)}, 0, created.Add(61 * time.Second)},
		"not aged":         {httpsig.Params{Nonce: "1"}, -1, time.Time{}},
		"not aged, expiry": {httpsig.Params{Nonce: "1", Expires: created.Add(time.Hour)}, -1, created.Add(time.Hour + time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			var got time.Time
			_, err := httpsig.Verify(signed(t, c.params), []byte("{}"), httpsig.Options{
				KeyByID: keyring(t), Now: at(created), MaxAge: c.maxAge,
				NonceSeen: func(_ context.Context, _, _ string, until time.Time) (bool, error) {
					got = until
					return false, nil
				},
			})
			if err != nil || !got.Equal(c.want) {
				t.Errorf("until %v, want %v; %v", got, c.want, err)
			}
		})
	}
}

// TestFailuresAreNotVerdicts: a failed lookup says nothing about the message.
func TestFailuresAreNotVerdicts(t *testing.T) {
	down := errors.New("store is down")
	for name, o := range map[string]httpsig.Options{
		"keys": {KeyByID: func(context.Context, string) (httpsig.Key, error) { return httpsig.Key{}, down }},
		"nonces": {KeyByID: keyring(t), NonceSeen: func(context.Context, string, string, time.Time) (bool, error) {
			return false, down
		}},
	} {
		o.Now = at(created)
		_, err := httpsig.Verify(signed(t, httpsig.Params{Nonce: "1"}), []byte("{}"), o)
		if !errors.Is(err, down) || httpsig.ReasonOf(err) != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := httpsig.NewVerifier(httpsig.Options{}); err == nil {
		t.Error("verifier without keys")
	}
}

// TestHostileSignatureFields: each is rejected with its reason.
func TestHostileSignatureFields(t *testing.T) {
	good := signed(t, httpsig.Params{})
	input, signature := good.Header.Get("Signature-Input"), good.Header.Get("Signature")
	list, params, _ := strings.Cut(strings.TrimPrefix(input, "sig1="), ";")
	var crowd, crowdSignatures []string
	for i := range 17 {
		crowd = append(crowd, fmt.Sprintf("s%d=%s;%s", i, list, params))
		crowdSignatures = append(crowdSignatures, fmt.Sprintf("s%d%s", i, strings.TrimPrefix(signature, "sig1")))
	}
	wide := ""
	for i := range 65 {
		wide += fmt.Sprintf(" \"x-%d\"", i)
	}
	for name, c := range map[string]struct {
		input, signature string
		want             httpsig.Reason
	}{
		"good":                     {input, signature, ""},
		"empty fields":             {"", "", httpsig.ReasonMissing},
		"input is not a list":      {"sig1=1", signature, httpsig.ReasonMalformed},
		"input is broken":          {`sig1=("@method`, signature, httpsig.ReasonMalformed},
		"signature is broken":      {input, "sig1=:?:", httpsig.ReasonMalformed},
		"signature is a string":    {input, `sig1="abc"`, httpsig.ReasonMalformed},
		"signature is a list":      {input, `sig1=(:YWJj:)`, httpsig.ReasonMalformed},
		"signature is empty":       {input, "sig1=::", httpsig.ReasonBadSignature},
		"another label":            {input, strings.Replace(signature, "sig1", "sig2", 1), httpsig.ReasonMalformed},
		"component is a token":     {"sig1=(a);" + params, signature, httpsig.ReasonMalformed},
		"component twice":          {`sig1=("date" "date");` + params, signature, httpsig.ReasonMalformed},
		"component unknown":        {`sig1=("@nothing");` + params, signature, httpsig.ReasonMalformed},
		"parameter unknown":        {`sig1=("@method";x);` + params, signature, httpsig.ReasonMalformed},
		"line break in parameter":  {"sig1=" + list + ";" + params + ";nonce=\"a\nb\"", signature, httpsig.ReasonMalformed},
		"created is a string":      {"sig1=" + list + `;created="1";keyid="secret-1"`, signature, httpsig.ReasonMalformed},
		"created is a decimal":     {"sig1=" + list + `;created=1.0;keyid="secret-1"`, signature, httpsig.ReasonMalformed},
		"created is gone":          {"sig1=" + list + `;keyid="secret-1"`, signature, httpsig.ReasonMissingComponent},
		"key id is a token":        {"sig1=" + list + `;created=1800000000;keyid=secret-1`, signature, httpsig.ReasonMalformed},
		"key id is gone":           {"sig1=" + list + `;created=1800000000`, signature, httpsig.ReasonUnknownKey},
		"algorithm of another key": {input + `;alg="ed25519"`, signature, httpsig.ReasonAlgorithmMismatch},
		"algorithm is empty":       {input + `;alg=""`, signature, httpsig.ReasonAlgorithmMismatch},
		"algorithm added":          {input + `;alg="hmac-sha256"`, signature, httpsig.ReasonBadSignature},
		"parameter added":          {input + `;x=1`, signature, httpsig.ReasonBadSignature},
		"nothing covered":          {`sig1=();` + params, signature, httpsig.ReasonMissingComponent},
		"too many components":      {"sig1=(" + wide + ");" + params, signature, httpsig.ReasonMalformed},
		"too many signatures":      {strings.Join(crowd, ", "), strings.Join(crowdSignatures, ", "), httpsig.ReasonMalformed},
		"too long":                 {input + `;x="` + strings.Repeat("x", 33<<10) + `"`, signature, httpsig.ReasonMalformed},
		"one of two good":          {`bad=1, ` + input, signature, ""},
		"furthest reason counts":   {`a=1, ` + input + `;x=1, c=("@method");` + params, signature, httpsig.ReasonBadSignature},
	} {
		t.Run(name, func(t *testing.T) {
			req := good.Clone(context.Background())
			req.Header["Signature-Input"], req.Header["Signature"] = []string{c.input}, []string{c.signature}
			_, err := httpsig.Verify(req, []byte("{}"), httpsig.Options{KeyByID: keyring(t), Now: at(created)})
			if httpsig.ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("error %v, want reason %q", err, c.want)
			}
		})
	}
}

func TestTagSelects(t *testing.T) {
	options := httpsig.Options{KeyByID: keyring(t), Now: at(created), Tag: "godwit"}
	verified, err := httpsig.Verify(signed(t, httpsig.Params{Tag: "godwit"}), []byte("{}"), options)
	if err != nil || verified.Tag != "godwit" {
		t.Errorf("own tag: %+v, %v", verified, err)
	}
	for name, p := range map[string]httpsig.Params{"no tag": {}, "another tag": {Tag: "other"}} {
		if _, err := httpsig.Verify(signed(t, p), []byte("{}"), options); httpsig.ReasonOf(err) != httpsig.ReasonMissing {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDigestMembers: if the signature covers only one member of Content-Digest, only that member is checked, because an
// intermediary could have added an uncovered one.
func TestDigestMembers(t *testing.T) {
	const component = `"content-digest";key="sha-256"`
	options := httpsig.Options{KeyByID: keyring(t), Now: at(created), RequiredComponents: []string{component}}
	req := signed(t, httpsig.Params{}, component)
	req.Header.Add("Content-Digest", "sha-512=:AAAA:")
	if _, err := httpsig.Verify(req, []byte("{}"), options); err != nil {
		t.Errorf("an uncovered member decided: %v", err)
	}
	if _, err := httpsig.Verify(req, []byte("[]"), options); httpsig.ReasonOf(err) != httpsig.ReasonDigestMismatch {
		t.Errorf("another body: %v", err)
	}
	weak := newRequest(t, "POST", "https://example.com/", "Content-Digest: md5=:AAAA:, "+httpsig.ContentDigest([]byte("{}")))
	if err := sign(t, weak, httpsig.Params{}, `"content-digest";key="md5"`); err != nil {
		t.Fatal(err)
	}
	options.RequiredComponents = []string{}
	if _, err := httpsig.Verify(weak, []byte("{}"), options); httpsig.ReasonOf(err) != httpsig.ReasonDigestMismatch {
		t.Errorf("a broken algorithm counted: %v", err)
	}
}

func TestContentDigestField(t *testing.T) {
	good := httpsig.ContentDigest([]byte("x"))
	for name, c := range map[string]struct {
		values []string
		want   httpsig.Reason
	}{
		"good":             {[]string{good}, ""},
		"with unknown":     {[]string{"sha-1024=:AAAA:, " + good}, ""},
		"on two lines":     {[]string{"md5=:AAAA:", good}, ""},
		"one of two wrong": {[]string{good + ", sha-512=:AAAA:"}, httpsig.ReasonDigestMismatch},
		"none":             {nil, httpsig.ReasonMissingComponent},
		"only unknown":     {[]string{"md5=:AAAA:"}, httpsig.ReasonDigestMismatch},
		"broken":           {[]string{"sha-256=:A"}, httpsig.ReasonMalformed},
		"not bytes":        {[]string{"sha-256=1"}, httpsig.ReasonMalformed},
		"list":             {[]string{"sha-256=(1 2)"}, httpsig.ReasonMalformed},
		"empty":            {[]string{"sha-256=::"}, httpsig.ReasonDigestMismatch},
	} {
		err := httpsig.VerifyContentDigest(http.Header{"Content-Digest": c.values}, []byte("x"))
		if httpsig.ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestBehindProxy: a receiver behind a proxy configures its public address; the components then match.
func TestBehindProxy(t *testing.T) {
	ring := keyring(t)
	for name, c := range map[string]struct {
		target func(*http.Request) string
		want   int
	}{
		"told":        {httpsig.PublicOrigin("https://Hooks.Example.com"), http.StatusNoContent},
		"not told":    {nil, http.StatusUnauthorized},
		"told wrong":  {httpsig.PublicOrigin("https://other.example.com"), http.StatusUnauthorized},
		"no URI":      {httpsig.PublicOrigin("hooks.example.com"), http.StatusUnauthorized},
		"by function": {func(*http.Request) string { return "https://Hooks.Example.com/in/orders?tenant=7&x=a%20b#top" }, http.StatusNoContent},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.StripPrefix("/in", ownReceiver(t, httpsig.Options{KeyByID: ring, TargetURI: c.target})))
			t.Cleanup(server.Close)
			internal := strings.TrimPrefix(server.URL, "http://")
			// The client signs for the public address; the proxy forwards the request to the server.
			client := &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
				req.URL.Scheme, req.URL.Host, req.Host = "http", internal, internal
				return http.DefaultTransport.RoundTrip(req)
			})}
			res := deliver(t, client, "https://Hooks.Example.com", httpsig.Params{Keys: []httpsig.Key{signerKeys["ed25519"](t)}, Created: time.Now()}, nil)
			if res.StatusCode != c.want {
				t.Errorf("answer %d (%s), want %d", res.StatusCode, res.Header.Get("Reason"), c.want)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestOtherSpellings: signature fields in another valid form are accepted like those in canonical form.
func TestOtherSpellings(t *testing.T) {
	for name, respell := range map[string]func(http.Header){
		"as sent":         func(http.Header) {},
		"spaces":          func(h http.Header) { h["Signature-Input"][0] = strings.Replace(h["Signature-Input"][0], "(", "(  ", 1) },
		"spaced params":   func(h http.Header) { h["Signature-Input"][0] = strings.ReplaceAll(h["Signature-Input"][0], ";", ";  ") },
		"another line":    func(h http.Header) { h["Signature-Input"] = append(h["Signature-Input"], `other="of another hop"`) },
		"another digest":  func(h http.Header) { h["Content-Digest"] = append(h["Content-Digest"], "md5=:AA==:") },
		"another param":   func(h http.Header) { h["Signature"][0] += ";of=1" },
		"a stray padding": func(h http.Header) { h["Signature"][0] = " " + h["Signature"][0] },
	} {
		t.Run(name, func(t *testing.T) {
			components := httpsig.DeliveryComponents()
			if name == "another digest" {
				components = []string{"@method", `"content-digest";key="sha-256"`}
			}
			req := signed(t, httpsig.Params{Nonce: "n"}, components...)
			respell(req.Header)
			o := httpsig.Options{KeyByID: keyring(t), Now: at(created), RequiredComponents: components}
			if v, err := httpsig.Verify(req, []byte("{}"), o); err != nil || v.Nonce != "n" || len(v.Components) != len(components) {
				t.Errorf("%+v, %v", v, err)
			}
			if _, err := httpsig.Verify(req, []byte("[]"), o); httpsig.ReasonOf(err) != httpsig.ReasonDigestMismatch {
				t.Errorf("with another body: %v", err)
			}
		})
	}
}
