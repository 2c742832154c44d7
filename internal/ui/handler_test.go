package ui

import (
	"compress/gzip"
	"context"
	"errors"
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
	h := newHandler(t, Config{Ancestors: func(_ context.Context, environment string) ([]string, error) {
		switch environment {
		case "env_1":
			return []string{"https://app.example.com", "https://www.example.com"}, nil
		case "env_away":
			return []string{"https://app.example.com"}, errors.New("the store is away")
		}
		return nil, nil
	}})
	for path, want := range map[string]string{
		"/portal/env_1/":          "https://app.example.com https://www.example.com",
		"/portal/env_1":           "https://app.example.com https://www.example.com",
		"/portal/env_1/endpoints": "https://app.example.com https://www.example.com",
		"/portal/env_2/":          "'none'",
		"/portal/env_away/":       "'none'",
		"/portal/":                "'none'",
		"/ui/env_1/":              "'none'",
	} {
		header := get(h, path).Header()
		if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors "+want+";") {
			t.Errorf("%s: %q", path, csp)
		}
		if old := header.Get("X-Frame-Options"); (old == "DENY") != (want == "'none'") {
			t.Errorf("%s: X-Frame-Options %q", path, old)
		}
	}
}

// A browser that has the page gets it anew when other pages may frame it: not all take a new policy from an answer without a body.
func TestAChangedPolicyChangesThePage(t *testing.T) {
	ancestors := []string{"https://app.example.com"}
	h := newHandler(t, Config{Ancestors: func(context.Context, string) ([]string, error) { return ancestors, nil }})
	tag := get(h, "/portal/env_1/").Header().Get("Etag")
	if w := get(h, "/portal/env_1/", "If-None-Match", tag); w.Code != 304 {
		t.Errorf("with the same policy: %d", w.Code)
	}
	ancestors = nil
	if w := get(h, "/portal/env_1/", "If-None-Match", tag); w.Code != 200 {
		t.Errorf("with another policy: %d", w.Code)
	}
}

func TestPagesOfOthersMayLoadTheElement(t *testing.T) {
	w := get(newHandler(t, Config{}), "/portal/embed.js")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Cross-Origin-Resource-Policy") != "cross-origin" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if text := w.Body.String(); !strings.Contains(text, "godwit-portal") || strings.Contains(text, "import") {
		t.Error("the file is not the whole element")
	}
}

// The first page loads all of the script; it has to stay small.
func TestScriptOfTheFirstPageIsSmall(t *testing.T) {
	h := newHandler(t, Config{})
	for path, limit := range map[string]int{"/ui/": 150 << 10, "/portal/env_1/": 100 << 10} {
		total := 0
		for _, name := range asset.FindAllString(get(h, path).Body.String(), -1) {
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
		t.Logf("%s: %d bytes of compressed script", path, total)
		if total == 0 || total > limit {
			t.Errorf("%s: %d bytes of compressed script; the limit is %d", path, total, limit)
		}
	}
}
