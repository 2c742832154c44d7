package receiver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// TestPolicyIsPublished: at the address that errors link to, without credentials, and made from the running configuration.
func TestPolicyIsPublished(t *testing.T) {
	trace.Covers(t, "IKH-RSP-3", "IKH-RSP-4", "IKH-EXP-2", "IKH-UNQ-3", "IKH-SEC-4", "IKH-ERR-2")
	g := newRig(t, func(o *receiver.Options) {
		o.Dedup.Window, o.Key = 36*time.Hour, receiver.KeyPolicy{Min: 20, Max: 40}
		o.Freshness.Tolerance, o.MaxBody = 120*time.Second, 4096
	})
	refused := g.want(g.keyed(event{id: "x"}, `"short"`), 400)
	target, _, _ := strings.Cut(strings.TrimPrefix(refused.Header.Get("Link"), "<"), ">")
	req, err := http.NewRequest("GET", g.server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := g.want(g.do(req), 200)
	if a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("type %q", a.Header.Get("Content-Type"))
	}
	for _, part := range []string{
		"20 to 40 printable ASCII", "36 hours (129600 seconds) after the first request with it has completed", "per authenticated producer and endpoint URI",
		"120 seconds", "4096 bytes", "Idempotency-Key", "may not be used again with another payload", "Idempotency-Replayed",
		"<td>400</td>", "<td>401</td>", "<td>422</td>", "<td>503</td>", `id="key-missing"`, `id="key-malformed"`, `id="key-reused"`, `id="in-progress"`,
	} {
		if !strings.Contains(a.Body, part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	// What it says of lengths is so.
	for length, status := range map[int]int{19: 400, 20: 204, 40: 204, 41: 400} {
		g.want(g.keyed(event{id: "x"}, `"`+strings.Repeat("k", length)+`"`), status)
	}
	head, err := http.NewRequest("HEAD", g.server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := g.want(g.do(head), 200); a.Body != "" {
		t.Error("HEAD got a body")
	}
	g.wantCalls(2)
}

func TestPolicyOfOthers(t *testing.T) {
	page := func(change ...func(*receiver.Options)) string {
		g := newRig(t, change...)
		req, err := http.NewRequest("GET", g.server.URL+"/docs/idempotency", nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.want(g.do(req), 200).Body
	}
	for _, c := range []struct {
		change func(*receiver.Options)
		says   string
	}{
		{func(o *receiver.Options) { o.Dedup.Off = true }, "Deduplication</dt><dd>off"},
		{func(o *receiver.Options) { o.Dedup.NoFingerprint = true }, "told by its key alone"},
		{func(o *receiver.Options) { o.API = true }, "<td>409</td>"},
		{func(o *receiver.Options) { o.Key.Lenient = true }, "a bare value is taken as well"},
		{func(o *receiver.Options) { o.Freshness.Off = true }, "Freshness</dt><dd>not checked"},
		{withScheme(receiver.GitHub{Secrets: []string{"x"}}), "X-GitHub-Delivery"},
		{withScheme(receiver.OJS{Secrets: []string{"x"}}), "X-OJS-Delivery-ID"},
	} {
		if text := page(c.change); !strings.Contains(text, c.says) {
			t.Errorf("the page does not say %q:\n%s", c.says, text)
		}
	}
}

func TestDocsElsewhere(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) {
		o.DocsURL = "https://example.com/policy"
		o.PublicOrigin = "https://hooks.example.com"
	})
	a := g.do(g.request(event{}.withDefaults()))
	if a.Header.Get("Link") != `<https://example.com/policy>; rel="describedby"; type="text/html"` || !strings.Contains(a.Body, "https://example.com/policy#unauthenticated") {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	b := newRig(t, func(o *receiver.Options) { o.PublicOrigin = "https://hooks.example.com"; o.DocsPath = "/policy" })
	if a := b.do(b.request(event{}.withDefaults())); !strings.HasPrefix(a.Header.Get("Link"), "<https://hooks.example.com/policy>;") {
		t.Errorf("link %q", a.Header.Get("Link"))
	}
	req, err := http.NewRequest("POST", b.server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newRecorder()
	b.DocsHandler().ServeHTTP(w, req)
	if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
