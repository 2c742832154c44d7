package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
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
