package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// evictTopic is the topic of a signal that asks the owner of an endpoint to return a queued delivery to the store.
const evictTopic = "evict"

const (
	evictPause = 25 * time.Millisecond
	evictTries = 40
)

// Cancel ends a pending delivery, whichever node has it. It fails with ErrInFlight or store.ErrConflict when a request for it
// is in flight.
func (r *redeliverer) Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error) {
	d, err := r.cfg.Store.Delivery(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if l := r.lanes.Lane(d.EndpointID); l != nil {
		if err := l.Evict(id); err != nil {
			return nil, err
		}
	}
	endpoint := d.EndpointID
	d, err = r.cfg.Store.Cancel(ctx, tenant, id, r.cfg.Clock.Now())
	if errors.Is(err, store.ErrConflict) && !r.owns(endpoint) {
		d, err = r.cancelElsewhere(ctx, tenant, endpoint, id)
	}
	if err == nil {
		r.outcomes.Stored(d)
	}
	return d, err
}

// CancelMany ends those of the deliveries that are pending, in transactions of bounded size, and returns how many. It skips those that have a
// request in flight. After an error, those of earlier transactions have ended.
func (r *redeliverer) CancelMany(ctx context.Context, tenant godwit.TenantID, deliveries []godwit.Delivery) (int, error) {
	n := 0
	for part := range slices.Chunk(deliveries, fanout.PartRows) {
		queued := r.evictAll(part)
		ids := make([]godwit.DeliveryID, len(queued))
		var elsewhere []godwit.Delivery
		for i := range queued {
			ids[i] = queued[i].ID
			if !r.owns(queued[i].EndpointID) {
				elsewhere = append(elsewhere, queued[i])
			}
		}
		ended, err := r.cancelSome(ctx, tenant, ids)
		if n += len(ended); err != nil {
			return n, err
		}
		more, err := r.cancelManyElsewhere(ctx, tenant, left(elsewhere, ended))
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}

// evictAll returns deliveries that this node has in memory to the store, together, so that they share transactions. It returns all but those in flight.
func (r *redeliverer) evictAll(list []godwit.Delivery) []godwit.Delivery {
	inFlight := make([]bool, len(list))
	var wg sync.WaitGroup
	for i := range list {
		if l := r.lanes.Lane(list[i].EndpointID); l != nil {
			wg.Go(func() { inFlight[i] = l.Evict(list[i].ID) != nil })
		}
	}
	wg.Wait()
	queued := make([]godwit.Delivery, 0, len(list))
	for i := range list {
		if !inFlight[i] {
			queued = append(queued, list[i])
		}
	}
	return queued
}

func (r *redeliverer) cancelSome(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID) ([]godwit.Delivery, error) {
	ended, err := r.cfg.Store.CancelMany(ctx, tenant, ids, r.cfg.Clock.Now())
	for i := range ended {
		r.outcomes.Stored(&ended[i])
	}
	return ended, err
}

// cancelManyElsewhere cancels deliveries that other nodes have in memory, once those nodes have returned them.
func (r *redeliverer) cancelManyElsewhere(ctx context.Context, tenant godwit.TenantID, waiting []godwit.Delivery) (n int, err error) {
	for i := range waiting {
		r.tell(evictTopic, waiting[i].EndpointID.String()+" "+waiting[i].ID.String())
	}
	for range evictTries {
		if len(waiting) == 0 {
			return n, nil
		}
		if !clock.Wait(ctx, r.cfg.Pace, evictPause) {
			return n, context.Cause(ctx)
		}
		ids := make([]godwit.DeliveryID, len(waiting))
		for i := range waiting {
			ids[i] = waiting[i].ID
		}
		ended, err := r.cancelSome(ctx, tenant, ids)
		if n += len(ended); err != nil {
			return n, err
		}
		waiting = left(waiting, ended)
		if waiting, err = r.stillPending(ctx, tenant, waiting); err != nil {
			return n, err
		}
	}
	return n, nil
}

// stillPending returns the deliveries that have not ended.
func (r *redeliverer) stillPending(ctx context.Context, tenant godwit.TenantID, list []godwit.Delivery) ([]godwit.Delivery, error) {
	var pending []godwit.Delivery
	for i := range list {
		d, err := r.cfg.Store.Delivery(ctx, tenant, list[i].ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		case d.Status == godwit.DeliveryPending:
			pending = append(pending, *d)
		}
	}
	return pending, nil
}

// left returns the deliveries that are not among the ended ones.
func left(list, ended []godwit.Delivery) []godwit.Delivery {
	gone := make(map[godwit.DeliveryID]bool, len(ended))
	for i := range ended {
		gone[ended[i].ID] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(d godwit.Delivery) bool { return gone[d.ID] })
}

// cancelElsewhere cancels a delivery that another node has in memory, once that node has returned it.
func (r *redeliverer) cancelElsewhere(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, id godwit.DeliveryID) (d *godwit.Delivery, err error) {
	r.tell(evictTopic, endpoint.String()+" "+id.String())
	for range evictTries {
		if !clock.Wait(ctx, r.cfg.Pace, evictPause) {
			return nil, context.Cause(ctx)
		}
		d, err = r.cfg.Store.Cancel(ctx, tenant, id, r.cfg.Clock.Now())
		if !errors.Is(err, store.ErrConflict) {
			return d, err
		}
		if d, err := r.cfg.Store.Delivery(ctx, tenant, id); err != nil || d.Status != godwit.DeliveryPending {
			break // it has ended
		}
	}
	return nil, err
}

// evict returns a queued delivery to the store because another node asks for it. One in flight stays.
func (r *redeliverer) evict(body string) error {
	first, second, _ := strings.Cut(body, " ")
	endpoint, err := godwit.ParseEndpointID(first)
	if err != nil {
		return fmt.Errorf("endpoint of a delivery to return: %w", err)
	}
	id, err := godwit.ParseDeliveryID(second)
	if err != nil {
		return fmt.Errorf("delivery to return: %w", err)
	}
	if l := r.lanes.Lane(endpoint); l != nil {
		if err := l.Evict(id); !errors.Is(err, ErrInFlight) {
			return err
		}
	}
	return nil
}
