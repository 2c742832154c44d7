package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/receiver"
)

// The variables that tell a child process of a test what to do.
const (
	childTask  = "STORETEST_TASK"
	childStore = "STORETEST_STORE"
	childStart = "STORETEST_START"
)

const sharedKeys = 200

// Main is a TestMain for RunProcesses: in a child process it opens the store that the parent names and works on it.
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m, open)) }
func Main(m *testing.M, open func(ctx context.Context, name string) (receiver.Store, error)) int {
	task := os.Getenv(childTask)
	if task == "" {
		return m.Run()
	}
	if err := child(task, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func child(task string, open func(context.Context, string) (receiver.Store, error)) error {
	ctx := context.Background()
	start, err := time.Parse(time.RFC3339, os.Getenv(childStart))
	if err != nil {
		return err
	}
	s, err := open(ctx, os.Getenv(childStore))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for key := range sharedKeys {
				h := hold(fmt.Sprint("shared", key), fmt.Sprintf("%d-%d", os.Getpid(), worker))
				err := takeShared(ctx, s, task, key, h, start)
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	fmt.Println("done")
	if task == "hold" && failed == nil {
		select {} // until it is killed
	}
	return failed
}

func takeShared(ctx context.Context, s receiver.Store, task string, key int, h receiver.Hold, start time.Time) error {
	found, err := s.Reserve(ctx, reserve(h, start))
	if err != nil || found.State != receiver.Reserved {
		return err
	}
	fmt.Printf("%d %s\n", key, h.Token)
	if task == "hold" {
		return nil
	}
	ok, err := s.Complete(ctx, h, completion(start))
	if err == nil && !ok {
		err = fmt.Errorf("key %d was taken away", key)
	}
	return err
}

// RunProcesses tests processes that share a store or die while they hold keys. name is what Main's function opens.
func RunProcesses(t *testing.T, open func(t *testing.T) (s receiver.Store, name string)) {
	t.Run("two processes share the keys", func(t *testing.T) {
		_, name := open(t)
		a, b := startChild(t, "take", name), startChild(t, "take", name)
		a.begin()
		b.begin()
		holders := map[string][]string{}
		for _, c := range []*childProcess{a, b} {
			for key, token := range c.taken() {
				holders[key] = append(holders[key], token)
			}
			c.end()
		}
		if len(holders) != sharedKeys {
			t.Errorf("%d of %d keys were taken", len(holders), sharedKeys)
		}
		for key, tokens := range holders {
			if len(tokens) != 1 {
				t.Errorf("key %s has holders %v", key, tokens)
			}
		}
	})
	t.Run("keys of a killed process are free when the lease ends", func(t *testing.T) {
		s, name := open(t)
		c := startChild(t, "hold", name)
		c.begin()
		held := c.taken()
		c.kill()
		if len(held) != sharedKeys {
			t.Fatalf("%d of %d keys were taken", len(held), sharedKeys)
		}
		for key, token := range held {
			dead, next := hold("shared"+key, token), hold("shared"+key, "next")
			mustReserve(t, s, reserve(next, Start.Add(lease-time.Millisecond)), receiver.InProgress)
			mustReserve(t, s, reserve(next, Start.Add(lease)), receiver.Reserved)
			mustComplete(t, s, dead, completion(Start.Add(lease)), false)
			mustComplete(t, s, next, completion(Start.Add(lease)), true)
		}
	})
}

type childProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startChild(t *testing.T, task, store string) *childProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childStore+"="+store, childStart+"="+Start.Format(time.RFC3339))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &childProcess{t, cmd, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			c.kill()
		}
	})
	if !c.lines.Scan() || c.lines.Text() != "ready" {
		t.Fatalf("child said %q", c.lines.Text())
	}
	return c
}

func (c *childProcess) begin() {
	c.t.Helper()
	_, err := io.WriteString(c.stdin, "go\n")
	must(c.t, err)
}

// taken reads which keys the child got, until it has tried all.
func (c *childProcess) taken() map[string]string {
	c.t.Helper()
	keys := map[string]string{}
	for c.lines.Scan() {
		key, token, ok := strings.Cut(c.lines.Text(), " ")
		if !ok {
			if key != "done" {
				c.t.Fatalf("child said %q", key)
			}
			return keys
		}
		if other, twice := keys[key]; twice {
			c.t.Errorf("key %s was taken by %s and %s", key, other, token)
		}
		keys[key] = token
	}
	c.t.Fatal("child ended before it was done")
	return nil
}

func (c *childProcess) end() {
	c.t.Helper()
	must(c.t, c.cmd.Wait())
}

func (c *childProcess) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
