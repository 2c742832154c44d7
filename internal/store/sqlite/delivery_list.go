package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// ListDeliveries lists a tenant's deliveries, newest first. The query names its index, because SQLite would guess without
// statistics.
func (s *deliveries) ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error) {
	var ds []godwit.Delivery
	err := s.read(ctx, "list deliveries", func(c *conn) (err error) {
		if !f.EventID.IsZero() {
			ds, err = deliveriesOf(ctx, c, &f, p)
			return err
		}
		if ds, err = listRows(ctx, c, &f, p); err != nil || f.Status != "" && f.Status != godwit.DeliveryPending || f.Tried != nil && *f.Tried {
			return err // no delivery without a row matches
		}
		handed, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return fits(d, &f) })
		ds = paged(append(ds, handed...), &f, p)
		return err
	})
	return ds, err
}

// listRows lists deliveries that have a row.
func listRows(ctx context.Context, c *conn, f *store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error) {
	if f.Status != godwit.DeliveryPending {
		return listed(ctx, c, filtered(f, p, deliveryIndex(f)))
	}
	if f.EndpointID.IsZero() {
		return listed(ctx, c, filtered(f, p, waits))
	}
	// If few deliveries wait for the endpoint, the index of due deliveries lists them all. If many do, some are among the newest that wait.
	n := 0
	_, err := c.one(ctx, "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_due WHERE endpoint_id = ? AND status = 'pending' AND claim_epoch = 0 LIMIT ?)",
		[]driver.Value{f.EndpointID[:], int64(fewPending)}, func(r *rows) { n = int(r.int(0)) })
	if err != nil {
		return nil, err
	}
	if n < fewPending {
		return listed(ctx, c, amongPending(f, p))
	}
	return listed(ctx, c, filtered(f, p, waits))
}

// fits applies the filters that the query does not contain.
func fits(d *godwit.Delivery, f *store.DeliveryFilter) bool {
	return d.TenantID == f.TenantID && (f.EndpointID.IsZero() || d.EndpointID == f.EndpointID) &&
		(f.Status == "" || d.Status == f.Status) && (f.EventType == "" || d.EventType == f.EventType) &&
		(f.Tried == nil || *f.Tried == (d.Attempts > 0)) &&
		within(d.CreatedAt, f.Since, time.Time{}) && (f.Until.IsZero() || micros(d.CreatedAt) < micros(f.Until))
}

// paged makes a page of unordered deliveries.
func paged(ds []godwit.Delivery, f *store.DeliveryFilter, p store.Page) []godwit.Delivery {
	ds = slices.DeleteFunc(ds, func(d godwit.Delivery) bool {
		return !fits(&d, f) || p.After != [16]byte{} && bytes.Compare(d.ID[:], p.After[:]) >= 0
	})
	slices.SortFunc(ds, func(a, b godwit.Delivery) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return ds[:min(len(ds), max(p.Limit, 0))]
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
	case f.Status.Dead() || f.Status == godwit.DeliveryCancelled:
		return ended
	case !f.EndpointID.IsZero():
		return "INDEXED BY deliveries_endpoint"
	}
	return "INDEXED BY deliveries_id"
}

const (
	ended     = "INDEXED BY deliveries_ended"
	waits     = "INDEXED BY deliveries_waiting"
	withEvent = " LEFT JOIN events e INDEXED BY events_id ON e.tenant_id = d.tenant_id AND e.id = d.event_id"
)

// CountDeliveries counts deliveries up to a bound.
func (s *deliveries) CountDeliveries(ctx context.Context, f store.DeliveryFilter, upTo int) (n int, err error) {
	f.EventID, f.EventType = godwit.EventID{}, ""
	err = s.read(ctx, "count deliveries", func(c *conn) error {
		index := deliveryIndex(&f)
		if f.Status == godwit.DeliveryPending {
			index = waits
		}
		q := selected("SELECT 1 FROM deliveries d "+index, &f, store.Page{Limit: upTo}, index)
		if _, err := c.one(ctx, "SELECT count(*) FROM ("+q.text()+")", q.arguments(), func(r *rows) { n = int(r.int(0)) }); err != nil || n >= upTo ||
			f.Status != "" && f.Status != godwit.DeliveryPending || f.Tried != nil && *f.Tried {
			return err
		}
		handed, err := handedDeliveries(ctx, c, func(d *godwit.Delivery) bool { return fits(d, &f) })
		n += len(handed)
		return err
	})
	return min(n, upTo), err
}

// filtered returns the query for the complete list, using the index.
func filtered(f *store.DeliveryFilter, p store.Page, index string) *listing {
	return selected("SELECT "+deliveryColumns+", e.type FROM deliveries d "+index+withEvent, f, p, index)
}

// selected adds the conditions of a filter to a query that uses the index.
func selected(from string, f *store.DeliveryFilter, p store.Page, index string) *listing {
	q := newest(from, "d.id", p)
	q.where("d.tenant_id = ?", f.TenantID[:])
	if !f.EndpointID.IsZero() {
		q.where("d.endpoint_id = ?", f.EndpointID[:])
	}
	if f.Status != "" {
		q.where("d.status = ?", string(f.Status))
	}
	switch index { // redundant, but SQLite uses a partial index only if the query repeats its condition
	case ended:
		q.where("d.status <> 'pending' AND d.status <> 'accepted'")
	case waits:
		q.where("d.status = 'pending'")
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

// fewPending is how many waiting deliveries of an endpoint are sorted for a page.
const fewPending = 5000

func amongPending(f *store.DeliveryFilter, p store.Page) *listing {
	q := filtered(f, p, "NOT INDEXED") // the order comes from n
	due := "SELECT n FROM deliveries INDEXED BY deliveries_due WHERE status = 'pending' AND claim_epoch = 0"
	if !f.EndpointID.IsZero() {
		due += " AND endpoint_id = ?"
		q.args = append(q.args, f.EndpointID[:])
	}
	q.where("d.n IN (" + due + " UNION ALL SELECT n FROM deliveries INDEXED BY deliveries_claimed WHERE status = 'pending' AND claim_epoch > 0)")
	return q
}
