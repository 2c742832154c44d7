package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

const (
	fanEvents    = 120
	fanEndpoints = 30
)

// A crowd is many endpoints at one address. It remembers which event came to which endpoint.
type crowd struct {
	*httptest.Server
	mu      sync.Mutex
	arrived *sync.Cond
	seen    map[string]int // "path body" → times
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{seen: map[string]int{}}
	c.arrived = sync.NewCond(&c.mu)
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[r.URL.Path+" "+string(body)]++
		c.arrived.Broadcast()
	}))
	t.Cleanup(c.Close)
	return c
}

// await waits until so many different deliveries have arrived.
func (c *crowd) await(t *testing.T, n int) {
	t.Helper()
	late := false
	timeout := time.AfterFunc(5*time.Minute, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.arrived.Broadcast()
	})
	defer timeout.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.seen) < n && !late {
		c.arrived.Wait()
	}
	if len(c.seen) < n {
		t.Fatalf("%d of %d deliveries arrived", len(c.seen), n)
	}
}

// A batch of many events for many endpoints is acknowledged before its deliveries are stored. Kills between their parts lose
// none of them and store none twice.
func TestKillsDuringAFanout(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		c := newCrowd(t)
		p := apptest.StartProcess(t, apptest.ProcessOptions{Store: store})
		client := p.NewClient()
		for i := range fanEndpoints {
			subscribe(t, p, fmt.Sprintf("%s/%d", c.URL, i))
		}
		ids := postBatch(t, client, p.URL)
		for _, n := range []int{1, 600, 1500} {
			c.await(t, n)
			p.Kill()
			p.Restart()
		}
		c.await(t, fanEvents*fanEndpoints)
		for i, id := range ids {
			endpoints := map[string]bool{}
			deliveries := listDeliveries(t, client, p.URL, id)
			for _, d := range deliveries {
				endpoints[d] = true
			}
			if len(deliveries) != fanEndpoints || len(endpoints) != fanEndpoints {
				t.Fatalf("event %d has %d deliveries to %d endpoints, want %d", i, len(deliveries), len(endpoints), fanEndpoints)
			}
		}
		if code := p.Terminate(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	})
}

// postBatch posts the events of a fan-out under one key and returns their ids.
func postBatch(t *testing.T, client *http.Client, url string) (ids []string) {
	t.Helper()
	var batch bytes.Buffer
	batch.WriteString(`{"events":[`)
	for i := range fanEvents {
		if i > 0 {
			batch.WriteByte(',')
		}
		fmt.Fprintf(&batch, `{"type":"fan.out","data":{"n":%d}}`, i)
	}
	batch.WriteString(`]}`)
	req, err := http.NewRequest(http.MethodPost, url+"/v1/events/batch", &batch)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", `"key-of-the-whole-batch"`)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusAccepted || json.Unmarshal(body, &answer) != nil || len(answer.Items) != fanEvents {
		t.Fatalf("post batch: %d %.300s (%v)", resp.StatusCode, body, err)
	}
	for _, item := range answer.Items {
		ids = append(ids, item.ID)
	}
	return ids
}

// listDeliveries returns the endpoints of an event's deliveries.
func listDeliveries(t *testing.T, client *http.Client, url, event string) (endpoints []string) {
	t.Helper()
	for cursor := ""; ; {
		resp, err := client.Get(url + "/v1/deliveries?limit=100&event=" + event + cursor)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Items []struct {
				Endpoint string `json:"endpoint_id"`
			} `json:"items"`
			Next string `json:"next_cursor"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("list deliveries: %d %v", resp.StatusCode, err)
		}
		for _, d := range page.Items {
			endpoints = append(endpoints, d.Endpoint)
		}
		if page.Next == "" {
			return endpoints
		}
		cursor = "&cursor=" + strings.TrimSpace(page.Next)
	}
}
