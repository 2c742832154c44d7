package conformance

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestStatusCodesKeepTheirMeaning: our status codes are registered and come with the fields that RFC 9110 requires.
func TestStatusCodesKeepTheirMeaning(t *testing.T) {
	trace.Covers(t, "EDS-SCP-3")
	r := newRig(t, apptest.Options{})
	for _, k := range problem.Kinds() {
		if http.StatusText(k.Status) == "" || k.Status < 400 {
			t.Errorf("problem %s has the status %d", k.Code, k.Status)
		}
	}
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]any `json:"responses"`
		} `json:"paths"`
	}
	r.Must(apptest.Call{Path: "/openapi.json"}, &document)
	operations := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			operations++
			for text := range op.Responses {
				if code, err := strconv.Atoi(text); text != "default" && (err != nil || http.StatusText(code) == "") {
					t.Errorf("%s %s answers %s", method, path, text)
				}
			}
			wantRefusal(t, r, strings.ToUpper(method), path)
		}
	}
	if operations < 20 {
		t.Errorf("the document lists %d operations", operations)
	}
	for _, path := range []string{"/v1/events", "/v1/endpoints", "/v1/deliveries/x/retry"} {
		answer := r.Call(apptest.Call{Method: "DELETE", Path: path})
		if answer.Status != http.StatusMethodNotAllowed || !strings.Contains(answer.Header.Get("Allow"), "POST") || strings.Contains(answer.Header.Get("Allow"), "DELETE") {
			t.Errorf("DELETE %s: %d, Allow %q", path, answer.Status, answer.Header.Get("Allow"))
		}
	}
	r.end()
	if resp, err := http.Get(r.URL + "/healthz"); err == nil {
		resp.Body.Close()
		t.Errorf("a stopped server answers %d", resp.StatusCode)
	}
}

// wantRefusal asks without a key: 401 with a challenge, unless the operation is open to all.
func wantRefusal(t *testing.T, r *rig, method, path string) {
	t.Helper()
	for _, part := range []string{"{id}", "{tenant}"} {
		path = strings.ReplaceAll(path, part, "x")
	}
	answer := r.Call(apptest.Call{Method: method, Path: path, Key: "none"})
	if challenge := answer.Header.Get("WWW-Authenticate"); answer.Status == http.StatusUnauthorized && !strings.HasPrefix(challenge, "Bearer") {
		t.Errorf("%s %s: 401 with WWW-Authenticate %q", method, path, challenge)
	}
	open := method == http.MethodPost && path == "/v1/sessions" || // has its key or code in the body
		path == "/v1/sign-in-methods" // is read before anyone has signed in
	if strings.HasPrefix(path, "/v1/") && !open && answer.Status != http.StatusUnauthorized {
		t.Errorf("%s %s without a key: %d", method, path, answer.Status)
	}
	if http.StatusText(answer.Status) == "" {
		t.Errorf("%s %s answers %d", method, path, answer.Status)
	}
}
