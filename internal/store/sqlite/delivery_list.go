package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// ListDeliveries lists a tenant's deliveries, newest first. The index is named, because without statistics SQLite would
// guess.
func (s *Store) ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error) {
	var ds []godwit.Delivery
	err := s.read(ctx, "list deliveries", func(c *conn) (err error) {
		if f.Status != godwit.DeliveryPending || !f.EventID.IsZero() {
			ds, err = listed(ctx, c, filtered(&f, p, deliveryIndex(&f)))
			return err
		}
		// Either many are pending, and some of them are new, or few: then the indexes of what is pending name them all.
		if ds, err = listed(ctx, c, amongNewest(&f, p)); err != nil || len(ds) >= p.Limit {
			return err
		}
		ds, err = listed(ctx, c, amongPending(&f, p))
		return err
	})
	return ds, err
}

func listed(ctx context.Context, c *conn, q *listing) (ds []godwit.Delivery, err error) {
	err = q.each(ctx, c, func(r *rows) error {
		d := scanDelivery(r, 0)
		d.EventType = r.text(deliveryWidth)
		ds = append(ds, d)
		return nil
	})
	return ds, err
}

func deliveryIndex(f *store.DeliveryFilter) string {
	switch {
	case !f.EventID.IsZero():
		return "INDEXED BY deliveries_event"
	case f.Status.Dead() || f.Status == godwit.DeliveryCancelled:
		return ended
	case !f.EndpointID.IsZero():
		return "INDEXED BY deliveries_endpoint"
	}
	return "INDEXED BY deliveries_id"
}

const (
	ended     = "INDEXED BY deliveries_ended"
	withEvent = " LEFT JOIN events e INDEXED BY events_id ON e.tenant_id = d.tenant_id AND e.id = d.event_id"
)

// filtered is the list in full, by the index.
func filtered(f *store.DeliveryFilter, p store.Page, index string) *listing {
	q := newest("SELECT "+deliveryColumns+", e.type FROM deliveries d "+index+withEvent, "d.id", p)
	q.where("d.tenant_id = ?", f.TenantID[:])
	if !f.EventID.IsZero() {
		q.where("d.event_id = ?", f.EventID[:])
	}
	if !f.EndpointID.IsZero() {
		q.where("d.endpoint_id = ?", f.EndpointID[:])
	}
	if f.Status != "" {
		q.where("d.status = ?", string(f.Status))
	}
	if index == ended {
		// Says nothing new, but a partial index is used only in its own words.
		q.where("d.status <> 'pending' AND d.status <> 'accepted'")
	}
	if f.Tried != nil {
		q.where("(d.attempts > 0) = ?", flag(*f.Tried))
	}
	if f.EventType != "" {
		q.where("e.type = ?", f.EventType)
	}
	q.created("d", f.Since, f.Until)
	return q
}

// newestLooked is how many of the newest deliveries are looked at for pending ones.
const newestLooked = 5000

func amongNewest(f *store.DeliveryFilter, p store.Page) *listing {
	inner := *f
	inner.Status = ""
	all := filtered(&inner, store.Page{After: p.After, Limit: newestLooked}, deliveryIndex(&inner))
	q := newest("SELECT "+deliveryColumns+", d.type FROM ("+all.text()+") d", "d.id", store.Page{Limit: p.Limit})
	q.where("d.status = 'pending'")
	q.args = all.arguments()
	return q
}

func amongPending(f *store.DeliveryFilter, p store.Page) *listing {
	q := filtered(f, p, "NOT INDEXED") // but by n
	due := "SELECT n FROM deliveries INDEXED BY deliveries_due WHERE status = 'pending' AND claim_epoch = 0"
	if !f.EndpointID.IsZero() {
		due += " AND endpoint_id = ?"
		q.args = append(q.args, f.EndpointID[:])
	}
	q.where("d.n IN (" + due + " UNION ALL SELECT n FROM deliveries INDEXED BY deliveries_claimed WHERE status = 'pending' AND claim_epoch > 0)")
	return q
}
