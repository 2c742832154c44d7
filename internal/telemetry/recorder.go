package telemetry

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Recorder records the engine's measurements. New makes it.
type Recorder struct {
	events       metric.Int64Counter
	rematched    metric.Int64Counter
	deliveries   metric.Int64Counter
	attempts     metric.Int64Counter
	duration     metric.Float64Histogram
	finished     metric.Int64Counter
	batch        metric.Int64Histogram
	commit       metric.Float64Histogram
	claimed      metric.Int64Counter
	claim        metric.Float64Histogram
	storeErrors  metric.Int64Counter
	fenced       metric.Int64Counter
	fencedClaims metric.Int64Counter
	moved        metric.Int64Counter
	handover     metric.Float64Histogram

	attemptSets  optionSets[attemptLabels]
	durationSets optionSets[durationLabels]
	statusSets   optionSets[godwit.DeliveryStatus]
	moveSets     optionSets[shard.Move]
	webhooks     webhooks
	accepts      []metric.RecordOption
	results      []metric.RecordOption
	commitErrors []metric.AddOption
	claimErrors  []metric.AddOption
}

type attemptLabels struct {
	profile string
	outcome godwit.Outcome
	reason  godwit.Reason
}

type durationLabels struct {
	profile string
	outcome godwit.Outcome
}

var (
	attemptSeconds  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	storeSeconds    = []float64{.0005, .001, .002, .004, .008, .016, .032, .064, .125, .25, .5, 1, 5}
	handoverSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	batchSizes      = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

func (r *Recorder) build(m metric.Meter) error {
	var errs []error
	counter := func(name, help string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, help string, bounds []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	r.events = counter("godwit.events.accepted", "Events durably accepted.")
	r.rematched = counter("godwit.events.rematched", "Submissions whose receivers were chosen anew, because another node had changed the configuration.")
	r.deliveries = counter("godwit.deliveries.created", "Deliveries that accepted events fanned out to.")
	r.attempts = counter("godwit.attempts", "Recorded attempts.")
	r.duration = seconds("godwit.attempt.duration", "From dialling to the last byte of the response.", attemptSeconds)
	r.finished = counter("godwit.deliveries.finished", "Deliveries that reached a final state.")
	r.commit = seconds("godwit.commit.duration", "One group commit, until it is durable.", storeSeconds)
	r.claimed = counter("godwit.deliveries.claimed", "Deliveries read back from the store: retries, overflow, replays.")
	r.claim = seconds("godwit.claim.duration", "One read of what is due.", storeSeconds)
	r.fenced = counter("godwit.results.fenced", "Results that the store refused, because another node owns the delivery now.")
	r.fencedClaims = counter("godwit.claims.fenced", "Reads of an endpoint's due deliveries that the store refused, because another node owns the endpoint now.")
	r.moved = counter("godwit.shards.moved", "Shards that this process has taken, given up, or lost.")
	r.handover = seconds("godwit.shard.handover.duration", "How long a shard had no owner until this process served it.", handoverSeconds)
	r.storeErrors = counter("godwit.store.errors", "Failed store operations.")
	var err error
	r.batch, err = m.Int64Histogram("godwit.commit.size", metric.WithDescription("Rows of one group commit, by what they are."),
		metric.WithExplicitBucketBoundaries(batchSizes...))
	errs = append(errs, err)

	r.accepts = []metric.RecordOption{label("part", "accepts")}
	r.results = []metric.RecordOption{label("part", "results")}
	r.commitErrors = []metric.AddOption{label("operation", "commit")}
	r.claimErrors = []metric.AddOption{label("operation", "claim")}
	return errors.Join(errs...)
}

func label(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// optionSets caches the options for each combination of labels, so that a measurement allocates nothing. There are few
// combinations; the map is copied when a new one is added.
type optionSets[K comparable] struct {
	known atomic.Pointer[map[K]*options]
	grow  sync.Mutex
}

type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func (s *optionSets[K]) get(k K, attributes func(K) []attribute.KeyValue) *options {
	if m := s.known.Load(); m != nil {
		if o := (*m)[k]; o != nil {
			return o
		}
	}
	s.grow.Lock()
	defer s.grow.Unlock()
	next := map[K]*options{}
	if m := s.known.Load(); m != nil {
		maps.Copy(next, *m)
	}
	set := metric.WithAttributeSet(attribute.NewSet(attributes(k)...))
	next[k] = &options{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
	s.known.Store(&next)
	return next[k]
}

// Submitted counts accepted events and their fan-out.
func (r *Recorder) Submitted(events, deliveries int) {
	ctx := context.Background()
	r.events.Add(ctx, int64(events))
	r.deliveries.Add(ctx, int64(deliveries))
}

// Rematched counts submissions whose receivers were chosen anew.
func (r *Recorder) Rematched(n int) { r.rematched.Add(context.Background(), int64(n)) }

// Attempted counts an attempt and its duration.
func (r *Recorder) Attempted(profile, eventType string, a *godwit.Attempt, d *godwit.Delivery) {
	ctx := context.Background()
	r.attempts.Add(ctx, 1, r.attemptSets.get(attemptLabels{profile, a.Verdict.Outcome, a.Verdict.Reason}, attemptAttributes).add...)
	r.duration.Record(ctx, a.Duration.Seconds(), r.durationSets.get(durationLabels{profile, a.Verdict.Outcome}, durationAttributes).record...)
	r.webhooks.attempted(eventType, a, d)
}

func attemptAttributes(k attemptLabels) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("profile", k.profile), attribute.String("outcome", string(k.outcome)), attribute.String("reason", string(k.reason)),
	}
}

func durationAttributes(k durationLabels) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("profile", k.profile), attribute.String("outcome", string(k.outcome))}
}

// Delivered counts a delivery that reached a final state.
func (r *Recorder) Delivered(eventType string, d *godwit.Delivery) {
	r.finished.Add(context.Background(), 1, r.statusSets.get(d.Status, func(s godwit.DeliveryStatus) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("status", string(s))}
	}).add...)
	r.webhooks.finished(eventType, d)
}

// Committed measures a group commit.
func (r *Recorder) Committed(accepts, results int, took time.Duration, err error) {
	ctx := context.Background()
	if err != nil {
		r.storeErrors.Add(ctx, 1, r.commitErrors...)
		return
	}
	r.commit.Record(ctx, took.Seconds())
	if accepts > 0 {
		r.batch.Record(ctx, int64(accepts), r.accepts...)
	}
	if results > 0 {
		r.batch.Record(ctx, int64(results), r.results...)
	}
}

// Claimed measures a read of due deliveries.
func (r *Recorder) Claimed(n, fenced int, took time.Duration, err error) {
	ctx := context.Background()
	if err != nil {
		r.storeErrors.Add(ctx, 1, r.claimErrors...)
		return
	}
	r.claimed.Add(ctx, int64(n))
	r.fencedClaims.Add(ctx, int64(fenced))
	r.claim.Record(ctx, took.Seconds())
}

// Fenced counts results that the store refused.
func (r *Recorder) Fenced(results int) { r.fenced.Add(context.Background(), int64(results)) }

// Moved counts shards that changed their owner.
func (r *Recorder) Moved(m shard.Move, shards int) {
	r.moved.Add(context.Background(), int64(shards), r.moveSets.get(m, func(m shard.Move) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("change", string(m))}
	}).add...)
}

// HandedOver measures how long a shard had no owner.
func (r *Recorder) HandedOver(took time.Duration) {
	r.handover.Record(context.Background(), took.Seconds())
}
