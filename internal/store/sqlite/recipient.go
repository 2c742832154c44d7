package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A recipient is a delivery as listed in the row of its event. That row lists all of the event's deliveries, which saves an
// index over deliveries.
type recipient struct {
	id       godwit.DeliveryID
	endpoint godwit.EndpointID
	epoch    int64 // not 0: it was handed over with the event, and has no row yet
	trigger  godwit.Trigger
}

func (p *packer) recipient(r recipient) {
	p.id(r.id)
	p.id(r.endpoint)
	p.number(r.epoch)
	p.text(string(r.trigger))
}

func unpackRecipients(b []byte) (all []recipient, err error) {
	u := unpacker{rest: b}
	for len(u.rest) > 0 {
		all = append(all, recipient{id: u.id(), endpoint: u.id(), epoch: u.number(), trigger: godwit.Trigger(u.text())})
	}
	return all, u.err
}

// newDelivery returns the initial state of a recipient's delivery.
func newDelivery(e *godwit.Event, r *recipient) *godwit.Delivery {
	d := godwit.NewDelivery(r.id, e, r.endpoint, r.trigger, e.CreatedAt)
	d.EventType = e.Type
	return &d
}

// addRecipients adds deliveries to the row of an event, and returns those that were not listed there.
func addRecipients(c *conn, e *godwit.Event, more []recipient) ([]recipient, error) {
	var packed packer
	err := c.first(context.Background(), "SELECT deliveries FROM events WHERE tenant_id = ? AND id = ?", ids(e.TenantID[:], e.ID[:]),
		func(r *rows) error { packed = r.blob(0); return nil })
	if err != nil {
		return nil, err
	}
	there, err := unpackRecipients(packed)
	if err != nil {
		return nil, err
	}
	known := make(map[godwit.DeliveryID]bool, len(there)+len(more))
	for i := range there {
		known[there[i].id] = true
	}
	var added []recipient
	for _, r := range more {
		if known[r.id] {
			continue
		}
		known[r.id] = true
		packed.recipient(recipient{r.id, r.endpoint, 0, r.trigger}) // it gets a row
		added = append(added, r)
	}
	if len(added) == 0 {
		return nil, nil
	}
	_, err = c.exec("UPDATE events SET deliveries = ? WHERE tenant_id = ? AND id = ?", []byte(packed), e.TenantID[:], e.ID[:])
	return added, err
}

// recipients returns the deliveries of a new event. A delivery whose lease has another epoch by now is unclaimed.
func (s *batches) recipients(n *store.NewEvent) []recipient {
	all := make([]recipient, len(n.Deliveries))
	for i := range all {
		d := &n.Deliveries[i]
		all[i] = recipient{d.ID, d.EndpointID, d.ClaimEpoch, d.Trigger}
		if d.ClaimEpoch != s.epochs.shard[d.EndpointID.Shard()] {
			all[i].epoch = 0
		}
	}
	return all
}

// deliveriesOf lists an event's deliveries, including those without a row.
func deliveriesOf(ctx context.Context, c *conn, tenant godwit.TenantID, id godwit.EventID) ([]godwit.Delivery, error) {
	e := godwit.Event{TenantID: tenant, ID: id}
	var packed []byte
	there, err := c.one(ctx, "SELECT type, created_at, deliveries FROM events WHERE tenant_id = ? AND id = ?", ids(tenant[:], id[:]),
		func(r *rows) { e.Type, e.CreatedAt, packed = r.text(0), r.time(1), r.blob(2) })
	if err != nil || !there {
		return nil, err
	}
	all, err := unpackRecipients(packed)
	if err != nil {
		return nil, err
	}
	ds := make([]godwit.Delivery, 0, len(all))
	for i := range all {
		d := newDelivery(&e, &all[i])
		_, err := c.one(ctx, "SELECT "+deliveryColumns+" FROM deliveries d WHERE d.tenant_id = ? AND d.id = ?", ids(tenant[:], d.ID[:]),
			func(r *rows) { *d = scanDelivery(r, 0) })
		if err != nil {
			return nil, err
		}
		d.EventType = e.Type
		ds = append(ds, *d)
	}
	return ds, nil
}
