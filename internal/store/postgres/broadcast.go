package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// broadcasts keeps events that were posted for many tenants.
type broadcasts struct{ *database }

const broadcastFields = `SELECT b.id, b.environment_id, b.principal, b.type, b.content_type, b.for_all, b.tenants, b.accepted, b.skipped,
	b.deliveries, b.created_at, b.completed_at`

// broadcastInto returns the destinations of broadcastFields.
func broadcastInto(b *godwit.Broadcast) []any {
	return []any{
		scanID(&b.ID), scanID(&b.EnvironmentID), scanID(&b.Principal), &b.Type, &b.ContentType, &b.All, &b.Tenants, &b.Accepted, &b.Skipped,
		&b.Deliveries, scanTime(&b.CreatedAt), scanTime(&b.CompletedAt),
	}
}

func scanBroadcast(r pgx.CollectableRow) (godwit.Broadcast, error) {
	var b godwit.Broadcast
	return b, r.Scan(broadcastInto(&b)...)
}

// CreateBroadcast stores a broadcast, unless the record of its request exists. Its answer promises what that of a commit does.
func (s *broadcasts) CreateBroadcast(ctx context.Context, n *store.NewBroadcast) (*godwit.IdempotencyRecord, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, failed("create broadcast", err)
	}
	defer conn.Release()
	var existing *godwit.IdempotencyRecord
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
		if existing, err = recordBroadcast(ctx, tx, n.Record); err != nil || existing != nil {
			return err
		}
		if n.Open() {
			var open int
			// The lock lets requests for the environment count one after the other.
			if _, err := tx.Exec(ctx, `SELECT FROM environments WHERE id = $1 FOR NO KEY UPDATE`, [16]byte(n.EnvironmentID)); err != nil {
				return err
			}
			err := tx.QueryRow(ctx, `SELECT count(*) FROM broadcasts WHERE environment_id = $1 AND completed_at IS NULL`, [16]byte(n.EnvironmentID)).Scan(&open)
			if err != nil {
				return err
			}
			if open >= n.MaxOpen {
				return store.ErrLimit
			}
		}
		return insertBroadcast(ctx, tx, n)
	})
	if err == nil {
		err = s.awaitReplicas(ctx, conn.Conn())
	}
	if errors.Is(err, store.ErrLimit) {
		return nil, err
	}
	if err != nil {
		return nil, failed("create broadcast", err)
	}
	return existing, nil
}

// recordBroadcast stores the record of a request, or returns the existing one.
func recordBroadcast(ctx context.Context, tx pgx.Tx, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error) {
	if r == nil {
		return nil, nil
	}
	tag, err := tx.Exec(ctx, `INSERT INTO idempotency_records AS r (id, tenant_id, fingerprint, response_status, response_type, response_location,
			response_body, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (id) DO UPDATE SET tenant_id = excluded.tenant_id, event_id = NULL, fingerprint = excluded.fingerprint,
			response_status = excluded.response_status, response_type = excluded.response_type, response_location = excluded.response_location,
			response_body = excluded.response_body, created_at = excluded.created_at, expires_at = excluded.expires_at
		WHERE r.expires_at <= excluded.created_at`,
		r.ID[:], [16]byte(r.TenantID), r.Fingerprint[:], r.Response.Status, r.Response.ContentType, r.Response.Location, r.Response.Body,
		r.CreatedAt, r.ExpiresAt)
	if err != nil || tag.RowsAffected() == 1 {
		return nil, err
	}
	return unexpiredRecord(ctx, tx, r.ID, r.CreatedAt)
}

