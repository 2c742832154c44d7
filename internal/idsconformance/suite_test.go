package idsconformance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idsconformance"
	"github.com/godwit-hq/godwit/internal/trace"
)

func probing(o apptest.Options) apptest.Options {
	o.Configure = func(c *config.Config) { c.Commands.Probe = true }
	return o
}

func TestALiveServerPasses(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IDS-TST-7", "IDS-TST-1", "IDS-TST-2", "IDS-TST-3", "IDS-TST-4", "IDS-TST-5", "IDS-TST-6")
		o.KeepLimits = true // of two hundred repeats at once most are refused, and nothing is wrong with that
		srv := apptest.Start(t, probing(o))
		var told []idsconformance.Verdict
		verdicts, err := idsconformance.Run(t.Context(), idsconformance.Config{URL: srv.URL + "/", Key: srv.Key, Now: time.Now}, func(v idsconformance.Verdict) { told = append(told, v) })
		if err != nil {
			t.Fatal(err)
		}
		if len(verdicts) != 6 || len(told) != 6 {
			t.Fatalf("%d verdicts, %d told", len(verdicts), len(told))
		}
		for i, v := range verdicts {
			if !v.Passed || v.ID != fmt.Sprintf("IDS-TST-%d", i+1) || v.Detail == "" || told[i] != v {
				t.Errorf("%+v", v)
			}
		}
	})
}

// broken is a server that does as it is told, each time, and keeps no evidence.
type broken struct {
	mu     sync.Mutex
	events []map[string]any
}

func (b *broken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := func(code int, v any) { w.WriteHeader(code); json.NewEncoder(w).Encode(v) }
	switch {
	case r.URL.Path == "/ids/v1/registry":
		answer(200, map[string]any{"caller": map[string]any{"tenant_id": "t", "actor_id": "a", "scopes": []string{"ingest", "read", "audit"}},
			"commands": []map[string]any{{"entity": "probe", "action": "touch"}, {"entity": "probe", "action": "delete"}}})
	case r.URL.Path == "/v1/events":
		answer(200, map[string]any{"items": b.events})
	case r.Method == "POST" && r.URL.Path == "/ids/v1/commands":
		var e struct {
			ID   string `json:"command_id"`
			Args struct {
				Run string `json:"run"`
			} `json:"args"`
		}
		json.NewDecoder(r.Body).Decode(&e)
		b.events = append(b.events, map[string]any{"attributes": map[string]string{"run": e.Args.Run}})
		answer(200, map[string]any{"status": "executed", "decision": "first_seen", "executed": true, "command_id": e.ID,
			"idempotency_key": strings.Repeat("0", 64), "outcome": map[string]any{"status": "executed"}, "outcome_ref": "outcome:1"})
	default:
		answer(404, map[string]any{})
	}
}

func TestABrokenServerFailsEveryTest(t *testing.T) {
	trace.Covers(t, "IDS-TST-7")
	srv := httptest.NewServer(&broken{})
	defer srv.Close()
	verdicts, err := idsconformance.Run(t.Context(), idsconformance.Config{URL: srv.URL, Key: "k", Now: time.Now, Parallel: 10}, nil)
	if err != nil || len(verdicts) != 6 {
		t.Fatal(verdicts, err)
	}
	for _, v := range verdicts {
		if v.Passed || v.Detail == "" {
			t.Errorf("%+v", v)
		}
	}
}

func TestWhatCannotBeTried(t *testing.T) {
	srv := apptest.Start(t, probing(apptest.Options{}))
	_, narrow := srv.NewTenant("narrow", godwit.ScopeIngest)
	plain := apptest.Start(t, apptest.Options{})
	for _, c := range []struct{ url, key, want string }{
		{srv.URL, narrow, "scope read"},
		{srv.URL, "gdw_nobody", "does not know"},
		{plain.URL, plain.Key, "commands-probe"},
		{apptest.DeadURL(t, ""), "k", "refused"},
		{srv.URL, "", "required"},
	} {
		verdicts, err := idsconformance.Run(t.Context(), idsconformance.Config{URL: c.url, Key: c.key, Now: time.Now}, nil)
		if err == nil || len(verdicts) > 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.want, verdicts, err)
		}
	}
}
