package app_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// metric reads one value of GET /metrics; 0 if it is not there yet.
func metric(t *testing.T, srv *apptest.Server, series string) float64 {
	t.Helper()
	r := srv.Call(apptest.Call{Path: "/metrics"})
	if r.Status != 200 {
		t.Fatalf("metrics: %d", r.Status)
	}
	for line := range strings.Lines(string(r.Body)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// The test covers the five metrics of the Open Job Spec, from real deliveries to the scraped page.
func TestWebhookMetricsOfRealDeliveries(t *testing.T) {
	sink := apptest.NewSink(t)
	const slow = 200 * time.Millisecond
	sink.Script("/flaky", apptest.Status(500), apptest.Status(500), apptest.Status(200))
	sink.Script("/gone", apptest.Status(404))
	srv := apptest.Start(t, apptest.Options{TimeScale: 100_000})
	patient := apptest.Fields{"profile": "ojs", "patterns": []string{"job.*"}, "policy": map[string]any{"announce": false}}
	ep := srv.Endpoint(sink.URL("/flaky"), patient)
	count := func(eventType, status string) float64 {
		return metric(t, srv, fmt.Sprintf(`ojs_webhook_delivery_count{event_type=%q,status=%q}`, eventType, status))
	}
	of := func(family, eventType string, ep apptest.Endpoint) float64 {
		return metric(t, srv, fmt.Sprintf(`%s{event_type=%q,subscription_id=%q}`, family, eventType, ep.ID))
	}

	t.Run("deliveries", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-9", "OJS-OBS-11")
		srv.WaitDelivery(srv.Publish("job.completed", `{}`), ep, godwit.DeliveryAccepted)
		if s, f := count("job.completed", "success"), count("job.completed", "failed"); s != 1 || f != 2 {
			t.Errorf("success %g, failed %g", s, f)
		}
		const retries = `ojs_webhook_delivery_retry_count`
		if n, sum := metric(t, srv, retries+`_count{event_type="job.completed"}`), metric(t, srv, retries+`_sum{event_type="job.completed"}`); n != 1 || sum != 2 {
			t.Errorf("retries: %g observations of %g", n, sum)
		}
	})
	t.Run("durations", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-10")
		if n := of("ojs_webhook_delivery_duration_ms_count", "job.completed", ep); n != 3 {
			t.Errorf("%g attempts observed", n)
		}
		gate := make(chan struct{})
		sink.Script("/flaky", apptest.Status(200).Until(gate))
		ev := srv.Publish("job.slow", `{}`)
		sink.WaitOn("/flaky", 4)
		time.AfterFunc(slow, func() { close(gate) }) // it has begun
		srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		if n, sum := of("ojs_webhook_delivery_duration_ms_count", "job.slow", ep), of("ojs_webhook_delivery_duration_ms_sum", "job.slow", ep); n != 1 || sum < float64(slow.Milliseconds()) {
			t.Errorf("%g attempts of %g ms", n, sum)
		}
	})
	t.Run("dead", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-12")
		gone := srv.Endpoint(sink.URL("/gone"), apptest.Fields{"profile": "ojs", "patterns": []string{"cron.skipped"}, "policy": map[string]any{"announce": false}})
		srv.WaitDelivery(srv.Publish("cron.skipped", `{}`), gone, godwit.DeliveryTerminal)
		if n, c := of("ojs_webhook_dead_delivery_count", "cron.skipped", gone), count("cron.skipped", "dead"); n != 1 || c != 1 {
			t.Errorf("dead: %g of the subscription, %g in all", n, c)
		}
		srv.EndpointCall(gone, "DELETE", "", nil)
	})
	t.Run("subscriptions", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-13")
		before := metric(t, srv, "ojs_webhook_subscription_count")
		expect := func(after string, want float64) {
			t.Helper()
			if got := metric(t, srv, "ojs_webhook_subscription_count"); got != want {
				t.Errorf("after %s: %g, want %g", after, got, want)
			}
		}
		one := srv.Endpoint(sink.URL("/"), patient)
		expect("create", before+1)
		srv.EndpointCall(one, "POST", "/pause", nil)
		expect("pause", before)
		srv.EndpointCall(one, "DELETE", "", nil)
		expect("delete", before)
	})
	t.Run("names", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-14")
		text := string(srv.Call(apptest.Call{Path: "/metrics"}).Body)
		for _, name := range []string{
			"ojs.webhook.delivery.count", "ojs.webhook.delivery.duration_ms", "ojs.webhook.delivery.retry_count",
			"ojs.webhook.dead_delivery.count", "ojs.webhook.subscription.count",
		} {
			if !strings.Contains(text, "# HELP "+strings.ReplaceAll(name, ".", "_")+" "+name+":") {
				t.Errorf("no metric %s", name)
			}
		}
	})
}
