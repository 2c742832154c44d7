package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var (
	deathColumns     = []string{"dead_at timestamptz", "last_detail text"}
	deadEventColumns = []string{
		"event_principal uuid", "event_created_at timestamptz", "event_type text", "event_key text",
		"event_content_type text", "event_attributes json", "event_body bytea", "event_format text", "event_source_id text",
		"event_occurred_at timestamptz", "event_carried json",
	}
	deadColumns = join(deliveryColumns, deathColumns, deadEventColumns)
)

// storedEvent lists the columns that a dead letter copies from the stored event, in the order of deadEventColumns.
const storedEvent = `e.principal, e.created_at, e.type, e.key, e.content_type, e.attributes, e.body, e.format, e.source_id,
	e.occurred_at, e.carried`

// openLetter is the unique key of open dead letters.
const openLetter = `(tenant_id, id) WHERE replayed_at IS NULL `

var (
	insertDead = prepared("dead", insert("dead_letters", deadColumns...)+
		` ON CONFLICT `+openLetter+replace(deadColumns))
	insertDeadStored = prepared("dead_stored", `INSERT INTO dead_letters (`+names(deadColumns)+`)
		SELECT n.*, `+storedEvent+` FROM `+rows(1, join(deliveryColumns, deathColumns)...)+` AS n
		JOIN events AS e ON e.tenant_id = n.tenant_id AND e.id = n.event_id
		ON CONFLICT `+openLetter+replace(deadColumns))
)

// addDead stores dead letters with the event of the result, or else with the stored one.
func addDead(p *pipeline, dead []*store.Result, now time.Time) {
	var brought, stored []*store.Result
	for _, r := range dead {
		if r.Event != nil {
			brought = append(brought, r)
		} else {
			stored = append(stored, r)
		}
	}
	if len(stored) > 0 {
		a := p.begin()
		writeDeaths(a, stored, now)
		p.add(insertDeadStored, nil)
	}
	if len(brought) == 0 {
		return
	}
	a := p.begin()
	writeDeaths(a, brought, now)
	column(a, typeID, brought, func(r *store.Result) { a.optionalID(r.Event.Principal) })
	column(a, typeTime, brought, func(r *store.Result) { a.time(r.Event.CreatedAt) })
	column(a, typeText, brought, func(r *store.Result) { a.text(r.Event.Type) })
	column(a, typeText, brought, func(r *store.Result) { a.text(r.Event.Key) })
	column(a, typeText, brought, func(r *store.Result) { a.text(r.Event.ContentType) })
	column(a, typeJSON, brought, func(r *store.Result) { a.optionalBytes(encodeMap(r.Event.Attributes)) })
	column(a, typeBytes, brought, func(r *store.Result) { a.bytes(r.Event.Body) })
	column(a, typeText, brought, func(r *store.Result) { a.optionalText(r.Event.Format) })
	column(a, typeText, brought, func(r *store.Result) { a.optionalText(r.Event.SourceID) })
	column(a, typeTime, brought, func(r *store.Result) { a.time(r.Event.OccurredAt) })
	column(a, typeJSON, brought, func(r *store.Result) { a.optionalBytes(encodeCarried(r.Event)) })
	p.add(insertDead, nil)
}

func writeDeaths(a *parameters, list []*store.Result, now time.Time) {
	writeDeliveries(a, list)
	column(a, typeTime, list, func(*store.Result) { a.time(now) })
	column(a, typeText, list, func(r *store.Result) { a.text(r.LastDetail) })
}

const (
	selectDead = `SELECT ` + deliveryFields + `, event_type, dead_at, replayed_at, last_detail, event_principal, event_created_at, event_type, event_key,
		event_content_type, event_attributes, coalesce(event_format, ''), coalesce(event_source_id, ''), event_occurred_at, event_carried`
	deadBody = `, event_body FROM dead_letters`
)

// deadLetters keeps the deliveries that ended without being accepted.
type deadLetters struct{ *database }

// DeadLetter returns a delivery's open dead letter with its complete event.
func (s *deadLetters) DeadLetter(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.DeadLetter, error) {
	r, err := s.pool.Query(ctx, selectDead+deadBody+` WHERE tenant_id = $1 AND id = $2 AND replayed_at IS NULL`, [16]byte(tenant), [16]byte(id))
	if err != nil {
		return nil, failed("read dead letter", err)
	}
	d, err := pgx.CollectExactlyOneRow(r, scanDead)
	return d, failed("read dead letter", err)
}

// ListDeadLetters pages by delivery id, newest first. Several dead letters of one delivery are on one page, so that the next
// page can continue after the id.
func (s *deadLetters) ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error) {
	w := selectLetters(f, p)
	body := `, NULL::bytea FROM dead_letters`
	if f.WithBody {
		body = deadBody
	}
	r, err := s.pool.Query(ctx, `SELECT * FROM (`+selectDead+body+w.sql()+fmt.Sprintf(` ORDER BY id DESC FETCH FIRST %d ROWS WITH TIES`, max(p.Limit, 0))+`) AS page
		ORDER BY id DESC, dead_at DESC`, w.args...)
	if err != nil {
		return nil, failed("list dead letters", err)
	}
	list, err := pgx.CollectRows(r, scanDead)
	return values(list), failed("list dead letters", err)
}

