package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var _ engine.Recorder = (*Recorder)(nil)

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func attempt(outcome godwit.Outcome, reason godwit.Reason) *godwit.Attempt {
	return &godwit.Attempt{Verdict: godwit.Verdict{Outcome: outcome, Reason: reason}, Duration: 3 * time.Millisecond}
}

func TestScrape(t *testing.T) {
	m := newMetrics(t)
	if err := m.Watch(func() engine.Stats {
		return engine.Stats{InFlight: 3, Held: 5, Endpoints: 2, Active: 1, Shards: 64, Lag: 1500 * time.Millisecond}
	}); err != nil {
		t.Fatal(err)
	}
	m.Submitted(2, 6)
	m.Attempted("eds", "order.created", attempt(godwit.Accepted, godwit.ReasonAccepted), &godwit.Delivery{})
	m.Attempted("eds", "order.created", attempt(godwit.Transient, godwit.Reason(godwit.FailureTimeout)), &godwit.Delivery{})
	m.Delivered("order.created", &godwit.Delivery{Status: godwit.DeliveryAccepted})
	m.Committed(2, 1, time.Millisecond, nil)
	m.Committed(0, 0, 0, errors.New("disk full"))
	m.Claimed(4, 2, time.Millisecond, nil)
	m.Claimed(0, 0, 0, errors.New("gone"))

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	page := w.Body.String()
	for _, line := range []string{
		`godwit_events_accepted_total 2`,
		`godwit_deliveries_created_total 6`,
		`godwit_attempts_total{outcome="accepted",profile="eds",reason="accepted"} 1`,
		`godwit_attempts_total{outcome="transient",profile="eds",reason="timeout"} 1`,
		`godwit_attempt_duration_seconds_bucket{outcome="accepted",profile="eds",le="0.005"} 1`,
		`godwit_deliveries_finished_total{status="accepted"} 1`,
		`godwit_commit_size_sum{part="accepts"} 2`,
		`godwit_commit_duration_seconds_count 1`,
		`godwit_store_errors_total{operation="commit"} 1`,
		`godwit_store_errors_total{operation="claim"} 1`,
		`godwit_deliveries_claimed_total 4`,
		`godwit_claims_fenced_total 2`,
		`godwit_requests_in_flight 3`,
		`godwit_deliveries_held 5`,
		`godwit_shards_owned 64`,
		`godwit_lag_seconds 1.5`,
		`godwit_build{`,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// The recorder is called for every attempt, so it must not allocate.
func TestMeasuringAllocatesNothing(t *testing.T) {
	m := newMetrics(t)
	a := attempt(godwit.Accepted, godwit.ReasonAccepted)
	for name, f := range map[string]func(){
		"attempted": func() { m.Attempted("eds", "order.created", a, &godwit.Delivery{}) },
		"submitted": func() { m.Submitted(1, 1) },
		"delivered": func() { m.Delivered("order.created", &godwit.Delivery{Status: godwit.DeliveryAccepted}) },
		"committed": func() { m.Committed(3, 4, time.Millisecond, nil) },
	} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
}
