package cli

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// The signing keys of an environment are managed on the command line, and files say which endpoints they sign for.
func TestSigningKeys(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	dir := files{"all.yaml": `
environments:
  demo: {endpoint_signing: environment}
  plain:
---
environment: demo
tenants:
  acme:
    endpoints:
      shared: {url: https://example.com/}
      own: {url: https://example.com/, algorithm: ed25519}
      chosen: {url: https://example.com/, signing: own}
      other: {url: https://example.com/, profile: ojs}
---
environment: plain
tenants:
  acme:
    endpoints:
      chosen: {url: https://example.com/, signing: environment}
`}.write(t, t.TempDir())
	if _, stderr, err := u.apply(dir); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	u.same(dir, "--prune")
	exported, _ := u.must("export")
	u.same(files{"all.yaml": exported}.write(t, t.TempDir()), "--prune")
	empty := apptest.Start(t, apptest.Options{})
	if _, stderr, err := at(t, empty).apply(files{"all.yaml": exported}.write(t, t.TempDir())); err != nil {
		t.Fatalf("on an empty server: %v\n%s", err, stderr)
	}
	if again, _ := at(t, empty).must("export"); again != exported {
		t.Errorf("the second server is another:\n%s\nwant\n%s", again, exported)
	}

	first := strings.Fields(strings.Split(u.has([]string{"environments", "keys", "demo"}, "ed25519", "true"), "\n")[1])[0]
	second := decode(t, u.has([]string{"environments", "rotate", "demo", "--overlap", "1h", "--json"}))["id"].(string)
	u.has([]string{"environments", "keys", "demo", "--json"}, second)
	if first == second {
		t.Fatal("the rotation made no key")
	}
	u.refused([]string{"environments", "revoke-key", "demo", first}, "--yes")
	u.has([]string{"environments", "revoke-key", "demo", first, "--yes"}, "revoked "+first)
	u.refused([]string{"environments", "revoke-key", "demo", second, "--yes"}, "409")
	third := decode(t, u.has([]string{"environments", "rotate", "demo", "--overlap", "0s", "--json"}))["id"].(string)
	u.refused([]string{"environments", "revoke-key", "demo", second, "--yes"}, "409") // it has ended
	u.has([]string{"environments", "keys", "demo"}, third)
}
