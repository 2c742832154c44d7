package cybercube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// register makes an endpoint of a process.
func register(t testing.TB, p *apptest.Process, url string) endpoint {
	t.Helper()
	var made struct{ Data endpoint }
	call(t, p.NewClient(), p.URL+base+"/endpoints", mustJSON(t, object{"url": url}), http.StatusCreated, &made)
	return made.Data
}

func ingest(t testing.TB, p *apptest.Process, event string) string {
	t.Helper()
	var made struct{ Data struct{ ID string } }
	call(t, p.NewClient(), p.URL+base+"/events", []byte(event), http.StatusAccepted, &made)
	return made.Data.ID
}

func call(t testing.TB, client *http.Client, url string, body []byte, status int, into any) {
	t.Helper()
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s: %d %v\n%s", url, resp.StatusCode, err, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// TestNothingIsLost posts 1000 events while the server is killed repeatedly and the receiver fails, hangs up and disappears.
// Producers repeat unacknowledged events under their own ids. Each event arrives, and none arrives under two ids.
func TestNothingIsLost(t *testing.T) {
	trace.Covers(t, "CCW-IDM-13", "CCW-EVT-28", "CCW-EVT-14")
	const events, kills, producers = 1000, 4, 4
	sink := apptest.NewSink(t)
	sink.ReplyFunc("/a", func(*apptest.Request) apptest.Reply {
		switch rand.IntN(20) {
		case 0:
			return apptest.Status(503)
		case 1:
			return apptest.Hangup()
		case 2:
			return apptest.Reset()
		}
		return ok
	})
	// A minute of the schedule takes 60 ms. The failures here must not disable the endpoint.
	p := apptest.StartProcess(t, apptest.ProcessOptions{Args: []string{"--time-scale", "1000"}})
	ep := register(t, p, sink.URL("/a"))
	native := p.NewClient()
	req, err := http.NewRequest(http.MethodPatch, p.URL+"/v1/endpoints/"+ep.ID, bytes.NewReader([]byte(`{"policy":{"disable_after_failures":0,"per_second":0,"per_minute":0}}`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := native.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("set policy: %v %v", resp, err)
	}
	resp.Body.Close()

	url := p.URL + base + "/events"
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range producers {
		wg.Go(func() {
			client := p.NewClient()
			for i := w; i < events; i += producers {
				event := mustJSON(t, object{"id": ownID(i), "type": "project.created", "data": object{"object": project()}})
				for !accepted(client, url, event) {
					select {
					case <-stop:
						return
					case <-time.After(10 * time.Millisecond): // until the server is back
					}
				}
			}
		})
	}
	for i := range kills {
		sink.WaitOn("/a", (i+1)*events/(kills+1))
		p.Kill()
		if i%2 == 1 {
			sink.DropConnections()
		}
		p.Restart()
	}
	produced := make(chan struct{})
	go func() { wg.Wait(); close(produced) }()
	select {
	case <-produced:
	case <-time.After(5 * time.Minute):
		close(stop)
		<-produced
		t.Fatal("the producers did not finish")
	}
	sink.WaitFor("/a", "all events", func(seen []apptest.Request) bool { return len(distinct(t, seen)) >= events })
	got := distinct(t, sink.Requests("/a"))
	equal(t, "distinct events", len(got), events)
	for i := range events {
		if !got[ownID(i)] {
			t.Errorf("event %d was lost", i)
		}
	}
}

func ownID(i int) string { return fmt.Sprintf("evt_chaos%021d", i) }

func accepted(client *http.Client, url string, event []byte) bool {
	resp, err := client.Post(url, "application/json", bytes.NewReader(event))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusAccepted
}

func distinct(t testing.TB, seen []apptest.Request) map[string]bool {
	ids := map[string]bool{}
	for _, q := range seen {
		ids[body(t, q)["id"].(string)] = true
	}
	return ids
}
