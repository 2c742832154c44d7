package ui

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/problem"
)

func newHandler(t *testing.T, cfg Config) http.Handler {
	t.Helper()
	cfg.Errors = &problem.Writer{}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var asset = regexp.MustCompile(`/ui/assets/[^"]+`)

func TestPagesAndAssets(t *testing.T) {
	h := newHandler(t, Config{})
	for _, path := range []string{"/ui/", "/ui/events/evt_1", "/portal/", "/portal/endpoints"} {
		w := get(h, path)
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Fatalf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if again := get(h, path, "If-None-Match", w.Header().Get("Etag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s: unchanged page is answered with %d and %d bytes", path, again.Code, again.Body.Len())
		}
		assets := asset.FindAllString(w.Body.String(), -1)
		if len(assets) == 0 {
			t.Errorf("%s names no file", path)
		}
		for _, name := range assets {
			if w := get(h, name); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d, Cache-Control %q", name, w.Code, w.Header().Get("Cache-Control"))
			}
		}
		if strings.Contains(w.Body.String(), "<style") || strings.Contains(w.Body.String(), "style=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(w.Body.String()) {
			t.Errorf("%s has script or style of its own, which the policy refuses", path)
		}
	}
	if w := get(h, "/ui/assets/old-1234.js"); w.Code != 404 {
		t.Errorf("file that there is not: %d", w.Code)
	}
}

func TestOnlyTheAncestorsMayFrameThePortal(t *testing.T) {
	h := newHandler(t, Config{Ancestors: func(*http.Request) []string { return []string{"https://app.example.com"} }})
	if csp := get(h, "/portal/").Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors https://app.example.com;") {
		t.Errorf("portal: %q", csp)
	}
	if csp := get(h, "/ui/").Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("dashboard: %q", csp)
	}
}

// The first page loads all of the dashboard's script; it has to stay small.
func TestScriptOfTheFirstPageIsSmall(t *testing.T) {
	h := newHandler(t, Config{})
	total := 0
	for _, name := range asset.FindAllString(get(h, "/ui/").Body.String(), -1) {
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		w := get(h, name, "Accept-Encoding", "br, gzip")
		if w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", name)
		}
		total += w.Body.Len()
		r, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d bytes of compressed script", total)
	if total == 0 || total > 150<<10 {
		t.Errorf("%d bytes of compressed script; the limit is 150 KiB", total)
	}
}
