package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/native"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// While a stop is delayed, /readyz is off, requests are answered, and their connections are not kept, on the fast path and on
// net/http alike. The list of nodes says that the node is leaving. A second signal ends the delay.
func TestStopIsDelayed(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Node = "127.0.0.1:0", t.TempDir(), "test"
	cfg.StopDelay = config.Duration(100 * time.Hour)
	hurry := make(chan struct{})
	a, err := app.New(t.Context(), cfg, app.Dependencies{Log: app.NewLogger(cfg.Log, &apptest.Log{}), Hurry: hurry})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-a.Ready()
	tenant, err := app.TenantByName(t.Context(), a.Management(), "operators")
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := a.Management().Keys.Create(t.Context(), nil, tenant.ID, management.KeySpec{Name: "test", Scopes: []godwit.Scope{godwit.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	call := func(method, path string) (status int, closes bool) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Close
	}
	if status, closes := call(http.MethodGet, "/readyz"); status != http.StatusOK || closes {
		t.Errorf("before the stop: %d, closes %v", status, closes)
	}
	stop()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = call(http.MethodGet, "/readyz")
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/nowhere": http.StatusNotFound} {
		if status, closes := call(http.MethodGet, path); status != want || !closes {
			t.Errorf("%s during the delay: %d, closes %v", path, status, closes)
		}
	}
	if status, closes := call(http.MethodPost, "/v1/events"); status != http.StatusUnauthorized || !closes { // the fast path
		t.Errorf("an event during the delay: %d, closes %v", status, closes)
	}
	for state := "running"; state != "leaving"; { // until the next beat
		if state = stateOfNode(t, client, a.URL(), token); state != "running" && state != "leaving" {
			t.Fatalf("the node is %q during the delay", state)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("ended during the delay: %v", err)
	default:
	}
	close(hurry)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// stateOfNode returns the state of the only node.
func stateOfNode(t *testing.T, client *http.Client, url, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var list native.Nodes
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || len(list.Nodes) != 1 {
		t.Fatalf("the list of nodes is %+v, error %v", list, err)
	}
	return list.Nodes[0].State
}
