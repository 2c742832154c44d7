package engine

import (
	"context"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An Outbox holds events that a command stores together with its effects. Their deliveries wait in the store until their lanes
// claim them. If they are more than maxInline, fan-outs store them afterwards.
type Outbox struct {
	Events   []store.NewEvent
	acceptor *acceptor
	lanes    []*dispatch.Lane // whose deliveries are stored with the events
	step     int64            // step of the watermark, for Leave
}

// Plan makes an outbox of the publications of a command. Close must be called once the command's transaction has committed or
// failed. An error is ErrFanouts, or says that the changes of other nodes could not be read: every change that was answered before
// the call counts for the choice of the receivers.
func (ac *acceptor) Plan(ctx context.Context, tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...Publication) (*Outbox, error) {
	if err := ac.cfg.Changes.CatchUp(ctx); err != nil {
		return nil, err
	}
	now, step := ac.watermark.Enter()
	events, receivers, total := make([]godwit.Event, len(publications)), make([][]*dispatch.Lane, len(publications)), 0
	for i := range publications {
		events[i] = newEvent(&publications[i], tenant, principal, now)
		events[i].CommandID = commandID
		if events[i].Key == "" {
			events[i].Key = NewKey()
		}
		receivers[i] = ac.receivers(&events[i], &publications[i])
		total += len(receivers[i])
	}
	if open, _ := ac.fanouts.Open(tenant); total > maxInline && open >= ac.cfg.MaxFanouts {
		ac.watermark.Leave(step)
		return nil, ErrFanouts
	}
	box := &Outbox{acceptor: ac, step: step}
	for i := range publications {
		stored := store.NewEvent{Event: &events[i]}
		for _, l := range receivers[i] {
			if total > maxInline {
				stored.Later = append(stored.Later, l.ID())
				continue
			}
			stored.Deliveries = append(stored.Deliveries, store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerAccept})
			box.lanes = append(box.lanes, l)
		}
		box.Events = append(box.Events, stored)
	}
	return box, nil
}

// Close releases the watermark. If the events are stored, it tells their lanes, and the expander of their fan-outs.
func (b *Outbox) Close(stored bool) {
	b.acceptor.watermark.Leave(b.step)
	if !stored {
		return
	}
	deliveries := 0
	for i := range b.Events {
		n := &b.Events[i]
		if deliveries += n.Receivers(); len(n.Later) > 0 {
			b.acceptor.fanouts.Add(n.Fanout())
		}
	}
	b.acceptor.lanes.Waiting(b.lanes)
	b.acceptor.cfg.Recorder.Submitted(len(b.Events), deliveries)
}
