package apptest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

func TestProcessComesBackAfterAKill(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			o := apptest.ProcessOptions{}
			if store == "postgres" {
				o.Store = apptest.PostgresURL(t)
			}
			gate := make(chan struct{})
			sink := apptest.NewSink(t)
			sink.Script("/", apptest.Status(200).Until(gate), apptest.Status(200))
			p := apptest.StartProcess(t, o)
			c, err := client.New(p.URL, p.Key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{URL: sink.URL("/")}); err != nil {
				t.Fatal(err)
			}
			receipt, err := c.Publish(t.Context(), client.Event{Type: "order.paid", Body: []byte(`{}`)})
			if err != nil || receipt.Deliveries != 1 {
				t.Fatalf("publish: %+v %v", receipt, err)
			}
			sink.Wait(1)
			url, key := p.URL, p.Key
			p.Kill()
			close(gate)
			p.Restart()
			if p.URL != url || p.Key != key {
				t.Errorf("came back as %s", p.URL)
			}
			seen := sink.Wait(2)
			if seen[0].Key() != seen[1].Key() {
				t.Errorf("keys %s and %s", seen[0].Key(), seen[1].Key())
			}
			if code := p.Terminate(); code != 0 {
				t.Errorf("exit code %d\n%s", code, p.Log())
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Stall())
	p := apptest.StartProcess(t, apptest.ProcessOptions{})
	c, err := client.New(p.URL, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{URL: sink.URL("/")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), client.Event{Type: "order.paid", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	sink.Wait(1)
	p.Signal(syscall.SIGTERM)
	plain := p.NewClient()
	for ready(t, plain, p.URL) { // until the first signal has arrived
	}
	p.Signal(syscall.SIGTERM)
	<-p.Exited()
	if p.Log().Has("stopped") {
		t.Error("it took its time to stop in order")
	}
}

func ready(t *testing.T, c *http.Client, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("ended before the second signal: %v", err)
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func TestProcessPrintsAttempts(t *testing.T) {
	sink := apptest.NewSink(t)
	p := apptest.StartProcess(t, apptest.ProcessOptions{Args: []string{"--time-scale", "1000"}})
	c, err := client.New(p.URL, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{URL: sink.URL("/")}); err != nil {
		t.Fatal(err)
	}
	stream, err := c.Attempts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for n := range 3 {
		if _, err := c.Publish(t.Context(), client.Event{Type: "order.paid", Body: fmt.Appendf(nil, "%d", n)}); err != nil {
			t.Fatal(err)
		}
		if a, err := stream.Next(); err != nil || a.Outcome != "accepted" || a.EventType != "order.paid" {
			t.Fatalf("attempt %+v, %v", a, err)
		}
	}
	if code := p.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	printed := p.Attempts()
	if len(printed) != 3 || !strings.Contains(string(printed[0]), `"event_type":"order.paid"`) {
		t.Errorf("printed %s", printed)
	}
}
