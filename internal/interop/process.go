//go:build unix

package interop

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"testing"
	"time"
)

func start(t testing.TB, name string, cmd *exec.Cmd, options []Option) *Receiver {
	t.Helper()
	var command startCommand
	for _, option := range options {
		option(&command)
	}
	r := &Receiver{Name: name, keys: make(chan int, 1), ended: make(chan struct{}), arrived: make(chan struct{}, 1)}
	cmd.Stderr = &r.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the %s receiver: %v", name, err)
	}
	t.Cleanup(func() { r.stop(t, cmd) })
	listening := make(chan string, 1)
	go r.listen(stdout, cmd, listening)
	r.send(t, map[string]any{"start": command})
	r.URL = await(t, r, listening, "start listening")
	return r
}

// listen reads the output of the process until it ends.
func (r *Receiver) listen(stdout io.Reader, cmd *exec.Cmd, listening chan<- string) {
	defer close(r.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Listening string   `json:"listening"`
			Keys      *int     `json:"keys"`
			Verdict   *Verdict `json:"verdict"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // for example a warning of the runtime
		}
		switch {
		case line.Listening != "":
			listening <- line.Listening
		case line.Keys != nil:
			r.keys <- *line.Keys
		case line.Verdict != nil:
			r.record(*line.Verdict)
		}
	}
	_ = cmd.Wait() // killed or not, it has ended
}

func (r *Receiver) record(verdict Verdict) {
	r.mu.Lock()
	r.verdicts = append(r.verdicts, verdict)
	r.mu.Unlock()
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

func (r *Receiver) send(t testing.TB, command any) {
	t.Helper()
	if err := json.NewEncoder(r.stdin).Encode(command); err != nil {
		t.Fatalf("write to the %s receiver: %v", r.Name, err)
	}
}

// await fails the test with the standard error of the process if the process ends or takes too long.
func await[T any](t testing.TB, r *Receiver, from <-chan T, what string) T {
	t.Helper()
	timeout := time.NewTimer(waitLimit)
	defer timeout.Stop()
	var value T
	select {
	case value = <-from:
	case <-r.ended:
		t.Fatalf("the %s receiver ended, it should %s:\n%s", r.Name, what, r.stderr.String())
	case <-timeout.C:
		t.Fatalf("the %s receiver did not %s within %s", r.Name, what, waitLimit)
	}
	return value
}

// stop ends the process by closing its input, and by force if that does not help.
func (r *Receiver) stop(t testing.TB, cmd *exec.Cmd) {
	_ = r.stdin.Close()
	timeout := time.NewTimer(waitLimit)
	defer timeout.Stop()
	select {
	case <-r.ended:
	case <-timeout.C:
		_ = cmd.Process.Kill()
		<-r.ended
		t.Errorf("the %s receiver had to be killed", r.Name)
	}
}
