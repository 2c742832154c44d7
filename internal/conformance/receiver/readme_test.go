package receiver

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/base64"
	"go/format"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

const readme = "../../../receiver/README.md"

// programs are the Go programs in the README.
func programs(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		list = append(list, match[1])
	}
	if len(list) != 2 {
		t.Fatalf("%d programs in the README", len(list))
	}
	return list
}

// start builds a program as it is written and runs it in a directory of its own until the test ends.
func startProgram(t *testing.T, source, secret string) (url, folder string, log *output) {
	t.Helper()
	folder = t.TempDir()
	file, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", binary, file).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	address := apptest.StableAddress()
	cmd := exec.Command(binary)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "LISTEN="+address, "WEBHOOK_SECRET="+secret)
	log = &output{said: make(chan struct{})}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	awaitServer(t, address)
	return "http://" + address, folder, log
}

// awaitServer returns when a process listens.
func awaitServer(t *testing.T, address string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody listens")
		}
	}
}

// output is what a program says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	said chan struct{} // closed and replaced at every line
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.said)
	o.said = make(chan struct{})
	return o.text.Write(p)
}

// await returns once the program has printed part.
func (o *output) await(t *testing.T, part string) {
	t.Helper()
	deadline := time.NewTimer(5 * time.Minute)
	defer deadline.Stop()
	for {
		o.mu.Lock()
		text, said := o.text.String(), o.said
		o.mu.Unlock()
		if strings.Contains(text, part) {
			return
		}
		select {
		case <-said:
		case <-deadline.C:
			t.Fatalf("the program did not say %q but\n%s", part, text)
		}
	}
}

var readmeSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// TestQuickStart: the program from the README accepts live deliveries, and its effect happens once.
func TestQuickStart(t *testing.T) {
	url, folder, _ := startProgram(t, programs(t)[0], readmeSecret)
	srv := apptest.Start(t, apptest.Options{})
	ep := srv.Endpoint(url+"/hooks", apptest.Fields{"profile": "standard-webhooks", "secret": readmeSecret, "patterns": []string{"order.*"}})
	ev := srv.Publish("order.paid", `{"type":"order.paid","amount":5}`)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	resp, err := http.Get(url + "/docs/idempotency")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	db, err := sql.Open("sqlite", filepath.Join(folder, "webhooks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var payments int
	var payload string
	if err := db.QueryRow(`SELECT count(*), max(payload) FROM payments`).Scan(&payments, &payload); err != nil {
		t.Fatal(err)
	}
	if payments != 1 || payload != `{"type":"order.paid","amount":5}` {
		t.Errorf("%d payments, %s", payments, payload)
	}
	unsigned, err := http.Post(url+"/hooks", "application/json", strings.NewReader(`{}`))
	if err != nil || unsigned.StatusCode != http.StatusUnauthorized {
		t.Errorf("unsigned: %v, %v", unsigned, err)
	}
	unsigned.Body.Close()
}

// TestQuickStartOfWork: the program with a worker acknowledges live deliveries and then processes them.
func TestQuickStartOfWork(t *testing.T) {
	trace.Covers(t, "CCW-RCV-6")
	secret := strings.TrimRight(readmeSecret, "=") // as that profile has it
	url, _, log := startProgram(t, programs(t)[1], secret)
	srv := apptest.Start(t, apptest.Options{})
	ep := srv.Endpoint(url+"/hooks", apptest.Fields{"profile": "cybercube", "secret": secret, "patterns": []string{"order.*"}})
	ev := srv.Publish("order.paid", `{"amount":5}`)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	log.await(t, "processing order.paid evt_")
}

// TestSamplesKeepNoSecret: the samples are formatted, and read the secret from the environment.
func TestSamplesKeepNoSecret(t *testing.T) {
	trace.Covers(t, "CCW-SEC-12", "CCW-RCV-4")
	for _, program := range programs(t) {
		if formatted, err := format.Source([]byte(program)); err != nil || string(formatted) != program {
			t.Errorf("not formatted: %v", err)
		}
		if !strings.Contains(program, `os.Getenv("WEBHOOK_SECRET")`) || strings.Contains(program, "whsec_") {
			t.Errorf("the secret is not from the environment:\n%s", program)
		}
	}
}

// TestReadmeIsHonest: the README says that handlers must tolerate duplicates.
func TestReadmeIsHonest(t *testing.T) {
	f, err := os.Open(readme)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(lines.Text(), "A handler must cope with the same event twice") {
			return
		}
	}
	t.Error("the README does not say that handlers must cope with duplicates")
}
