package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a measured child process: the server, or the relay.
type process struct {
	cmd    *exec.Cmd
	url    string
	debug  string // address of its profiler, if it reported one before its url
	exited chan struct{}
	err    error

	mu   sync.Mutex
	tail []string // the last lines it wrote, shown if it fails
}

// start runs the executable and waits until it reports its url, as a member of a JSON object on its own line, on standard
// output or standard error.
func start(ctx context.Context, executable string, environment []string, args ...string) (*process, error) {
	cmd := exec.Command(executable, args...)
	cmd.Env = environment
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start %s: %w", strings.Join(args, " "), err)
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	found := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer r.Close()
		p.read(r, found)
	}()
	go func() {
		p.err = cmd.Wait()
		<-read
		close(p.exited)
	}()
	select {
	case p.url = <-found:
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s ended at once: %w\n%s", args[0], p.err, p.lastLines())
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	case <-time.After(time.Minute):
		p.kill()
		return nil, fmt.Errorf("%s did not say its url within a minute\n%s", args[0], p.lastLines())
	}
}

func (p *process) read(r io.Reader, found chan<- string) {
	const keep = 30
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var said struct {
			URL   string `json:"url"`
			Debug string `json:"debug_url"`
		}
		if json.Unmarshal(lines.Bytes(), &said) != nil {
			said.URL = ""
		}
		if said.Debug != "" {
			p.debug = said.Debug
		}
		if said.URL != "" {
			select {
			case found <- said.URL:
			default:
			}
		}
		p.mu.Lock()
		p.tail = append(p.tail, lines.Text())
		if len(p.tail) > keep {
			p.tail = p.tail[1:]
		}
		p.mu.Unlock()
	}
}

func (p *process) lastLines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.tail, "\n")
}

// stop asks the process to end, and kills it if it does not.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(40 * time.Second):
		p.kill()
		return errors.New("the process did not stop when asked to")
	}
	if p.err != nil {
		return fmt.Errorf("the process ended badly: %w\n%s", p.err, p.lastLines())
	}
	return nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// usage is the resource usage of a process so far.
type usage struct {
	cpu     time.Duration
	rss     int64 // bytes in memory now
	peakRSS int64
}

// usage reads the resource usage of the running process.
func (p *process) usage() (usage, error) { return readUsage(p.cmd.Process.Pid) }
