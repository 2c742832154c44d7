package native

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestMethodNeedsAgreement(t *testing.T) {
	trace.Covers(t, "EDS-MTH-2")
	h := newHarness(t)
	methods := make(chan *http.Request, 10)
	receiver := newSink(t)
	receiver.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { methods <- r })
	h.post("/v1/endpoints", `{"url":`+quote(receiver.URL)+`,"method":"PUT"}`).refused(422, problem.Invalid, "method")
	for _, bad := range []string{`{"document":"","visible_to_both":true}`, `{"document":"https://wiki.example/a","visible_to_both":false}`, `{"document":"a wiki page","visible_to_both":true}`} {
		h.post("/v1/endpoints", `{"url":`+quote(receiver.URL)+`,"method":"PUT","policy":{"agreement":`+bad+`}}`).refused(422, problem.Invalid, "method")
	}
	e := h.endpoint(receiver.URL, `"method":"PUT"`, `"policy":{"agreement":{"document":"https://wiki.example/a","visible_to_both":true}}`)
	h.publish("a.b", `{}`)
	select {
	case r := <-methods:
		if r.Method != "PUT" || r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("on the wire: %s %v", r.Method, r.Header)
		}
	case <-time.After(waitLimit):
		t.Fatal("nothing arrived")
	}
	var stats EndpointStats
	h.get("/v1/endpoints/" + e.ID + "/stats").want(200).into(&stats)
	if len(stats.Agreements) != 1 || fmt.Sprint(stats.Agreements[0].Covers) != "[method]" {
		t.Errorf("agreements: %+v", stats.Agreements)
	}
}

func TestAgreements(t *testing.T) {
	trace.Covers(t, "EDS-AGR-3")
	h := newHarness(t)
	const good = `"agreement":{"document":"https://wiki.example/a","visible_to_both":true}`
	create := func(policy string) *answer {
		return h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/","policy":{`+policy+`}}`)
	}
	for policy, field := range map[string]string{
		`"statuses":{"404":"transient"}`: "policy.statuses.404",
		`"statuses":{"404":"transient"},"agreement":{"document":"","visible_to_both":true}`:                        "policy.statuses.404",
		`"statuses":{"404":"transient"},"agreement":{"document":"https://wiki.example/a","visible_to_both":false}`: "policy.statuses.404",
		`"statuses":{"401":"accepted"},` + good:                                                                    "policy.statuses.401",
		`"statuses":{"403":"accepted"},` + good:                                                                    "policy.statuses.403",
		`"statuses":{"200":"terminal"},` + good:                                                                    "policy.statuses.200",
		`"statuses":{"204":"transient"},` + good:                                                                   "policy.statuses.204",
		`"statuses":{"404":"ignored"},` + good:                                                                     "policy.statuses.404",
		`"statuses":{"0404":"terminal"},` + good:                                                                   "policy.statuses.0404",
		`"multi_status":true`:                                                                                      "policy.multi_status",
	} {
		create(policy).refused(422, problem.Invalid, field)
	}
	if n := h.counts().endpoints; n != 0 {
		t.Fatalf("%d endpoints were stored", n)
	}
	var e IssuedEndpoint
	create(`"statuses":{"404":"transient","409":"terminal"},"multi_status":true,` + good).want(201).into(&e)
	var stats EndpointStats
	h.get("/v1/endpoints/" + e.ID + "/stats").want(200).into(&stats)
	if len(stats.Agreements) != 1 || fmt.Sprint(stats.Agreements[0].Covers) != "[multi_status statuses.404 statuses.409]" ||
		stats.Agreements[0].Document != "https://wiki.example/a" || fmt.Sprint(stats.Overrides) != "[multi_status statuses.404 statuses.409]" ||
		stats.Policy.Statuses["404"] != "transient" {
		t.Errorf("listed: %+v", stats)
	}
}

