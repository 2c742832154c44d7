package postgres

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var (
	// The inner select walks the index of due deliveries and stops at the limit; sizes are read only then.
	claimDue = prepared("claim", `WITH due AS MATERIALIZED (
			SELECT tenant_id, id, event_id, due_at FROM pending_deliveries
			WHERE shard = $1 AND endpoint_id = $2 AND claim_epoch = 0 AND due_at <= $3
			ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED),
		fitting AS MATERIALIZED (
			SELECT due.tenant_id, due.id, e.principal, e.created_at, e.type, e.key, e.content_type, e.attributes, e.body, e.format,
				e.source_id, e.occurred_at, e.carried, row_number() OVER first AS place, sum(octet_length(e.body)) OVER first AS bytes
			FROM due JOIN events AS e ON e.tenant_id = due.tenant_id AND e.id = due.event_id
			WINDOW first AS (ORDER BY due.due_at, due.id))
		UPDATE pending_deliveries AS p SET claim_epoch = $5 FROM fitting AS e
		WHERE p.tenant_id = e.tenant_id AND p.id = e.id AND (e.place = 1 OR e.bytes <= $6)
		RETURNING p.tenant_id, p.id, p.event_id, p.endpoint_id, p.created_at, p.updated_at, p.due_at, p.run_first_at,
			p.attempts, p.last_status, p.run_attempts, p.run_refreshed, 'pending', p.reason, p.run_trigger, p.run_actor,
			e.principal, e.created_at, e.type, e.key, e.content_type, e.attributes, e.body, e.format, e.source_id, e.occurred_at,
			e.carried`)
	// It runs after the claim and sees all that the claim saw, so that the version covers the claimed deliveries.
	nextDue = prepared("next_due", `SELECT (SELECT version FROM config_version WHERE one), (SELECT due_at FROM pending_deliveries
		WHERE shard = $1 AND endpoint_id = $2 AND claim_epoch = 0 ORDER BY due_at LIMIT 1)`)
)

// claims hands due deliveries to the engine.
type claims struct {
	*database
	leases *leases // locks out other claims
}

// ClaimDue claims in one round trip. Its cost depends on the limit, not on the number of waiting deliveries.
func (s *claims) ClaimDue(ctx context.Context, c store.Claim) (*store.Claimed, error) {
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("claim due", err)
	}
	defer conn.Release()
	limit := int64(c.MaxBytes)
	if limit <= 0 {
		limit = math.MaxInt64
	}
	shard := c.EndpointID.Shard()
	out := &store.Claimed{}
	var unreadable error
	p := newPipeline(ctx, conn.Conn().PgConn())
	addHold(p, map[int]int64{shard: c.Epoch}, 0)
	a := p.begin()
	a.scalarInt2(shard)
	a.scalarID(c.EndpointID)
	a.scalarTime(c.Now)
	a.scalarInt8(int64(max(c.Limit, 0)))
	a.scalarInt8(c.Epoch)
	a.scalarInt8(limit)
	p.add(claimDue, func(r *row) {
		w, err := readWork(r)
		if err != nil {
			unreadable = err
			return
		}
		out.Work = append(out.Work, w)
	})
	a = p.begin()
	a.scalarInt2(shard)
	a.scalarID(c.EndpointID)
	p.add(nextDue, func(r *row) { out.ConfigVersion, out.NextDue = r.int8(), r.time() })
	if err := cmp.Or(p.run(), unreadable); err != nil {
		return nil, hotFailed("claim due", err)
	}
	slices.SortFunc(out.Work, func(a, b godwit.Work) int {
		return cmp.Or(a.Delivery.DueAt.Compare(b.Delivery.DueAt), bytes.Compare(a.Delivery.ID[:], b.Delivery.ID[:]))
	})
	return out, nil
}

func readWork(r *row) (godwit.Work, error) {
	var w godwit.Work
	d := &w.Delivery
	r.id((*[16]byte)(&d.TenantID))
	r.id((*[16]byte)(&d.ID))
	r.id((*[16]byte)(&d.EventID))
	r.id((*[16]byte)(&d.EndpointID))
	d.CreatedAt = r.time()
	d.UpdatedAt = r.time()
	d.DueAt = r.time()
	d.Run.FirstAt = r.time()
	d.Attempts = r.int4()
	d.LastStatus = r.int4()
	d.Run.Attempts = r.int4()
	d.Run.Refreshed = r.bool()
	d.Status = godwit.DeliveryStatus(r.text())
	d.Reason = godwit.Reason(r.text())
	d.Run.Trigger = godwit.Trigger(r.text())
	d.Run.Actor = r.text()
	e := &godwit.Event{ID: d.EventID, TenantID: d.TenantID}
	w.Event = e
	r.id((*[16]byte)(&e.Principal))
	e.CreatedAt = r.time()
	e.Type = r.text()
	e.Key = r.text()
	e.ContentType = r.text()
	if err := decodeMap(r.raw(), &e.Attributes); err != nil {
		return w, err
	}
	e.Body = r.bytes()
	e.Format = r.text()
	e.SourceID = r.text()
	e.OccurredAt = r.time()
	return w, decodeCarried(r.raw(), e)
}