func insertBroadcast(ctx context.Context, tx pgx.Tx, n *store.NewBroadcast) error {
	work, body := store.JoinIDs(n.Work), n.Event.Body
	if !n.Open() {
		work, body = nil, nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO broadcasts (id, environment_id, principal, type, content_type, for_all, tenants, done, accepted, skipped,
			deliveries, created_at, completed_at, attributes, carried, body, work)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, 0, $9, $10, $11, $12, coalesce($13::bytea, ''), coalesce($14::bytea, ''))`,
		[16]byte(n.ID), [16]byte(n.EnvironmentID), [16]byte(n.Principal), clean(n.Type), clean(n.ContentType), n.All, n.Tenants, n.Skipped,
		n.CreatedAt, optionalTime(n.CompletedAt), encodeMap(n.Event.Attributes), encodeCarried(n.Event), body, work)
	if err != nil || len(n.Skips) == 0 {
		return err
	}
	tenants, reasons, details := make([][16]byte, len(n.Skips)), make([]string, len(n.Skips)), make([]string, len(n.Skips))
	for i := range n.Skips {
		tenants[i], reasons[i], details[i] = n.Skips[i].TenantID, string(n.Skips[i].Reason), clean(n.Skips[i].Detail)
	}
	_, err = tx.Exec(ctx, `INSERT INTO broadcast_items (broadcast_id, tenant_id, reason, detail)
		SELECT $1, unnest($2::uuid[]), unnest($3::text[]), unnest($4::text[])`, [16]byte(n.ID), tenants, reasons, details)
	return err
}

var (
	moveBroadcasts = prepared("move_broadcasts", `WITH moved AS (UPDATE broadcasts AS b
			SET done = n.upto, accepted = b.accepted + n.accepted, skipped = b.skipped + n.skipped, deliveries = b.deliveries + n.deliveries,
				completed_at = CASE WHEN n.last THEN $8 ELSE NULL::timestamptz END,
				body = CASE WHEN n.last THEN ''::bytea ELSE b.body END, work = CASE WHEN n.last THEN ''::bytea ELSE b.work END
			FROM `+rows(1, "id uuid", "since int4", "upto int4", "accepted int4", "skipped int4", "deliveries int4", "last bool")+` AS n
			WHERE b.id = n.id AND b.done = n.since AND b.completed_at IS NULL RETURNING b.id)
		SELECT expect(count(*), $9, '`+stateFanoutMoved+`') FROM moved`)
	insertBroadcastItems = prepared("broadcast_items", insert("broadcast_items",
		"broadcast_id uuid", "tenant_id uuid", "event_id uuid", "reason text", "detail text"))
)

// addBroadcasts moves the cursors of broadcasts whose parts are in the batch, and stores the results of the parts.
func (c *commit) addBroadcasts(p *pipeline) {
	if len(c.broadcasts) == 0 {
		return
	}
	type item struct {
		broadcast godwit.BroadcastID
		*godwit.BroadcastItem
	}
	var items []item
	for _, b := range c.broadcasts {
		for i := range b.Items {
			items = append(items, item{b.ID, &b.Items[i]})
		}
	}
	a := p.begin()
	column(a, typeID, c.broadcasts, func(b *store.BroadcastPart) { a.id(b.ID) })
	column(a, typeInt4, c.broadcasts, func(b *store.BroadcastPart) { a.int4(b.From) })
	column(a, typeInt4, c.broadcasts, func(b *store.BroadcastPart) { a.int4(b.To) })
	column(a, typeInt4, c.broadcasts, func(b *store.BroadcastPart) { a.int4(b.Accepted()) })
	column(a, typeInt4, c.broadcasts, func(b *store.BroadcastPart) { a.int4(b.Skipped()) })
	column(a, typeInt4, c.broadcasts, func(b *store.BroadcastPart) { a.int4(b.Deliveries) })
	column(a, typeBool, c.broadcasts, func(b *store.BroadcastPart) { a.bool(b.Last) })
	a.scalarTime(c.batch.Now)
	a.scalarInt8(int64(len(c.broadcasts)))
	p.add(moveBroadcasts, nil)

	a = p.begin()
	column(a, typeID, items, func(i item) { a.id(i.broadcast) })
	column(a, typeID, items, func(i item) { a.id(i.TenantID) })
	column(a, typeID, items, func(i item) { a.optionalID(i.EventID) })
	column(a, typeText, items, func(i item) { a.text(string(i.Reason)) })
	column(a, typeText, items, func(i item) { a.text(i.Detail) })
	p.add(insertBroadcastItems, nil)
}

// leaveMovedBroadcasts leaves out parts that do not start at their broadcast's cursor. It locks the other broadcasts.
func (c *commit) leaveMovedBroadcasts(ctx context.Context, tx pgx.Tx) error {
	if len(c.broadcasts) == 0 {
		return nil
	}
	list := make([][16]byte, len(c.broadcasts))
	for i, part := range c.broadcasts {
		list[i] = part.ID
	}
	stands, err := cursors(ctx, tx, `SELECT id, done FROM broadcasts WHERE id = ANY ($1) AND completed_at IS NULL ORDER BY id FOR UPDATE`, list)
	if err != nil {
		return err
	}
	moved := func(part *store.BroadcastPart) bool {
		done, open := stands[part.ID]
		return !open || done != part.From
	}
	for i := range c.batch.Accepts {
		if part := c.batch.Accepts[i].Broadcast; part != nil && moved(part) {
			c.moved = append(c.moved, i)
		}
	}
	c.broadcasts = slices.DeleteFunc(c.broadcasts, moved)
	c.plain = slices.DeleteFunc(c.plain, func(e newEvent) bool { return e.broadcast != nil && moved(e.broadcast) })
	return nil
}

// Broadcast returns a broadcast of an environment.
func (s *broadcasts) Broadcast(ctx context.Context, environment godwit.EnvironmentID, id godwit.BroadcastID) (*godwit.Broadcast, error) {
	var b godwit.Broadcast
	err := s.pool.QueryRow(ctx, broadcastFields+` FROM broadcasts AS b WHERE b.id = $1 AND b.environment_id = $2`,
		[16]byte(id), [16]byte(environment)).Scan(broadcastInto(&b)...)
	if err != nil {
		return nil, failed("read broadcast", err)
	}
	return &b, nil
}

// ListBroadcasts lists the broadcasts of an environment, newest first.
func (s *broadcasts) ListBroadcasts(ctx context.Context, environment godwit.EnvironmentID, p store.Page) ([]godwit.Broadcast, error) {
	var w where
	w.add("environment_id = ?", [16]byte(environment))
	w.page(p)
	r, err := s.pool.Query(ctx, broadcastFields+` FROM broadcasts AS b`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list broadcasts", err)
	}
	list, err := pgx.CollectRows(r, scanBroadcast)
	return list, failed("list broadcasts", err)
}

// ListBroadcastItems lists the tenants of a broadcast that have a result.
func (s *broadcasts) ListBroadcastItems(ctx context.Context, f store.BroadcastFilter, p store.Page) ([]godwit.BroadcastItem, error) {
	r, err := s.pool.Query(ctx, `SELECT i.tenant_id, i.event_id, i.reason, i.detail, coalesce(t.uid, '') FROM broadcast_items AS i
		LEFT JOIN tenants AS t ON t.id = i.tenant_id AND t.deleted_at IS NULL
		WHERE i.broadcast_id = $1 AND ($2::uuid IS NULL OR i.tenant_id < $2) AND (NOT $3 OR i.event_id IS NULL)
		ORDER BY i.tenant_id DESC LIMIT $4`, [16]byte(f.ID), optionalID(p.After), f.Skipped, max(p.Limit, 0))
	if err != nil {
		return nil, failed("list tenants of a broadcast", err)
	}
	list, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (i godwit.BroadcastItem, err error) {
		return i, r.Scan(scanID(&i.TenantID), scanID(&i.EventID), &i.Reason, &i.Detail, &i.TenantUID)
	})
	return list, failed("list tenants of a broadcast", err)
}

// OpenBroadcasts lists incomplete broadcasts, oldest first.
func (s *broadcasts) OpenBroadcasts(ctx context.Context, after godwit.BroadcastID, limit int) ([]store.OpenBroadcast, error) {
	r, err := s.pool.Query(ctx, `SELECT id, done FROM broadcasts WHERE completed_at IS NULL AND id > $1 ORDER BY id LIMIT $2`, [16]byte(after), limit)
	if err != nil {
		return nil, failed("list open broadcasts", err)
	}
	list, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (b store.OpenBroadcast, err error) {
		return b, r.Scan(scanID(&b.ID), &b.Done)
	})
	return list, failed("list open broadcasts", err)
}

// BroadcastWork returns an incomplete broadcast with its event and its tenants.
func (s *broadcasts) BroadcastWork(ctx context.Context, id godwit.BroadcastID) (*store.BroadcastWork, error) {
	w := &store.BroadcastWork{Event: &godwit.Event{}}
	var attributes, carried, work []byte
	err := s.pool.QueryRow(ctx, broadcastFields+`, b.done, b.attributes, b.carried, b.body, b.work FROM broadcasts AS b
		WHERE b.id = $1 AND b.completed_at IS NULL`, [16]byte(id)).
		Scan(append(broadcastInto(&w.Broadcast), &w.Done, &attributes, &carried, &w.Event.Body, &work)...)
	if err != nil {
		return nil, failed("read work of a broadcast", err)
	}
	w.Event.Type, w.Event.ContentType, w.Event.Principal = w.Type, w.ContentType, w.Principal
	w.Work = store.SplitIDs[godwit.TenantID](work)
	return w, failed("read work of a broadcast", errors.Join(decodeMap(attributes, &w.Event.Attributes), decodeCarried(carried, w.Event)))
}

// broadcasts removes results of one expired broadcast, and the broadcast itself after them.
func (w *sweep) broadcasts(ctx context.Context) error {
	if w.EventsBefore.IsZero() {
		return nil
	}
	var id [16]byte
	err := w.pool.QueryRow(ctx, `SELECT id FROM broadcasts WHERE id < $1 AND created_at < $2 AND completed_at IS NOT NULL ORDER BY id LIMIT 1`,
		firstID(w.EventsBefore.Add(skew)), w.EventsBefore).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	w.swept.More = true
	tag, err := w.pool.Exec(ctx, `DELETE FROM broadcast_items WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM broadcast_items WHERE broadcast_id = $1 LIMIT $2))`, id, w.limit)
	if err != nil || tag.RowsAffected() >= int64(w.limit) {
		return err
	}
	tag, err = w.pool.Exec(ctx, `DELETE FROM broadcasts WHERE id = $1`, id)
	w.swept.Broadcasts += tag.RowsAffected()
	return err
}