// TestBounds: no policy allows unlimited retries.
func TestBounds(t *testing.T) {
	h := newHarness(t)
	for policy, field := range map[string]string{
		`{"max_retries":-1}`:                  "policy.max_retries",
		`{"max_retries":201}`:                 "policy.max_retries",
		`{"max_elapsed_seconds":0}`:           "policy.max_elapsed_seconds",
		`{"max_elapsed_seconds":-1}`:          "policy.max_elapsed_seconds",
		`{"max_elapsed_seconds":86400}`:       "policy.max_elapsed_seconds", // not below the receiver's window
		`{"max_elapsed_seconds":1e300}`:       "policy.max_elapsed_seconds",
		`{"timeout_seconds":0}`:               "policy.timeout_seconds",
		`{"concurrency":0}`:                   "policy.concurrency",
		`{"rate_per_second":0}`:               "policy.rate_per_second",
		`{"base_seconds":10,"cap_seconds":1}`: "policy.cap_seconds",
		`{"hold_scope":"galaxy"}`:             "policy.hold_scope",
	} {
		h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/","policy":`+policy+`}`).refused(422, problem.Invalid, field)
	}
	if n := h.counts().endpoints; n != 0 {
		t.Errorf("%d endpoints were stored", n)
	}
}

func TestEndpointURLs(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AZN-2", "EDS-SEC-TLS-1", "EDS-SEC-CNF-1")
	h := startHarness(t, harnessOptions{strict: true, limits: management.NoLimits})
	for _, url := range []string{
		"", "file:///etc/passwd", "gopher://example.com/", "ftp://example.com/", "http://example.com/", "HTTP://example.com/", "https://user:pw@example.com/", "https://user@example.com/",
		"https://", "https:///x", "https://:443/", "https://example.com:0/", "https://example.com:99999/", "https://example.com/#frag",
		"https://example.com/\x00", "https://example.com/\r\nX: y", "https://exa mple.com/", "//example.com/", "example.com", "javascript:alert(1)",
		"https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest/meta-data",
		"https://[fe80::1]/", "https://[fc00::1]/", "https://100.64.0.1/", "https://0.0.0.0/", "https://[::ffff:10.0.0.1]/", "https://2130706433/", "https://0177.0.0.1/",
		"https://0x7f.1/", "https://localhost/", "https://foo.localhost/", "https://example.com/" + strings.Repeat("x", 3000),
	} {
		h.post("/v1/endpoints", `{"url":`+quote(url)+`}`).refused(422, problem.Invalid, "url")
	}
	if n := h.counts().endpoints; n != 0 {
		t.Errorf("%d endpoints were stored", n)
	}
	h.post("/v1/endpoints", `{"url":"https://example.com/hooks?x=1"}`).want(201)
}

func TestEndpointHeaders(t *testing.T) {
	h := newHarness(t)
	for headers, field := range map[string]string{
		`{"Host":"x"}`: "headers.Host", `{"content-type":"x"}`: "headers.content-type", `{"Content-Length":"1"}`: "headers.Content-Length",
		`{"idempotency-key":"x"}`: "headers.idempotency-key", `{"Signature":"x"}`: "headers.Signature", `{"Signature-Input":"x"}`: "headers.Signature-Input",
		`{"Connection":"x"}`: "headers.Connection", `{"Transfer-Encoding":"chunked"}`: "headers.Transfer-Encoding", `{"Godwit-Event-Id":"x"}`: "headers.Godwit-Event-Id",
		`{"webhook-signature":"x"}`: "headers.webhook-signature", `{"X-OJS-Signature":"x"}`: "headers.X-OJS-Signature", `{"Proxy-Authorization":"x"}`: "headers.Proxy-Authorization",
		`{"":"x"}`: "headers.", `{"X A":"x"}`: "headers.X A", `{"X-A:":"x"}`: "headers.X-A:", `{"X-A\r\nEvil":"x"}`: "headers.X-A\r\nEvil",
		`{"X-A":"1\r\nEvil: yes"}`: "headers.X-A", `{"X-A":"\u0000"}`: "headers.X-A", `{"X-A":" x"}`: "headers.X-A", `{"X-A":"é"}`: "headers.X-A",
		`{"X-A":"1","x-a":"2"}`: "headers.x-a", `{"X-A":"` + strings.Repeat("x", 5000) + `"}`: "headers.X-A",
	} {
		h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/","headers":`+headers+`}`).refused(422, problem.Invalid, field)
	}
	h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/","auth":{"kind":"bearer","token":"t"},"headers":{"Authorization":"x"}}`).
		refused(422, problem.Invalid, "headers.Authorization")
	if n := h.counts().endpoints; n != 0 {
		t.Errorf("%d endpoints were stored", n)
	}
	h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/","headers":{"Authorization":"Custom x","X-Tab":"a\tb"}}`).want(201)
}

