package telemetry

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// webhooks holds the metrics that the Open Job Spec names (OJS-OBS-9..12). They are registered with Prometheus directly,
// because the OpenTelemetry exporter would add units and _total to their names. The fifth, a gauge, is read from the engine.
type webhooks struct {
	delivered, failed, dead series[string, prometheus.Counter]
	retries                 series[string, prometheus.Observer]
	duration                series[subscription, prometheus.Observer]
	buried                  series[subscription, prometheus.Counter]
}

// subscription is an event type together with the subscription that it was delivered to.
type subscription struct {
	eventType string
	id        godwit.EndpointID
}

// rest is the label of all values beyond the bound.
const rest = "_other"

var (
	attemptMillis = []float64{1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000}
	retryCounts   = []float64{0, 1, 2, 3, 4, 5, 6, 7, 10, 20, 50, 100}
)

func (w *webhooks) build(r prometheus.Registerer, limit int) error {
	count := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ojs_webhook_delivery_count",
		Help: "ojs.webhook.delivery.count: deliveries that succeeded or are dead, and failed attempts that will be made again.",
	}, []string{"event_type", "status"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ojs_webhook_delivery_duration_ms", Help: "ojs.webhook.delivery.duration_ms: one HTTP attempt, in milliseconds.", Buckets: attemptMillis,
	}, []string{"event_type", "subscription_id"})
	retries := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ojs_webhook_delivery_retry_count", Help: "ojs.webhook.delivery.retry_count: retries that a delivery took to succeed.", Buckets: retryCounts,
	}, []string{"event_type"})
	buried := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ojs_webhook_dead_delivery_count", Help: "ojs.webhook.dead_delivery.count: deliveries that are dead.",
	}, []string{"event_type", "subscription_id"})

	status := func(name string) func(string) prometheus.Counter {
		return func(eventType string) prometheus.Counter { return count.WithLabelValues(eventType, name) }
	}
	w.delivered.init(limit, rest, status("success"))
	w.failed.init(limit, rest, status("failed"))
	w.dead.init(limit, rest, status("dead"))
	w.retries.init(limit, rest, func(eventType string) prometheus.Observer { return retries.WithLabelValues(eventType) })
	others := subscription{eventType: rest}
	w.duration.init(limit, others, func(s subscription) prometheus.Observer { return duration.WithLabelValues(s.eventType, s.label()) })
	w.buried.init(limit, others, func(s subscription) prometheus.Counter { return buried.WithLabelValues(s.eventType, s.label()) })
	return errors.Join(r.Register(count), r.Register(duration), r.Register(retries), r.Register(buried))
}

func (s subscription) label() string {
	if s.id.IsZero() {
		return rest
	}
	return s.id.String()
}

// attempted counts an attempt. Test attempts do not count as deliveries.
func (w *webhooks) attempted(eventType string, a *godwit.Attempt, d *godwit.Delivery) {
	if d.Run.Trigger == godwit.TriggerTest {
		return
	}
	w.duration.get(subscription{eventType, a.EndpointID}).Observe(float64(a.Duration) / float64(time.Millisecond))
	if d.Status == godwit.DeliveryPending {
		w.failed.get(eventType).Inc()
	}
}

// finished counts a delivery once, including one that died while it waited for an attempt.
func (w *webhooks) finished(eventType string, d *godwit.Delivery) {
	switch {
	case d.Run.Trigger == godwit.TriggerTest:
	case d.Status == godwit.DeliveryAccepted:
		w.delivered.get(eventType).Inc()
		w.retries.get(eventType).Observe(float64(max(d.Run.Attempts-1, 0)))
	case d.Status.Dead():
		w.dead.get(eventType).Inc()
		w.buried.get(subscription{eventType, d.EndpointID}).Inc()
	}
}

// series holds a metric's label combinations, up to a bound. Each costs memory here and in the collector, and event types
// come from outside.
type series[K comparable, M any] struct {
	limit  int
	others K
	create func(K) M

	mu    sync.RWMutex
	known map[K]M
	rest  M
	full  bool // rest is in use
}

func (s *series[K, M]) init(limit int, others K, create func(K) M) {
	s.limit, s.others, s.create, s.known = limit, others, create, map[K]M{}
}

func (s *series[K, M]) get(k K) M {
	s.mu.RLock()
	m, ok := s.known[k]
	if !ok && s.full {
		m, ok = s.rest, true
	}
	s.mu.RUnlock()
	if ok {
		return m
	}
	return s.add(k)
}

func (s *series[K, M]) add(k K) M {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.known[k]; ok {
		return m
	}
	if len(s.known) < s.limit {
		m := s.create(k)
		s.known[k] = m
		return m
	}
	if !s.full {
		s.rest, s.full = s.create(s.others), true
	}
	return s.rest
}
