package main

import (
	"bufio"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// served is a `godwit serve` process.
type served struct {
	cmd     *exec.Cmd
	serving chan struct{} // closed once the process logs that it serves
	ended   chan struct{} // closed once the process has closed its output
	mu      sync.Mutex
	log     strings.Builder
}

func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	s := &served{cmd: exec.Command("godwit", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...), serving: make(chan struct{}), ended: make(chan struct{})}
	out, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.wait() })
	go func() {
		said := false
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			s.mu.Lock()
			s.log.WriteString(line)
			s.mu.Unlock()
			if !said && strings.Contains(line, "msg=serving") {
				said = true
				close(s.serving)
			}
			if err != nil {
				close(s.ended)
				return
			}
		}
	}()
	return s
}

// serves waits until the process logs that it serves.
func (s *served) serves(t *testing.T) {
	t.Helper()
	select {
	case <-s.serving:
	case <-s.ended:
		t.Fatalf("it ended before it served:\n%s", s.wait())
	}
}

// wait waits for the end of the process and returns its log.
func (s *served) wait() string {
	<-s.ended
	_ = s.cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Two processes never run under one node name: the second fails with advice. After a process was killed, the next one gets
// the name at once.
func TestNodeNameIsClaimed(t *testing.T) {
	flags := []string{"--store", postgrestest.URL(t), "--data", t.TempDir(), "--node", "a"}
	t.Setenv("GODWIT_KEYRING", app.GenerateRing())
	first := startServe(t, flags...)
	first.serves(t)
	second := startServe(t, flags...)
	log := second.wait()
	if code := second.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(log, `node name "a" is in use by process`) || !strings.Contains(log, "--node") {
		t.Errorf("the second process ended with %d and said:\n%s", code, log)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait()
	third := startServe(t, flags...)
	third.serves(t)
	third.mu.Lock()
	if log := third.log.String(); strings.Contains(log, "waiting") {
		t.Errorf("after the first was killed, the next had to wait:\n%s", log)
	}
	third.mu.Unlock()
}
