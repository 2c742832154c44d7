package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const eventFields = `SELECT tenant_id, id, principal, created_at, type, key, content_type, attributes, coalesce(format, ''),
	coalesce(source_id, ''), occurred_at, carried`

// events reads stored events.
type events struct{ *database }

// Event returns an event with its body.
func (s *events) Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error) {
	r, err := s.pool.Query(ctx, eventFields+`, body FROM events WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
	if err != nil {
		return nil, failed("read event", err)
	}
	e, err := pgx.CollectExactlyOneRow(r, scanEvent)
	return e, failed("read event", err)
}

// ListEvents returns events without their bodies.
func (s *events) ListEvents(ctx context.Context, f store.EventFilter, p store.Page) ([]godwit.Event, error) {
	var w where
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	w.page(p)
	switch prefix, wild := strings.CutSuffix(clean(f.Type), "*"); {
	case wild && prefix != "":
		w.add("starts_with(type, ?) AND type <> ?", prefix, prefix)
	case f.Type != "" && !wild:
		w.add("type = ?", prefix)
	}
	if f.Key != "" {
		slots, err := s.keySlots(ctx, f)
		if err != nil || len(slots) == 0 {
			return nil, failed("list events", err)
		}
		w.add("key = ?", clean(f.Key))
		if len(slots) < mostSlots {
			w.add("key_slot = ANY (?)", slots)
		}
	}
	w.between("created_at", f.Since, f.Until)
	if !f.Since.IsZero() {
		w.add("id >= ?", firstID(f.Since.Add(-skew)))
	}
	if !f.Until.IsZero() {
		w.add("id < ?", firstID(f.Until.Add(skew)))
	}
	r, err := s.pool.Query(ctx, eventFields+`, NULL::bytea FROM events`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list events", err)
	}
	list, err := pgx.CollectRows(r, scanEvent)
	return values(list), failed("list events", err)
}

// ScanEvents passes a tenant's events to fn, newest first. It does not copy them out of the connection's buffer.
func (s *events) ScanEvents(ctx context.Context, f store.EventScan, fn func(*store.ScannedEvent) bool) error {
	var w where
	body, carried := "NULL::bytea", "NULL::text"
	if f.Bodies {
		body = "body"
		if prefix, wild := strings.CutSuffix(clean(f.Type), "*"); f.Type != "" {
			w.args = append(w.args, prefix)
			if body = "CASE WHEN type = $1 THEN body END"; wild {
				body = "CASE WHEN starts_with(type, $1) THEN body END"
			}
		}
	}
	if f.Carried {
		carried = "carried::text"
	}
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	w.page(store.Page{After: f.After})
	w.between("created_at", f.Since, f.Until)
	if !f.Since.IsZero() {
		w.add("id >= ?", firstID(f.Since.Add(-skew)))
	}
	if !f.Until.IsZero() {
		w.add("id < ?", firstID(f.Until.Add(skew)))
	}
	r, err := s.pool.Query(ctx, "SELECT id, type, key, created_at, attributes::text, "+carried+", "+body+" FROM events"+w.sql()+w.newestFirst(f.Limit), w.args...)
	if err != nil {
		return failed("scan events", err)
	}
	defer r.Close()
	for more := true; more && r.Next(); {
		var e store.ScannedEvent
		err := r.Scan(scanID(&e.ID), &e.Type, (*pgtype.DriverBytes)(&e.Key), scanTime(&e.CreatedAt), (*pgtype.DriverBytes)(&e.Attributes), (*pgtype.DriverBytes)(&e.Carried),
			(*pgtype.DriverBytes)(&e.Body))
		if err != nil {
			return failed("scan events", err)
		}
		more = fn(&e)
	}
	r.Close()
	return failed("scan events", r.Err())
}

// EventsAfter lists events with their bodies by id, oldest first. It adds up the sizes of bodies before it reads them.
func (s *events) EventsAfter(ctx context.Context, f store.EventRange) ([]godwit.Event, error) {
	var w where
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	if !f.After.IsZero() {
		w.add("id > ?", [16]byte(f.After))
	}
	if !f.Before.IsZero() {
		w.add("id < ?", [16]byte(f.Before))
	}
	w.patterns(f.Patterns)
	if !f.Since.IsZero() {
		w.add("coalesce(occurred_at, created_at) >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		w.add("coalesce(occurred_at, created_at) <= ?", f.Until)
	}
	bound := int64(f.MaxBytes)
	if bound <= 0 {
		bound = math.MaxInt64
	}
	sql := fmt.Sprintf(`SELECT tenant_id, id, principal, created_at, type, key, content_type, attributes, format, source_id, occurred_at, carried, body
		FROM events%s ORDER BY id LIMIT %d`, w.sql(), max(f.Limit, 0))
	sql = eventFields + `, body FROM (SELECT *, row_number() OVER first AS place, sum(octet_length(body)) OVER first AS bytes
		FROM (` + sql + `) AS found WINDOW first AS (ORDER BY id)) AS sized WHERE place = 1 OR bytes <= ` + strconv.FormatInt(bound, 10) + ` ORDER BY id`
	r, err := s.pool.Query(ctx, sql, w.args...)
	if err != nil {
		return nil, failed("list events", err)
	}
	list, err := pgx.CollectRows(r, scanEvent)
	return values(list), failed("list events", err)
}

// patterns selects types that match any of the patterns, as godwit.MatchPattern does.
func (w *where) patterns(list []string) {
	if len(list) == 0 || slices.Contains(list, "*") {
		return
	}
	var exact, prefixes []string
	for _, p := range list {
		exact = append(exact, clean(p))
		if prefix, wild := strings.CutSuffix(clean(p), "*"); wild {
			prefixes = append(prefixes, prefix)
		}
	}
	w.add("(type = ANY (?) OR EXISTS (SELECT FROM unnest(?::text[]) AS prefix WHERE starts_with(type, prefix) AND type <> prefix))",
		exact, prefixes)
}

// mostSlots is two years of hours. If the ids span more, they do not follow time, and the index over keys cannot be used.
const mostSlots = 2 * 366 * 24

// keySlots lists the possible positions of a key, from the tenant's oldest event to its newest.
func (s *events) keySlots(ctx context.Context, f store.EventFilter) ([]int64, error) {
	var oldest, newest godwit.EventID
	err := s.pool.QueryRow(ctx, `SELECT (SELECT id FROM events WHERE tenant_id = $1 ORDER BY id LIMIT 1),
		(SELECT id FROM events WHERE tenant_id = $1 ORDER BY id DESC LIMIT 1)`, [16]byte(f.TenantID)).Scan(scanID(&oldest), scanID(&newest))
	if err != nil || newest.IsZero() {
		return nil, err
	}
	hash := keyHash(f.Key)
	first, last := hourOf(oldest), hourOf(newest)
	if !f.Since.IsZero() {
		first = max(first, f.Since.Add(-skew).Unix()/3600)
	}
	if !f.Until.IsZero() {
		last = min(last, f.Until.Add(skew).Unix()/3600)
	}
	var slots []int64
	for hour := first; hour <= last && len(slots) < mostSlots; hour++ {
		slots = append(slots, hour<<32|hash)
	}
	return slots, nil
}

func scanEvent(r pgx.CollectableRow) (*godwit.Event, error) {
	e := &godwit.Event{}
	var attributes, carried []byte
	err := r.Scan(scanID(&e.TenantID), scanID(&e.ID), scanID(&e.Principal), scanTime(&e.CreatedAt), &e.Type, &e.Key,
		&e.ContentType, &attributes, &e.Format, &e.SourceID, scanTime(&e.OccurredAt), &carried, &e.Body)
	if err != nil {
		return nil, err
	}
	return e, errors.Join(decodeMap(attributes, &e.Attributes), decodeCarried(carried, e))
}
