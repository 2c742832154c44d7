package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

// conformance runs the command and returns its exit code, standard output and standard error.
func conformance(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, complaint strings.Builder
	env := &environment{ctx: t.Context(), stdout: &out, stderr: &complaint, stdin: strings.NewReader(""), lookup: func(string) (string, bool) { return "", false }}
	code := run(append([]string{"conformance", "ids"}, args...), env)
	return code, out.String(), complaint.String()
}

func TestConformanceOfALiveServer(t *testing.T) {
	trace.Covers(t, "IDS-TST-7")
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.Commands.Probe = true }})
	code, out, complaint := conformance(t, "--url", srv.URL, "--key", srv.Key, "--parallel", "20")
	if code != exitOK || complaint != "" || strings.Count(out, "pass  IDS-TST-") != 6 || !strings.HasSuffix(out, "all 6 passed\n") {
		t.Errorf("%d\n%s%s", code, out, complaint)
	}
	code, out, _ = conformance(t, "--url", srv.URL, "--key", srv.Key, "--parallel", "20", "--json")
	var got struct {
		Passed   bool
		Verdicts []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || !got.Passed || len(got.Verdicts) != 6 || got.Verdicts[0].ID != "IDS-TST-1" {
		t.Errorf("%d %v\n%s", code, err, out)
	}
}

// The server answers every request and does nothing.
func TestConformanceOfABrokenServer(t *testing.T) {
	trace.Covers(t, "IDS-TST-7")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"caller":{"tenant_id":"t","actor_id":"a","scopes":["ingest","read","audit"]},
			"commands":[{"entity":"probe","action":"touch"},{"entity":"probe","action":"delete"}],"status":"executed","items":[]}`))
	}))
	defer srv.Close()
	code, out, _ := conformance(t, "--url", srv.URL, "--key", "k", "--parallel", "3")
	if code != exitFailed || strings.Count(out, "FAIL  IDS-TST-") != 6 || !strings.Contains(out, "6 of 6 failed") {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out, _ = conformance(t, "--url", srv.URL, "--key", "k", "--parallel", "3", "--json"); code != exitFailed || !strings.Contains(out, `"passed":false,"verdicts"`) {
		t.Errorf("%d\n%s", code, out)
	}
	for _, args := range [][]string{{"--url", srv.URL}, {"--url", srv.URL, "--key", "k", "--parallel", "1"}, {"--url", apptest.DeadURL(t, ""), "--key", "k"}} {
		if code, out, complaint := conformance(t, args...); code != exitFailed || out != "" || complaint == "" {
			t.Errorf("%v: %d %s%s", args, code, out, complaint)
		}
	}
}
