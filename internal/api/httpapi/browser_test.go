package httpapi

import (
	"net/http/httptest"
	"testing"
)

// A browser that does not send Sec-Fetch-Site says by Origin where a change comes from. To a server with https, a page that came by http is a stranger.
func TestOriginOfAChange(t *testing.T) {
	for _, c := range []struct {
		public, origin string
		own            bool
	}{
		{"https://hooks.example.com", "https://hooks.example.com", true},
		{"https://hooks.example.com", "http://hooks.example.com", false},
		{"https://hooks.example.com", "https://hooks.example.com.evil.example", false},
		{"https://hooks.example.com", "null", false},
		{"https://hooks.example.com", "", false},
		{"http://hooks.example.com", "http://hooks.example.com", true},
		{"http://127.0.0.1:8080", "https://hooks.example.com", true}, // behind a proxy, without a public URL
		{"http://127.0.0.1:8080", "http://hooks.example.com", true},
	} {
		b, err := NewBrowser(c.public, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/v1/endpoints", nil)
		r.Host = "hooks.example.com"
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if err := b.CheckSite(r); (err == nil) != c.own {
			t.Errorf("%s for %s: %v", c.origin, c.public, err)
		}
	}
}
