package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func page(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(page) {
			if strings.Contains(line, "ojs") {
				t.Log(line)
			}
		}
	}
}

// sent records a delivery whose attempts end so: pending ones will be made again.
func sent(m *Metrics, eventType string, endpoint godwit.EndpointID, trigger godwit.Trigger, took time.Duration, statuses ...godwit.DeliveryStatus) {
	d := &godwit.Delivery{EndpointID: endpoint, Run: godwit.Run{Trigger: trigger}}
	for _, s := range statuses {
		d.Attempts++
		d.Run.Attempts++
		d.Status = s
		m.Attempted("ojs", eventType, &godwit.Attempt{EndpointID: endpoint, Duration: took}, d)
		if s != godwit.DeliveryPending {
			m.Delivered(eventType, d)
		}
	}
}

func TestWebhookMetrics(t *testing.T) {
	m := newMetrics(t)
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	a, b := godwit.NewEndpointID(now), godwit.NewEndpointID(now)
	const pending, accepted, exhausted, terminal = godwit.DeliveryPending, godwit.DeliveryAccepted, godwit.DeliveryExhausted, godwit.DeliveryTerminal
	sent(m, "job.completed", a, godwit.TriggerAccept, 200*time.Millisecond, pending, pending, accepted)
	sent(m, "job.completed", a, godwit.TriggerAccept, 100*time.Millisecond, accepted)
	sent(m, "job.failed", b, godwit.TriggerAccept, time.Millisecond, terminal)
	sent(m, "job.failed", b, godwit.TriggerAccept, time.Millisecond, pending, exhausted)
	sent(m, "job.failed", b, godwit.TriggerTest, time.Hour, terminal) // a test is no delivery
	sent(m, "job.late", b, godwit.TriggerAccept, time.Millisecond, pending)
	m.Delivered("job.late", &godwit.Delivery{EndpointID: b, Status: exhausted}) // its time was over before another attempt
	wantLines(t, page(m),
		`ojs_webhook_delivery_count{event_type="job.completed",status="success"} 2`,
		`ojs_webhook_delivery_count{event_type="job.completed",status="failed"} 2`,
		`ojs_webhook_delivery_count{event_type="job.failed",status="dead"} 2`,
		`ojs_webhook_delivery_count{event_type="job.failed",status="failed"} 1`,
		fmt.Sprintf(`ojs_webhook_delivery_duration_ms_sum{event_type="job.completed",subscription_id="%s"} 700`, a),
		fmt.Sprintf(`ojs_webhook_delivery_duration_ms_count{event_type="job.completed",subscription_id="%s"} 4`, a),
		fmt.Sprintf(`ojs_webhook_delivery_duration_ms_count{event_type="job.failed",subscription_id="%s"} 3`, b),
		`ojs_webhook_delivery_count{event_type="job.late",status="dead"} 1`,
		fmt.Sprintf(`ojs_webhook_dead_delivery_count{event_type="job.late",subscription_id="%s"} 1`, b),
		`ojs_webhook_delivery_retry_count_sum{event_type="job.completed"} 2`,
		`ojs_webhook_delivery_retry_count_count{event_type="job.completed"} 2`,
		`ojs_webhook_delivery_retry_count_bucket{event_type="job.completed",le="0"} 1`,
		fmt.Sprintf(`ojs_webhook_dead_delivery_count{event_type="job.failed",subscription_id="%s"} 2`, b),
	)
	if text := page(m); strings.Contains(text, `retry_count_count{event_type="job.failed"}`) {
		t.Error("retries of what did not succeed are observed")
	}
}

// OJS-OBS-14 requires the names; another test shows that GET /metrics serves this page.
func TestWebhookMetricsAreNamedAsInTheSpec(t *testing.T) {
	m := newMetrics(t)
	if err := m.Watch(func() engine.Stats { return engine.Stats{Endpoints: 3, Active: 2} }); err != nil {
		t.Fatal(err)
	}
	id := godwit.NewEndpointID(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	sent(m, "job.completed", id, godwit.TriggerAccept, time.Millisecond, godwit.DeliveryAccepted)
	sent(m, "job.completed", id, godwit.TriggerAccept, time.Millisecond, godwit.DeliveryTerminal)
	text := page(m)
	for name, kind := range map[string]string{
		"ojs.webhook.delivery.count": "counter", "ojs.webhook.delivery.duration_ms": "histogram", "ojs.webhook.delivery.retry_count": "histogram",
		"ojs.webhook.dead_delivery.count": "counter", "ojs.webhook.subscription.count": "gauge",
	} {
		family := strings.ReplaceAll(name, ".", "_")
		if !strings.Contains(text, "# HELP "+family+" "+name+": ") || !strings.Contains(text, "# TYPE "+family+" "+kind+"\n") {
			t.Errorf("no %s %s", kind, family)
		}
	}
	wantLines(t, text, "ojs_webhook_subscription_count 2")
}

func TestSeriesAreBounded(t *testing.T) {
	m, err := New(Config{Series: 3})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 {
		sent(m, fmt.Sprintf("hostile.type%d", i), godwit.NewEndpointID(now), godwit.TriggerAccept, time.Millisecond, godwit.DeliveryTerminal)
	}
	text := page(m)
	wantLines(t, text,
		`ojs_webhook_delivery_count{event_type="_other",status="dead"} 97`,
		`ojs_webhook_dead_delivery_count{event_type="_other",subscription_id="_other"} 97`,
		`ojs_webhook_delivery_duration_ms_count{event_type="_other",subscription_id="_other"} 97`,
	)
	if n := strings.Count(text, "\nojs_webhook_dead_delivery_count{"); n != 4 {
		t.Errorf("%d series", n)
	}
}

func BenchmarkAttempted(b *testing.B) {
	m, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	id := godwit.NewEndpointID(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	a := &godwit.Attempt{EndpointID: id, Duration: time.Millisecond, Verdict: godwit.Verdict{Outcome: godwit.Accepted, Reason: godwit.ReasonAccepted}}
	d := &godwit.Delivery{Status: godwit.DeliveryAccepted, Run: godwit.Run{Attempts: 1}}
	b.ReportAllocs()
	for b.Loop() {
		m.Attempted("ojs", "job.completed", a, d)
		m.Delivered("job.completed", d)
	}
}
