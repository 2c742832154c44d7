package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// The event's columns are in the order of eventColumns.
const deadLetterColumns = deliveryColumns + `, d.dead_at, d.replayed_at, d.last_detail,
	d.tenant_id, d.event_id, d.type, d.key, d.content_type, d.attributes, d.principal, d.event_created_at,
	d.format, d.source_id, d.occurred_at, d.carried`

const deadLetterWidth = deliveryWidth + 3 + eventWidth

func scanDeadLetter(r *rows) (l godwit.DeadLetter, err error) {
	l.Delivery = scanDelivery(r, 0)
	l.DeadAt, l.ReplayedAt, l.LastDetail = r.time(deliveryWidth), r.time(deliveryWidth+1), r.text(deliveryWidth+2)
	l.Event, err = scanEvent(r, deliveryWidth+3)
	l.Delivery.EventType = l.Event.Type
	return l, err
}

// bury stores the dead letter of a delivery with its event.
func bury(c *conn, d *godwit.Delivery, e *godwit.Event, now int64, detail string) error {
	if e == nil {
		var err error
		if e, err = readEvent(context.Background(), c, d.TenantID, d.EventID); err != nil {
			return err
		}
	}
	attributes, err := document(e.Attributes)
	if err != nil {
		return err
	}
	carried, err := carriedOf(e)
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT OR REPLACE INTO dead_letters (tenant_id, id, event_id, endpoint_id, status, due_at, reason, attempts,
		last_status, created_at, updated_at, run_trigger, run_actor, run_attempts, run_first_at, run_refreshed, dead_at, replayed_at,
		last_detail, type, key, content_type, attributes, principal, event_created_at, format, source_id, occurred_at, body, carried)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.TenantID[:], d.ID[:], d.EventID[:], d.EndpointID[:], string(d.Status), micros(d.DueAt), string(d.Reason), int64(d.Attempts),
		int64(d.LastStatus), micros(d.CreatedAt), micros(d.UpdatedAt), string(d.Run.Trigger), d.Run.Actor, int64(d.Run.Attempts),
		micros(d.Run.FirstAt), flag(d.Run.Refreshed), now, detail,
		e.Type, e.Key, e.ContentType, attributes, e.Principal[:], micros(e.CreatedAt), e.Format, e.SourceID, micros(e.OccurredAt), e.Body, carried)
	return err
}

// deadLetters keeps the deliveries that ended without being accepted.
type deadLetters struct {
	*database
	deliveries *deliveries // requeues them
}

// DeadLetter returns the open dead letter of a delivery with the event's body.
func (s *deadLetters) DeadLetter(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.DeadLetter, error) {
	var l *godwit.DeadLetter
	err := s.read(ctx, "read dead letter", func(c *conn) (err error) {
		l, err = readDeadLetter(ctx, c, tenant, id)
		return err
	})
	return l, err
}

func readDeadLetter(ctx context.Context, c *conn, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.DeadLetter, error) {
	var l godwit.DeadLetter
	err := c.first(ctx, "SELECT "+deadLetterColumns+", d.body FROM dead_letters d WHERE d.tenant_id = ? AND d.id = ? AND d.replayed_at = 0",
		ids(tenant[:], id[:]), func(r *rows) (err error) {
			if l, err = scanDeadLetter(r); err == nil {
				l.Event.Body = r.blob(deadLetterWidth)
			}
			return err
		})
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// ListDeadLetters lists a tenant's dead letters, newest delivery first. Several dead letters of one delivery are on one page,
// which may therefore be longer: the next page continues after the delivery's id.
func (s *deadLetters) ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error) {
	var letters []godwit.DeadLetter
	err := s.read(ctx, "list dead letters", func(c *conn) (err error) {
		letters, err = listDeadLetters(ctx, c, &f, p)
		return err
	})
	return letters, err
}

func listDeadLetters(ctx context.Context, c *conn, f *store.DeadLetterFilter, p store.Page) (letters []godwit.DeadLetter, err error) {
	columns := deadLetterColumns
	if f.WithBody {
		columns += ", d.body"
	}
	q := selectedLetters(columns, f, p)
	if f.Replayed && p.Limit > 0 {
		q.limit = math.MaxInt // until the page is full
	}
	r, err := c.query(ctx, q.text(), q.arguments()...)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for r.next() {
		l, err := scanDeadLetter(r)
		if err != nil {
			return nil, err
		}
		if n := len(letters); n >= p.Limit && letters[n-1].Delivery.ID != l.Delivery.ID {
			return letters, nil
		}
		if f.WithBody {
			l.Event.Body = r.blob(deadLetterWidth)
		}
		letters = append(letters, l)
	}
	return letters, r.err
}