// Reclaim first waits for claims still in progress on lost connections. Then it reads all pending deliveries of the endpoint's
// tenant: claimed rows have no index, since nearly every delivery would pass through it, and Reclaim runs only after an answer
// was lost.
func (s *claims) Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error) {
	if err := s.leases.change(ctx, func(pgx.Tx) error { return nil }); err != nil {
		return 0, failed("reclaim", err)
	}
	tag, err := s.pool.Exec(ctx, `UPDATE pending_deliveries SET claim_epoch = 0, due_at = $4
		WHERE tenant_id = (SELECT tenant_id FROM endpoints WHERE id = $1) AND endpoint_id = $1
			AND claim_epoch = $2 AND claim_epoch <> 0 AND NOT id = ANY ($3)`,
		[16]byte(endpoint), epoch, rawIDs(held), now)
	return int(tag.RowsAffected()), failed("reclaim", err)
}

// endpointsDue hops from endpoint to endpoint through the index and reads one entry of each.
var endpointsDue = prepared("endpoints_due", `WITH RECURSIVE hop AS (
		SELECT s.shard, p.endpoint_id, p.due_at FROM unnest($1::int2[]) AS s (shard) CROSS JOIN LATERAL (
			SELECT endpoint_id, due_at FROM pending_deliveries
			WHERE shard = s.shard AND claim_epoch = 0 ORDER BY endpoint_id, due_at LIMIT 1) AS p
		UNION ALL
		SELECT hop.shard, p.endpoint_id, p.due_at FROM hop CROSS JOIN LATERAL (
			SELECT endpoint_id, due_at FROM pending_deliveries
			WHERE shard = hop.shard AND claim_epoch = 0 AND endpoint_id > hop.endpoint_id
			ORDER BY endpoint_id, due_at LIMIT 1) AS p)
	SELECT endpoint_id, due_at FROM hop`)

// EndpointsDue lists endpoints with unclaimed pending deliveries.
func (s *claims) EndpointsDue(ctx context.Context, shards []int) ([]store.EndpointDue, error) {
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("list endpoints due", err)
	}
	defer conn.Release()
	p := newPipeline(ctx, conn.Conn().PgConn())
	a := p.begin()
	column(a, typeInt2, shards, func(s int) { a.int2(s) })
	var list []store.EndpointDue
	p.add(endpointsDue, func(r *row) {
		var d store.EndpointDue
		r.id((*[16]byte)(&d.EndpointID))
		d.NextDue = r.time()
		list = append(list, d)
	})
	if err := p.run(); err != nil {
		return nil, hotFailed("list endpoints due", err)
	}
	return list, nil
}

// BringBack corrects due times that were set while the clock was ahead.
func (s *claims) BringBack(ctx context.Context, now time.Time, endpoints []store.Lateness) (int, error) {
	shards, ids := make([]int16, len(endpoints)), make([][16]byte, len(endpoints))
	after, latest := make([]time.Time, len(endpoints)), make([]time.Time, len(endpoints))
	for i, e := range endpoints {
		shards[i], ids[i], after[i], latest[i] = int16(e.EndpointID.Shard()), e.EndpointID, e.After, e.Latest
	}
	tag, err := s.pool.Exec(ctx, `UPDATE pending_deliveries AS p SET
			due_at = CASE WHEN p.updated_at > $1 THEN $1 + least(greatest(p.due_at - p.updated_at, '0'), e.latest - $1) ELSE $1 END,
			run_first_at = CASE WHEN p.run_first_at > $1 THEN $1 ELSE p.run_first_at END, updated_at = least(p.updated_at, $1)
		FROM unnest($2::int2[], $3::uuid[], $4::timestamptz[], $5::timestamptz[]) AS e (shard, id, after, latest)
		WHERE p.shard = e.shard AND p.endpoint_id = e.id AND p.claim_epoch = 0 AND p.due_at > e.after
			AND (p.updated_at > $1 OR p.due_at > e.latest)`, now, shards, ids, after, latest)
	return int(tag.RowsAffected()), failed("bring due times back", err)
}
