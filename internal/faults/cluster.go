//go:build unix

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/slowtest"
)

// A Cluster is some nodes on one database.
type Cluster struct {
	t        testing.TB
	dir      string
	binary   string
	flags    []string
	logs     string // folder for logs; empty: they go with the test
	Database *Database
	Nodes    []*Node
	Balancer *Balancer
	Key      string // API key of the tenant with all rights

	mu     sync.Mutex
	guests []*Node // nodes that join for a while
}

// StartCluster builds the program, starts database and nodes, and waits until all are ready. All ends with the test.
func StartCluster(t testing.TB, o Options) *Cluster {
	t.Helper()
	slowtest.Needs(t, "processes and PostgreSQL servers of its own")
	c := &Cluster{t: t, dir: t.TempDir(), logs: o.Logs}
	c.binary = filepath.Join(c.dir, "godwit")
	if err := apptest.Build(c.binary, "-tags", "faultclock"); err != nil {
		t.Fatal(err)
	}
	c.Database = NewDatabase(t)
	ring, evidence := filepath.Join(c.dir, "keyring"), filepath.Join(c.dir, "evidence.key")
	c.flags = []string{
		"--keyring-file", ring, "--commands-evidence-key", evidence, "--commands-probe", "--commands-repeats-per-key", "0",
		"--commands-repeats-per-actor", "0", "--commands-lease", "5s", "--lease", o.Lease.String(), "--stop-delay", "1h", "--allow-http", "--allow-address", "127.0.0.0/8", "--meta-events", "explicit",
	}
	if err := os.WriteFile(ring, c.tool("keys", "ring"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := app.EnsureEvidenceKey(c.dir, ""); err != nil {
		t.Fatal(err)
	}
	var made struct {
		Key string `json:"api_key"`
	}
	text := c.tool("keys", "create", "--tenant-name", "faults", "--scopes", "all", "--json", "--keyring-file", ring, "--store", c.Database.Primary().URL())
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	c.Key = made.Key
	for i := range o.Nodes {
		n, err := c.newNode(fmt.Sprintf("node-%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		c.Nodes = append(c.Nodes, n)
		c.launch(n)
	}
	t.Cleanup(c.stop)
	for _, n := range c.Nodes {
		c.AwaitReady(n)
	}
	c.Balancer = StartBalancer(t, c.Nodes)
	return c
}

// Stop stops a node as an operator does who waits for the balancer: the node is asked to stop and says that it is not ready, the
// balancer goes elsewhere, and then a second signal ends the node's delay. So no result depends on how fast the balancer looks.
func (c *Cluster) Stop(n *Node) {
	c.t.Helper()
	n.Signal(syscall.SIGTERM)
	// Two signals that follow one another too soon may become one.
	await(c.t, "node "+n.Name+" to stop", func() bool { return n.Process() == 0 || n.unready() == "stopping" })
	c.Balancer.Avoids(n)
	<-n.Signal(syscall.SIGTERM)
}

// all lists the nodes with the guests.
func (c *Cluster) all() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.Nodes, c.guests)
}

// guest adds a node that stays for a while; its process must have ended when the test does.
func (c *Cluster) guest(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guests = append(c.guests, n)
}

// awaitAll returns when the database runs and all nodes are ready. A database that found no space has stopped by itself.
func (c *Cluster) awaitAll() {
	c.t.Helper()
	for _, n := range c.Nodes {
		await(c.t, "node "+n.Name+" to be ready", func() bool {
			c.Database.Restart()
			if n.Process() == 0 {
				c.launch(n)
			}
			return n.Ready()
		})
	}
}

// tool runs a command of the program, and returns what it prints.
func (c *Cluster) tool(args ...string) []byte {
	c.t.Helper()
	cmd := exec.Command(c.binary, args...)
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("godwit %v: %v", args, err)
	}
	return out
}

// launch starts a node.
func (c *Cluster) launch(n *Node) {
	c.t.Helper()
	if err := n.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// AwaitReady returns when the node is ready. A node that ends is started again: a database that is away for too long ends it.
func (c *Cluster) AwaitReady(n *Node) {
	c.t.Helper()
	await(c.t, "node "+n.Name+" to be ready", func() bool {
		if n.Process() == 0 {
			c.launch(n)
		}
		return n.Ready()
	})
}

// await polls until the condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s longer than %s", what, patience)
		}
	}
}

// stop ends the nodes; their logs are shown if the test failed.
func (c *Cluster) stop() {
	if c.logs != "" {
		c.keepLogs()
	}
	for _, n := range c.all() {
		if exited := n.Signal(syscall.SIGKILL); exited != nil {
			<-exited
		}
		if text, err := os.ReadFile(n.log.Name()); err == nil && c.t.Failed() {
			c.t.Logf("end of the log of %s:\n%s", n.Name, tail(text))
		}
	}
}

// keepLogs copies the logs of the PostgreSQL servers to the folder for logs.
func (c *Cluster) keepLogs() {
	for i, disk := range c.Database.disks {
		text, err := os.ReadFile(filepath.Join(disk.Dir, "log"))
		if err == nil {
			err = os.WriteFile(filepath.Join(c.logs, fmt.Sprintf("postgres-%d.log", i+1)), text, 0o644)
		}
		if err != nil {
			c.t.Logf("keep the log of a PostgreSQL server: %v", err)
		}
	}
}
