package conformance

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestInstancesDrawTheirOwnDelays: two processes with the same events and the same failures wait for different times, and so
// does a restarted one. The test needs processes: within one process, a generator with a fixed seed would go unnoticed.
func TestInstancesDrawTheirOwnDelays(t *testing.T) {
	trace.Covers(t, "EDS-BKO-2")
	const events = 8
	sink := newSink(t)
	sink.Script("/down", apptest.Status(503))
	one, two := apptest.StartProcess(t, apptest.ProcessOptions{}), apptest.StartProcess(t, apptest.ProcessOptions{})
	first, second := drawnDelays(t, one, sink, events), drawnDelays(t, two, sink, events)
	one.Kill()
	one.Restart()
	third := drawnDelays(t, one, sink, events)
	for name, pair := range map[string][2][]time.Duration{
		"two instances": {first, second}, "one, started again": {first, third},
	} {
		apart := 0
		for i := range events {
			if d := pair[0][i] - pair[1][i]; d > time.Second || d < -time.Second {
				apart++
			}
		}
		if apart < events/2 {
			t.Errorf("%s: %v and %v", name, pair[0], pair[1])
		}
	}
}

// drawnDelays posts events one after another to an endpoint that fails and returns the delays before their first retries, out
// of a window of 100 s.
func drawnDelays(t *testing.T, p *apptest.Process, sink *apptest.Sink, events int) []time.Duration {
	t.Helper()
	client := p.NewClient()
	post := func(path, body string) (made struct {
		ID string `json:"id"`
	}) {
		t.Helper()
		resp, err := client.Post(p.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || resp.StatusCode > 299 {
			t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
		}
		return made
	}
	kind := "down." + rand.Text()
	post("/v1/endpoints", `{"url":"`+sink.URL("/down")+`","patterns":["`+kind+`"],"policy":{"base_seconds":100,"cap_seconds":100,"circuit_after":0}}`)
	var delays []time.Duration
	for range events {
		id := post(eventPath+kind, eventBody).ID
		var a attemptView
		p.WaitAttempt("first attempt", func(line json.RawMessage) bool {
			a = attemptView{}
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return a.EventID == id
		})
		if a.NextAt == nil {
			t.Fatalf("attempt %+v is not followed by another", a)
		}
		delays = append(delays, a.NextAt.Sub(a.ended()))
	}
	return delays
}
