package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Commands records the metrics of the command executor (IDS-SEC-6).
type Commands struct {
	decisions  metric.Int64Counter
	limited    metric.Int64Counter
	unresolved metric.Int64Counter
}

// Commands registers the metrics of the command executor.
func (m *Metrics) Commands() (*Commands, error) {
	var (
		c                Commands
		err1, err2, err3 error
	)
	c.decisions, err1 = m.meter.Int64Counter("ids.dedup.decisions", metric.WithDescription("What was decided about submitted commands."))
	c.limited, err2 = m.meter.Int64Counter("ids.duplicate.rate_limited", metric.WithDescription("Submissions refused because there were too many repeats."))
	c.unresolved, err3 = m.meter.Int64Counter("ids.commands.unresolved", metric.WithDescription("Commands that came to need reconciliation: what became of a call is not known."))
	return &c, errors.Join(err1, err2, err3)
}

// Decided counts a decision.
func (c *Commands) Decided(decision string) {
	c.decisions.Add(context.Background(), 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("decision", decision))))
}

// Limited counts a refusal.
func (c *Commands) Limited() { c.limited.Add(context.Background(), 1) }

// Unresolved counts a command that needs reconciliation.
func (c *Commands) Unresolved() { c.unresolved.Add(context.Background(), 1) }
