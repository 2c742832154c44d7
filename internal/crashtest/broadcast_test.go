package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

const (
	broadcastTenants = 150
	broadcastBody    = 150 << 10 // a part carries six such events
)

// exchange sends a request and reads the answer.
func exchange(t *testing.T, client *http.Client, method, url, tenant string, body []byte, want int, into any) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if tenant != "" {
		req.Header.Set("Godwit-Tenant", tenant)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want || into != nil && json.Unmarshal(text, into) != nil {
		t.Fatalf("%s %s: %d %.300s (%v)", method, url, resp.StatusCode, text, err)
	}
}

// A broadcast is acknowledged before the events of its tenants are stored. Kills between its parts lose none of them, and no tenant gets
// two.
func TestKillsDuringABroadcast(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		c := newCrowd(t)
		p := apptest.StartProcess(t, apptest.ProcessOptions{Store: store})
		client := p.NewClient()
		for i := range broadcastTenants {
			uid := fmt.Sprintf("customer-%d", i)
			exchange(t, client, http.MethodPut, p.URL+"/v1/tenants/"+uid, "", []byte(`{"name":"customer"}`), http.StatusCreated, nil)
			exchange(t, client, http.MethodPut, p.URL+"/v1/endpoints/all", uid, fmt.Appendf(nil, `{"url":"%s/%s"}`, c.URL, uid), http.StatusCreated, nil)
		}
		body := []byte(`"` + strings.Repeat("x", broadcastBody) + `"`)
		var answer struct {
			ID        string
			Broadcast struct{ State string }
		}
		exchange(t, client, http.MethodPost, p.URL+"/v1/events?type=order.paid", "*", body, http.StatusAccepted, &answer)
		for _, n := range []int{0, 1, 60} {
			c.await(t, n)
			p.Kill()
			p.Restart()
		}
		c.await(t, broadcastTenants)
		var b struct {
			State                                  string
			Tenants, Accepted, Skipped, Deliveries int
		}
		exchange(t, client, http.MethodGet, p.URL+"/v1/broadcasts/"+answer.ID, "", nil, http.StatusOK, &b)
		if b.State != "ended" || b.Tenants != broadcastTenants || b.Accepted != broadcastTenants || b.Deliveries != broadcastTenants || b.Skipped != 0 {
			t.Errorf("at the end %+v", b)
		}
		for i := range broadcastTenants {
			var events, deliveries struct{ Items []struct{ ID string } }
			uid := fmt.Sprintf("customer-%d", i)
			exchange(t, client, http.MethodGet, p.URL+"/v1/events", uid, nil, http.StatusOK, &events)
			exchange(t, client, http.MethodGet, p.URL+"/v1/deliveries", uid, nil, http.StatusOK, &deliveries)
			if len(events.Items) != 1 || len(deliveries.Items) != 1 {
				t.Fatalf("%s has %d events and %d deliveries, want one each", uid, len(events.Items), len(deliveries.Items))
			}
		}
		if code := p.Terminate(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	})
}
