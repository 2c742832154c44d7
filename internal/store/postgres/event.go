package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const eventFields = `SELECT tenant_id, id, principal, created_at, type, key, content_type, attributes`

// Event returns an event with its body.
func (s *Store) Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error) {
	r, err := s.pool.Query(ctx, eventFields+`, body FROM events WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
	if err != nil {
		return nil, failed("read event", err)
	}
	e, err := pgx.CollectExactlyOneRow(r, scanEvent)
	return e, failed("read event", err)
}

// ListEvents leaves bodies out.
func (s *Store) ListEvents(ctx context.Context, f store.EventFilter, p store.Page) ([]godwit.Event, error) {
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

// mostSlots is two years of hours. Beyond that ids do not mean time, and the index over keys is of no use.
const mostSlots = 2 * 366 * 24

// keySlots lists where the key may be, from the tenant's oldest event to its newest.
func (s *Store) keySlots(ctx context.Context, f store.EventFilter) ([]int64, error) {
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
	var attributes []byte
	err := r.Scan(scanID(&e.TenantID), scanID(&e.ID), scanID(&e.Principal), scanTime(&e.CreatedAt), &e.Type, &e.Key,
		&e.ContentType, &attributes, &e.Body)
	if err != nil {
		return nil, err
	}
	return e, decodeMap(attributes, &e.Attributes)
}
