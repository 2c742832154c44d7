package engine

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An Outbox is events that somebody else stores, together with what they tell of: the effect of a command. Their deliveries wait
// in the store and are claimed from there.
type Outbox struct {
	Events []store.NewEvent
	engine *Engine
	lanes  []*lane
	slot   int64
}

// Plan makes an outbox of publications that a command emits. Close it when what it is stored with has been stored, or not.
func (e *Engine) Plan(tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...Publication) *Outbox {
	now, slot := e.settles.enter(e.clock)
	box := &Outbox{engine: e, slot: slot}
	for i := range publications {
		p := &publications[i]
		event := newEvent(p, tenant, principal, now)
		event.CommandID = commandID
		stored := store.NewEvent{Event: &event}
		for _, l := range e.receivers(tenant, p) {
			stored.Deliveries = append(stored.Deliveries, store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: l.id, Trigger: godwit.TriggerAccept})
			box.lanes = append(box.lanes, l)
		}
		box.Events = append(box.Events, stored)
	}
	return box
}

// Close ends the wait for an outbox. When its events are stored, their lanes are told.
func (b *Outbox) Close(stored bool) {
	b.engine.settles.leave(b.slot)
	if !stored {
		return
	}
	now := b.engine.clock.Now()
	for _, l := range b.lanes {
		l.overflowed(now)
	}
	b.engine.cfg.Recorder.Submitted(len(b.Events), len(b.lanes))
}

// Requeued takes note that deliveries were made due in the store.
func (e *Engine) Requeued(deliveries []godwit.Delivery) {
	now := e.clock.Now()
	woken := map[godwit.EndpointID]bool{}
	for i := range deliveries {
		if id := deliveries[i].EndpointID; !woken[id] {
			woken[id] = true
			if l := e.index.lane(id); l != nil {
				l.noteDue(now)
			}
		}
	}
}

// maxAsked is how many requests of commands may be on the wire at once.
const maxAsked = 256

// Ask sends one request to an endpoint and waits for the answer, as Probe does: for commands that a tenant's own service executes.
func (e *Engine) Ask(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p Publication) (*Probed, error) {
	return e.probe(ctx, e.asked, tenant, id, p)
}
