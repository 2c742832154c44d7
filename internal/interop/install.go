//go:build unix

package interop

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

//go:embed receivers
var receivers embed.FS

func nodeCommand(t testing.TB, script string) *exec.Cmd {
	t.Helper()
	provide(t, "Node.js 18 or later with npm", []string{"nodejs", "npm"}, func() bool { return have("node") && have("npm") })
	modules := install(t, "node", content(t, "receivers/node/package-lock.json"), installNode)
	return exec.Command("node", unpack(t, "receivers/node/"+script), modules)
}

func pythonCommand(t testing.TB, script string) *exec.Cmd {
	t.Helper()
	provide(t, "Python 3.10 or later with venv", []string{"python3", "python3-venv"}, func() bool {
		return exec.Command("python3", "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 10))").Run() == nil
	})
	// A virtual environment belongs to the interpreter that made it.
	interpreter, err := exec.Command("python3", "-c", "import sys; print(sys.executable, sys.version)").Output()
	if err != nil {
		t.Fatalf("ask python3 for its version: %v", err)
	}
	venv := install(t, "python", append(interpreter, content(t, "receivers/python/requirements.txt")...), installPython)
	return exec.Command(filepath.Join(venv, "bin", "python"), unpack(t, "receivers/python/"+script, "receivers/python/server.py"))
}

// install returns a directory with packages, in the user's cache: one for each
// content of the lock file, filled once. Test binaries run at the same time, so a
// file lock lets one of them do it.
func install(t testing.TB, name string, lock []byte, fill func(t testing.TB, dir string)) string {
	t.Helper()
	sum := sha256.Sum256(lock)
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "godwit", "interop", name+"-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatalf("make the cache for receivers: %v", err)
	}
	defer exclusively(t, dir+".lock")()
	complete := filepath.Join(dir, ".complete")
	if _, err := os.Stat(complete); err == nil {
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatalf("remove an unfinished install: %v", err)
	}
	fill(t, dir)
	if err := os.WriteFile(complete, nil, 0o644); err != nil {
		t.Fatalf("finish install: %v", err)
	}
	return dir
}

// exclusively waits until this process alone holds the file lock.
func exclusively(t testing.TB, name string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatalf("open lock: %v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("take lock: %v", err)
	}
	return func() { _ = f.Close() }
}

func installNode(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), content(t, "receivers/node/"+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		t.Fatalf("install the npm packages of the Node receiver: %v", err)
	}
}

func installPython(t testing.TB, dir string) {
	t.Helper()
	requirements := unpack(t, "receivers/python/requirements.txt")
	err := run("", "python3", "-m", "venv", dir)
	if err == nil {
		err = run("", filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet",
			"--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:", "-r", requirements)
	}
	if err != nil {
		t.Fatalf("install the packages of the Python receiver: %v", err)
	}
}

// provide makes sure that a runtime is installed. On Debian as root it installs it; elsewhere the test fails and says what is
// needed.
func provide(t testing.TB, what string, debian []string, present func() bool) {
	t.Helper()
	if present() {
		return
	}
	var err error
	if os.Geteuid() == 0 && have("apt-get") {
		err = run("", "apt-get", "update", "-q")
		if err == nil {
			err = run("", "apt-get", append([]string{"install", "-qy", "--no-install-recommends"}, debian...)...)
		}
		if err == nil && present() {
			return
		}
	}
	t.Fatalf("this test needs %s, to verify deliveries with a library that is not ours: install it (on Debian: apt-get install %v). %v",
		what, debian, err)
}

func have(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func run(dir, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, output.String())
	}
	return nil
}

func content(t testing.TB, name string) []byte {
	t.Helper()
	data, err := receivers.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unpack writes embedded files to a directory of the test, and returns the path of the first.
func unpack(t testing.TB, first string, others ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(others, first) {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), content(t, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, filepath.Base(first))
}
