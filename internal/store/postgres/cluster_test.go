//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
)

// A cluster is a PostgreSQL server for this test only, which the test may crash.
type cluster struct {
	t    *testing.T
	bin  string
	dir  string
	port int
	as   *syscall.Credential // PostgreSQL refuses to run as root
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, bin: serverPrograms(t), dir: t.TempDir()}
	if os.Geteuid() == 0 {
		c.as = unprivileged(t)
		if err := os.Chown(c.dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(c.dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.run("initdb", "--pgdata="+c.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	for try := 1; ; try++ {
		// Ports below the ephemeral range: the restarted server gets its port again.
		c.port = 20000 + rand.IntN(12000)
		err := c.try("pg_ctl", c.startArguments()...)
		if err == nil {
			break
		}
		if try == 10 {
			t.Fatal(err)
		}
	}
	t.Cleanup(c.crash)
	return c
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) url() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

// start waits until the server has recovered and takes connections.
func (c *cluster) start() {
	c.t.Helper()
	c.run("pg_ctl", c.startArguments()...)
}

func (c *cluster) startArguments() []string {
	return []string{"start", "--wait", "--silent", "--timeout=300", "--pgdata=" + c.data(), "--log=" + filepath.Join(c.dir, "log"),
		fmt.Sprintf("--options=-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=on", c.port)}
}

// crash stops the server without a shutdown checkpoint.
func (c *cluster) crash() {
	c.run("pg_ctl", "stop", "--wait", "--silent", "--mode=immediate", "--pgdata="+c.data())
}

func (c *cluster) run(program string, args ...string) {
	c.t.Helper()
	if err := c.try(program, args...); err != nil {
		c.t.Fatal(err)
	}
}

// try runs a PostgreSQL program; the error includes its output.
func (c *cluster) try(program string, args ...string) error {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	out, err := os.CreateTemp(c.dir, program) // the server inherits it and would keep a pipe open
	if err != nil {
		c.t.Fatal(err)
	}
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
func serverPrograms(t *testing.T) string {
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
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir
		}
	}
	t.Fatal("this test crashes a PostgreSQL server of its own and found no pg_ctl and initdb: install the server or put them on the PATH")
	return ""
}

func unprivileged(t *testing.T) *syscall.Credential {
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

// The server crashes several times under load. Every batch is repeated until it is acknowledged; then each batch is stored
// exactly once.
func TestServerCrash(t *testing.T) {
	c := newCluster(t)
	s, err := Open(t.Context(), c.url(), Options{HotConnections: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := newLoad(t, s)

	const writers, rounds, size = 4, 3, 20
	acks := make(chan int) // number of rows of each acknowledged batch
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() { writeUntil(ctx, t, l, size, acks) })
	}
	events, seen := 0, 0
	for range rounds {
		for range 40 {
			events += <-acks
			seen++
		}
		crashed := make(chan struct{})
		go func() {
			defer close(crashed)
			c.crash()
			c.start()
		}()
		for done := false; !done; {
			select {
			case n := <-acks:
				events += n
				seen++
			case <-crashed:
				done = true
			}
		}
	}
	stop()
	go func() {
		wg.Wait()
		close(acks)
	}()
	for n := range acks {
		events += n
		seen++
	}
	if seen < 40*rounds {
		t.Errorf("only %d batches were acknowledged", seen)
	}
	for table, want := range map[string]int{"events": events, "attempts": events, "deliveries": events, "pending_deliveries": 0} {
		if n := count(t, s, `SELECT count(*) FROM `+table); n != want {
			t.Errorf("%s has %d rows after the crashes, %d were acknowledged", table, n, want)
		}
	}
}

// writeUntil accepts and finishes events until the context ends. It completes what it has begun.
func writeUntil(ctx context.Context, t *testing.T, l *load, size int, acks chan<- int) {
	for ctx.Err() == nil {
		accepted := l.accepts(size, false)
		for _, b := range []*store.Batch{accepted, l.results(accepted)} {
			for {
				_, err := l.s.Commit(t.Context(), b)
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("commit while the server crashes: %v", err)
					return
				}
			}
		}
		acks <- size
	}
}
