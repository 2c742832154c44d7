package engine

import (
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An Outbox holds events that a command stores together with its effects. Their deliveries wait in the store until their lanes
// claim them.
type Outbox struct {
	Events   []store.NewEvent
	acceptor *acceptor
	lanes    []*dispatch.Lane
	step     int64 // step of the watermark, for Leave
}

// Plan makes an outbox of the publications of a command. Close must be called once the command's transaction has committed or
// failed.
func (ac *acceptor) Plan(tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...Publication) *Outbox {
	now, step := ac.watermark.Enter()
	box := &Outbox{acceptor: ac, step: step}
	for i := range publications {
		p := &publications[i]
		event := newEvent(p, tenant, principal, now)
		event.CommandID = commandID
		stored := store.NewEvent{Event: &event}
		for _, l := range ac.receivers(tenant, p) {
			stored.Deliveries = append(stored.Deliveries, store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerAccept})
			box.lanes = append(box.lanes, l)
		}
		box.Events = append(box.Events, stored)
	}
	return box
}

// Close releases the watermark. If the events are stored, it tells their lanes.
func (b *Outbox) Close(stored bool) {
	b.acceptor.watermark.Leave(b.step)
	if !stored {
		return
	}
	b.acceptor.lanes.Waiting(b.lanes)
	b.acceptor.cfg.Recorder.Submitted(len(b.Events), len(b.lanes))
}
