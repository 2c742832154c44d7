package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// decode reads the one JSON document that a command printed.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

func TestEndpoints(t *testing.T) {
	sink := apptest.NewSink(t)
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	if stdout, stderr := u.must("endpoints", "list"); stdout != "" || stderr != "no endpoints\n" {
		t.Errorf("an empty list: %q, %q", stdout, stderr)
	}
	stdout, _ := u.must("endpoints", "create", sink.URL("/a"), "--patterns", "order.*,a.b", "--filter", "region=eu,us", "--filter", "tier=1",
		"--header", "X-Team=a;b", "--policy", `{"timeout_seconds":5}`, "--description", "orders", "--json")
	made := decode(t, stdout)
	id := made["id"].(string)
	filter, _ := json.Marshal(made["filter"])
	if string(filter) != `{"region":["eu","us"],"tier":["1"]}` || made["secret"].(map[string]any)["value"] == "" || made["policy"].(map[string]any)["timeout_seconds"] != 5.0 {
		t.Errorf("made %s", stdout)
	}
	stdout, _ = u.must("endpoints", "create", "--body", `{"url":"`+sink.URL("/b")+`","description":"old"}`, "--description", "new", "--paused")
	for _, want := range []string{"description   new\n", "status        paused\n", "secret:\n", "  value "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("created\n%s; want %q", stdout, want)
		}
	}
	if stdout, _ := u.must("endpoints", "list", "--status", "paused", "--json"); strings.Count(stdout, "\n") != 1 || decode(t, stdout)["description"] != "new" {
		t.Errorf("paused ones: %s", stdout)
	}
	if stdout, _ := u.must("endpoints", "list", "--search", "no such part", "--health", "healthy"); stdout != "" {
		t.Errorf("a search for nothing finds %s", stdout)
	}
	if stdout, stderr := u.must("endpoints", "list", "--limit", "1"); strings.Count(stdout, "sub_") != 1 || !strings.Contains(stderr, "--all") {
		t.Errorf("the first: %s%s", stdout, stderr)
	}
	if stdout, stderr := u.must("endpoints", "list", "--limit", "1", "--all"); strings.Count(stdout, "sub_") != 2 || stderr != "" {
		t.Errorf("all: %s%s", stdout, stderr)
	}

	// A shortened id, as tables have it, is as good as the whole one.
	stdout, _ = u.must("endpoints", "update", shortID(id), "--to", sink.URL("/c"), "--json")
	if decode(t, stdout)["url"] != sink.URL("/c") || decode(t, stdout)["description"] != "orders" {
		t.Errorf("changed %s", stdout)
	}
	u.refused([]string{"endpoints", "get", "sub_…"}, "may be any of", id)
	u.refused([]string{"endpoints", "get", "sub_…nothing"}, "give the whole id")
	u.refused([]string{"endpoints", "update", id}, "nothing to change")
	u.refused([]string{"endpoints", "update", id, "--body", "[]"}, "--body: is not a JSON object")
	u.refused([]string{"endpoints", "update", id, "--policy", "x"}, "is not JSON")

	if stdout, _ := u.must("endpoints", "pause", id, "--reason", "works on it"); !strings.Contains(stdout, "paused") {
		t.Errorf("paused %s", stdout)
	}
	if stdout, _ := u.must("endpoints", "get", id); !strings.Contains(stdout, "status_reason  works on it") {
		t.Errorf("shows %s", stdout)
	}
	if stdout, _ := u.must("endpoints", "resume", id, "--json"); decode(t, stdout)["status"] != "active" {
		t.Errorf("resumed %s", stdout)
	}
	if stdout, _ := u.must("endpoints", "probe", id); !strings.Contains(stdout, "accepted") {
		t.Errorf("probed %s", stdout)
	}
	if stdout, _ := u.must("endpoints", "test", id, "--json"); decode(t, stdout)["deliveries"] != 1.0 {
		t.Errorf("tested %s", stdout)
	}
	if stdout, _ := u.must("endpoints", "stats", id, "--json"); decode(t, stdout)["endpoint_id"] != id {
		t.Errorf("stats %s", stdout)
	}
}

func TestEndpointSecretsAndDeletion(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	id := srv.Endpoint("http://127.0.0.1:9/").ID.String()
	stdout, _ := u.must("endpoints", "rotate", id, "--overlap", "2h", "--json")
	fresh := decode(t, stdout)
	if fresh["value"] == nil {
		t.Errorf("rotated %s", stdout)
	}
	stdout, _ = u.must("endpoints", "secrets", id)
	if strings.Count(stdout, "sec_") != 2 || strings.Contains(stdout, fresh["value"].(string)) {
		t.Errorf("secrets\n%s", stdout)
	}
	secret := fresh["id"].(string)
	live := func() int {
		stdout, _ := u.must("endpoints", "secrets", id, "--json")
		return strings.Count(stdout, `"live":true`)
	}
	u.refused([]string{"endpoints", "revoke-secret", id, secret}, "--yes")
	u.interactive, u.stdin = true, "no\n"
	u.refused([]string{"endpoints", "revoke-secret", id, secret}, "nothing was done")
	if live() != 2 {
		t.Error("revoked without a confirmation")
	}
	u.stdin = "yes\n"
	if _, stderr := u.must("endpoints", "revoke-secret", id, secret); !strings.Contains(stderr, "Revoke secret "+secret) || live() != 1 {
		t.Errorf("revoked: %s; %d live", stderr, live())
	}

	u.stdin = "n\n"
	u.refused([]string{"endpoints", "delete", id}, "nothing was done")
	u.interactive = false
	u.refused([]string{"endpoints", "delete", id}, "--yes")
	u.must("endpoints", "get", id)
	u.interactive, u.stdin = true, "yes\n"
	if _, stderr := u.must("endpoints", "delete", id); !strings.Contains(stderr, "http://127.0.0.1:9/") || !strings.Contains(stderr, "deleted "+id) {
		t.Errorf("deletion said %s", stderr)
	}
	u.refused([]string{"endpoints", "delete", id, "--yes"}, "404")
}

// What follows an error is chosen by its kind.
func TestHints(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"endpoints", "get", "sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"}, "godwit endpoints list"},
		{[]string{"endpoints", "create", "nonsense"}, "godwit endpoints create --help"},
		{[]string{"endpoints", "list", "--key", "gdw_nobody-knows-this-key-0000000000"}, "godwit login"},
		{[]string{"endpoints", "list", "--url", "http://127.0.0.1:1"}, "godwit serve"},
		{[]string{"endpoints", "list", "--key", srv.NewKey(srv.Tenant, "ingest")}, "godwit whoami"},
	} {
		u := newUser(t)
		s := u.session(t.Context(), io.Discard, io.Discard)
		args := tc.args
		for _, more := range [][]string{{"--url", srv.URL}, {"--key", srv.Key}} {
			if !slices.Contains(args, more[0]) {
				args = append(args, more...)
			}
		}
		err := u.runIn(s, args...)
		if err == nil || !strings.Contains(s.Hint(err), tc.want) {
			t.Errorf("%v: %v; hint %q, want %q", tc.args, err, s.Hint(err), tc.want)
		}
	}
}
