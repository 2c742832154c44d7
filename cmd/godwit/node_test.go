package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// served is a `godwit` process that serves.
type served struct {
	cmd     *exec.Cmd
	serving chan struct{} // closed once the process logs that it serves
	ended   chan struct{} // closed once the process has closed its output
	mu      sync.Mutex
	log     strings.Builder
	news    chan struct{} // holds a value after a line was logged
}

// startServe starts the subcommand, which is serve or dev --verbose.
func startServe(t *testing.T, subcommand string, args ...string) *served {
	t.Helper()
	s := &served{cmd: exec.Command("godwit", append([]string{subcommand, "--listen", "127.0.0.1:0"}, args...)...), serving: make(chan struct{}), ended: make(chan struct{}), news: make(chan struct{}, 1)}
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
			select {
			case s.news <- struct{}{}:
			default:
			}
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

// says waits until the process prints the text on standard error.
func (s *served) says(t *testing.T, text string) {
	t.Helper()
	for {
		s.mu.Lock()
		log := s.log.String()
		s.mu.Unlock()
		if strings.Contains(log, text) {
			return
		}
		select {
		case <-s.news:
		case <-s.ended:
			t.Fatalf("it ended without the text %q:\n%s", text, s.wait())
		}
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
	first := startServe(t, "serve", flags...)
	first.serves(t)
	second := startServe(t, "serve", flags...)
	log := second.wait()
	if code := second.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(log, `node name "a" is in use by process`) || !strings.Contains(log, "--node") {
		t.Errorf("the second process ended with %d and said:\n%s", code, log)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait()
	third := startServe(t, "serve", flags...)
	third.serves(t)
	third.says(t, "shards taken")
}

// Two trials on one database: the second is told how to get a name of its own, and with it, serves beside the first.
func TestSecondTrialNamesTheFirst(t *testing.T) {
	flags := []string{"--store", postgrestest.URL(t), "--no-samples", "--verbose", "--node"}
	first := startServe(t, "dev", append(flags, "a")...)
	first.serves(t)
	same := startServe(t, "dev", append(flags, "a")...)
	if log := same.wait(); !strings.Contains(log, fmt.Sprintf(`node name "a" is in use by process %d on `, first.cmd.Process.Pid)) || !strings.Contains(log, "--node") {
		t.Errorf("with the same name it said:\n%s", log)
	}
	other := startServe(t, "dev", append(flags, "b")...)
	other.serves(t)
	other.says(t, "nodes changed")
}
