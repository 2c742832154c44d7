package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Inbound counts the deliveries of upstreams to sources. Its labels come from fixed lists: schemes, verdicts, reasons.
type Inbound struct {
	received metric.Int64Counter
	rejected metric.Int64Counter
	waiting  metric.Int64UpDownCounter

	receivedSets optionSets[inboundLabels]
	reasonSets   optionSets[string]
}

type inboundLabels struct{ scheme, verdict string }

func (n *Inbound) build(m metric.Meter) error {
	var errs [3]error
	n.received, errs[0] = m.Int64Counter("godwit.inbound.received", metric.WithDescription("Requests to sources, by scheme and by what became of them."))
	n.rejected, errs[1] = m.Int64Counter("godwit.inbound.rejections", metric.WithDescription("Requests that sources did not take in, by reason."))
	n.waiting, errs[2] = m.Int64UpDownCounter("godwit.inbound.waiting", metric.WithDescription("Upstreams that wait for endpoints (pass-through)."))
	return errors.Join(errs[:]...)
}

// Received counts a request.
func (n *Inbound) Received(scheme, verdict string) {
	n.received.Add(context.Background(), 1, n.receivedSets.get(inboundLabels{scheme, verdict}, func(k inboundLabels) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("scheme", k.scheme), attribute.String("verdict", k.verdict)}
	}).add...)
}

// Rejected counts a refused request.
func (n *Inbound) Rejected(reason string) {
	n.rejected.Add(context.Background(), 1, n.reasonSets.get(reason, func(reason string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("reason", reason)}
	}).add...)
}

// Waiting changes the number of waiting upstreams.
func (n *Inbound) Waiting(change int) { n.waiting.Add(context.Background(), int64(change)) }
