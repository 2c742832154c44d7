//go:build unix

package postgrestest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

// A Cluster is a PostgreSQL server for one test, with fsync on, which the test may stop, crash, kill and promote.
type Cluster struct {
	t    testing.TB
	bin  string
	dir  string
	port int
	as   *syscall.Credential // PostgreSQL refuses to run as root
}

// NewCluster starts a server whose files are in a folder of the test. It ends with the test.
func NewCluster(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	return NewClusterIn(t, t.TempDir(), settings...)
}

// NewClusterIn starts a server whose files are in dir, which must be empty and stay there until the test has ended. Settings
// are lines of postgresql.conf.
func NewClusterIn(t testing.TB, dir string, settings ...string) *Cluster {
	t.Helper()
	c := prepare(t, dir)
	c.Run("initdb", "--pgdata="+c.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	c.Configure(settings...)
	c.startAnywhere()
	return c
}

// prepare gives the folder to the user that runs the server.
func prepare(t testing.TB, dir string) *Cluster {
	t.Helper()
	slowtest.Needs(t, "a PostgreSQL server of its own")
	c := &Cluster{t: t, bin: serverPrograms(t), dir: dir}
	if os.Geteuid() == 0 {
		c.as = unprivileged(t)
		if err := os.Chown(c.dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(c.dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// startAnywhere starts the server on a port below the ephemeral range, so that the restarted server gets its port again.
func (c *Cluster) startAnywhere() {
	c.t.Helper()
	for try := 1; ; try++ {
		c.port = 20000 + rand.IntN(12000)
		err := c.try("pg_ctl", c.startArguments()...)
		if err == nil {
			break
		}
		if try == 10 {
			c.t.Fatal(err)
		}
	}
	c.t.Cleanup(func() { _ = c.stop("immediate") })
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Address is the server's host and port.
func (c *Cluster) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

// URL is the URL of the superuser.
func (c *Cluster) URL() string {
	return "postgres://postgres@" + c.Address() + "/postgres?sslmode=disable"
}

// Configure appends lines to postgresql.conf. They count from the next start.
func (c *Cluster) Configure(settings ...string) {
	c.t.Helper()
	file, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	for _, line := range settings {
		if _, err := fmt.Fprintln(file, line); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Start waits until the server has recovered and takes connections. Children of a server that ended by itself may live on for a
// moment, and keep it from starting; so Start tries again some times.
func (c *Cluster) Start() {
	c.t.Helper()
	const tries = 10
	var err error
	for range tries {
		if err = c.try("pg_ctl", c.startArguments()...); err == nil {
			return
		}
		c.t.Logf("start PostgreSQL: %v", err)
		time.Sleep(time.Second)
	}
	c.t.Fatal(err)
}

func (c *Cluster) startArguments() []string {
	return []string{"start", "--wait", "--silent", "--timeout=300", "--pgdata=" + c.data(), "--log=" + filepath.Join(c.dir, "log"),
		fmt.Sprintf("--options=-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=on", c.port)}
}

// Crash stops the server without a shutdown checkpoint.
func (c *Cluster) Crash() {
	c.t.Helper()
	if err := c.stop("immediate"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) stop(mode string) error {
	return c.try("pg_ctl", "stop", "--wait", "--silent", "--mode="+mode, "--pgdata="+c.data())
}

// Kill ends every process of the server with SIGKILL, and returns when all are gone. A server that is down already stays so.
func (c *Cluster) Kill() {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err2 := strconv.Atoi(first)
	if err := errors.Join(err, err2); err != nil {
		c.t.Fatalf("find the postmaster: %v", err)
	}
	// A child that the postmaster forks after the list was made would live on, and keep the server from starting again.
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for state := "?"; state != "" && state[0] != 'T' && state[0] != 'Z'; {
		text, _ := exec.Command("ps", "-o", "stat=", "-p", first).Output()
		state = strings.TrimSpace(string(text)) // empty: it has ended
	}
	children, _ := exec.Command("pgrep", "-P", first).Output()
	// The postmaster first: it would restart its children.
	ids := []int{pid}
	for child := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(child); err == nil {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	for _, id := range ids {
		for syscall.Kill(id, 0) == nil {
			time.Sleep(time.Millisecond) // not a child of this process, so there is nothing to wait on
		}
	}
}

// Running reports whether the server runs.
func (c *Cluster) Running() bool {
	return c.try("pg_ctl", "status", "--pgdata="+c.data()) == nil
}

// Standby starts a server in dir that follows c. Commits of c wait for it after Synchronise.
func (c *Cluster) Standby(dir string) *Cluster {
	c.t.Helper()
	s := prepare(c.t, dir)
	s.copyFrom(c)
	s.startAnywhere()
	return s
}

// Follow throws away the data of c, which must not run, and starts it again as a standby of primary.
func (c *Cluster) Follow(primary *Cluster) {
	c.t.Helper()
	if err := os.RemoveAll(c.data()); err != nil {
		c.t.Fatal(err)
	}
	c.copyFrom(primary)
	c.Start()
}

func (c *Cluster) copyFrom(primary *Cluster) {
	c.t.Helper()
	c.Run("pg_basebackup", "--pgdata="+c.data(), "--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--wal-method=stream",
		"--dbname="+primary.URL())
}

// Promote makes a standby the primary, and returns when it takes writes.
func (c *Cluster) Promote() {
	c.t.Helper()
	c.Run("pg_ctl", "promote", "--wait", "--silent", "--timeout=300", "--pgdata="+c.data())
}

// Run runs a PostgreSQL program; the test fails if it does.
func (c *Cluster) Run(program string, args ...string) {
	c.t.Helper()
	if err := c.try(program, args...); err != nil {
		c.t.Fatal(err)
	}
}

// try runs a PostgreSQL program; the error includes its output.
func (c *Cluster) try(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir = os.TempDir()
	out, err := os.CreateTemp("", program) // the server inherits it and would keep a pipe open
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if c.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	}
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	return nil
}

// serverPrograms finds the directory of pg_ctl and initdb.
func serverPrograms(t testing.TB) string {
	t.Helper()
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("/opt/homebrew/opt/postgresql*/bin")
	if err != nil {
		t.Fatal(err)
	}
	dirs = slices.Concat(dirs, more, []string{"/usr/local/pgsql/bin"})
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range slices.Backward(dirs) {
		if has(dir, "initdb", "pg_ctl", "pg_basebackup") {
			return dir
		}
	}
	t.Fatal("this test crashes a PostgreSQL server of its own and found no pg_ctl, initdb and pg_basebackup: install the server or put them on the PATH")
	return ""
}

func has(dir string, programs ...string) bool {
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Fatal("running as root, and there is neither a user postgres nor nobody to run the server as")
	return nil
}