// CountDeadLetters counts, by endpoint, the dead letters that PurgeDead would remove.
func (s *deadLetters) CountDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) (counts []store.DeadLetterCount, err error) {
	q := selectedLetters("d.endpoint_id AS endpoint_id", &f, store.Page{Limit: limit})
	err = s.read(ctx, "count dead letters", func(c *conn) error {
		return c.each(ctx, "SELECT endpoint_id, count(*) FROM ("+q.text()+") GROUP BY endpoint_id ORDER BY count(*) DESC, endpoint_id", q.arguments(), func(r *rows) error {
			counts = append(counts, store.DeadLetterCount{EndpointID: r.id(0), Count: int(r.int(1))})
			return nil
		})
	})
	return counts, err
}

// GroupDeadLetters counts dead letters by endpoint and reason.
func (s *deadLetters) GroupDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) (groups []store.DeadLetterGroup, err error) {
	q := selectedLetters("d.endpoint_id AS endpoint_id, d.reason AS reason, d.dead_at AS dead_at", &f, store.Page{Limit: limit})
	err = s.read(ctx, "group dead letters", func(c *conn) error {
		return c.each(ctx, "SELECT endpoint_id, reason, count(*), max(dead_at) FROM ("+q.text()+") GROUP BY endpoint_id, reason ORDER BY count(*) DESC, endpoint_id, reason", q.arguments(), func(r *rows) error {
			groups = append(groups, store.DeadLetterGroup{EndpointID: r.id(0), Reason: godwit.Reason(r.text(1)), Count: int(r.int(2)), LastAt: r.time(3)})
			return nil
		})
	})
	return groups, err
}

// selectedLetters returns the query for the dead letters that a filter selects.
func selectedLetters(columns string, f *store.DeadLetterFilter, p store.Page) *listing {
	index := "dead_letters_open"
	if !f.EndpointID.IsZero() {
		index = "dead_letters_endpoint"
	} else if f.Replayed {
		index = "dead_letters_id"
	}
	q := newest("SELECT "+columns+" FROM dead_letters d INDEXED BY "+index, "d.id", p)
	q.then = ", d.n DESC"
	q.where("d.tenant_id = ?", f.TenantID[:])
	if !f.Replayed {
		q.where("d.replayed_at = 0")
	}
	if !f.EndpointID.IsZero() {
		q.where("d.endpoint_id = ?", f.EndpointID[:])
	}
	if f.EventType != "" {
		q.where("d.type = ?", f.EventType)
	}
	if f.Status != "" {
		q.where("d.status = ?", string(f.Status))
	}
	if f.Reason != "" {
		q.where("d.reason = ?", string(f.Reason))
	}
	if !f.Since.IsZero() {
		q.where("d.dead_at >= ?", micros(f.Since))
	}
	if !f.Until.IsZero() {
		// A delivery is made before it dies, so newer ids need not be looked at.
		var first func(time.Time) godwit.DeliveryID = godwit.FirstIDAt
		id := first(f.Until.Add(slack))
		q.where("d.dead_at < ? AND d.id < ?", micros(f.Until), id[:])
	}
	return q
}

// requeue makes dead deliveries due again.
func (s *deadLetters) requeue(ctx context.Context, c *conn, e *store.RequeueDead) (*store.RequeuedDead, error) {
	f := e.Filter
	f.WithBody, f.Replayed = false, false
	letters, err := listDeadLetters(ctx, c, &f, e.Page)
	if err != nil {
		return nil, err
	}
	q := store.Requeue{TenantID: f.TenantID, Trigger: godwit.TriggerReplay, Actor: e.Actor, Now: e.Now}
	out := &store.RequeuedDead{Seen: len(letters), More: len(letters) > 0 && len(letters) == e.Page.Limit}
	for i := range letters {
		out.Last = letters[i].Delivery.ID
		q.Deliveries = append(q.Deliveries, out.Last)
	}
	out.Deliveries, err = s.deliveries.requeue(ctx, c, &q)
	return out, err
}

// purgeDead removes dead letters permanently.
func purgeDead(c *conn, e *store.PurgeDead) (*store.PurgedDead, error) {
	q := selectedLetters("d.n", &e.Filter, store.Page{Limit: e.Limit})
	n, err := c.exec("DELETE FROM dead_letters WHERE n IN ("+q.text()+")", q.arguments()...)
	return &store.PurgedDead{Purged: int(n), More: n > 0 && n == int64(e.Limit)}, err
}