// CountDeadLetters counts, by endpoint, the dead letters that PurgeDead would remove.
func (s *deadLetters) CountDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) ([]store.DeadLetterCount, error) {
	w := selectLetters(f, store.Page{})
	r, err := s.pool.Query(ctx, `SELECT endpoint_id, count(*) FROM (SELECT endpoint_id FROM dead_letters`+w.sql()+
		fmt.Sprintf(` ORDER BY id DESC, dead_at DESC LIMIT %d) AS newest GROUP BY endpoint_id ORDER BY count(*) DESC, endpoint_id`, max(limit, 0)), w.args...)
	if err != nil {
		return nil, failed("count dead letters", err)
	}
	counts, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (n store.DeadLetterCount, err error) {
		return n, r.Scan(scanID(&n.EndpointID), &n.Count)
	})
	return counts, failed("count dead letters", err)
}

// GroupDeadLetters counts dead letters by endpoint and reason.
func (s *deadLetters) GroupDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) ([]store.DeadLetterGroup, error) {
	w := selectLetters(f, store.Page{})
	r, err := s.pool.Query(ctx, `SELECT endpoint_id, reason, count(*), max(dead_at) FROM (SELECT endpoint_id, reason, dead_at FROM dead_letters`+w.sql()+
		fmt.Sprintf(` ORDER BY id DESC, dead_at DESC LIMIT %d) AS newest GROUP BY endpoint_id, reason ORDER BY count(*) DESC, endpoint_id, reason`, max(limit, 0)), w.args...)
	if err != nil {
		return nil, failed("group dead letters", err)
	}
	groups, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (g store.DeadLetterGroup, err error) {
		return g, r.Scan(scanID(&g.EndpointID), (*string)(&g.Reason), &g.Count, scanTime(&g.LastAt))
	})
	return groups, failed("group dead letters", err)
}

// selectLetters returns the condition of a filter.
func selectLetters(f store.DeadLetterFilter, p store.Page) where {
	var w where
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	w.page(p)
	if !f.EndpointID.IsZero() {
		w.add("endpoint_id = ?", [16]byte(f.EndpointID))
	}
	if f.EventType != "" {
		w.add("event_type = ?", clean(f.EventType))
	}
	if f.Status != "" {
		w.add("status = ?", string(f.Status))
	}
	if f.Reason != "" {
		w.add("reason = ?", clean(string(f.Reason)))
	}
	w.between("dead_at", f.Since, f.Until)
	if !f.Replayed {
		w.add("replayed_at IS NULL")
	}
	return w
}

func scanDead(r pgx.CollectableRow) (*godwit.DeadLetter, error) {
	d := &godwit.DeadLetter{Event: &godwit.Event{}}
	e := d.Event
	var attributes, carried []byte
	fields := append(deliveryTargets(&d.Delivery), scanTime(&d.DeadAt), scanTime(&d.ReplayedAt), &d.LastDetail, scanID(&e.Principal),
		scanTime(&e.CreatedAt), &e.Type, &e.Key, &e.ContentType, &attributes, &e.Format, &e.SourceID, scanTime(&e.OccurredAt), &carried, &e.Body)
	if err := r.Scan(fields...); err != nil {
		return nil, err
	}
	e.ID, e.TenantID = d.Delivery.EventID, d.Delivery.TenantID
	return d, errors.Join(decodeMap(attributes, &e.Attributes), decodeCarried(carried, e))
}

// requeueDead requeues the open dead letters that a filter selects.
func requeueDead(ctx context.Context, q session, e store.RequeueDead) (*store.RequeuedDead, error) {
	e.Filter.Replayed = false
	if err := lockRequeue(ctx, q, e.Filter.TenantID); err != nil {
		return nil, err
	}
	w := selectLetters(e.Filter, e.Page)
	r, err := q.Query(ctx, `SELECT id FROM dead_letters`+w.sql()+w.newestFirst(e.Page.Limit), w.args...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (id godwit.DeliveryID, err error) { return id, r.Scan(scanID(&id)) })
	if err != nil {
		return nil, err
	}
	done := &store.RequeuedDead{Seen: len(ids), More: len(ids) > 0 && len(ids) == e.Page.Limit}
	if len(ids) == 0 {
		return done, nil
	}
	done.Last = ids[len(ids)-1]
	made, err := requeueDeliveries(ctx, q, store.Requeue{
		TenantID: e.Filter.TenantID, Deliveries: ids, Trigger: godwit.TriggerReplay, Actor: e.Actor, Now: e.Now,
	})
	slices.SortFunc(made, func(a, b *godwit.Delivery) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	done.Deliveries = values(made)
	return done, err
}

// purgeDead removes the dead letters that a filter selects. A lock makes it take turns with transactions that requeue them.
func purgeDead(ctx context.Context, q session, e store.PurgeDead) (*store.PurgedDead, error) {
	if err := lockRequeue(ctx, q, e.Filter.TenantID); err != nil {
		return nil, err
	}
	w := selectLetters(e.Filter, store.Page{})
	tag, err := q.Exec(ctx, `DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letters`+w.sql()+
		fmt.Sprintf(` ORDER BY id DESC, dead_at DESC LIMIT %d FOR UPDATE))`, max(e.Limit, 0)), w.args...)
	purged := int(tag.RowsAffected())
	return &store.PurgedDead{Purged: purged, More: purged > 0 && purged == e.Limit}, err
}
