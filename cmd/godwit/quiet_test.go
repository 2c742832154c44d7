package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A receiver that echoes its request after the end of its response must not get it into our log: the request holds
// payloads and credentials.
func TestReceiverCannotWriteToTheLog(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-4")
	const mark = "m4rk3d-p4yl04d"
	sink := apptest.NewSink(t)
	sink.ReplyFunc("/", func(r *apptest.Request) apptest.Reply {
		return apptest.Raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + string(r.Body) + r.Head)
	})
	var log bytes.Buffer
	cmd := exec.Command("godwit", "dev", "--json", "--no-samples", "--verbose", "--listen", "127.0.0.1:0", "--data", t.TempDir())
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(stdout)
	var hello struct {
		URL    string `json:"url"`
		APIKey string `json:"api_key"`
	}
	first, err := lines.ReadBytes('\n')
	if err != nil || json.Unmarshal(first, &hello) != nil {
		t.Fatalf("began with %q, %v", first, err)
	}
	c, err := client.New(hello.URL, hello.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{URL: sink.URL("/"), Headers: map[string]string{"X-Key": mark}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), client.Event{Type: "x", Body: []byte(`"` + mark + `"`)}); err != nil {
		t.Fatal(err)
	}
	if attempt, err := lines.ReadString('\n'); err != nil || !strings.Contains(attempt, `"status":200`) {
		t.Fatalf("then came %q, %v", attempt, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("ended with %v\n%s", err, log.String())
	}
	if strings.Contains(log.String(), mark) || !strings.Contains(log.String(), "level=DEBUG") {
		t.Errorf("the log shows what the receiver sent, or was not at its most talkative:\n%s", log.String())
	}
}
