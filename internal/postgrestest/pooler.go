//go:build unix

package postgrestest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

// Pooler starts PgBouncer in front of the server at the URL, and returns a URL that leads through it. It listens on a Unix socket,
// so it needs no port. Settings are lines of its configuration. It ends with the test.
func Pooler(t testing.TB, target, mode string, settings ...string) string {
	t.Helper()
	slowtest.Needs(t, "PgBouncer")
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Fatal("this test needs PgBouncer and found none: run `make test` as root on Debian, which installs it, or install the package pgbouncer")
		}
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pooler-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const port = 6432
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr =\nlisten_port = %d\nunix_socket_dir = %s\nauth_type = any\npool_mode = %s\n",
		u.Hostname(), u.Port(), u.User.Username(), port, dir, mode)
	for _, line := range settings {
		text += line + "\n"
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-q", file)
	cmd.Dir = os.TempDir()
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		as := unprivileged(t)
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
	})
	socket := filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port))
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			break
		}
		select {
		case <-exited:
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("PgBouncer ended: %s", said)
		default:
		}
	}
	query := url.Values{"host": {dir}, "port": {fmt.Sprint(port)}, "user": {u.User.Username()}, "sslmode": {"disable"}}
	return "postgres://" + u.Path + "?" + query.Encode()
}
