//go:build linux

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

const imageUser = 65532

// container runs commands in the image's files and as its user, as a container would, with nothing else of this machine
// but its network.
type container struct {
	root  string
	image unpacked
}

func newContainer(t *testing.T, u unpacked) *container {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, h := range u.layer {
		path := filepath.Join(root, h.Name)
		var err error
		if strings.HasSuffix(h.Name, "/") {
			err = os.Mkdir(path, os.FileMode(h.Mode))
		} else {
			err = os.WriteFile(path, u.files[h.Name], os.FileMode(h.Mode))
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Lchown(path, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &container{root: root, image: u}
}

// command is the image's entry point with these arguments.
func (c *container) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), c.image.config.Entrypoint[0], args...)
	cmd.Env, cmd.Dir = c.image.config.Env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	if os.Geteuid() != 0 { // in a user namespace, where chroot is allowed
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Getegid(), Size: 1}}
		cmd.SysProcAttr.Credential.NoSetGroups = true
	}
	return cmd
}

var servedAt = regexp.MustCompile(`msg=serving .*listen=(\S+)`)

// TestImageServes starts the server from the image's files alone: no shell, no libraries, no /proc, no other user.
func TestImageServes(t *testing.T) {
	slowtest.Needs(t, "a build of the static binary")
	program := filepath.Join(t.TempDir(), "godwit")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../../cmd/godwit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := newContainer(t, unpack(t, buildImage(t, buildStage(t, program))))

	out, err := c.command(t, "version").CombinedOutput()
	if os.Geteuid() != 0 && err != nil && len(out) == 0 {
		t.Skipf("neither root nor user namespaces: %v", err)
	}
	if err != nil {
		t.Fatalf("version: %v: %s", err, out)
	}
	server := c.command(t, append(c.image.config.Cmd, "--listen", "127.0.0.1:0")...)
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	address, said := "", ""
	lines := bufio.NewScanner(log)
	for address == "" && lines.Scan() {
		said += lines.Text() + "\n"
		if m := servedAt.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	if address == "" {
		t.Fatalf("the server ended, %v:\n%s", server.Wait(), said)
	}
	check := c.image.config.Healthcheck.Test
	health := c.command(t, append(check[2:], "--within", "5m", "--listen", address)...)
	if out, err := health.CombinedOutput(); err != nil || string(out) != "ready\n" {
		t.Errorf("health: %v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(c.root, "data/keyring")); err != nil {
		t.Errorf("the data is not on the volume: %v", err)
	}
	_ = server.Process.Signal(syscall.SIGTERM)
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	if err := server.Wait(); err != nil {
		t.Errorf("stop: %v:\n%s", err, said)
	}
}
