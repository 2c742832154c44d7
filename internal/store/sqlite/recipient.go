package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A recipient is a delivery as listed in the row of its event. That row lists the event's deliveries, which saves an index over
// deliveries. Those that a fan-out stored are listed in event_parts.
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

// recipientsOf lists the deliveries of the event with the number n: those in its row, and those that a fan-out stored.
func recipientsOf(ctx context.Context, c *conn, n int64, packed []byte) ([]recipient, error) {
	all, err := unpackRecipients(packed)
	if err != nil {
		return nil, err
	}
	err = c.each(ctx, "SELECT deliveries FROM event_parts WHERE event = ? ORDER BY since", []driver.Value{n}, func(r *rows) error {
		part, err := unpackRecipients(r.blob(0))
		all = append(all, part...)
		return err
	})
	return all, err
}

// addPart lists the deliveries of a part of a fan-out.
func addPart(c *conn, e *godwit.Event, since int, added []recipient) error {
	var packed packer
	for _, r := range added {
		packed.recipient(recipient{r.id, r.endpoint, 0, r.trigger}) // it gets a row
	}
	n, err := c.exec("INSERT INTO event_parts (event, since, deliveries) SELECT n, ?, ? FROM events WHERE tenant_id = ? AND id = ?",
		int64(since), []byte(packed), e.TenantID[:], e.ID[:])
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}

// newDelivery returns the initial state of a recipient's delivery.
func newDelivery(e *godwit.Event, r *recipient) *godwit.Delivery {
	d := godwit.NewDelivery(r.id, e, r.endpoint, r.trigger, e.CreatedAt)
	d.EventType = e.Type
	return &d
}

// addRecipients adds deliveries to the row of an event, and returns those that were not listed there.
func addRecipients(c *conn, e *godwit.Event, more []recipient) ([]recipient, error) {
	var n int64
	var packed packer
	err := c.first(context.Background(), "SELECT n, deliveries FROM events WHERE tenant_id = ? AND id = ?", ids(e.TenantID[:], e.ID[:]),
		func(r *rows) error { n, packed = r.int(0), r.blob(1); return nil })
	if err != nil {
		return nil, err
	}
	there, err := recipientsOf(context.Background(), c, n, packed)
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

// deliveriesOf lists an event's deliveries, including those without a row, newest first. It reads the rows of one page only: an
// event may have very many deliveries.
func deliveriesOf(ctx context.Context, c *conn, f *store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error) {
	e := godwit.Event{TenantID: f.TenantID, ID: f.EventID}
	var n int64
	var packed []byte
	there, err := c.one(ctx, "SELECT n, type, created_at, deliveries FROM events WHERE tenant_id = ? AND id = ?", ids(e.TenantID[:], e.ID[:]),
		func(r *rows) { n, e.Type, e.CreatedAt, packed = r.int(0), r.text(1), r.time(2), r.blob(3) })
	if err != nil || !there {
		return nil, err
	}
	all, err := recipientsOf(ctx, c, n, packed)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r recipient) bool {
		return !f.EndpointID.IsZero() && r.endpoint != f.EndpointID || f.Endpoints != nil && !slices.Contains(f.Endpoints, r.endpoint) || p.After != [16]byte{} && bytes.Compare(r.id[:], p.After[:]) >= 0
	})
	slices.SortFunc(all, func(a, b recipient) int { return bytes.Compare(b.id[:], a.id[:]) })
	var ds []godwit.Delivery
	for i := 0; i < len(all) && len(ds) < p.Limit; i++ {
		d := newDelivery(&e, &all[i])
		_, err := c.one(ctx, "SELECT "+deliveryColumns+" FROM deliveries d WHERE d.tenant_id = ? AND d.id = ?", ids(e.TenantID[:], d.ID[:]),
			func(r *rows) { *d = scanDelivery(r, 0) })
		if err != nil {
			return nil, err
		}
		d.EventType = e.Type
		if fits(d, f) {
			ds = append(ds, *d)
		}
	}
	return ds, nil
}
