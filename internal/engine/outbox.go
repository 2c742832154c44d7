package engine

import (
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An Outbox is events that a command stores together with its effects. Their deliveries wait in the store and are claimed from
// there.
type Outbox struct {
	Events []store.NewEvent
	engine *Engine
	lanes  []*dispatch.Lane
	step   int64 // of the watermark
}

// Plan makes an outbox of publications that a command emits. Close must be called once the command's transaction has
// committed or failed.
func (e *Engine) Plan(tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...Publication) *Outbox {
	now, step := e.watermark.Enter()
	box := &Outbox{engine: e, step: step}
	for i := range publications {
		p := &publications[i]
		event := newEvent(p, tenant, principal, now)
		event.CommandID = commandID
		stored := store.NewEvent{Event: &event}
		for _, l := range e.receivers(tenant, p) {
			stored.Deliveries = append(stored.Deliveries, store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerAccept})
			box.lanes = append(box.lanes, l)
		}
		box.Events = append(box.Events, stored)
	}
	return box
}

// Close ends the wait for an outbox. When its events are stored, their lanes are told.
func (b *Outbox) Close(stored bool) {
	b.engine.watermark.Leave(b.step)
	if !stored {
		return
	}
	b.engine.lanes.Waiting(b.lanes)
	b.engine.cfg.Recorder.Submitted(len(b.Events), len(b.lanes))
}
