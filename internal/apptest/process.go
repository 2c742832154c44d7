package apptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

// BinaryVariable names an environment variable with the path of a built binary, so that a suite need not build its own.
const BinaryVariable = "GODWIT_TEST_BINARY"

var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Binary builds the godwit command once for each test process, and returns its path. TestMain calls RemoveBinary.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv(BinaryVariable); built.path != "" {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "godwit-binary-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "godwit")
		built.err = Build(built.path)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// Build builds the godwit command with additional flags of go build.
func Build(path string, flags ...string) error {
	args := slices.Concat([]string{"build", "-o", path}, flags, []string{"github.com/godwit-hq/godwit/cmd/godwit"})
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build godwit: %w\n%s", err, out)
	}
	return nil
}

// RemoveBinary removes the binary that Binary built: os.Exit(apptest.RemoveBinary(m.Run())).
func RemoveBinary(code int) int {
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	return code
}

// ProcessOptions configure how the binary runs.
type ProcessOptions struct {
	// Store is "sqlite" or a PostgreSQL URL. Defaults to sqlite.
	Store string
	// Data is the data directory. Defaults to a temporary one that is kept over restarts.
	Data string
	// Args are additional flags of `godwit dev`.
	Args []string
	// Env are additional environment variables, as name=value.
	Env []string
	// Binary is the program. Defaults to what Binary builds.
	Binary string
}

// A Process is `godwit dev --json --no-samples` as a child process. It shares no memory with the test, so that the test can
// kill it.
type Process struct {
	t      testing.TB
	o      ProcessOptions
	listen string

	URL    string
	Tenant string
	Key    string // stays valid after a restart

	cmd    *exec.Cmd
	stderr *Log
	exited chan struct{}
	err    error

	mu       sync.Mutex
	attempts []json.RawMessage
	printed  chan struct{} // closed and replaced at every attempt
}

// StartProcess starts the binary and waits until it serves. The process ends with the test.
func StartProcess(t testing.TB, o ProcessOptions) *Process {
	t.Helper()
	slowtest.Needs(t, "the built program")
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	if o.Store == "" {
		o.Store = "sqlite"
	}
	if o.Binary == "" {
		o.Binary = Binary(t)
	}
	p := &Process{t: t, o: o, stderr: &Log{}, printed: make(chan struct{})}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of the process:\n%s", p.stderr)
		}
	})
	for try := 1; ; try++ {
		p.listen = StableAddress()
		if p.start(try < addressTries) {
			return p
		}
	}
}

// start starts the process and waits until it serves. If mayFailToListen is set, it returns false when the process could not
// listen.
func (p *Process) start(mayFailToListen bool) bool {
	p.t.Helper()
	args := append([]string{"dev", "--json", "--no-samples", "--listen", p.listen, "--data", p.o.Data, "--store", p.o.Store}, p.o.Args...)
	p.cmd = exec.Command(p.o.Binary, args...)
	p.cmd.Env = append(os.Environ(), p.o.Env...)
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start process: %v", err)
	}
	p.exited = make(chan struct{})
	first := make(chan []byte, 1)
	go p.follow(stdout, first)
	var hello struct {
		URL    string `json:"url"`
		Tenant string `json:"tenant"`
		APIKey string `json:"api_key"`
	}
	select {
	case line := <-first:
		if err := json.Unmarshal(line, &hello); err != nil {
			p.t.Fatalf("first line %q: %v", line, err)
		}
	case <-p.exited:
		if p.URL != "" && p.killedItself() {
			return true // a restarted process that its environment made kill itself; the test checks that
		}
		if mayFailToListen && p.stderr.Has("address already in use") {
			return false
		}
		p.t.Fatalf("process ended at once: %v\n%s", p.err, p.stderr)
	case <-time.After(waitLimit):
		p.t.Fatalf("process said nothing within %s\n%s", waitLimit, p.stderr)
	}
	p.URL, p.Tenant = hello.URL, hello.Tenant
	if p.Key == "" {
		p.Key = hello.APIKey
	}
	return true
}

// killedItself reports whether the process died of a signal and has environment variables that make it kill itself.
func (p *Process) killedItself() bool {
	var exit *exec.ExitError
	if len(p.o.Env) == 0 || !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// follow reads standard output to its end, then waits for the process.
func (p *Process) follow(stdout io.Reader, first chan<- []byte) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		line := bytes.Clone(lines.Bytes())
		if n == 0 {
			first <- line
			continue
		}
		p.mu.Lock()
		p.attempts = append(p.attempts, line)
		close(p.printed)
		p.printed = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.exited)
}

// Attempts lists the attempts that the process has printed so far, including those before restarts.
func (p *Process) Attempts() []json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]json.RawMessage(nil), p.attempts...)
}

// WaitAttempt returns the first printed attempt for which the condition holds; it waits until there is one.
func (p *Process) WaitAttempt(what string, holds func(attempt json.RawMessage) bool) json.RawMessage {
	p.t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	for looked := 0; ; {
		p.mu.Lock()
		attempts, printed := p.attempts, p.printed
		p.mu.Unlock()
		for ; looked < len(attempts); looked++ {
			if holds(attempts[looked]) {
				return attempts[looked]
			}
		}
		select {
		case <-printed:
		case <-p.exited:
			p.t.Fatalf("the process ended while a test waited for %s\n%s", what, p.stderr)
		case <-deadline.C:
			p.t.Fatalf("no %s within %s; %d attempts seen", what, waitLimit, looked)
		}
	}
}

// Kill ends the process with SIGKILL, which to the process is like a power failure.
func (p *Process) Kill() {
	if p.cmd == nil || p.cmd.Process == nil || p.exited == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Signal sends a signal and does not wait.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("send %s: %v", s, err)
	}
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Terminate asks the process to stop (SIGTERM), waits for it and returns its exit code.
func (p *Process) Terminate() int {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(waitLimit):
		p.t.Fatalf("process did not stop within %s\n%s", waitLimit, p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Restart starts the process again on the same data, store and address. The process must have ended.
func (p *Process) Restart() {
	p.t.Helper()
	select {
	case <-p.exited:
	default:
		p.t.Fatal("Restart of a process that runs")
	}
	p.start(false)
}

// RestartWith is Restart with other flags or variables.
func (p *Process) RestartWith(change func(*ProcessOptions)) {
	p.t.Helper()
	change(&p.o)
	p.Restart()
}

// Host is the address on which the process listens.
func (p *Process) Host() string { return p.listen }

// Log is the standard error of the process, including that before restarts.
func (p *Process) Log() *Log { return p.stderr }

// NewClient returns an HTTP client that adds the process's key to each request and does not reuse connections of an ended
// process.
func (p *Process) NewClient() *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: waitLimit}).DialContext}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: waitLimit, Transport: withKey{transport, p.Key}}
}

type withKey struct {
	next http.RoundTripper
	key  string
}

func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.key)
	return w.next.RoundTrip(r)
}
