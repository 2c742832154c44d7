package crashtest

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// items reads a whole list of the API.
func items[T any](t *testing.T, p *apptest.Process, path string, query url.Values) (all []T) {
	t.Helper()
	client := p.NewClient()
	query.Set("limit", "200")
	for {
		resp, err := client.Get(p.URL + path + "?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Items      []T    `json:"items"`
			NextCursor string `json:"next_cursor"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %d (%v)", path, resp.StatusCode, err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == "" {
			return all
		}
		query.Set("cursor", page.NextCursor)
	}
}

type usage struct {
	Events        int64 `json:"events"`
	Deliveries    int64 `json:"deliveries"`
	Attempts      int64 `json:"attempts"`
	BytesAccepted int64 `json:"bytes_accepted"`
	BytesSent     int64 `json:"bytes_sent"`
}

// storedUsage counts what the server has stored, once nothing waits any more. All events have a body of the given size, and deliveries
// have the body of their event.
func storedUsage(t *testing.T, p *apptest.Process, size int) (stored usage) {
	t.Helper()
	type delivery struct {
		Attempts int64 `json:"attempt_count"`
	}
	for len(items[delivery](t, p, "/v1/deliveries", url.Values{"status": {"pending"}})) > 0 {
	}
	for _, d := range items[delivery](t, p, "/v1/deliveries", url.Values{}) {
		stored.Deliveries++
		stored.Attempts += d.Attempts
	}
	stored.Events = int64(len(items[struct{}](t, p, "/v1/events", url.Values{})))
	stored.BytesAccepted, stored.BytesSent = stored.Events*int64(size), stored.Attempts*int64(size)
	return stored
}

// countedUsage is what the server says that the tenant used.
func countedUsage(t *testing.T, p *apptest.Process) (sum usage) {
	t.Helper()
	type counted struct {
		Total usage `json:"total"`
	}
	for _, u := range items[counted](t, p, "/v1/usage", url.Values{"tenant_id": {p.Tenant}}) {
		sum = u.Total
	}
	return sum
}

// countedHistory is what the history of the tenant says, in total and of all endpoints together.
func countedHistory(t *testing.T, p *apptest.Process) (total, endpoints history) {
	t.Helper()
	resp, err := p.NewClient().Get(p.URL + "/v1/stats?group=endpoint&tenant_id=" + p.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Total  history
		Groups []struct{ Total history }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /v1/stats: %d (%v)", resp.StatusCode, err)
	}
	for _, g := range answer.Groups {
		endpoints.Events += g.Total.Events
		endpoints.Attempts += g.Total.Attempts
	}
	return answer.Total, endpoints
}

type history struct{ Events, Attempts int64 }

// body returns the body that came with a key.
func (r *receiver) body(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[key]
}

// Usage, and the history, are exactly what was acknowledged and what is stored, over kills under load: on SQLite, and on PostgreSQL with two nodes that are
// killed by turns.
func TestKillsLeaveUsageExact(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		o := apptest.ProcessOptions{Store: store, Data: t.TempDir(), Args: []string{"--node", "a"}}
		p := apptest.StartProcess(t, o)
		nodes := []*apptest.Process{p}
		if store != "sqlite" {
			o.Args = []string{"--node", "b"}
			other := apptest.StartProcess(t, o)
			other.Key, other.Tenant = p.Key, p.Tenant
			nodes = append(nodes, other)
		}
		subscribe(t, p, r.URL)
		subscribe(t, p, r.URL+"/second")
		var producing []*producers
		for i, n := range nodes {
			producing = append(producing, produceAs(t, n, 4, []string{"a", "b"}[i]))
		}
		for i := range 6 {
			for _, ps := range producing {
				ps.more(10)
			}
			moment := time.NewTimer(time.Duration(50+rand.IntN(250)) * time.Millisecond)
			<-moment.C
			n := nodes[i%len(nodes)]
			n.Kill()
			n.Restart()
		}
		var keys []string
		for _, ps := range producing {
			keys = append(keys, ps.end()...)
		}
		slices.Sort(keys)
		r.await(t, slices.Compact(keys))
		stored := storedUsage(t, p, len(r.body(keys[0])))
		if stored.Events != int64(len(keys)) || stored.Deliveries != 2*stored.Events {
			t.Errorf("%d events were acknowledged; stored are %+v", len(keys), stored)
		}
		if counted := countedUsage(t, p); counted != stored {
			t.Errorf("counted %+v\nstored  %+v", counted, stored)
		}
		total, endpoints := countedHistory(t, p)
		if total != (history{stored.Events, stored.Attempts}) || endpoints != (history{stored.Deliveries, stored.Attempts}) {
			t.Errorf("the history has %+v, and %+v of endpoints\nstored  %+v", total, endpoints, stored)
		}
		t.Logf("%d events acknowledged over 6 kills, usage %+v", len(keys), stored)
	})
}
