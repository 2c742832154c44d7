package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

func TestCompletion(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	ep := srv.Endpoint("http://127.0.0.1:9/").ID.String()
	u := at(t, srv)
	model := newParser(t).Model
	ask := func(args ...string) []string {
		var out bytes.Buffer
		Complete(u.session(t.Context(), &out, &out), model, args)
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"fish", "end"}, "endpoints\tList, create, change, test and delete endpoints."},
		{[]string{"fish", "endpoints", "pa"}, "pause\tHold the deliveries of an endpoint."},
		{[]string{"zsh", "endpoints", "get", ""}, ep + "\tactive http://127.0.0.1:9/ *"},
		{[]string{"zsh", "endpoints", "pause", "--json", "--reason", "why", "sub"}, ep + "\tactive http://127.0.0.1:9/ *"},
		{[]string{"zsh", "environments", "get", "def"}, "default\tdefault Default true"},
		{[]string{"zsh", "deliveries", "list", "--status", "pe"}, "pending\t"},
		{[]string{"zsh", "deliveries", "list", "--endpoint=s"}, "--endpoint=" + ep + "\tactive http://127.0.0.1:9/ *"},
		{[]string{"zsh", "deliveries", "list", "--end"}, "--endpoint\tOnly to this endpoint."},
		{[]string{"zsh", "tenants", "update", "--no-"}, "--no-require-idempotency-key\tRefuse events without Idempotency-Key."},
		{[]string{"bash", "godwit dea", "dea"}, "dead-letters"},
		{[]string{"bash", "godwit endpoints get ", ""}, ep},
		{[]string{"bash", "godwit deliveries list --status=pe", "pe"}, "pending"},
		{[]string{"bash", "godwit deliveries list --endpoint=", "="}, ep},
		{[]string{"bash", "godwit events list --type 'a b' --js", "--js"}, "--json"},
	} {
		if got := ask(tc.args...); !slices.Contains(got, tc.want) || len(got) > 3 {
			t.Errorf("%q: %q, want %q", tc.args, got, tc.want)
		}
	}
	// Silent without a server, and about what does not exist.
	u.env["GODWIT_URL"] = "http://127.0.0.1:1"
	for _, args := range [][]string{{"zsh", "endpoints", "get", ""}, {"zsh", "nothing", "at", "all"}, {"zsh", "--nothing", "-"}, {"bash", ""}, {"bash"}, {}} {
		if got := ask(args...); len(got) > 1 || got[0] != "" && !strings.HasPrefix(got[0], "--help") {
			t.Errorf("%q: %q", args, got)
		}
	}
}
