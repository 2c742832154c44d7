package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// TestRepeatedContentFields: every API reads all lines of Content-Type and Content-Encoding. A second line must not hide
// behind the first.
func TestRepeatedContentFields(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	key := srv.NewKey(srv.Tenant, godwit.ScopeIngest)
	const data = `{"object":{"id":"o","object":"project","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}}`
	for path, body := range map[string]string{
		"/v1/events":                 `{"type":"order.paid","data":1}`,
		"/v1/events?type=order.paid": `{}`,
		"/v1/events/batch":           `{"events":[{"type":"order.paid","data":1}]}`,
		"/ojs/v1/events":             `{"type":"order.paid","source":"ojs://shop","data":{}}`,
		"/ojs/v1/events/batch":       `{"events":[{"type":"order.paid","source":"ojs://shop","data":{}}]}`,
		"/api/v1/webhooks/events":    `{"type":"project.created","data":` + data + `}`,
	} {
		for _, c := range []struct {
			name   string
			header http.Header
			want   int
		}{
			{"plain", http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Content-Encoding": {"identity"}}, 202},
			{"two types", http.Header{"Content-Type": {"application/json", "text/plain"}}, 415},
			{"hidden encoding", http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "gzip"}}, 415},
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = c.header.Clone()
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("%s, %s: %d, want %d", path, c.name, resp.StatusCode, c.want)
			}
		}
	}
}
