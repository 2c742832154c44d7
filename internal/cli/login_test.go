package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func (u *user) configFile() string {
	return filepath.Join(u.env["XDG_CONFIG_HOME"], "godwit", "config.yaml")
}

func TestLoginSavesAContext(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	other := apptest.Start(t, apptest.Options{})
	u := newUser(t)
	u.refused([]string{"endpoints", "list"}, "no API key", "godwit login")
	u.stdin = srv.Key + "\n"
	stdout, stderr := u.must("login", srv.URL, "--name", "one")
	if !strings.Contains(stdout, "tenant  test ("+srv.Tenant.String()+")") || !strings.Contains(stdout, "admin") || !strings.Contains(stderr, "context one is in use") {
		t.Errorf("login said %s%s", stdout, stderr)
	}
	if info, err := os.Stat(u.configFile()); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("file %v, %v", info.Mode(), err)
	}
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(other.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must("login", other.URL, "--name", "two", "--key-file", keyFile)

	srv.Endpoint("http://127.0.0.1:9/one")
	other.Endpoint("http://127.0.0.1:9/two")
	shows := func(want string, args ...string) {
		t.Helper()
		if stdout, _ := u.must(append([]string{"endpoints", "list"}, args...)...); !strings.Contains(stdout, want) || strings.Count(stdout, "127.0.0.1") != 1 {
			t.Errorf("%v shows\n%s; want %s", args, stdout, want)
		}
	}
	shows("/two")
	shows("/one", "--context", "one")
	u.env["GODWIT_CONTEXT"] = "one"
	shows("/one")
	delete(u.env, "GODWIT_CONTEXT")
	u.must("context", "use", "one")
	shows("/one")
	shows("/two", "--url", other.URL, "--key", other.Key)
	shows("/two", "--context", "one", "--url", other.URL, "--key", other.Key)
	u.refused([]string{"endpoints", "list", "--context", "three"}, `no context "three"`, "godwit context list")
	// The key of a context goes to no other server.
	u.refused([]string{"endpoints", "list", "--url", other.URL}, "no API key for "+other.URL, "sent nowhere else")

	for _, args := range [][]string{{"context", "list"}, {"context", "list", "--json"}, {"context", "show"}, {"context", "show", "two", "--json"}, {"whoami"}, {"whoami", "--json"}} {
		stdout, stderr := u.must(args...)
		if strings.Contains(stdout+stderr, srv.Key) || strings.Contains(stdout+stderr, other.Key) || stdout == "" {
			t.Errorf("%v prints a key or nothing: %s%s", args, stdout, stderr)
		}
	}
	u.refused([]string{"context", "delete", "one"}, "--yes")
	u.must("context", "delete", "one", "--yes")
	u.refused([]string{"endpoints", "list"}, "no API key")
	u.refused([]string{"context", "use", "one"}, "no context")
	u.refused([]string{"context", "show"}, "no context is in use")
	shows("/two", "--context", "two")
}

func TestLoginChecksTheKey(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := newUser(t)
	u.stdin = "gdw_nobody-knows-this-key-0000000000\n"
	u.refused([]string{"login", srv.URL}, "401")
	u.stdin = ""
	u.refused([]string{"login", srv.URL}, "read standard input")
	u.stdin = "\n"
	u.refused([]string{"login", srv.URL}, "no API key given")
	u.refused([]string{"login", srv.URL, "--name", "a b"}, "cannot name a context")
	u.refused([]string{"login", "nowhere"}, "")
	if _, err := os.Stat(u.configFile()); err == nil {
		t.Error("a login that failed was saved")
	}
	// A key that may not read its tenant's name can log in, too.
	tenant, key := srv.NewTenant("quiet", godwit.ScopeIngest)
	u.stdin = key
	if stdout, _ := u.must("login", srv.URL); !strings.Contains(stdout, "tenant  "+tenant.String()) {
		t.Errorf("login said %s", stdout)
	}
	u.stdin = srv.Key
	u.must("login", srv.URL, "--name", "acting", "--tenant", tenant.String())
	if stdout, _ := u.must("whoami"); !strings.Contains(stdout, "quiet ("+tenant.String()+")") {
		t.Errorf("whoami said %s", stdout)
	}
}

func TestContextFileThatOthersCanReadIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	srv := apptest.Start(t, apptest.Options{})
	u := newUser(t)
	u.stdin = srv.Key
	u.must("login", srv.URL)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(u.configFile(), mode); err != nil {
			t.Fatal(err)
		}
		u.refused([]string{"endpoints", "list"}, "chmod 600")
		u.refused([]string{"login", srv.URL}, "chmod 600")
	}
	if err := os.WriteFile(u.configFile(), []byte("contexts: {a: {key: gdw_secret, surprise: 1}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(u.configFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := u.run("endpoints", "list")
	if err == nil || !strings.Contains(err.Error(), "not a file of contexts") || strings.Contains(err.Error(), "gdw_") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestPlainRemoteServersAreWarnedOf(t *testing.T) {
	for url, want := range map[string]bool{"http://127.0.0.1:8080": false, "http://[::1]:1": false, "http://localhost": false, "http://10.0.0.1": true, "http://example.com": true, "https://example.com": false} {
		if plainRemote(url) != want {
			t.Errorf("%s: %v", url, !want)
		}
	}
}