func TestEndpointCredentials(t *testing.T) {
	h := newHarness(t)
	cert, key := certificate(t)
	create := func(url, auth string) *answer {
		return h.post("/v1/endpoints", `{"url":`+quote(url)+`,"auth":`+auth+`}`)
	}
	pair := `{"kind":"mtls","certificate_pem":` + quote(cert) + `,"private_key_pem":` + quote(key) + `}`
	for _, ok := range []struct{ url, auth string }{
		{"https://a.example/", `{"kind":"bearer","token":"t"}`},
		{"https://a.example/", `{"kind":"basic","username":"u"}`},
		{"https://a.example/", `{"kind":"oauth2","token_url":"https://b.example/t","client_id":"c","client_secret":"s","scopes":["x"],"audience":"y"}`},
		{"https://a.example/", pair},
		{"http://127.0.0.1:9/", `{"kind":"bearer","token":"t"}`}, // the request does not leave this machine
	} {
		create(ok.url, ok.auth).want(201)
	}
	before := h.counts()
	for _, bad := range []struct{ url, auth, field string }{
		{"http://a.example/", `{"kind":"bearer","token":"t"}`, "auth"}, // EDS T-37
		{"http://a.example/", `{"kind":"basic","username":"u","password":"p"}`, "auth"},
		{"http://a.example/", `{"kind":"oauth2","token_url":"https://b.example/t","client_id":"c","client_secret":"s"}`, "auth"},
		{"https://a.example/", `{"kind":"oauth2","token_url":"http://b.example/t","client_id":"c","client_secret":"s"}`, "auth.token_url"},
		{"https://a.example/", `{"kind":"oauth2","token_url":"https://10.0.0.1/t","client_id":"c","client_secret":"s"}`, "auth.token_url"},
		{"http://127.0.0.1:9/", pair, "auth.kind"},
		{"https://a.example/", `{"kind":"bearer"}`, "auth.token"},
		{"https://a.example/", `{"kind":"bearer","token":"a\r\nb"}`, "auth.token"},
		{"https://a.example/", `{"kind":"bearer","token":"t","password":"p"}`, "auth.password"},
		{"https://a.example/", `{"kind":"basic","username":"a:b","password":"p"}`, "auth.username"},
		{"https://a.example/", `{"kind":"mtls","certificate_pem":"x","private_key_pem":"y"}`, "auth.certificate_pem"},
		{"https://a.example/", `{"kind":"mtls","certificate_pem":` + quote(cert) + `,"private_key_pem":"y"}`, "auth.certificate_pem"},
	} {
		a := create(bad.url, bad.auth).refused(422, problem.Invalid, bad.field)
		if strings.Contains(string(a.body), "PRIVATE KEY") {
			t.Error("a refusal repeats the key")
		}
	}
	create("https://a.example/", `{"kind":"magic"}`).refused(400, problem.InvalidRequest, "auth.kind")
	if h.counts() != before {
		t.Error("something was stored")
	}
}

func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

func TestRegistrationLimits(t *testing.T) {
	h := startHarness(t, harnessOptions{limits: management.Limits{Endpoints: 3, CreationsPerMinute: 5}})
	h.key, h.token = h.mint(h.tenant.ID, godwit.ScopeRead, godwit.ScopeManage) // the rate is not that of administrators
	for i := range 3 {
		h.endpoint(fmt.Sprintf("http://127.0.0.1:9/%d", i))
	}
	h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/"}`).refused(409, problem.LimitReached, "")
	h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/"}`).refused(409, problem.LimitReached, "")
	a := h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/"}`, "Idempotency-Key", key1).refused(429, problem.TooManyRequests, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.clock.Advance(time.Minute)
	var l list[Endpoint]
	h.get("/v1/endpoints").want(200).into(&l)
	h.do(call{method: "DELETE", path: "/v1/endpoints/" + l.Items[0].ID}).want(204)
	h.post("/v1/endpoints", `{"url":"http://127.0.0.1:9/"}`, "Idempotency-Key", key1).want(201) // the 429 was not stored
}
