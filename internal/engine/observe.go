package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Recorder takes measurements. Its methods are called on the hot path and must not block.
type Recorder interface {
	Submitted(events, deliveries int)
	// Rematched counts submissions whose receivers were chosen anew, because another node had changed the configuration.
	Rematched(n int)
	// Attempted counts a recorded attempt. d is the delivery after it.
	Attempted(profile, eventType string, a *godwit.Attempt, d *godwit.Delivery)
	// Delivered counts a delivery that reached a final state, by an attempt or because its time ran out.
	Delivered(eventType string, d *godwit.Delivery)
	Committed(accepts, results int, took time.Duration, err error)
	Claimed(n, fenced int, took time.Duration, err error)
	// Fenced counts results that the store refused, because the delivery was no longer claimed here.
	Fenced(results int)
	shard.Recorder
}

// Stats is a snapshot of the engine's state, for gauges.
type Stats struct {
	InFlight    int   // requests in flight
	Held        int   // deliveries in memory
	HeldBytes   int64 // their payloads
	Endpoints   int
	Active      int // of those, neither paused nor disabled nor deleted
	OpenCircuit int
	Shards      int // owned
	Nodes       int // alive at the last beat, this one included
	Fanouts     int // whose deliveries are not all stored
	Broadcasts  int // that this node works on
	// How long the oldest delivery has been waiting for this node alone: its endpoint could take it now.
	Lag time.Duration
}

// Stats returns the current state.
func (e *Engine) Stats() Stats {
	s := e.lanes.Stats()
	_, fanouts := e.fanouts.Open(godwit.TenantID{})
	return Stats{
		InFlight: s.InFlight, Held: s.Held, HeldBytes: s.HeldBytes, Endpoints: s.Endpoints, Active: s.Active, OpenCircuit: s.OpenCircuit,
		Shards: len(e.shards.Shards()), Nodes: e.shards.Alive(), Fanouts: fanouts, Broadcasts: e.broadcaster.count(), Lag: s.Lag,
	}
}

// Silent records nothing.
type Silent struct{}

// Submitted does nothing.
func (Silent) Submitted(int, int) {}

// Rematched does nothing.
func (Silent) Rematched(int) {}

// Attempted does nothing.
func (Silent) Attempted(string, string, *godwit.Attempt, *godwit.Delivery) {}

// Delivered does nothing.
func (Silent) Delivered(string, *godwit.Delivery) {}

// Committed does nothing.
func (Silent) Committed(int, int, time.Duration, error) {}

// Claimed does nothing.
func (Silent) Claimed(int, int, time.Duration, error) {}

// Fenced does nothing.
func (Silent) Fenced(int) {}

// Moved does nothing.
func (Silent) Moved(shard.Move, int) {}

// HandedOver does nothing.
func (Silent) HandedOver(time.Duration) {}

// logAttempt writes one log line per attempt: its outcome, the reason, and the next step. It never contains a payload.
func logAttempt(log *slog.Logger, profile string, a *godwit.Attempt, status godwit.DeliveryStatus) {
	level := slog.LevelDebug
	if a.Verdict.Outcome != godwit.Accepted {
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("attempt", a.ID.String()), slog.String("delivery", a.DeliveryID.String()),
		slog.String("event", a.EventID.String()), slog.String("endpoint", a.EndpointID.String()),
		slog.String("tenant", a.TenantID.String()), slog.String("profile", profile),
		slog.Int("n", a.N), slog.String("trigger", string(a.Trigger)),
		slog.Int("status", a.Status), slog.String("outcome", string(a.Verdict.Outcome)),
		slog.String("reason", string(a.Verdict.Reason)), slog.String("class", string(a.Verdict.Class)),
		slog.Duration("took", a.Duration), slog.String("delivery_status", string(status)),
	}
	if !a.NextAt.IsZero() {
		attrs = append(attrs, slog.Time("next_at", a.NextAt))
	}
	log.LogAttrs(ctx, level, "attempt", attrs...)
}
