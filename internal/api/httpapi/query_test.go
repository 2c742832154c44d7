package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// Every API refuses an empty or repeated filter: ignoring it would select everything, or not what the client meant.
func TestFiltersAreNotIgnored(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	for path, names := range map[string][]string{
		"/v1/deliveries":                                 {"status", "event_id", "limit"},
		"/v1/dead-letters/export":                        {"endpoint_id", "type"},
		"/ids/v1/evidence":                               {"idempotency_key", "command_id", "limit"},
		"/ids/v1/evidence/export":                        {"from_seq"},
		"/ojs/v1/webhooks/deliveries":                    {"status", "event_type"},
		"/ojs/v1/events":                                 {"limit"},
		"/api/v1/webhooks/endpoints":                     {"limit"},
		"/.well-known/http-message-signatures-directory": {"keyid"},
	} {
		if r := srv.Call(apptest.Call{Path: path}); r.Status != http.StatusOK {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
		for _, name := range names {
			for _, query := range []string{name + "=", name + "=1&" + name + "=2"} {
				r := srv.Call(apptest.Call{Path: path + "?" + query})
				if r.Status != http.StatusBadRequest && r.Status != http.StatusUnprocessableEntity || !strings.Contains(string(r.Body), name) {
					t.Errorf("%s?%s: %d %s", path, query, r.Status, r.Body)
				}
			}
		}
	}
}
