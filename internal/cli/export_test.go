package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// Exported files change nothing on the same server, and make an empty one the same.
func TestExport(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := platformUser(t, srv)
	if _, stderr, err := u.apply(everything.write(t, t.TempDir())); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	srv.Must(apptest.Call{Path: "/v1/endpoints", Header: map[string]string{"Godwit-Environment": "production", "Godwit-Tenant": "acme"}, Body: apptest.Fields{"url": "https://by-hand.example/"}}, nil)
	dir := t.TempDir()
	_, stderr := u.must("export", "-o", dir)
	for _, part := range []string{"production: 1 endpoints have no uid and are left out", "default: 1 tenants have no uid and are left out", "wrote 6 files"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("got\n%s\nwant %q", stderr, part)
		}
	}
	var all strings.Builder
	for _, name := range []string{
		"environments.yaml", "production/event-types.yaml", "production/schemas/order.paid.json", "production/tenants/acme.yaml",
		"production/tenants/acme/schemas/acme.special.json", "production/tenants/globex.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		}
		all.WriteString("==> " + name + "\n" + string(text))
	}
	for _, value := range secretValues {
		if strings.Contains(all.String(), value) {
			t.Error("a secret is exported")
		}
	}
	golden(t, "export.txt", all.String())
	exported, _ := u.must("export", "--environment", "production")
	stream := files{"all.yaml": exported}.write(t, t.TempDir())
	for _, from := range []string{dir, stream} {
		if stdout, stderr, err := u.apply(from, "--prune"); err != nil || stdout != "" || !strings.Contains(stderr, "no change") {
			t.Errorf("applied to the same server: %v\n%s%s", err, stdout, stderr)
		}
	}

	empty := apptest.Start(t, apptest.Options{})
	v := platformUser(t, empty)
	v.refused([]string{"apply", "-f", dir}, "PRODUCTION_ACME_ORDERS_PASSWORD is not set", "PRODUCTION_ACME_ORDERS_HEADER_X_TEAM is not set", "PRODUCTION_ACME_GITHUB_SECRET")
	for name, value := range variablesIn(all.String()) {
		v.env[name] = value
	}
	if _, stderr, err := v.apply(dir); err != nil || !strings.Contains(stderr, "10 created") {
		t.Fatalf("%v\n%s", err, stderr)
	}
	v.same(dir, "--prune")
	again, _ := v.must("export", "--environment", "production")
	if again != exported {
		t.Errorf("the second server is another:\n%s", again)
	}
	var e struct{ Status, Method string }
	empty.Must(apptest.Call{Path: "/v1/endpoints/orders", Header: map[string]string{"Godwit-Environment": "production", "Godwit-Tenant": "acme"}}, &e)
	if e.Status != "paused" || e.Method != "PUT" {
		t.Errorf("the endpoint is %+v", e)
	}
}

// variablesIn gives a value to each variable that exported files name.
func variablesIn(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "env: "); ok {
			found[name] = "value-of-" + strings.ToLower(name)
		}
	}
	return found
}
