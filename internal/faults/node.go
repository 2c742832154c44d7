//go:build unix

package faults

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// A Node is a `godwit serve` process, with a cable to each database server and a clock that can be set.
type Node struct {
	Name    string
	URL     string
	cables  []*Cable
	clock   *os.File
	command func() *exec.Cmd
	log     *os.File

	mu      sync.Mutex
	process *exec.Cmd // nil: not running
	exited  chan struct{}
}

// newNode prepares a node. Its files are in a folder of its own.
func (c *Cluster) newNode(name string) (*Node, error) {
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	n := &Node{Name: name}
	for _, address := range c.Database.Addresses() {
		cable, err := LayCable(address)
		if err != nil {
			return nil, err
		}
		c.t.Cleanup(cable.Close)
		n.cables = append(n.cables, cable)
	}
	var err error
	if n.clock, err = os.Create(filepath.Join(dir, "clock")); err != nil {
		return nil, err
	}
	log := filepath.Join(dir, "log")
	if c.logs != "" {
		log = filepath.Join(c.logs, name+".log")
	}
	if n.log, err = os.Create(log); err != nil {
		return nil, err
	}
	n.SetClock(0)
	listen := freeAddress()
	n.URL = "http://" + listen
	n.command = func() *exec.Cmd {
		cmd := exec.Command(c.binary, append([]string{"serve", "--node", name, "--listen", listen, "--data", dir, "--store", c.storeURL(n)}, c.flags...)...)
		cmd.Env = append(os.Environ(), "GODWIT_FAULT_CLOCK="+n.clock.Name())
		cmd.Stdout, cmd.Stderr = n.log, n.log
		return cmd
	}
	return n, nil
}

// freeAddress is an address to which a node can come back.
func freeAddress() string {
	for {
		address := apptest.StableAddress()
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
}

// storeURL leads through the node's cables.
func (c *Cluster) storeURL(n *Node) string {
	var hosts []string
	for _, cable := range n.cables {
		hosts = append(hosts, cable.Address())
	}
	return "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable&target_session_attrs=read-write"
}

// Start starts the process, and does not wait until it is ready.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return nil
	}
	cmd := n.command()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.Name, err)
	}
	exited := make(chan struct{})
	n.process, n.exited = cmd, exited
	go func() {
		_ = cmd.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.process = nil
		close(exited)
	}()
	return nil
}

// Process is the id of the process, or 0.
func (n *Node) Process() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return 0
	}
	return n.process.Process.Pid
}

// Signal sends a signal to the process if it runs. The returned channel is closed when it has ended.
func (n *Node) Signal(s syscall.Signal) (exited <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		_ = n.process.Process.Signal(s)
	}
	return n.exited
}

// Ready reports whether /readyz answers 200.
func (n *Node) Ready() bool { return n.readyWithin(5 * time.Second) }

func (n *Node) readyWithin(limit time.Duration) bool {
	status, _ := n.askReadiness(limit)
	return status == http.StatusOK
}

// unready is the reason that /readyz gives for not being ready; empty if it gives none.
func (n *Node) unready() string {
	_, reason := n.askReadiness(5 * time.Second)
	return reason
}

func (n *Node) askReadiness(limit time.Duration) (status int, reason string) {
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(n.URL + "/readyz")
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	var answer struct {
		Reason string `json:"reason"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&answer) // a cut answer gives no reason
	return resp.StatusCode, answer.Reason
}

// SetCables changes the condition of the connections to the database.
func (n *Node) SetCables(condition Condition) {
	for _, c := range n.cables {
		c.Set(condition)
	}
}

// SetClock sets how far the process's clock is off.
func (n *Node) SetClock(by time.Duration) {
	var text [8]byte
	binary.NativeEndian.PutUint64(text[:], uint64(by))
	if _, err := n.clock.WriteAt(text[:], 0); err != nil {
		panic(err) // a file of ours
	}
}

// Memory is the resident memory of the process; 0 if it is not known.
func (n *Node) Memory() (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.Process()))
	if err == nil {
		var size, resident int64
		if _, err := fmt.Sscan(string(text), &size, &resident); err == nil {
			return resident * int64(os.Getpagesize())
		}
	}
	return 0
}
