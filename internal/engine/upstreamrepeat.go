package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// RepeatedUpstream makes the unfinished deliveries of an event due at once, because its upstream delivered it once more. It returns how
// often each was tried before. It never sends accepted deliveries again, not even those accepted during the call. It sends
// refused deliveries again only if no unfinished ones are left: then the upstream knows of the refusal and asks again on
// purpose; otherwise its repeat is meant for the unfinished ones. An event without live deliveries goes to the endpoints that
// match it now.
func (r *redeliverer) RepeatedUpstream(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, actor string) (since map[godwit.DeliveryID]int, err error) {
	list, err := r.deliveriesOf(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	since = make(map[godwit.DeliveryID]int, len(list))
	var left, refused []godwit.DeliveryID
	live, accepted := 0, 0
	for i := range list {
		d := &list[i]
		since[d.ID] = d.Attempts
		switch d.Status {
		case godwit.DeliveryCancelled:
			continue
		case godwit.DeliveryAccepted:
			accepted++
		case godwit.DeliveryTerminal:
			refused = append(refused, d.ID)
		case godwit.DeliveryPending, godwit.DeliveryExhausted:
			asked, err := r.askedToWait(ctx, d)
			if err != nil {
				return nil, err
			}
			if !asked {
				left = append(left, d.ID)
			}
		}
		live++
	}
	again := store.Requeue{TenantID: tenant, Deliveries: left, Trigger: godwit.TriggerManual, Actor: actor, Now: r.cfg.Clock.Now(),
		Only: []godwit.DeliveryStatus{godwit.DeliveryPending, godwit.DeliveryExhausted}}
	switch {
	case live == 0:
		return since, r.offer(ctx, tenant, id)
	case len(refused)+accepted == live:
		again.Deliveries, again.Only = refused, []godwit.DeliveryStatus{godwit.DeliveryTerminal}
	}
	if len(again.Deliveries) == 0 {
		return since, nil
	}
	_, err = r.requeue(ctx, again)
	return since, err
}

// offer sends an event without live deliveries to the endpoints that match it now. Cancelled deliveries stay cancelled: their
// endpoint was deleted, or an operator cancelled them. If two callers offer the same event at once, one gets ErrInProgress.
func (r *redeliverer) offer(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) error {
	name := sha256.Sum256(append([]byte("offer "), id[:]...))
	if err := r.accept.keys.enter(name, name); err != nil {
		return err
	}
	defer r.accept.keys.leave(name)
	event, err := r.cfg.Store.Event(ctx, tenant, id)
	if err != nil {
		return err
	}
	list, err := r.deliveriesOf(ctx, tenant, id) // read again: another caller may have offered the event meanwhile
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	if err := r.cfg.Changes.CatchUp(ctx); err != nil {
		return err
	}
	lanes := slices.DeleteFunc(r.accept.receivers(event, &Publication{}), func(l *dispatch.Lane) bool {
		return slices.ContainsFunc(list, func(d godwit.Delivery) bool { return d.EndpointID == l.ID() })
	})
	_, err = r.addDeliveries(ctx, event, lanes)
	return err
}

// askedToWait reports whether the delivery's receiver asked for a delay that has not passed yet. A repeat by the upstream does
// not shorten the delay (EDS-INT-4), even if it is longer than the delivery's remaining time. The lane enforces holds of a
// whole endpoint.
func (r *redeliverer) askedToWait(ctx context.Context, d *godwit.Delivery) (bool, error) {
	l := r.lanes.Lane(d.EndpointID)
	if d.Attempts == 0 || l == nil || l.Target().Policy.HoldScope != godwit.HoldEvent {
		return false, nil
	}
	attempts, err := r.cfg.Store.Attempts(ctx, d.TenantID, d.ID)
	if err != nil {
		return false, fmt.Errorf("read attempts: %w", err)
	}
	if len(attempts) == 0 {
		return false, nil
	}
	last := &attempts[len(attempts)-1]
	wait := r.cfg.TimeScale.Real(min(last.Verdict.RetryAfter, l.Target().Policy.MaxElapsed))
	return r.cfg.Clock.Now().Before(last.StartedAt.Add(last.Duration + wait)), nil
}
